"""The notebooks run from their first cell to their last, and give the kind of result that they show."""

from __future__ import annotations

import ast
import doctest
import importlib
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def played(cell: str, names: dict[str, Any]) -> Any:
    """Runs a cell; returns the value of its last line, if that is an expression."""
    tree = ast.parse(cell)
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        tree.body.pop()
    exec(compile(tree, "cell", "exec"), names)  # noqa: S102 our own notebooks
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None


def shown(output: dict[str, Any]) -> set[str]:
    return set(output.get("data", {}))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    book = json.loads(path.read_text())
    names: dict[str, Any] = {}
    for cell in (cell for cell in book["cells"] if cell["cell_type"] == "code"):
        value = played("".join(cell["source"]), names)
        results = [one for one in cell["outputs"] if one["output_type"] == "execute_result"]
        assert (value is not None) == bool(results), cell["source"]
        if "image/png" in shown(results[0] if results else {}):
            assert value._repr_png_().startswith(b"\x89PNG")


def test_there_are_six_and_each_names_the_next() -> None:
    assert len(NOTEBOOKS) == 6
    for before, after in itertools.pairwise(NOTEBOOKS):
        assert after.name in before.read_text()


def test_cheats_are_found_by_hand() -> None:
    book = json.loads(NOTEBOOKS[2].read_text())
    cells = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    values = [played(cell, names) for cell in cells]
    assert values[-1] == [True, False, False, False]
    assert values[2] < 1 / (2**15 - 1)


@pytest.mark.parametrize("module", ["consilium", "consilium.task", "consilium.simulation", "consilium.record"])
def test_examples_in_docstrings_hold(module: str) -> None:
    found = doctest.testmod(importlib.import_module(module))
    assert found.failed == 0
    assert found.attempted > 0 or module != "consilium.task"
