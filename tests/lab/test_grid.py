"""One task in several forms: what is played, what is behind, and what is proposed."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import consilium
import numpy as np
import pandas as pd
import pytest
from command_line import CommandLine, done, refused
from command_line import consilium as command
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_lab.errors import LabError
from consilium_lab.simulation.grid import NEAR, GridRow, forms, frontier, proposed
from hypothesis import given
from hypothesis import strategies as st
from patients import patients
from raised_faults import raises_fault

__all__ = ["command"]

FEATURES = "\n".join(f'[[data.features]]\nname = "x{place}"\nmin = 0\nmax = 1' for place in range(60))
WIDE = (
    f'name = "wide"\n[data]\nlabel = "y"\nclasses = ["no", "yes"]\n{FEATURES}\n[model]\nname = "mlp"\nhidden = [16]\n'
)


def test_each_combination_is_a_task_file_of_its_own() -> None:
    spec = parse_task_spec(WIDE.encode())
    found = forms(spec, ["codec", "bits"])
    codecs = {"dense", "hash 1/10", "hash 1/50", "hash 1/100", "lowrank 1", "lowrank 4"}
    assert {words["codec"] for words, _ in found} == codecs
    assert len(found) == 3 * len(codecs)
    for words, text in found:
        form = parse_task_spec(text.encode())
        assert (form.update.bits, form.data, form.model) == (int(words["bits"]), spec.data, spec.model)
        kind, _, part = words["codec"].partition(" ")
        assert form.update.codec.name == kind
        if kind == "hash":
            assert form.coordinates == spec.parameters // int(part[2:])


def test_what_saves_nothing_or_fits_no_rule_is_no_form() -> None:
    small = parse_task_spec(WIDE.replace(FEATURES, FEATURES[: FEATURES.index("[[", 5)]).encode())
    # Of 49 parameters a fiftieth is no number.
    assert [words["codec"] for words, _ in forms(small, ["codec"])] == ["dense", "hash 1/10", "lowrank 1", "lowrank 4"]
    exact = parse_task_spec(f'statistics = "exact"\n{WIDE}'.encode())
    assert [words["epsilon"] for words, _ in forms(exact, ["epsilon"])] == ["none"]
    with raises_fault(LabError, "GridUnknown", match="codec, outer, epochs, bits, epsilon"):
        forms(small, ["codec", "colour"])


def row(metric: float, size: int, accepted: float = 1.0) -> GridRow:
    return GridRow({"codec": str(size)}, {"auc": metric}, size, 1, 1, 1, None, accepted, "")


@given(st.lists(st.tuples(st.sampled_from([0.5, 0.7, 0.9, math.nan]), st.integers(1, 5)), min_size=1, max_size=8))
def test_the_frontier_has_the_best_for_each_size_and_none_that_is_beaten(points: list[tuple[float, int]]) -> None:
    rows = frontier([row(metric, size) for metric, size in points], "auc")
    for one in rows:
        better = [
            other for other in rows
            if other.bytes_a_round <= one.bytes_a_round and np.nan_to_num(other.metrics["auc"], nan=-1)
            > np.nan_to_num(one.metrics["auc"], nan=-1)
        ]  # fmt: skip
        assert not (one.is_frontier and better)
    least = min(one.bytes_a_round for one in rows)
    assert any(one.is_frontier for one in rows if one.bytes_a_round == least)


def test_the_cheapest_near_the_best_is_proposed_unless_its_cohorts_are_rejected() -> None:
    rows = [row(0.9, 100), row(0.9 - NEAR / 2, 10), row(0.9 - 3 * NEAR, 1), row(0.95, 1, accepted=0.2)]
    assert proposed(rows, "auc") is rows[1]
    assert proposed([row(math.nan, 3), row(math.nan, 2)], "auc").bytes_a_round == 2


@pytest.fixture
def own(tmp_path: Path, command: CommandLine) -> Path:
    """A folder with a table, its task file and its mapping."""
    patients().to_csv(tmp_path / "own.csv", index=False)
    done(command("task", "new", "--from", "own.csv", "--label", "died", "--sites", "hospital", "--output", "task.toml"))
    return tmp_path


def test_python_and_the_command_line_say_the_same(own: Path, command: CommandLine) -> None:
    rows: dict[str, Any] = {
        "table": own / "own.csv",
        "sites": "hospital",
        "voters": 2,
        "mapping": own / "task.mapping.toml",
    }
    found = consilium.simulate_grid(consilium.Task.read(own / "task.toml"), ["bits"], **rows)
    assert isinstance(found.frame, pd.DataFrame)
    assert list(found.frame["bits"]) == ["4", "8", "16"]
    assert list(found.frame["bytes"]) == sorted(found.frame["bytes"])
    said = command(
        "simulate", "task.toml", "--table", "own.csv", "--sites", "hospital", "--voters", "2", "--grid", "bits",
        "--output", "rows.json", "--page", "page.html", "--proposed", "next.toml",
    )  # fmt: skip
    done(said, "proposed", "written")
    told = json.loads((own / "rows.json").read_text())
    assert [one["bytes"] for one in told["rows"]] == list(found.frame["bytes"])
    assert (own / "next.toml").read_text() == found.proposed.task_file
    assert "Proposed" in (own / "page.html").read_text()
    parse_task_spec((own / "next.toml").read_bytes())


@pytest.mark.usefixtures("own")
def test_nonsense_is_refused_in_words(command: CommandLine) -> None:
    rows = ("simulate", "task.toml", "--table", "own.csv", "--sites", "hospital")
    refused(command(*rows, "--grid", "codec,colour"), "GridUnknown", "'colour'", "codec, outer, epochs, bits, epsilon")
    refused(command(*rows, "--proposed", "next.toml"), "belongs to --grid", code=2)
