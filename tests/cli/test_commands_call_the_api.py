"""Commands have options, questions and screens. All else they get from `import consilium`, as its other users do."""

from __future__ import annotations

import grimp

ROOMS = ["chain", "client", "lab", "operators", "server", "verify", "zk"]
# By module: what it may import from a room, with the reason.
ALLOWED = {
    # Gives all rooms' errors their exit codes.
    "consilium_cli.main": {"consilium_chain.errors", "consilium_client.errors"},
    # Words of a screen, which `consilium up` shows too.
    "consilium_cli.operator.commands": {"consilium_operators.event_words"},
}
# Of the core room: defaults, words for screens, the log and its screens; parsers of host:port and of a store's place,
# whose errors name the option; the roots of errors, by which an option is told to be wrong; narrowing of a type.
OF_CORE = {
    "artifacts.backends", "connectivity", "defaults", "errors", "faults", "kinds", "live", "logs", "units",
    "visible_text",
}  # fmt: skip


def test_commands_reach_the_rooms_through_the_api() -> None:
    """Imports for annotations are free: they load nothing, and give a screen its types."""
    names = ["consilium", "consilium_core", *(f"consilium_{room}" for room in ROOMS)]
    graph = grimp.build_graph("consilium_cli", *names, exclude_type_checking_imports=True, cache_dir=None)
    modules = {"consilium_cli", *graph.find_descendants("consilium_cli")}
    found = {module: graph.find_modules_directly_imported_by(module) for module in modules}
    assert sum(any(one.split(".")[0] == "consilium" for one in imported) for imported in found.values()) > 18
    around = {
        module: {one for one in imported if one.removeprefix("consilium_").split(".")[0] in ROOMS}
        for module, imported in found.items()
    }
    assert {module: imported for module, imported in around.items() if imported} == ALLOWED
    of_core = {one for imported in found.values() for one in imported if one.startswith("consilium_core")}
    assert of_core == {f"consilium_core.{name}" for name in OF_CORE}
