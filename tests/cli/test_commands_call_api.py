"""Commands have options, questions and screens. All else they get from `import consilium`, as its other users do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import consilium_cli
import pytest

FOLDER = Path(consilium_cli.__file__).parent
ROOMS = {f"consilium_{room}" for room in ("zk", "chain", "client", "server", "verify", "operators", "lab")}
# Folders of the nodes' commands.
NODES = {"doctor", "hospital", "nodes", "voter"}
# By module: what it may import from a room, with the reason.
ALLOWED = {
    "main.py": {"consilium_chain.errors", "consilium_client.errors"},  # gives all rooms' errors their exit codes
    "operator/commands.py": {"consilium_operators.event_words"},  # words of a screen, which `consilium up` shows too
}
MODULES = sorted(
    name for path in FOLDER.rglob("*.py") if (name := path.relative_to(FOLDER).as_posix()).split("/")[0] not in NODES
)


def imported(node: ast.AST) -> Iterator[str]:
    """The modules that run-time code imports; not those of annotations alone."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.ImportFrom(module=str(module), level=0):
                yield module
            case ast.Import(names=names):
                yield from (one.name for one in names)
        yield from imported(child)


def of_rooms(text: str) -> set[str]:
    return {module for module in imported(ast.parse(text)) if module.split(".")[0] in ROOMS}


def test_imports_are_found_wherever_they_are() -> None:
    text = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from consilium_chain.errors import Refused
import consilium, consilium_core.units
def command():
    if True:
        from consilium_lab.errors import LabError
        import consilium_zk.kzg
"""
    assert of_rooms(text) == {"consilium_lab.errors", "consilium_zk.kzg"}


@pytest.mark.parametrize("name", MODULES)
def test_a_command_imports_no_room_below_the_interface(name: str) -> None:
    assert of_rooms((FOLDER / name).read_text()) == ALLOWED.get(name, set())


def test_each_command_is_looked_at() -> None:
    assert {"artifacts.py", "chain.py", "lab.py", "operator/commands.py", "server.py", "verify.py"} <= set(MODULES)
    assert ALLOWED.keys() <= set(MODULES)
