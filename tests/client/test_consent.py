"""A hospital's policy allows only the things that it names."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.consent import NEW_HOSPITAL, NEW_VOTER, Hours, Policy, VoterPolicy, policy_toml, read_policy
from consilium_client.errors import OwnersRefusal
from consilium_core.typed_toml import parse_toml
from hypothesis import given
from hypothesis import strategies as st
from raised_faults import raises_fault
from task_files import DATA, SALE

OPERATOR, OTHER = "0x" + "aB" * 20, "0x" + "Cd" * 20
EXACT: dict[str, Any] = {"operators": [OPERATOR], "models": ["logistic"], "columns": ["age", "sick"]}


# Six rounds of 3640 s to commit, 60 and a half to upload, six times 30 to publish, 60 to score, 30 to reveal: 4000.
DAYS = "[windows]\njoin = {}\ncommit = 3640\n"


ARENA = """
[update]
masked = false
[rounds]
min_cohort_size = 1
cohorts = 8
max_hospitals = 8
max_weight = 1
[judging]
rank_floor = 0.01
[money]
rank_decay_bps = 8_500
"""


def task(more: str = "") -> TaskSpec:
    """`more`: sections, or what stands before them."""
    before, after = (more, "") if more.startswith("statistics") else ("", more)
    return parse_task_spec(f'name = "a task"\n{before}{DATA}\n[model]\nname = "logistic"\n{after}'.encode())


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
    "an arena": Case(
        {"masked_only": False}, task=ARENA, said=("each hospital's update is public", "`arenas` is false")
    ),
    "the same, allowed by the arena's own rule": Case({"arenas": True, "min_cohort": 3}, task=ARENA),
    "a sum of one, which is no arena": Case(
        {"arenas": True, "masked_only": False, "min_cohort": 3},
        task="[update]\nmasked = false\n[rounds]\nmin_cohort_size = 1\n",
        said=("1 hospital(s)", "`min_cohort` 3"),
    ),
    "as many rounds": Case({"max_rounds": 5}, task="[rounds]\nrounds = 5\n"),
    "a round too many": Case({"max_rounds": 5}, task="[rounds]\nrounds = 6\n", said=("6 rounds", "5")),
    "a limit, and a task without one": Case({"max_epsilon": 8.0}, said=("not private", "8")),
    "a limit, and a private task": Case({"max_epsilon": 8.0}, task="[privacy]\nepsilon = 3.0\nmax_grad_norm = 1.0\n"),
    "as large a bond": Case({"max_bond": 500}),
    "exact statistics": Case(task='statistics = "exact"\n', said=("`exact_statistics` is false",)),
    "the same, allowed by the policy": Case({"exact_statistics": True}, task='statistics = "exact"\n'),
    "cohorts as large": Case({"min_cohort": 3}),
    "smaller cohorts": Case({"min_cohort": 4}, said=("3 hospital(s)", "`min_cohort` 4")),
    "as much harm": Case({"min_harm": 0.05}),
    "slashes nearer to zero": Case({"min_harm": 0.06}, said=("-0.05", "`min_harm` 0.06")),
    "as long": Case({"max_days": 2}, task=DAYS.format(2 * 86_400 - 24_000)),
    "a second longer": Case({"max_days": 2}, task=DAYS.format(2 * 86_400 - 23_999), said=("2.0 days", "`max_days` 2")),
    "as large a slash": Case({"max_slash_percent": 20}),
    "a larger slash": Case(
        {"max_slash_percent": 1.5}, said=("a harmful update costs 20 %", "is not handed over costs 2 %", "1.5")
    ),
    "a model that may be sold": Case(
        task=SALE, said=("of each payment the server gets 20 %, the operator 10 %", "`may_be_sold` is false")
    ),
    "the same, allowed by the owner": Case({"may_be_sold": True}, task=SALE),
    "as large a part": Case({"may_be_sold": True, "min_own_percent": 55}, task=SALE),
    "a smaller part": Case(
        {"may_be_sold": True, "min_own_percent": 56},
        task=SALE,
        said=("its trainers get 55 % of each payment for its model, below `min_own_percent` 56",),
    ),
    "a least part, of a model that is never sold": Case({"min_own_percent": 90}),
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
        with raises_fault(OwnersRefusal, "NotAllowed") as refused:
            policy.require(spec, case.operator)
        assert refused.value.values["objections"] == "; ".join(objections)
    else:
        policy.require(spec, case.operator)


def test_every_objection_is_told_at_once() -> None:
    nothing = {
        "operators": [], "models": [], "columns": [], "max_rounds": 1, "max_bond": 0, "max_epsilon": 1.0,
        "max_slash_percent": 0, "min_cohort": 9, "min_harm": 1.0,
    }  # fmt: skip
    policy = Policy.model_validate(nothing)
    assert len(policy.objections(task("[update]\nmasked = false\n"), OPERATOR)) == 11


STEPS = "[training]\nepochs = 2\nbatch_size = 16\n"


@pytest.mark.parametrize(
    ("rules", "more", "rows", "said"),
    [
        ({}, "", 1, ()),
        ({"min_rows": 50}, "", 50, ()),
        ({"min_rows": 50}, "", 49, ("49 of this hospital's rows", "`min_rows` 50")),
        ({"min_steps": 8}, STEPS, 49, ()),
        ({"min_steps": 8}, STEPS, 48, ("6 step(s) of training on 48 rows", "`min_steps` 8")),
        ({"min_steps": 8}, STEPS + "[privacy]\nepsilon = 3.0\nmax_grad_norm = 1.0\n", 48, ()),
    ],
)
def test_a_policy_objects_to_few_rows_and_few_steps(
    rules: dict[str, int], more: str, rows: int, said: tuple[str, ...]
) -> None:
    policy, spec = Policy.model_validate(EXACT | rules), task(more)
    objections = policy.objections_to_rows(spec, rows)
    assert bool(objections) == bool(said)
    assert [word for word in said if word not in " ".join(objections)] == []
    if said:
        with raises_fault(OwnersRefusal, "NotAllowed"):
            policy.require_rows(spec, rows)
    else:
        policy.require_rows(spec, rows)


def test_a_voters_policy_objects_to_what_its_bond_could_lose_and_how_long_it_is_locked() -> None:
    names: dict[str, Any] = {"operators": "any", "models": "any", "metrics": "any"}
    policy = VoterPolicy.model_validate(names | {"max_slash_percent": 9, "max_days": 1})
    slow = task("[windows]\njoin = 86400\n")
    told = policy.objections(slow, OPERATOR)
    words = ("1.0 days", "not revealed costs 10 %", "decoy costs 50 %")
    assert all(word in one for word, one in zip(words, told, strict=True))
    assert VoterPolicy.model_validate({**names, **NEW_VOTER}).objections(task(), OPERATOR) == []


def test_a_voters_policy_objects_to_a_sale_and_to_a_small_part_for_voters() -> None:
    rules: dict[str, Any] = {"operators": "any", "models": "any", "metrics": "any"}
    sold = task("[privacy]\nepsilon = 3.0\nmax_grad_norm = 1.0\n" + SALE)

    def told(**more: Any) -> list[str]:
        return VoterPolicy.model_validate(rules | more).objections(sold, OPERATOR)

    (refusal,) = told()
    assert "voters 15 %; buyers see that epsilon was 3), but `may_be_sold` is false" in refusal
    assert told(may_be_sold=True, min_own_percent=15) == []
    (part,) = told(may_be_sold=True, min_own_percent=16)
    assert part == "its voters get 15 % of each payment for its model, below `min_own_percent` 16"
    assert len(told(min_own_percent=16)) == 2
    with pytest.raises(ValueError, match="min_own_percent"):
        VoterPolicy.model_validate(rules | {"min_own_percent": 101})


def test_a_new_homes_policy_says_in_words_what_each_rule_means_and_holds_for_a_usual_task() -> None:
    text = policy_toml({**EXACT, **NEW_HOSPITAL}, Policy)
    policy = parse_toml(text.encode(), Policy, "it", lambda why: OwnersRefusal("PolicyInvalid", why=why))
    assert policy == Policy.model_validate({**EXACT, **NEW_HOSPITAL})
    blocks = text.strip().split("\n\n")
    assert len(blocks) == len({**EXACT, **NEW_HOSPITAL})
    assert all(block.startswith("# ") and len(block.splitlines()) >= 2 for block in blocks)
    assert "nearly the same rows" in " ".join(text.replace("\n# ", " ").split())
    assert max(map(len, text.splitlines())) <= 120
    assert policy.objections(task(), OPERATOR) == policy.objections_to_rows(task(), 50) == []
    assert policy.objections_to_rows(task(), 49) != []
    assert not policy.exact_statistics
    assert not policy.may_be_sold


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
    "an operator that is no address": (
        tomli_w.dumps(EXACT | {"operators": ["me"]}).encode(),
        "not an account's address",
    ),
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
    with raises_fault(OwnersRefusal, "PolicyInvalid", match=r"policy\.toml") as refused:
        read_policy(tmp_path / "policy.toml", Policy)
    assert words in str(refused.value)


def test_a_missing_policy_allows_nothing(tmp_path: Path) -> None:
    with raises_fault(OwnersRefusal, "PolicyInvalid", match="nothing is allowed"):
        read_policy(tmp_path / "policy.toml", Policy)
