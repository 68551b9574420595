"""A hospital's charges are never lost and never made twice: over restarts, crashes, processes and tasks."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from consilium_client.errors import BudgetError, PrivacyError
from consilium_client.privacy.accountant import Budget, Charge, PrivacyAccountant
from consilium_client.privacy.dp_sgd import Mechanism, epsilon
from hypothesis import given, settings
from hypothesis import strategies as st
from opacus.accountants import RDPAccountant
from raised_faults import raises_fault

DELTA = 1e-5
ROUND = Mechanism(4.5, 1.0, 10)  # four of them cost less than 8, five more
KILLER = Path(__file__).resolve().parents[1] / "epsilon_killer.py"


def charge(round_: int, task: str = "t", mechanism: Mechanism = ROUND, delta: float = DELTA) -> Charge:
    return Charge.of(task, round_, mechanism, delta)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "privacy.jsonl"


def test_charges_outlast_their_process_and_are_for_their_owner_alone(path: Path) -> None:
    PrivacyAccountant(path).charge(charge(1), 8.0)
    spent = PrivacyAccountant(path).charge(charge(2), 8.0)
    assert PrivacyAccountant(path).charges() == [charge(1), charge(2)]
    assert spent == epsilon([ROUND, ROUND], DELTA)
    assert path.stat().st_mode & 0o777 == 0o600


POSITIVE = st.floats(0, exclude_min=True, allow_infinity=False)
CHARGES = st.builds(
    Charge,
    task=st.text(),
    round=st.integers(0, 10**9),
    noise_multiplier=POSITIVE,
    sample_rate=st.floats(0, 1, exclude_min=True),
    steps=st.integers(1, 10**9),
    delta=st.floats(0, 1, exclude_min=True, exclude_max=True),
)


@given(CHARGES)
def test_a_charge_is_read_back_to_the_last_bit(one: Charge) -> None:
    line = one.model_dump_json()
    assert Charge.model_validate_json(line) == one
    assert "\n" not in line


def test_a_round_trained_again_is_charged_once(path: Path) -> None:
    first = PrivacyAccountant(path).charge(charge(1), 8.0)
    before = path.read_bytes()
    assert PrivacyAccountant(path).charge(charge(1), 8.0) == first
    assert path.read_bytes() == before


def test_one_that_left_uncharged_is_charged_over_any_limit_and_no_other_is_changed(path: Path) -> None:
    ledger = PrivacyAccountant(path)
    for round_ in range(4):
        ledger.charge(charge(round_), 8.0)
    other = charge(3, mechanism=Mechanism(9.0, 1.0, 10))
    assert ledger.make_up([other, charge(4), charge(5)]) == [charge(4), charge(5)]
    assert ledger.charges() == [charge(round_) for round_ in range(6)]
    path.write_bytes(path.read_bytes()[:-20])
    assert PrivacyAccountant(path).make_up([charge(5)]) == [charge(5)]
    assert PrivacyAccountant(path).make_up([charge(5)]) == []
    with raises_fault(BudgetError, "BudgetExceeded"):
        ledger.charge(charge(6), 8.0)
    assert ledger.charges() == [charge(round_) for round_ in range(6)]


@pytest.mark.parametrize(
    "now", [Mechanism(4.6, 1.0, 10), Mechanism(4.5, 0.5, 10), Mechanism(4.5, 1.0, 9)], ids=["noise", "rate", "steps"]
)
def test_a_round_is_charged_in_one_way(path: Path, now: Mechanism) -> None:
    ledger = PrivacyAccountant(path)
    ledger.charge(charge(1), 8.0)
    before = path.read_bytes()
    with raises_fault(PrivacyError, "ChargeChanged") as caught:
        ledger.charge(charge(1, mechanism=now), 8.0)
    assert (caught.value.values["task"], caught.value.values["round"]) == ("t", 1)
    assert path.read_bytes() == before


def test_a_round_that_came_back_after_a_later_one_is_not_trained_again(path: Path) -> None:
    ledger = PrivacyAccountant(path)
    for round_ in (1, 2):
        ledger.charge(charge(round_), 8.0)
    ledger.charge(charge(1, task="another"), 8.0)
    before = path.read_bytes()
    with raises_fault(PrivacyError, "RoundPassed") as caught:
        PrivacyAccountant(path).charge(charge(1), 8.0)
    assert (caught.value.values["task"], caught.value.values["round"]) == ("t", 1)
    assert path.read_bytes() == before
    ledger.charge(charge(2), 8.0)


def test_what_a_task_allows_is_not_exceeded(path: Path) -> None:
    ledger = PrivacyAccountant(path)
    for round_ in range(4):
        ledger.charge(charge(round_), 8.0)
    before = path.read_bytes()
    with raises_fault(BudgetError, "BudgetExceeded") as caught:
        PrivacyAccountant(path).charge(charge(4), 8.0)
    found = caught.value.values
    assert (found["whose"], found["allowed"], found["delta"]) == ("the task", 8.0, DELTA)
    assert (found["spent"], found["would_be"]) == (epsilon([ROUND] * 4, DELTA), epsilon([ROUND] * 5, DELTA))
    assert path.read_bytes() == before
    ledger.charge(charge(4, task="another"), 8.0)  # which has a budget of its own


def test_all_tasks_together_are_held_against_the_hospitals_own_limit(path: Path) -> None:
    ledger, own = PrivacyAccountant(path), Budget(8.0, 1e-6)
    affordable = max(n for n in range(9) if epsilon([ROUND] * n, own.delta) <= own.epsilon)
    for number in range(affordable):
        ledger.charge(charge(1, task=f"t{number}"), 8.0, own)
    before = path.read_bytes()
    with raises_fault(BudgetError, "BudgetExceeded") as caught:
        ledger.charge(charge(1, task="one more"), 8.0, own)
    found = caught.value.values
    assert (found["whose"], found["allowed"], found["delta"]) == ("this hospital", 8.0, 1e-6)
    assert found["spent"] <= 8.0 < found["would_be"]
    assert path.read_bytes() == before


def test_a_task_that_cannot_be_paid_for_as_a_whole_is_known_before_it_begins(path: Path) -> None:
    ledger = PrivacyAccountant(path)
    ledger.require_affordable([charge(round_) for round_ in range(4)], 8.0)
    with raises_fault(BudgetError, "BudgetExceeded"):
        ledger.require_affordable([charge(round_) for round_ in range(5)], 8.0)
    ledger.charge(charge(0), 8.0)
    ledger.require_affordable([charge(round_) for round_ in range(4)], 8.0)  # of which one is paid for
    with raises_fault(BudgetError, "BudgetExceeded"):
        ledger.require_affordable([charge(round_, task="u") for round_ in range(4)], 8.0, Budget(8.0, DELTA))
    assert ledger.charges() == [charge(0)]


MECHANISMS = st.builds(
    Mechanism,
    st.sampled_from([0.6, 1.0, 2.5, 17.0]),
    st.sampled_from([0.01, 0.2, 0.53, 1.0]),
    st.integers(1, 40),
)


@given(st.lists(MECHANISMS, min_size=1, max_size=6), st.sampled_from([1e-7, 1e-5, 1e-3]))
@settings(max_examples=8)
def test_the_cost_of_any_history_is_that_of_opacus(history: list[Mechanism], delta: float) -> None:
    accountant = RDPAccountant()
    accountant.history = [(one.noise_multiplier, one.sample_rate, one.steps) for one in history]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the best order is the last one tried
        wanted = accountant.get_epsilon(delta)
    assert epsilon(history, delta) == pytest.approx(wanted, rel=0, abs=1e-9 * max(1.0, wanted))


def test_nothing_costs_nothing() -> None:
    assert epsilon([], DELTA) == 0.0


def test_a_torn_last_line_was_never_charged(path: Path) -> None:
    PrivacyAccountant(path).charge(charge(1), 8.0)
    whole = path.stat().st_size
    PrivacyAccountant(path).charge(charge(2), 8.0)
    raw = path.read_bytes()
    for cut in range(whole, len(raw)):
        path.write_bytes(raw[:cut])
        assert PrivacyAccountant(path).charges() == [charge(1)]
        PrivacyAccountant(path).charge(charge(2), 8.0)
        assert path.read_bytes() == raw


@pytest.mark.parametrize(
    "change",
    [
        lambda line: b"nonsense",
        lambda line: bytes(len(line)),
        lambda line: line + b"}",
        lambda line: json.dumps(json.loads(line) | {"steps": 0}).encode(),
        lambda line: json.dumps(json.loads(line) | {"noise_multiplier": "4.5"}).encode(),
        lambda line: json.dumps(json.loads(line) | {"sample_rate": 1.5}).encode(),
        lambda line: json.dumps(json.loads(line) | {"more": 1}).encode(),
        lambda line: line.replace(b"4.5", b"Infinity"),
        lambda line: line.replace(b"4.5", b"1e999"),
        lambda line: b"[" * 100_000,
        lambda line: json.dumps(json.loads(line) | {"round": 1}).encode(),  # stands there twice, then
    ],
)
def test_a_file_that_holds_anything_else_is_refused_and_kept(path: Path, change: Any) -> None:
    for round_ in (1, 2, 3):
        PrivacyAccountant(path).charge(charge(round_), 8.0)
    lines = path.read_bytes().splitlines()
    lines[1] = change(lines[1])
    raw = b"".join(line + b"\n" for line in lines)
    path.write_bytes(raw)
    with raises_fault(PrivacyError, "EpsilonLedgerInvalid") as caught:
        PrivacyAccountant(path).charge(charge(4), 8.0)
    assert (caught.value.values["path"], caught.value.values["line"]) == (path, 2)
    assert path.read_bytes() == raw


def test_no_kill_and_no_power_cut_loses_a_charge_whose_training_began(tmp_path: Path) -> None:
    """At every point of the writing. The budget is for four rounds, however often the hospital starts anew."""
    ran = subprocess.run([sys.executable, KILLER, tmp_path / "cases"], check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    rivals, *cases = [json.loads(line) for line in ran.stdout.splitlines()]
    assert sum(rivals["granted"]) == len(set(rivals["after"])) == len(rivals["after"]) == 4
    for case in cases:
        assert case["exit"] in (0, -9)
        assert case["killed"] is not case["began"], case
        if case["began"]:
            assert 1 in case["found"], case
        assert set(case["found"]) - {0} <= {1}, case
        assert sorted(set(case["after"]) - {0}) == case["trained"], case
        assert len(case["after"]) == 4, case
    by_kind = {(one["before"], one["power"]): one["fatal"] for one in cases}  # the last of each was not killed
    assert len(by_kind) == 4
    assert all(points > 8 for points in by_kind.values()), by_kind
