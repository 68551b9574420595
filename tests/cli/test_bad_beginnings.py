"""A newcomer's first commands, each after one thing went wrong: one line names the fault and the way out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import consilium as interface
import pytest
from bad_beginnings import MAKE, NETWORKS, SIMULATING, TABLES, Beginning, Newcomer, in_use
from command_line import CommandLine
from command_line import consilium as consilium
from command_line import own_signals as own_signals
from patients import patients

BEGINNINGS = [*MAKE, *TABLES, *SIMULATING, *NETWORKS]


@pytest.fixture(scope="module")
def drafted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The task of the newcomer's table, and its mapping, by file."""
    folder = tmp_path_factory.mktemp("drafted")
    patients().to_csv(folder / "rows.csv", index=False)
    interface.draft(folder / "rows.csv", "died", "hospital").write(folder / "task.toml")
    return {name: (folder / name).read_text() for name in ("task.toml", "task.mapping.toml")}


@pytest.fixture
def newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Newcomer]:
    with ExitStack() as stack:
        yield Newcomer(tmp_path, monkeypatch, stack)


def test_there_are_forty_at_least_and_none_twice() -> None:
    assert len(BEGINNINGS) >= 40
    assert len({(one.typed, one.line) for one in BEGINNINGS}) == len(BEGINNINGS)


@pytest.mark.parametrize("command", ["demo --output first", "up --home first"])
def test_a_second_run_in_a_folder_leaves_the_first_ones_files(
    consilium: CommandLine, newcomer: Newcomer, command: str
) -> None:
    log = newcomer.folder / "first" / "logs" / "hospital-1.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text("{}")
    in_use("first")(newcomer)
    code, said = consilium(*command.split())
    assert (code, "FolderInUse" in said) == (1, True), said
    assert log.read_text() == "{}"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("beginning", BEGINNINGS, ids=lambda one: f"{one.typed} -> {one.line[:30]}")
def test_one_line_names_the_fault_and_the_way_out(
    consilium: CommandLine, newcomer: Newcomer, drafted: dict[str, str], beginning: Beginning
) -> None:
    for name, text in drafted.items() if "simulate" in beginning.typed else ():
        (newcomer.folder / name).write_text(text)
    beginning.went_wrong(newcomer)
    program, *arguments = shlex.split(beginning.typed)
    before = (newcomer.folder / "rows.csv").read_bytes()
    code, said = (newcomer.checkout.make if program == "make" else consilium)(*arguments)
    assert code == beginning.code, said
    assert "Traceback" not in said
    found = [line for line in said.splitlines() if re.search(beginning.line, line)]
    assert len(found) == 1, said
    assert len(re.findall(r"error \(\w+\): ", said)) <= 1
    assert (newcomer.folder / "rows.csv").read_bytes() == before
