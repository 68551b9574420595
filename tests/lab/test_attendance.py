"""Hospitals that miss rounds of a simulation: the contract's rules for cohorts, pay and the task's end."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import consilium
import numpy as np
import pytest
from command_line import CommandLine, done, refused
from command_line import consilium as command
from consilium_chain.ledger.structs import Role, VoidReason
from consilium_chain.settlement.settlement import Reason, Settlement
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec, section_digests
from consilium_client.data.examples import Examples
from consilium_client.hospital.learning import Updates
from consilium_lab.demo.datasets import deal_wdbc, examples_of
from consilium_lab.demo.references import row_weight
from consilium_lab.demo.task_file import TaskSettings, task_toml
from consilium_lab.errors import LabError
from consilium_lab.simulation import run
from consilium_lab.simulation.attendance import Attendance, least_present, viable
from consilium_lab.simulation.results import as_json, verdict
from consilium_lab.simulation.run import Simulation, simulate
from hypothesis import given, settings
from hypothesis import strategies as st
from patients import patients
from raised_faults import raises_fault

__all__ = ["command"]

WINDOWS = dict.fromkeys(("join", "commit", "upload", "publish", "score", "reveal"), 600)
Script = Callable[..., None]


class Wards:
    """Six hospitals with the demo's rows, and two voters."""

    def __init__(self, *, masked: bool = True, cohorts: int = 2, rounds: int = 3, statistics: str = "schema") -> None:
        data = deal_wdbc(6, 2, 0)
        terms = TaskSettings(rounds=rounds, cohorts=cohorts, seats=2, windows=WINDOWS, masked=masked)
        text = task_toml(data, terms)
        self.raw = text.replace('statistics = "schema"', f'statistics = "{statistics}"').encode()
        self.hospitals = self._named(examples_of(data.hospitals, data.schema), "hospital")
        self.voters = self._named(examples_of(data.held_out, data.schema), "voter")

    @property
    def spec(self) -> TaskSpec:
        return parse_task_spec(self.raw)

    def play(self, dropouts: float = 0.0, seed: int = 0) -> Simulation:
        return simulate(self.raw, self.hospitals, self.voters, seed, compared=False, dropouts=dropouts)

    @staticmethod
    def _named(parts: list[Examples], kind: str) -> dict[str, Examples]:
        return {f"{kind}-{index}": part for index, part in enumerate(parts)}


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """Sets the hospitals that miss the statistics round, round 1, and so on; none miss later ones."""

    def write(*absent: set[int]) -> None:
        given: Iterator[set[int]] = iter(absent)
        monkeypatch.setattr(Attendance, "draw", lambda _: frozenset(next(given, set())))

    return write


SPEC, WARDS = Wards().spec, Wards(masked=False, rounds=2)


def reasons(settlement: Settlement) -> dict[int, Reason]:
    return {one.index: one.reason for one in settlement.accounts if one.role is Role.HOSPITAL}


# --- rules ---------------------------------------------------------------------------------------------------------


@given(st.integers(1, 256), st.booleans(), st.integers(3, 8))
def test_a_masked_cohort_needs_two_thirds_and_every_cohort_its_minimum(size: int, masked: bool, minimum: int) -> None:
    """`Training._least` in fractions instead of whole numbers."""
    task = SPEC.model_copy(
        update={
            "rounds": SPEC.rounds.model_copy(update={"min_cohort_size": minimum}),
            "update": SPEC.update.model_copy(update={"masked": masked}),
        }
    )
    least = least_present(size, task)
    assert least >= minimum
    assert not masked or least * 3 >= 2 * size
    assert least == minimum or (masked and (least - 1) * 3 < 2 * size)
    for missing in {0, max(size - least, 0), max(size - least + 1, 0)}:
        expected = [0] if size - missing >= least else []
        assert viable([list(range(size))], set(range(missing)), task) == expected


@given(st.integers(0, 2**32), st.lists(st.floats(0, 1), min_size=2, max_size=2))
def test_a_hospital_that_is_absent_at_a_small_chance_is_absent_at_a_greater_one(
    seed: int, chances: list[float]
) -> None:
    low, high = (Attendance(20, chance, seed) for chance in sorted(chances))
    for _ in range(5):
        assert low.draw() <= high.draw()


def test_chances_of_nought_and_one_are_certain_and_others_are_met() -> None:
    assert [Attendance(7, chance, 3).draw() for chance in (0.0, 1.0)] == [frozenset(), frozenset(range(7))]
    attendance = Attendance(100, 0.3, 0)
    missed = sum(len(attendance.draw()) for _ in range(100))
    assert abs(missed - 3_000) < 5 * math.sqrt(10_000 * 0.3 * 0.7)
    for chance in (-0.1, 1.1, math.nan):
        with raises_fault(LabError, "SettingOutOfRange", match="0 to 1"):
            Attendance(3, chance, 0)


