"""The plain reference of settlement: on the vectors that forge reads, by its own properties, and against the chain."""

from __future__ import annotations

import json
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from chain_driver import LocalChain, TaskDriver
from consilium_chain import settlement
from consilium_chain.errors import SettlementInvalid
from consilium_chain.settlement import Reason, RoundRecord, Terms, explain, lower_median, settle, tokens
from consilium_chain.task_spec import TOKEN
from consilium_chain.views import INVALID_SCORE, Role, RoundState, TaskState, VoidReason, members
from hypothesis import given
from hypothesis import strategies as st

VECTORS = Path(__file__).parents[1] / "vectors"
sys.path.insert(0, str(VECTORS))

import generate_settlement  # noqa: E402  (a script beside its output, no package)

STORED: dict[str, Any] = json.loads((VECTORS / "settlement.json").read_text(encoding="utf-8"))

TERMS = Terms(
    pool=1_000, rounds=1, hospital_bond=500, voter_bond=200, min_reveals=2, accept_floor=-20_000,
    harmful_below=-40_000, tolerance_abs=1_000, tolerance_bps=1_000, hospital_share_bps=7_000, voter_share_bps=2_000,
    aggregator_share_bps=1_000, harmful_slash_bps=2_000, not_revealed_slash_bps=1_000,
)  # fmt: skip
RECORD = RoundRecord(
    pool_left=1_000, weights=(1, 2, 3, 4, 5, 6, 7), hospital_bonds=(500,) * 7, voter_bonds=(200,) * 5,
    cohorts=(0b11, 0b100, 0b1000, 0b110000), viable=0b1111, committed=0b101111, survivors=0b001111, seated=0b01111,
    scores=((3_000, -30_000, -50_000, 0), (3_200, -30_100, -50_100, 0), (9_000, -30_000, -50_000, 0), None, None),
)  # fmt: skip


def test_vectors_are_what_the_reference_answers() -> None:
    """Nobody edited the file by hand, and no edit of the reference went by the contracts."""
    assert (VECTORS / "settlement.json").read_text(encoding="utf-8") == generate_settlement.text()


def test_vectors_reach_every_reason() -> None:
    assert {reason for case in STORED["settlements"] for reason in case["answer"]["reasons"]} == set(Reason.__members__)


@pytest.mark.parametrize("name", ["portion", "penalty", "budget", "gain", "share", "is_near"])
def test_function_answers_its_vectors(name: str) -> None:
    columns = [[int(value) for value in column] for column in STORED["functions"][name].values()]
    assert len(columns[0]) == generate_settlement.QUESTIONS
    function = getattr(settlement, name)
    assert [int(function(*question)) for *question, _ in zip(*columns, strict=True)] == columns[-1]


def test_settle_pays_slashes_and_says_why() -> None:
    settled = settle(TERMS, RECORD)
    assert (settled.medians, settled.accepted, settled.harmful) == ((3_200, -30_000, -50_000, 0), 0b1001, 0b1000)
    reasons = [account.reason for account in settled.accounts]
    hospitals, voters = reasons[:7], reasons[7:12]
    assert hospitals == [
        Reason.PAID, Reason.PAID, Reason.REJECTED, Reason.HARMFUL, Reason.NOT_COMMITTED, Reason.NOT_IN_SUM,
        Reason.SAT_OUT,
    ]  # fmt: skip
    assert voters == [Reason.PAID, Reason.PAID, Reason.FAR, Reason.NOT_REVEALED, Reason.NO_SEAT]
    # 700 by 1 : 2, 200 over four seats of which two are paid, 100 by weight 10 of 16; all rounded down.
    assert [account.reward for account in settled.accounts if account.reward] == [233, 466, 50, 50, 62]
    assert [(a.index, a.slash) for a in settled.accounts if a.slash] == [(3, 100), (3, 20)]
    assert settled.pool_left == 1_000 - 233 - 466 - 50 - 50 - 62


@pytest.mark.parametrize(
    ("role", "index", "words"),
    [
        (Role.HOSPITAL, 1, ["paid 0.000000000000000466 tokens", "6400 of 9600 claims", "weight 2", "0.003200"]),
        (Role.HOSPITAL, 3, ["nothing", "harmful", "-0.050000", "slashed 0.0000000000000001 tokens"]),
        (Role.HOSPITAL, 6, ["nothing", "not dealt"]),
        (Role.VOTER, 0, ["1 of 4 claims"]),
        (Role.VOTER, 2, ["nothing", "cohort 0", "0.009000", "0.001320 from the median 0.003200"]),
        (Role.VOTER, 3, ["did not reveal", "slashed 0.00000000000000002 tokens"]),
        (Role.AGGREGATOR, 0, ["weight 10 of 16"]),
    ],
)
def test_explain_names_amount_claim_and_cause(role: Role, index: int, words: list[str]) -> None:
    sentence = explain(settle(TERMS, RECORD), role, index)
    assert [word for word in words if word not in sentence] == []


def test_settle_with_too_few_reveals_is_void_and_still_slashes_the_silent() -> None:
    settled = settle(replace(TERMS, min_reveals=4), RECORD)
    assert (settled.void, settled.paid, settled.pool_left) == (VoidReason.TOO_FEW_SCORES, 0, RECORD.pool_left)
    assert [(a.role, a.index, a.slash) for a in settled.accounts if a.slash] == [(Role.VOTER, 3, 20)]
    assert "void" in explain(settled, Role.HOSPITAL, 0)


