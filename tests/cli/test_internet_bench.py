"""What the fault matrix and the soak keep of what they play. The playing itself is in tests/e2e/test_internet.py."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from internet.faults import Cell, Played, TaskPlan, plan, plan_rounds

from bench.e2e import faults, soak

CELLS = [Cell("api", "committing", "kill"), Cell("redis", "uploading", "stop")]


def played(cells: list[Cell], *broken: str) -> Played:
    return Played(cells, task=1, round=2, outcome="settled", seconds=12.0, back=0.1, broken=list(broken))


def test_a_round_that_did_not_hold_together_stays_when_its_cells_hold_alone() -> None:
    found = faults.Found()
    found.take_in(played(CELLS, "3 units are nowhere"), "2026-01-01T00:00:00+00:00")
    (kept,) = found.together
    assert "not played alone" in found.alone(kept)
    for cell in CELLS:
        found.take_in(played([cell]), "2026-01-01T00:01:00+00:00")
    assert not any(row["broken"] for row in found.cells.values())
    assert (kept["cells"], kept["broken"]) == ([str(cell) for cell in CELLS], ["3 units are nowhere"])
    assert found.alone(kept) == "each holds"
    again = faults.read_back(json.loads(json.dumps(faults.written(found))))
    assert [line for line in faults.page_lines(again) if "3 units" in line and str(CELLS[0]) in line]

    found.take_in(played(CELLS[:1], "slashed"), "2026-01-01T00:02:00+00:00")
    assert found.alone(kept) == f"does not hold: {CELLS[0]}"


def test_what_is_kept_beside_cells_are_rounds_that_no_one_cell_explains() -> None:
    found = faults.Found()
    found.take_in(played(CELLS), "2026-01-01T00:00:00+00:00")
    found.take_in(played(CELLS[:1], "slashed"), "2026-01-01T00:00:00+00:00")
    assert found.together == []
    found.take_in(played([], "5 are left in the pool of an ended task"), "2026-01-01T00:00:00+00:00")
    assert [found.alone(one) for one in found.together] == ["the end of a task: no cell"]


def test_a_round_that_did_not_hold_is_kept_until_its_cells_hold_in_one() -> None:
    found = faults.Found()
    found.take_in(played(CELLS, "slashed"), "2026-01-01T00:00:00+00:00")
    found.take_in(played(CELLS[:1]), "2026-01-01T00:00:00+00:00")
    (again,) = found.rounds_together()
    assert again == CELLS
    found.take_in(played(again, "slashed"), "2026-01-02T00:00:00+00:00")
    assert [one["when"] for one in found.together] == ["2026-01-02T00:00:00+00:00"]
    found.take_in(played(again[::-1]), "2026-01-03T00:00:00+00:00")
    assert found.together == []


def test_a_file_has_each_round_once_and_gives_its_cells_back() -> None:
    found, others = faults.Found(), [Cell("node", "joining", "kill"), Cell("index", "scoring", "kill")]
    found.take_in(played([*CELLS, *others]), "2026-01-01T00:00:00+00:00")
    found.take_in(played(CELLS[:1]), "2026-01-01T00:01:00+00:00")  # the others' round is still what they were played in
    kept = json.loads(json.dumps(faults.written(found)))
    assert [one.get("also", []) for one in kept["rounds"].values()] == [[], [str(CELLS[0])]]
    assert kept["cells"]["kill"] == {"api": {"committing": 1}, "node": {"joining": 2}, "index": {"scoring": 2}}
    again = faults.read_back(kept)
    assert {name: sorted(row.pop("with")) for name, row in again.cells.items()} == {
        name: sorted(row.pop("with")) for name, row in found.cells.items()
    }
    assert again.cells == found.cells


def test_the_page_of_faults_says_what_the_results_say() -> None:
    _, _, rest = faults.PAGE.read_text().partition(faults.BEGIN)
    assert rest.partition(faults.END)[0].strip() == "\n".join(faults.page_lines(faults.read()))


def test_cells_of_disputing_are_played_where_somebody_lies() -> None:
    lie, honest, joining = (Cell("api", phase, "kill") for phase in ("disputing", "uploading", "joining"))
    assert plan([lie]) == [TaskPlan([], [[lie]], "hospital-4")]
    assert plan([lie, honest, joining]) == [TaskPlan([joining], [[honest]]), TaskPlan([], [[lie]], "hospital-4")]
    assert [len(one.rounds) for one in plan_rounds([[lie]] * 6)] == [4, 2]


def test_what_is_done_meanwhile_ends_with_its_error() -> None:
    calls = []

    def fail() -> None:
        calls.append(1)
        raise ValueError("no JSON")

    with soak._meanwhile(0.01, fail) as problems:
        time.sleep(0.2)
    assert [repr(one) for one in problems] == ["ValueError('no JSON')"]
    assert len(calls) == 1
    with soak._meanwhile(0.01, lambda: calls.append(2)) as problems:
        time.sleep(0.2)
    assert problems == []
    assert calls.count(2) > 1
    count = len(calls)
    time.sleep(0.05)
    assert len(calls) == count


class Chain:
    """As much of one as a report asks for."""

    @property
    def tasks(self) -> Chain:
        return self

    def count(self) -> int:
        raise ConnectionError("refused")


class Nothing:
    """A network of which nothing runs."""

    operator, voters = Chain(), ["voter-1"]

    class services:
        @staticmethod
        def names() -> list[str]:
            return []

        @staticmethod
        def down() -> list[str]:
            return ["chain", "api"]


def test_a_soak_that_breaks_before_anything_was_looked_at_reports(tmp_path: Path) -> None:
    broken = soak.Soak(Nothing(), 60.0, 5)  # type: ignore[arg-type]
    with pytest.raises(ConnectionError):
        broken.read()  # is no answer of the API: it ends the reader
    broken.tasks.append(soak.Task(0.0))
    broken.breaks(soak.Stuck("the end of round 3: not within 630 s"))
    result: dict[str, Any] = json.loads(json.dumps(broken.found()))
    assert "round 3" in result["broke"]["what"]
    assert "does not answer" in result["broke"]["where"]
    assert result["broke"]["down"] == ["chain", "api"]
    soak.plot(soak.brief(result), tmp_path)
    assert "round 3" in dict(soak.table(result))["what ended it"]
