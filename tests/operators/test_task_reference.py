"""The task file's reference: each key of the schema, with what the schema itself enforces."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_cli.main import app
from consilium_operators.task_reference import EXAMPLES, Key, as_markdown, reference
from pydantic import BaseModel
from task_files import SALE
from typer.testing import CliRunner


def models(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """The section classes that a class is made of, and itself."""

    def within(annotation: Any) -> Iterator[type[BaseModel]]:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from models(annotation)
        for inner in getattr(annotation, "__args__", ()):
            yield from within(inner)

    yield kind
    for field in kind.model_fields.values():
        yield from within(field.annotation)


def test_it_has_every_key_of_the_schema_with_a_meaning() -> None:
    written = [key.name for part in reference() for key in part.keys]
    choosers = {"kind", "name", "codec", "plugin", "question", "reader", "window"}  # they stand in the titles
    sections = {name for name, field in TaskSpec.model_fields.items() if name not in ("name", "statistics")}
    for kind in models(TaskSpec):
        for name in kind.model_fields:
            assert name in written or name in choosers | sections, f"{kind.__name__}.{name}"
    assert {part.section for part in reference()} == sections | {
        "", "data.features", "data.question", "data.reader", "data.window", "judging.plugin", "update.codec"
    }  # fmt: skip
    for part in reference():
        for key in part.keys:
            assert len(key.meaning.split()) > 0, f"{part.title} {key.name}"


def numeric(key: Key) -> float | None:
    """The upper bound of a number, as the reference writes it."""
    found = re.search(r"^(?:whole )?number, .*?(?:to|at most) (-?[\d_.]+)", key.kind)
    return None if found is None else float(found[1].replace("_", ""))


NEEDED = {"privacy": "epsilon = 1\nmax_grad_norm = 1\n", "sale": SALE.removeprefix("[sale]\n")}


@pytest.mark.parametrize("section", ["training", "privacy", "update", "rounds", "judging", "money", "windows", "sale"])
def test_bounds_are_enforced(section: str) -> None:
    """One step above a bound is refused, with the key's name."""
    (part,) = (part for part in reference() if part.section == section)
    bounded = [(key, most) for key in part.keys if (most := numeric(key)) is not None]
    assert bounded or section == "update"
    needed = NEEDED.get(section, "")
    for key, most in bounded:
        above = int(most) + 1
        lines = re.sub(rf"^{key.name} = .*\n", "", needed, flags=re.MULTILINE) + f"{key.name} = {above}\n"
        with pytest.raises(SpecInvalid, match=rf"{section}\.{key.name}"):
            parse_task_spec(f"{EXAMPLES['a table']}[{section}]\n{lines}".encode())


def test_defaults_are_the_schemas() -> None:
    spec = parse_task_spec(EXAMPLES["a table"].encode())
    for part in reference():
        if part.section in ("training", "update", "rounds", "judging", "money", "windows"):
            values = getattr(spec, part.section)
            for key in part.keys:
                written = None if key.default == "–" else tomllib.loads(f"it = {key.default}")["it"]
                assert written == getattr(values, key.name), key.name


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_shortest_files_are_tasks(kind: str) -> None:
    parse_task_spec(EXAMPLES[kind].encode())


def test_the_command_shows_a_section_or_a_page() -> None:
    runner = CliRunner()
    ran = runner.invoke(app, ["task", "reference", "judging"], env={"COLUMNS": "80"})
    assert ran.exit_code == 0
    assert "accept_floor" in ran.output
    assert "pool" not in ran.output
    assert all(len(line) <= 80 for line in ran.output.splitlines())
    assert runner.invoke(app, ["task", "reference", "--markdown"]).output == as_markdown()
    assert "none of data, model" in " ".join(runner.invoke(app, ["task", "reference", "x"]).output.split())
    assert "accept_floor" in runner.invoke(app, ["task", "reference"]).output