@pytest.mark.parametrize(
    ("change", "about"),
    [
        ({"weights": (1,)}, "1 weights for 7"),
        ({"scores": (None,)}, "scores of 1 voters"),
        ({"seated": 0b0001}, "voters [1, 2] revealed without a seat"),
        ({"scores": ((1, 2), *RECORD.scores[1:])}, "voter 0 scored not 4"),
        ({"cohorts": (0b11, 0b10, 0b1000, 0b110000)}, "[1] are in two cohorts"),
        ({"viable": 0b10000}, "viable names [4]"),
        ({"survivors": 0b11111}, "survivors names [4]"),
        ({"cohorts": (0b11, 0b100, 0b1000, 0b110000 | 1 << 9)}, "cohorts names [9]"),
    ],
)
def test_record_refuses_what_no_chain_could_hold(change: dict[str, Any], about: str) -> None:
    with pytest.raises(SettlementInvalid) as caught:
        replace(RECORD, **change)
    assert about in str(caught.value)


def test_explain_refuses_an_account_that_the_task_does_not_have() -> None:
    with pytest.raises(SettlementInvalid, match="no voter 5"):
        explain(settle(TERMS, RECORD), Role.VOTER, 5)


SCORE = st.integers(INVALID_SCORE, 2**63 - 1)


@given(st.lists(SCORE, min_size=1, max_size=60))
def test_lower_median_has_no_more_than_half_on_either_side(values: list[int]) -> None:
    median = lower_median(values)
    assert median in values
    assert sum(value < median for value in values) <= (len(values) - 1) // 2
    assert sum(value > median for value in values) <= len(values) // 2


@given(st.integers(0, 2**32))
def test_settle_conserves_and_never_pays_whom_it_slashes(seed: int) -> None:
    source = generate_settlement.random.Random(seed)
    terms = generate_settlement.any_terms(source)
    record = generate_settlement.any_record(source, terms)
    settled = settle(terms, record)
    assert settled.pool_left + settled.paid == record.pool_left
    assert settled.paid <= settlement.budget(terms.pool, terms.rounds, record.pool_left)
    assert all(not (account.reward and account.slash) for account in settled.accounts)
    assert len(settled.accounts) == len(record.weights) + len(record.voter_bonds) + 1
    for account in settled.accounts:
        if account.role is not Role.AGGREGATOR:
            bonds = record.hospital_bonds if account.role is Role.HOSPITAL else record.voter_bonds
            assert 0 <= account.slash <= bonds[account.index]


@given(st.integers(0, 10**30))
def test_tokens_loses_nothing(amount: int) -> None:
    whole, _, fraction = tokens(amount).split()[0].partition(".")
    assert int(whole) * TOKEN + int(fraction.ljust(18, "0")) == amount


def record_of(task: TaskDriver, state: TaskState, round_state: RoundState, scores: list[list[int]]) -> RoundRecord:
    """A round in which every seated voter has scored, and revealed."""
    hospitals, voters = task.operator.hospitals(task.task), task.operator.voters(task.task)
    number = state.round
    return RoundRecord(
        pool_left=state.pool_left,
        weights=tuple(hospital.weight for hospital in hospitals),
        hospital_bonds=tuple(hospital.bond for hospital in hospitals),
        voter_bonds=tuple(voter.bond for voter in voters),
        cohorts=tuple(task.operator.cohort_members(task.task, number, k) for k in range(round_state.cohorts)),
        viable=round_state.viable_cohorts,
        committed=round_state.committed,
        survivors=round_state.survivors,
        seated=(1 << len(voters)) - 1,
        scores=tuple(tuple(of_voter) for of_voter in scores),
    )


def test_settle_agrees_with_the_deployed_contract(local_chain: LocalChain) -> None:
    """A round on a real chain: one cohort improves, one harms, one voter is far off."""
    task = TaskDriver(local_chain, hospitals=3, voters=3, terms={"rounds": 2, "cohorts": 2})
    task.join(rows=[5, 31, 1_000])
    task.first_round()
    task.form().commit_all()
    task.publish()
    params, state = task.operator.params(task.task), task.operator.state(task.task)
    round_state = task.operator.round_state(task.task, 1)
    scores = [[20_000, -60_000], [20_100, -60_100], [90_000, -60_000]]
    expected = settle(Terms.of(params), record_of(task, state, round_state, scores))
    everybody = [ledger.address for ledger in (*task.nodes, *task.judges, task.aggregator)]
    task.draw().judge(scores)

    after = task.operator.round_state(task.task, 1)
    assert (after.medians, after.accepted_cohorts) == (expected.medians, expected.accepted)
    paid = {event["account"]: event["amount"] for event in task.events("Rewarded")}
    assert [paid.get(account, 0) for account in everybody] == [account.reward for account in expected.accounts]
    assert task.operator.state(task.task).pool_left == expected.pool_left
    bonds = [hospital.bond for hospital in task.operator.hospitals(task.task)]
    slashed = [params.hospital_bond - bond for bond in bonds]
    assert slashed == [account.slash for account in expected.accounts[:3]]
    assert [i for i, amount in enumerate(slashed) if amount] == list(members(expected.harmful)) != []


def test_terms_are_parameters_of_the_contract() -> None:
    from consilium_chain.views import TaskParams

    assert {field.name for field in fields(Terms)} <= {field.name for field in fields(TaskParams)}