# --- rounds --------------------------------------------------------------------------------------------------------


def test_an_absent_hospital_earns_nothing_and_the_others_go_on_without_it(script: Script) -> None:
    wards = Wards(cohorts=1)
    script(set(), {2}, {0, 5})
    found = wards.play()
    for played, absent in zip(found.rounds, ({2}, {0, 5}, set()), strict=True):
        assert (set(played.absent), played.viable) == (absent, [0])
        assert sorted(index for cohort in played.cohorts for index in cohort) == list(range(6)), "they come back"
        given = reasons(played.settlement)
        assert {index for index, reason in given.items() if reason is Reason.NOT_COMMITTED} == absent
        assert set(given.values()) & {Reason.PAID, Reason.NO_IMPROVEMENT}
    assert set(found.slashed.values()) == {0}
    assert found.rounds[-1].metrics["accuracy"] > 0.8
    assert "absent: hospital-2" in verdict(found, found.rounds[0])
    assert [one["absent"] for one in as_json(found)["rounds"]] == [["hospital-2"], ["hospital-0", "hospital-5"], []]


@pytest.mark.parametrize("statistics", ["schema", "exact"])
def test_a_sum_is_of_the_present_hospitals_by_weight(
    script: Script, monkeypatch: pytest.MonkeyPatch, statistics: str
) -> None:
    wards = Wards(cohorts=1, rounds=1, statistics=statistics)
    script({1}, {0, 4})
    rows = [part.rows for part in wards.hospitals.values()]
    assert len(set(rows)) > 2
    monkeypatch.setattr(Updates, "learn", lambda own, round_, base, rows, *_: np.full(len(base), len(rows[1]) / 10_000))
    for name, value in (("accept_floor", -1.0), ("harmful_below", -2.0)):
        wards.raw = re.sub(f"{name} = .*".encode(), f"{name} = {value}".encode(), wards.raw)
    found = wards.play()
    assert found.rounds[0].settlement.accepted == 1
    present = [index for index in range(6) if index not in {0, 4}]
    weights = [row_weight(rows[index], wards.spec) for index in present]
    expected = np.average([rows[index] / 10_000 for index in present], weights=weights)
    update = wards.spec.update
    step = update.value_range / (2 ** (update.bits - 1) - 1)
    assert np.abs(found.model - found.first - expected).max() < 2 * step


