"""The demo with strangers: room for them beside the honest, what they tried in figures, and what they must not do."""

from __future__ import annotations

from typing import Any

import pytest
from consilium_lab.demo.datasets import deal_wdbc
from consilium_lab.demo.options import DemoOptions, check, least_cohort, parse_attack
from consilium_lab.demo.processes import Line
from consilium_lab.demo.tally import broken, strangers
from consilium_lab.demo.task_file import TaskSettings, task_spec


def tried(call: str, field: str, error: str | None, who: str = "stranger-1") -> Line:
    return Line(who, {"event": "tried", "call": call, "field": field, "error": error, "round": 0})


JOINED = [tried("joinAsHospital", "a key", None), tried("joinAsVoter", "nothing", None, "stranger-2")]


def party(name: str, role: str, after: int) -> dict[str, Any]:
    return {"name": name, "role": role, "before": "100", "after": str(after)}


def report(outcome: str = "settled", slashed: tuple[str, ...] = (), after: int = 90) -> dict[str, Any]:
    parties = [party("hospital-1", "hospital", 200), party("stranger-1", "stranger", after)]
    return {
        "strangers": strangers(JOINED),
        "balances": {one["name"]: one for one in [*parties, party("stranger-2", "stranger", 100)]},
        "rounds": [{"index": 3, "outcome": outcome, "slashes": [{"who": who} for who in slashed]}],
    }


def test_strangers_are_tallied_by_call_with_every_error_and_all_that_was_taken() -> None:
    lines = [tried("propose", f"field {n}", "ParamsInvalid") for n in range(3)]
    (join, _, propose) = strangers([*JOINED, tried("joinAsHospital", "no rows", "RowsAreZero"), *lines])
    taken = [{"who": "stranger-1", "round": 0, "field": "a key"}]
    assert join == {
        "call": "joinAsHospital", "tried": 2, "refused": 1, "errors": {"RowsAreZero": 1}, "taken": taken,
    }  # fmt: skip
    assert (propose["errors"], propose["taken"]) == ({"ParamsInvalid": 3}, [])


def test_nothing_is_broken_where_rounds_settle_and_strangers_alone_pay() -> None:
    assert broken(report(slashed=("stranger-1",))) == []


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (report(outcome="void"), "round 3 did not settle"),
        (report(slashed=("hospital-1",)), "hospital-1, who is honest, was slashed in round 3"),
        (report(after=101), "stranger-1 is richer"),
        (report() | {"strangers": strangers(JOINED[:1])}, "stranger-2 did not join"),
    ],
)
def test_what_strangers_break_is_said(found: dict[str, Any], words: str) -> None:
    assert broken(found) == [words]


def test_without_strangers_a_void_round_is_no_fault_of_theirs() -> None:
    found = report(outcome="void")
    found["balances"] = {"hospital-1": party("hospital-1", "hospital", 200)}
    assert broken(found) == []


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("hospitals", [3, 6, 7, 16])
def test_strangers_have_places_besides_and_no_cohort_falls_by_them(hospitals: int, masked: bool) -> None:
    spec = task_spec(deal_wdbc(hospitals, 3, 0), TaskSettings(masked=masked, strangers=1))
    assert (spec.rounds.max_hospitals, spec.judging.max_voters) == (hospitals + 1, 4)
    assert spec.judging.seats == 4
    if masked:
        smallest = (hospitals + 1) // spec.rounds.cohorts
        assert smallest - 1 >= max(3, -(-2 * smallest // 3))


@pytest.mark.parametrize("strangers", [1, 2, 3, 7])
def test_least_cohort_has_a_sum_without_its_strangers(strangers: int) -> None:
    size = least_cohort(strangers)
    assert size - strangers >= max(3, -(-2 * size // 3))
    assert size - 1 - strangers < max(3, -(-2 * (size - 1) // 3))


@pytest.mark.parametrize(
    ("attack", "options", "words"),
    [
        ("stranger", {"voters": 1}, "raise --voters"),
        ("stranger:3", {"voters": 9, "hospitals": 5}, "need 6 hospitals for a sum"),
        ("stranger", {"cohorts": 2}, "need 7 hospitals for a sum"),
        ("stranger", {"kill_in_round": 1}, "leave out other attacks"),
        ("stranger", {"seats": 7}, "7 seats are more than the 6 voters"),
    ],
)
def test_strangers_that_could_void_a_round_are_refused(attack: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check(DemoOptions(attacks=parse_attack(attack), **options))


def test_strangers_go_with_no_other_attack() -> None:
    with pytest.raises(ValueError, match="leave out other attacks"):
        check(DemoOptions(attacks=(*parse_attack("stranger"), *parse_attack("lazy"))))
    check(DemoOptions(attacks=parse_attack("stranger:2")))
