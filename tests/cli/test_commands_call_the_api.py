"""Commands ask and print; `import consilium` does the work."""

from __future__ import annotations

import grimp

# Packages of commands that have no way around the API.
COMMANDS = ["doctor", "hospital", "nodes", "voter"]
ROOMS = {"chain", "client", "lab", "operators", "server", "verify", "zk"}
# Of the core room: defaults, words for screens, the log's screens; the parser of host:port, whose error names the
# option; the root of errors, by which an option is told to be wrong; narrowing of a profile's type.
OF_CORE = {"connectivity", "defaults", "errors", "kinds", "live", "units", "visible_text"}


def test_commands_reach_the_rooms_through_the_api() -> None:
    """Imports for annotations are free: they load nothing, and give a screen its types."""
    rooms = ["consilium", "consilium_core", *(f"consilium_{room}" for room in sorted(ROOMS))]
    graph = grimp.build_graph("consilium_cli", *rooms, exclude_type_checking_imports=True, cache_dir=None)
    allowed = {f"consilium_core.{name}" for name in OF_CORE}
    found: dict[str, set[str]] = {}
    for package in COMMANDS:
        for module in {f"consilium_cli.{package}", *graph.find_descendants(f"consilium_cli.{package}")}:
            found[module] = graph.find_modules_directly_imported_by(module)
    assert sum("consilium" in {one.partition(".")[0] for one in imported} for imported in found.values()) > 8
    around = {
        (module, one)
        for module, imported in found.items()
        for one in imported
        if one not in allowed and one.partition(".")[0] not in ("consilium", "consilium_cli")
    }
    assert around == set()
    assert allowed <= {one for imported in found.values() for one in imported}, "these need not be allowed"
