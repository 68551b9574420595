"""What a hospital's policy allows: what it names, and nothing else."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from consilium_chain.task_spec import TaskSpec, parse_task_spec
from consilium_client.consent import Hours, Policy, read_policy
from consilium_client.errors import NotAllowed, PolicyInvalid
from hypothesis import given
from hypothesis import strategies as st
from task_files import DATA

OPERATOR, OTHER = "0x" + "aB" * 20, "0x" + "Cd" * 20
EXACT: dict[str, Any] = {"operators": [OPERATOR], "models": ["logistic"], "columns": ["age", "sick"]}


def task(more: str = "") -> TaskSpec:
    return parse_task_spec(f'name = "a task"\n{DATA}\n[model]\nname = "logistic"\n{more}'.encode())


@dataclass
class Case:
    policy: dict[str, Any] = field(default_factory=dict)
    task: str = ""
    operator: str = OPERATOR
    said: tuple[str, ...] = ()


CASES = {
    "as it is": Case(),
    "the operator, in other letters": Case(operator=OPERATOR.lower()),
    "anybody": Case({"operators": "any"}, operator=OTHER),
    "another operator": Case(operator=OTHER, said=("operator", OTHER)),
    "no operator at all": Case({"operators": []}, said=("operator",)),
    "another model": Case({"models": ["mlp"]}, said=("logistic", "`models`")),
    "any model": Case({"models": "any"}),
    "a column that is not named": Case({"columns": ["sick"]}, said=("age", "`columns`")),
    "a label that is not named": Case({"columns": ["age"]}, said=("sick", "`columns`")),
    "any column": Case({"columns": "any"}),
    "an aggregator that sees updates": Case(task="[update]\nmasked = false\n", said=("masked_only",)),
    "the same, allowed": Case({"masked_only": False}, task="[update]\nmasked = false\n"),
    "as many rounds": Case({"max_rounds": 5}, task="[rounds]\nrounds = 5\n"),
    "a round too many": Case({"max_rounds": 5}, task="[rounds]\nrounds = 6\n", said=("6 rounds", "5")),
    "a limit, and a task without one": Case({"max_epsilon": 8.0}, said=("not private", "8")),
    "a limit, and a private task": Case({"max_epsilon": 8.0}, task="[privacy]\nepsilon = 3.0\nmax_grad_norm = 1.0\n"),
    "as large a bond": Case({"max_bond": 500}),
    "a larger bond": Case({"max_bond": 499}, said=("500 tokens", "499")),
}


@pytest.mark.parametrize("name", CASES)
def test_a_policy_allows_what_it_names_and_objects_to_the_rest(name: str) -> None:
    case = CASES[name]
    policy, spec = Policy.model_validate(EXACT | case.policy), task(case.task)
    objections = policy.objections(spec, case.operator)
    assert bool(objections) == bool(case.said)
    assert [word for word in case.said if word not in " ".join(objections)] == []
    if objections:
        with pytest.raises(NotAllowed) as refused:
            policy.require(spec, case.operator)
        assert refused.value.objections == tuple(objections)
    else:
        policy.require(spec, case.operator)


def test_every_objection_is_told_at_once() -> None:
    nothing = {"operators": [], "models": [], "columns": [], "max_rounds": 1, "max_bond": 0, "max_epsilon": 1.0}
    policy = Policy.model_validate(nothing)
    assert len(policy.objections(task("[update]\nmasked = false\n"), OPERATOR)) == 7


times = st.times().map(lambda time: time.replace(second=0, microsecond=0))


@given(start=times, end=times, at=st.times())
def test_hours_and_the_hours_between_them_are_the_whole_day(
    start: datetime.time, end: datetime.time, at: datetime.time
) -> None:
    inside, outside = Hours(start, end).contain(at), Hours(end, start).contain(at)
    assert inside != outside or start == end
    assert Hours.parse(str(Hours(start, end))) == Hours(start, end)


@pytest.mark.parametrize(
    ("hours", "at", "allowed"),
    [
        (None, "12:00", True),
        ("19:00-07:00", "18:59", False),
        ("19:00-07:00", "19:00", True),
        ("19:00-07:00", "00:00", True),
        ("19:00-07:00", "06:59", True),
        ("19:00-07:00", "07:00", False),
        ("08:30-09:00", "08:30", True),
        ("08:30-09:00", "09:00", False),
        ("00:00-00:00", "12:00", True),
    ],
)
def test_rounds_begin_within_the_hours(hours: str | None, at: str, allowed: bool) -> None:
    policy = Policy.model_validate(EXACT | ({"hours": hours} if hours else {}))
    now = datetime.datetime.combine(datetime.date(2026, 11, 22), datetime.time.fromisoformat(at))
    assert policy.allows_now(now) is allowed


BAD = {
    "no TOML": (b"operators = ", "is not TOML"),
    "no UTF-8": (b"\xff", "is not UTF-8"),
    "empty": (b"", "operators: Field required"),
    "an operator that is no address": (tomli_w.dumps(EXACT | {"operators": ["me"]}).encode(), "no account's address"),
    "hours without minutes": (tomli_w.dumps(EXACT | {"hours": "19-7"}).encode(), "19:00-07:00"),
    "an hour that is none": (tomli_w.dumps(EXACT | {"hours": "24:00-07:00"}).encode(), "19:00-07:00"),
    "hours as a number": (tomli_w.dumps(EXACT | {"hours": 7}).encode(), "19:00-07:00"),
    "a rule that is none": (tomli_w.dumps(EXACT | {"operater": "any"}).encode(), "operater: Extra inputs"),
    "no rounds": (tomli_w.dumps(EXACT | {"max_rounds": 0}).encode(), "max_rounds"),
    "models that are everything but the word": (tomli_w.dumps(EXACT | {"models": "all"}).encode(), "models"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_policy_that_does_not_hold_allows_nothing(tmp_path: Path, name: str) -> None:
    raw, words = BAD[name]
    (tmp_path / "policy.toml").write_bytes(raw)
    with pytest.raises(PolicyInvalid, match=r"policy\.toml") as refused:
        read_policy(tmp_path / "policy.toml", Policy)
    assert words in str(refused.value)


def test_a_missing_policy_allows_nothing(tmp_path: Path) -> None:
    with pytest.raises(PolicyInvalid, match="nothing is allowed"):
        read_policy(tmp_path / "policy.toml", Policy)