def test_a_cohort_with_too_few_commits_has_no_sum_and_no_slash(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    wards = Wards(cohorts=2)
    cohorts = [[0, 1, 2], [3, 4, 5]]
    monkeypatch.setattr(run, "assigned", lambda *_: cohorts)
    script(set(), {1})
    found = wards.play()
    first = found.rounds[0]
    assert (first.viable, first.settlement.void) == ([1], VoidReason.NONE)
    given = reasons(first.settlement)
    assert (given[1], given[0], given[2]) == (Reason.NOT_COMMITTED, Reason.NOT_IN_SUM, Reason.NOT_IN_SUM)
    assert given[3] in (Reason.PAID, Reason.NO_IMPROVEMENT, Reason.REJECTED)
    assert first.settlement.burnt == 0
    assert not first.settlement.accepted & 1
    # Its fee goes by the weight that it brought into sums, of all that was committed.
    aggregator = first.settlement.account(Role.AGGREGATOR)
    assert 0 < aggregator.part < aggregator.whole
    assert "hospital-0, hospital-2: too few for a sum" in verdict(found, first)


def test_a_round_without_a_sum_changes_no_model_and_no_money(script: Script) -> None:
    wards = Wards(cohorts=1)
    script(set(), set(), {0, 1, 2}, set())
    found = wards.play()
    before, void, after = found.rounds
    assert (void.viable, void.settlement.void) == ([], VoidReason.TOO_FEW_HOSPITALS)
    assert np.array_equal(void.model, before.model)
    assert void.metrics == before.metrics
    assert void.settlement.paid == void.settlement.burnt == 0
    assert (void.settlement.pool_left, void.settlement.forfeited) == (
        before.settlement.pool_left, before.settlement.forfeited,
    )  # fmt: skip
    assert set(reasons(void.settlement).values()) == {Reason.VOID}
    # Nodes resume until the sums are published, and this round had none.
    assert [sorted(cohort) for cohort in after.cohorts] == [[3, 4, 5]]
    assert {index for index, reason in reasons(after.settlement).items() if reason is Reason.SAT_OUT} == {0, 1, 2}
    assert "void: too few hospitals" in verdict(found, void)
    pool = found.spec.money.pool * TOKEN
    assert sum(found.paid.values()) + after.settlement.pool_left == pool


def test_those_who_sat_out_a_round_are_back_after_it(script: Script) -> None:
    script(set(), {0, 1, 2}, {3})
    found = Wards(cohorts=1, rounds=3).play()
    assert [sorted(index for cohort in one.cohorts for index in cohort) for one in found.rounds] == [
        [0, 1, 2, 3, 4, 5], [3, 4, 5], [0, 1, 2, 4, 5],
    ]  # fmt: skip
    assert found.rounds[1].viable == [], "two of three commits are fewer than the least of a cohort"


def test_a_task_ends_when_fewer_are_left_than_a_cohort_takes(script: Script) -> None:
    script(set(), set(), {0, 1, 2, 3})
    found = Wards(cohorts=1).play()
    assert [one.number for one in found.rounds] == [1, 2]


@pytest.mark.parametrize("statistics", ["schema", "exact"])
def test_a_task_ends_with_a_void_statistics_round(script: Script, statistics: str) -> None:
    script({0, 1, 2})
    found = Wards(statistics=statistics).play()
    assert found.rounds == []
    assert np.array_equal(found.model, found.first)
    assert sum(found.paid.values()) == 0
    known = {math.isfinite(value) for value in found.start.values()}
    assert known == {statistics == "schema"}, "without statistics nothing is standardised, so nothing is measured"


def test_absences_follow_the_seed_and_leave_the_cohorts_alone() -> None:
    wards = Wards(masked=False, cohorts=2, rounds=2)
    first, again, other = (wards.play(0.3, seed) for seed in (1, 1, 2))
    assert [one.absent for one in first.rounds] == [one.absent for one in again.rounds]
    assert [one.absent for one in first.rounds] != [one.absent for one in other.rounds]
    assert first.rounds[0].cohorts == wards.play(0.0, 1).rounds[0].cohorts


@settings(max_examples=6)
@given(st.integers(0, 5), st.floats(0, 0.6))
def test_money_is_conserved_with_any_absences(seed: int, dropouts: float) -> None:
    found = WARDS.play(dropouts, seed)
    left = found.rounds[-1].settlement.pool_left if found.rounds else found.spec.money.pool * TOKEN
    assert sum(found.paid.values()) + left == found.spec.money.pool * TOKEN
    for one in found.rounds:
        for index, reason in reasons(one.settlement).items():
            missed = index in one.absent and one.settlement.void is VoidReason.NONE
            assert (reason is Reason.NOT_COMMITTED) == missed
        assert not one.settlement.accepted & ~sum(1 << k for k in one.viable)


def test_the_dashboards_vector_is_a_file_of_today() -> None:
    """`dashboard/tests/simulated.test.ts` reads it."""
    vector = json.loads((Path(__file__).parents[1] / "vectors" / "simulation.json").read_text())
    wards = Wards(rounds=3)
    written = json.loads(json.dumps(as_json(wards.play(0.2)), allow_nan=False))
    assert [*written] == [*vector]
    assert written["sections"] == vector["sections"]
    for name in ("round", "cohorts", "judged", "accepted", "absent", "slashed", "void"):
        assert [one[name] for one in written["rounds"]] == [one[name] for one in vector["rounds"]]
    assert {key for one in vector["rounds"] for key in one} == {key for one in written["rounds"] for key in one}
    assert sum(int(one["paid"]) for one in written["rounds"]) == sum(int(paid) for paid in written["paid"].values())


def test_section_digests_say_which_section_differs() -> None:
    wards = Wards()
    text = wards.raw.decode()
    same = f"# a comment\n{text}".replace('name = "demo-wdbc"', 'name = "another"', 1).replace(
        "commit = 600", "commit = 900"
    )
    assert same != text
    assert section_digests(parse_task_spec(same.encode())) == section_digests(wards.spec)
    changed = section_digests(parse_task_spec(text.replace("rounds = 3", "rounds = 4").encode()))
    assert {name for name, digest in section_digests(wards.spec).items() if changed[name] != digest} == {"rounds"}


# --- from outside --------------------------------------------------------------------------------------------------


def test_the_command_and_python_take_a_chance(tmp_path: Path, command: CommandLine) -> None:
    patients().to_csv(tmp_path / "own.csv", index=False)
    done(command("task", "new", "--from", "own.csv", "--label", "died", "--sites", "hospital", "--output", "task.toml"))
    rows = ("simulate", "task.toml", "--table", "own.csv", "--sites", "hospital", "--voters", "2")
    # Of four hospitals in one masked cohort, fewer than three commit in the statistics round.
    done(command(*rows, "--dropouts", "1", "--page", "page.html"), "The task ended early: too few hospitals were left")
    refused(command(*rows, "--dropouts", "1.5"), "SettingOutOfRange", "the chance of dropouts cannot be 1.5")
    task = consilium.Task.read(tmp_path / "task.toml")
    found = consilium.simulate(task, table=tmp_path / "own.csv", sites="hospital", voters=2, seed=1, dropouts=0.3,
                               mapping=tmp_path / "task.mapping.toml")  # fmt: skip
    assert list(found.rounds["absent"]) == [len(one.absent) for one in found.details.rounds]
