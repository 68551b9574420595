"""The plain reference of settlement: on the vectors that forge reads, by its own properties, and against the chain."""

from __future__ import annotations

import json
import random
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from chain_driver import LocalChain, TaskDriver
from consilium_chain.errors import SettlementInvalid
from consilium_chain.ledger.structs import (
    DOES_NOT_MATCH,
    INVALID_SCORE,
    Role,
    RoundState,
    TaskState,
    VoidReason,
    members,
)
from consilium_chain.settlement import payouts
from consilium_chain.settlement.payouts import lower_median
from consilium_chain.settlement.round_record import RoundRecord, Terms
from consilium_chain.settlement.settlement import Account, Reason, Settlement, explain, settle, tokens
from consilium_chain.tasks.money_spec import TOKEN
from hypothesis import assume, given
from hypothesis import strategies as st

VECTORS = Path(__file__).parents[1] / "vectors"
sys.path.insert(0, str(VECTORS))

import generate_settlement  # noqa: E402  (a script beside its output, no package)

FUNCTIONS: dict[str, Any] = json.loads((VECTORS / "settlement.json").read_text(encoding="utf-8"))["functions"]
ROUNDS = (VECTORS / "settlement_rounds.jsonl").read_text(encoding="utf-8")

TERMS = Terms(
    pool=1_000, rounds=1, max_hospitals=8, hospital_bond=500, voter_bond=200, aggregator_bond=800, digests=False,
    decoys=False, min_reveals=2, accept_floor=-20_000, harmful_below=-40_000, tolerance_abs=1_000,
    tolerance_bps=1_000, decoy_margin=5_000, hospital_share_bps=7_000, voter_share_bps=2_000,
    aggregator_share_bps=1_000, rank_decay_bps=0, rank_floor=0, harmful_slash_bps=2_000, withheld_slash_bps=200,
    not_revealed_slash_bps=1_000, failed_decoy_slash_bps=5_000, not_published_slash_bps=4_000,
)  # fmt: skip
RECORD = RoundRecord(
    pool_left=1_000, weights=(1, 2, 3, 4, 5, 6, 7), hospital_bonds=(500,) * 7, voter_bonds=(200,) * 5,
    aggregator_bond=800, cohorts=(0b11, 0b100, 0b1000, 0b110000), viable=0b0111, committed=0b101111,
    survivors=0b001111, flipped=None, seated=0b01111,
    scores=((3_000, -30_000, -50_000, 0), (3_200, -30_100, -50_100, 0), (9_000, -30_000, -50_000, 0), None, None),
)  # fmt: skip
# Two cohorts of which the second was published sign-flipped: a ballot is (sum 0, decoy 1, decoy 0, sum 1). Voter 0 is
# honest, voter 1 rates a decoy as it rates its sum, voter 2 guessed wrongly, voter 3 is honest and off.
TESTED = replace(TERMS, decoys=True, tolerance_abs=3_000)
DECOYS = RoundRecord(
    pool_left=1_000, weights=(1, 1, 1), hospital_bonds=(500, 500, 4), voter_bonds=(200, 200, 60, 200),
    aggregator_bond=300, cohorts=(0b001, 0b110), viable=0b11, committed=0b111, survivors=0b011, flipped=0b10,
    seated=0b1111,
    scores=(
        (6_000, -90_000, -80_000, 4_000), (6_100, 4_000, -80_000, 4_000), (-80_000, -90_000, 6_000, 4_000),
        (18_000, -95_000, -70_000, 4_100),
    ),
)  # fmt: skip


def test_vectors_are_what_the_reference_answers() -> None:
    """Nobody edited the file by hand, and no edit of the reference went by the contracts."""
    assert (VECTORS / "settlement.json").read_text(encoding="utf-8") == generate_settlement.vectors()
    assert generate_settlement.rounds() == ROUNDS


def test_vectors_reach_every_reason() -> None:
    answers = [json.loads(line)["answer"] for line in ROUNDS.splitlines()]
    assert {reason for answer in answers for reason in answer["reasons"]} == set(Reason.__members__)


def test_vectors_reach_every_edge() -> None:
    """A word of the few, a slash that its bond does not cover, of every kind, decoy rounds that test nobody, cohorts
    that are dropped, rounds without a sum, and words where nobody was asked but for who is named.
    """
    short: set[Reason] = set()
    few = untested = tested = dropped = asked = 0
    without_sums: set[bool] = set()
    for terms, record in generate_settlement.questions():
        settled = settle(terms, record)
        few += bool(record.mismatched) and settled.void is VoidReason.NONE
        untested += any(account.reason is Reason.UNTESTED for account in settled.accounts)
        tested += 0 < settled.counted < record.viable
        dropped += record.dropped != 0 and not record.named
        asked += bool(record.named and record.mismatched) and not (terms.decoys or terms.digests)
        if not record.viable and settled.void is VoidReason.NONE:
            without_sums.add(terms.decoys)
        short |= {a.reason for a in settled.accounts if 0 < a.slash < full_slash(terms, a)}
    assert min(few, untested, tested, dropped) >= 3
    assert asked >= 2
    assert without_sums == {False, True}
    assert short == SLASHED


def full_slash(terms: Terms, account: Account) -> int:
    amounts = {
        Reason.HARMFUL: payouts.portion(terms.hospital_bond, terms.harmful_slash_bps),
        Reason.WITHHELD: terms.withheld_slash,
        Reason.FALSE_UPLOAD: payouts.portion(terms.hospital_bond, terms.harmful_slash_bps),
        Reason.NOT_REVEALED: payouts.portion(terms.voter_bond, terms.not_revealed_slash_bps),
        Reason.FAILED_DECOY: payouts.portion(terms.voter_bond, terms.failed_decoy_slash_bps),
        Reason.NOT_DISCLOSED: payouts.portion(terms.aggregator_bond, terms.not_published_slash_bps),
        Reason.MISMATCHED: payouts.portion(terms.aggregator_bond, terms.not_published_slash_bps),
    }
    return amounts[account.reason]


SLASHED = {
    Reason.HARMFUL, Reason.WITHHELD, Reason.FALSE_UPLOAD, Reason.NOT_REVEALED, Reason.FAILED_DECOY,
    Reason.NOT_DISCLOSED, Reason.MISMATCHED,
}  # fmt: skip


@pytest.mark.parametrize(
    "name", ["portion", "penalty", "round_part", "gain", "rank_claim", "share", "is_near", "counts"]
)
def test_function_answers_its_vectors(name: str) -> None:
    columns = [[int(value) for value in column] for column in FUNCTIONS[name].values()]
    assert len(columns[0]) == generate_settlement.QUESTIONS
    function = getattr(payouts, name)
    assert [int(function(*question)) for *question, _ in zip(*columns, strict=True)] == columns[-1]


def test_settle_pays_slashes_and_says_why() -> None:
    settled = settle(TERMS, RECORD)
    assert (settled.medians, settled.accepted, settled.harmful) == ((3_200, -30_000, -50_000, 0), 0b0001, 0b1000)
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
        (Role.HOSPITAL, 6, ["nothing", "not assigned"]),
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
        ({"weights": (1,)}, "1 weights of hospitals, but 7 bonds"),
        ({"scores": (None,)}, "ballots of 1 voters"),
        ({"seated": 0b0001}, "voters [1, 2] revealed without a seat"),
        ({"cohorts": (0b11, 0b10, 0b1000, 0b110000)}, "[1] are in two cohorts"),
        ({"viable": 0}, "no cohort has a sum"),
        ({"viable": 0b10000}, "viable has [4]"),
        ({"flipped": 0b1000}, "flipped has [3]"),
        ({"survivors": 0b11111}, "survivors has [4]"),
        ({"survivors": 0b101111}, "survivors has [5]"),
        ({"cohorts": (0b11, 0b100, 0b1000, 0b110000 | 1 << 9)}, "cohorts has [9]"),
    ],
)
def test_record_refuses_what_no_chain_could_hold(change: dict[str, Any], about: str) -> None:
    with pytest.raises(SettlementInvalid) as caught:
        replace(RECORD, **change)
    assert about in str(caught.value)


@pytest.mark.parametrize(
    ("terms", "record", "about"),
    [
        (
            {},
            {"scores": ((1, 2), *RECORD.scores[1:])},
            "voter 0 gave 2 scores instead of 4 for 4 cohorts without decoys",
        ),
        ({"decoys": True}, {}, "voter 0 gave 4 scores instead of 8 for 4 cohorts with decoys"),
        ({}, {"flipped": 0}, "the task has no decoys"),
        ({"max_hospitals": 6}, {}, "7 hospitals, but the task allows 6"),
    ],
)
def test_settle_refuses_what_no_task_with_these_terms_could_hold(
    terms: dict[str, Any], record: dict[str, Any], about: str
) -> None:
    with pytest.raises(SettlementInvalid, match=about):
        settle(replace(TERMS, **terms), replace(RECORD, **record))


# --- decoys, publications that do not match, withheld uploads ----------------------------------------------------


def accounts(settled: Settlement, role: Role) -> list[tuple[str, int, int]]:
    return [(a.reason.name, a.reward, a.slash) for a in settled.accounts if a.role is role]


def test_settle_slashes_who_does_not_tell_a_sum_from_its_decoy() -> None:
    settled = settle(TESTED, DECOYS)
    assert (settled.medians, settled.decoy_medians) == ((6_000, 4_000), (-80_000, -90_000))
    assert (settled.counted, settled.accepted) == (0b11, 0b11)
    assert accounts(settled, Role.VOTER) == [
        ("PAID", 50, 0), ("FAILED_DECOY", 0, 100), ("FAILED_DECOY", 0, 60), ("FAR", 0, 0),
    ]  # fmt: skip
    assert "cohort 1: 0.004000 for the decoy, 0.004000 for the sum" in explain(settled, Role.VOTER, 1)


@pytest.mark.parametrize(
    ("terms", "counted"),
    [
        ({"decoy_margin": 86_000}, 0b11),
        ({"decoy_margin": 86_001}, 0b10),
        ({"decoy_margin": 94_001}, 0),
        ({"accept_floor": 6_000}, 0b01),
        ({"accept_floor": 6_001}, 0),
    ],
)
def test_pair_counts_from_floor_and_margin_on(terms: dict[str, Any], counted: int) -> None:
    settled = settle(replace(TESTED, **terms), DECOYS)
    assert settled.counted == counted
    failed = {0b11: [1, 2], 0b10: [1], 0b01: [2], 0: []}[counted]
    reasons = [reason for reason, _, _ in accounts(settled, Role.VOTER)]
    assert [i for i, reason in enumerate(reasons) if reason == "FAILED_DECOY"] == failed
    assert counted or reasons == ["UNTESTED"] * 4


def test_pair_of_a_cohort_without_a_sum_never_counts() -> None:
    settled = settle(TESTED, replace(DECOYS, viable=0b01, survivors=0b001, flipped=0))
    assert (settled.counted, settled.decoy_medians) == (0b01, (-80_000, 0))


def test_not_disclosed_slashes_the_aggregator_and_the_silent_and_pays_nobody() -> None:
    record = replace(DECOYS, flipped=None, scores=(*DECOYS.scores[:2], None, DECOYS.scores[3]))
    settled = settle(TESTED, record)
    assert (settled.void, settled.paid, settled.pool_left) == (VoidReason.NOT_DISCLOSED, 0, 1_000)
    assert accounts(settled, Role.AGGREGATOR) == [("NOT_DISCLOSED", 0, 300)]  # 320 of 800, but 300 are left
    assert accounts(settled, Role.VOTER) == [("VOID", 0, 0), ("VOID", 0, 0), ("NOT_REVEALED", 0, 20), ("VOID", 0, 0)]


MISMATCH = (DOES_NOT_MATCH,) * 4
SCORE = st.integers(INVALID_SCORE, 2**63 - 1)


@pytest.mark.parametrize("terms", [TESTED, replace(TERMS, digests=True)])
@pytest.mark.parametrize(("words", "void"), [(2, VoidReason.NONE), (3, VoidReason.MISMATCHED)])
def test_more_than_half_of_the_ballots_void_what_does_not_match(terms: Terms, words: int, void: VoidReason) -> None:
    width = 4 if terms.decoys else 2
    honest = next(ballot[:width] for ballot in DECOYS.scores if ballot is not None)
    record = replace(
        DECOYS, flipped=0b10 if terms.decoys else None, voter_bonds=(200,) * 5, seated=0b11111,
        scores=(MISMATCH[:width],) * words + (honest,) * (4 - words) + (None,),
    )  # fmt: skip
    settled = settle(terms, record)
    assert settled.void is void
    if void is VoidReason.MISMATCHED:
        assert accounts(settled, Role.AGGREGATOR) == [("MISMATCHED", 0, 300)]
        assert accounts(settled, Role.VOTER) == [("VOID", 0, 0)] * 4 + [("NOT_REVEALED", 0, 20)]
    else:
        assert settled.medians == settle(terms, replace(record, scores=record.scores[words:] + (None,) * words)).medians


def test_a_word_of_the_few_is_unpaid_and_not_slashed() -> None:
    settled = settle(TESTED, replace(DECOYS, scores=(*DECOYS.scores[:3], MISMATCH)))
    assert accounts(settled, Role.VOTER)[3] == ("FAR", 0, 0)


def test_too_few_ballots_decide_nothing_even_if_none_matches() -> None:
    settled = settle(replace(TESTED, min_reveals=2), replace(DECOYS, flipped=None, scores=(MISMATCH, None, None, None)))
    assert settled.void is VoidReason.TOO_FEW_SCORES
    assert accounts(settled, Role.AGGREGATOR) == [("VOID", 0, 0)]


@pytest.mark.parametrize("flipped", [0b10, None])
@pytest.mark.parametrize(
    ("bond", "terms", "slash"),
    [
        (500, {}, 10),  # a fiftieth of the bond
        (500, {"withheld_slash_bps": 1_000}, 12),  # no more than an eighth of the aggregator's fee of 100
        (4, {}, 4),
        (500, {"withheld_slash_bps": 0}, 0),
    ],
)
def test_withheld_upload_costs_no_more_than_an_even_part_of_the_fee(
    bond: int, terms: dict[str, Any], slash: int, flipped: int | None
) -> None:
    """However the round ends."""
    settled = settle(replace(TESTED, **terms), replace(DECOYS, hospital_bonds=(500, 500, bond), flipped=flipped))
    assert accounts(settled, Role.HOSPITAL)[2] == ("WITHHELD", 0, slash)
    assert settled.account(Role.AGGREGATOR).part == (2 if flipped else 0)


def swapped(ballot: tuple[int, ...] | None) -> tuple[int, ...] | None:
    return None if ballot is None else ballot[len(ballot) // 2 :] + ballot[: len(ballot) // 2]


@given(st.integers(0, 2**32))
def test_turning_all_sums_and_ballots_changes_nothing(seed: int) -> None:
    terms, record = decoy_round(seed)
    assume(record.flipped is not None)
    flipped = record.viable & ~(record.flipped or 0)
    # A cohort without a sum has no turn to take, and no score that counts.
    other = replace(record, flipped=flipped, scores=tuple(swapped(ballot) for ballot in record.scores))
    assume(other.mismatched == record.mismatched)  # which a ballot's first score says
    assert settle(terms, other) == settle(terms, record)


@given(st.integers(0, 2**32), SCORE.filter(lambda score: score != DOES_NOT_MATCH))
def test_constant_ballot_fails_wherever_a_pair_counts(seed: int, score: int) -> None:
    terms, record = decoy_round(seed)
    voter = next(members(record.revealed), None)
    assume(record.flipped is not None and record.viable and voter is not None)
    constant = (score,) * (2 * len(record.cohorts))
    scores = tuple(constant if i == voter else ballot for i, ballot in enumerate(record.scores))
    settled = settle(terms, replace(record, scores=scores))
    assume(settled.void is VoidReason.NONE)
    expected = Reason.FAILED_DECOY if settled.counted else Reason.UNTESTED
    assert settled.account(Role.VOTER, voter or 0).reason is expected


@given(st.integers(0, 2**32))
def test_who_tells_every_pair_that_counts_is_never_slashed_and_others_always_are(seed: int) -> None:
    terms, record = decoy_round(seed)
    settled = settle(terms, record)
    assume(settled.void is VoidReason.NONE)
    for voter in members(record.revealed & ~record.mismatched):
        told = all(record.genuine_of(voter, k) > record.decoy_of(voter, k) for k in members(settled.counted))
        account = settled.account(Role.VOTER, voter)
        assert (account.reason is Reason.FAILED_DECOY) == (not told)
        assert told or account.slash == payouts.penalty(
            terms.voter_bond, terms.failed_decoy_slash_bps, record.voter_bonds[voter]
        )
        assert not told or account.slash == 0


def decoy_round(seed: int) -> tuple[Terms, RoundRecord]:
    source = random.Random(seed)
    terms = replace(generate_settlement.any_terms(source), decoys=True)
    return terms, generate_settlement.any_record(source, terms)


def test_explain_refuses_an_account_that_the_task_does_not_have() -> None:
    with pytest.raises(SettlementInvalid, match="no voter 5"):
        explain(settle(TERMS, RECORD), Role.VOTER, 5)


@given(st.lists(SCORE, min_size=1, max_size=60))
def test_lower_median_has_no_more_than_half_on_either_side(values: list[int]) -> None:
    median = lower_median(values)
    assert median in values
    assert sum(value < median for value in values) <= (len(values) - 1) // 2
    assert sum(value > median for value in values) <= len(values) // 2


@given(st.integers(0, 2**32))
def test_settle_conserves_and_never_pays_whom_it_slashes(seed: int) -> None:
    source = random.Random(seed)
    terms = generate_settlement.any_terms(source)
    record = generate_settlement.any_record(source, terms)
    settled = settle(terms, record)
    assert settled.pool_left + settled.paid == record.pool_left
    assert settled.paid <= payouts.round_part(terms.pool, terms.rounds, record.pool_left)
    assert all(not (account.reward and account.slash) for account in settled.accounts)
    assert len(settled.accounts) == len(record.weights) + len(record.voter_bonds) + 1
    for account in settled.accounts:
        if account.role is not Role.AGGREGATOR:
            bonds = record.hospital_bonds if account.role is Role.HOSPITAL else record.voter_bonds
            assert 0 <= account.slash <= bonds[account.index]
        else:
            assert 0 <= account.slash <= record.aggregator_bond
        assert not account.slash or account.reason in SLASHED


@given(
    st.lists(SCORE, min_size=1, max_size=64), st.integers(1, 2**63 - 1), st.integers(0, 10_000), st.integers(0, 10**30)
)
def test_ranks_pay_all_of_it_and_fall(medians: list[int], floor: int, decay: int, base: int) -> None:
    """Up to a unit for each rank."""
    order = payouts.ranking(medians, floor)
    claims = [payouts.rank_claim(rank, decay) for rank in range(len(order))]
    paid = [payouts.share(base, claim, sum(claims)) for claim in claims]
    assert [medians[one] for one in order] == sorted((m for m in medians if m >= floor), reverse=True)
    assert paid == sorted(paid, reverse=True)
    assert not order or 0 <= base - sum(paid) <= len(order)


def test_three_ranks_are_paid_by_the_formula() -> None:
    claims = [payouts.rank_claim(rank, 8_500) for rank in range(3)]
    parts = [payouts.share(1_000_000, claim, sum(claims)) for claim in claims]
    assert parts == [388_726, 330_417, 280_855]
    assert [round(part / 1_000_000, 3) for part in parts] == [0.389, 0.330, 0.281]


@given(st.integers(0, 2**32))
def test_an_arena_pays_by_rank_alone(seed: int) -> None:
    """Neither weights nor the size of an improvement count, and the best alone moves the model."""
    terms, record = random.Random(seed).choice(list(generate_settlement.arenas()))
    settled = settle(terms, record)
    assume(settled.void is VoidReason.NONE)
    order = payouts.ranking(settled.medians, terms.rank_floor)
    assert list(members(settled.accepted)) == order[:1]
    heavier = settle(terms, replace(record, weights=tuple(7 * weight for weight in record.weights)))
    assert [a.reward for a in heavier.accounts[:-1]] == [a.reward for a in settled.accounts[:-1]]
    for rank, cohort in enumerate(order):
        for hospital in members(record.cohorts[cohort] & record.survivors):
            assert settled.account(Role.HOSPITAL, hospital).part == payouts.rank_claim(rank, terms.rank_decay_bps)


@given(st.integers(0, 10**30))
def test_tokens_loses_nothing(amount: int) -> None:
    whole, _, fraction = tokens(amount).split()[0].partition(".")
    assert int(whole) * TOKEN + int(fraction.ljust(18, "0")) == amount


def test_a_dropped_cohort_earns_nobody_anything_and_costs_the_aggregator_its_weight() -> None:
    """Hospital 2 was a survivor when its cohort was dropped; hospital 3 had been left out of the survivors before."""
    record = replace(
        RECORD, cohorts=(0b11, 0b1100, 0b110000), viable=0b101, dropped=0b010, survivors=0b110111,
        scores=tuple(None if one is None else one[:3] for one in RECORD.scores), committed=0b111111,
    )  # fmt: skip
    accounts = {(account.role, account.index): account for account in settle(TERMS, record).accounts}
    assert accounts[Role.HOSPITAL, 2].reason is Reason.NOT_IN_SUM
    assert (accounts[Role.HOSPITAL, 2].reward, accounts[Role.HOSPITAL, 2].slash) == (0, 0)
    assert accounts[Role.HOSPITAL, 3].reason is Reason.WITHHELD
    aggregator = accounts[Role.AGGREGATOR, 0]
    assert (aggregator.part, aggregator.whole) == (1 + 2 + 5 + 6, 21)
    for wrong in (0b001, 0, 0b1010):
        with pytest.raises(SettlementInvalid):
            replace(record, dropped=wrong)


# Hospital 2's cohort has no sum, and the aggregator says that this is its doing.
NAMED = replace(
    RECORD, cohorts=(0b11, 0b1100, 0b110000), viable=0b101, dropped=0b010, survivors=0b111111, committed=0b111111,
    named=0b000100, scores=tuple(None if one is None else one[:3] for one in RECORD.scores),
)  # fmt: skip


def test_who_is_named_is_slashed_and_the_others_of_its_cohort_are_only_unpaid() -> None:
    settled = settle(TERMS, NAMED)
    assert (settled.void, settled.guilty) == (VoidReason.NONE, 0b000100)
    assert accounts(settled, Role.HOSPITAL)[2:4] == [("FALSE_UPLOAD", 0, 100), ("NOT_IN_SUM", 0, 0)]
    others = settle(TERMS, replace(NAMED, named=0))
    assert settled.paid == others.paid
    assert settled.burnt == others.burnt + 100
    words = explain(settled, Role.HOSPITAL, 2)
    assert [word for word in ("paid nothing", "its upload", "cohort 1", "slashed") if word not in words] == []


@pytest.mark.parametrize("words", [1, 2])
def test_who_is_named_wrongly_is_not_slashed_but_who_named_it(words: int) -> None:
    """Anybody may say so in such a round, also where the contract itself compared what is published."""
    honest = NAMED.scores[0]
    ballots = ((DOES_NOT_MATCH,) * 3,) * words + (honest,) * (3 - words) + (None, None)
    settled = settle(replace(TERMS, min_reveals=1), replace(NAMED, scores=ballots))
    if words == 1:
        assert (settled.void, settled.guilty) == (VoidReason.NONE, 0b000100)
        assert accounts(settled, Role.VOTER)[0] == ("FAR", 0, 0)
        return
    assert (settled.void, settled.guilty, settled.paid) == (VoidReason.MISMATCHED, 0, 0)
    assert accounts(settled, Role.AGGREGATOR) == [("MISMATCHED", 0, 320)]
    assert set(accounts(settled, Role.HOSPITAL)) == {("VOID", 0, 0)}


@pytest.mark.parametrize("decoys", [False, True])
def test_round_without_a_sum_accepts_nothing_and_slashes_who_is_named(decoys: bool) -> None:
    """There is nothing to disclose, and no decoy to test a voter by, which is paid for judging who is named."""
    ballots = tuple(None if one is None else one * (1 + decoys) for one in NAMED.scores)
    terms, record = replace(TERMS, decoys=decoys), replace(NAMED, viable=0, dropped=0b111, scores=ballots)
    settled = settle(terms, record)
    assert (settled.void, settled.accepted, settled.medians) == (VoidReason.NONE, 0, (0, 0, 0))
    assert accounts(settled, Role.HOSPITAL)[:3] == [("NOT_IN_SUM", 0, 0)] * 2 + [("FALSE_UPLOAD", 0, 100)]
    assert accounts(settled, Role.AGGREGATOR) == [("PAID", 0, 0)]
    assert accounts(settled, Role.VOTER)[:3] == [("PAID", 50, 0)] * 3


@pytest.mark.parametrize("named", [0b000001, 0b001000, 0b1000000])
def test_only_who_committed_in_dropped_cohorts_is_named(named: int) -> None:
    with pytest.raises(SettlementInvalid, match="named has"):
        replace(NAMED, committed=0b110111, survivors=0b110111, named=named)


def test_who_is_named_and_kept_its_upload_is_slashed_once() -> None:
    settled = settle(TERMS, replace(NAMED, survivors=0b111011))
    assert accounts(settled, Role.HOSPITAL)[2] == ("FALSE_UPLOAD", 0, 100)


def record_of(task: TaskDriver, state: TaskState, round_state: RoundState, scores: list[list[int]]) -> RoundRecord:
    """A round in which every seated voter has scored, and revealed."""
    hospitals, voters = task.operator.tasks.hospitals(task.task), task.operator.tasks.voters(task.task)
    number = state.round
    return RoundRecord(
        pool_left=state.pool_left,
        weights=tuple(hospital.weight for hospital in hospitals),
        hospital_bonds=tuple(hospital.bond for hospital in hospitals),
        voter_bonds=tuple(voter.bond for voter in voters),
        aggregator_bond=task.operator.tasks.params(task.task).aggregator_bond,
        cohorts=tuple(task.operator.tasks.cohort_members(task.task, number, k) for k in range(round_state.cohorts)),
        viable=round_state.viable_cohorts,
        committed=round_state.committed,
        survivors=round_state.survivors,
        flipped=None,
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
    params, state = task.operator.tasks.params(task.task), task.operator.tasks.state(task.task)
    round_state = task.operator.tasks.round_state(task.task, 1)
    scores = [[20_000, -60_000], [20_100, -60_100], [90_000, -60_000]]
    expected = settle(Terms.of(params), record_of(task, state, round_state, scores))
    everybody = [ledger.address for ledger in (*task.nodes, *task.judges, task.aggregator)]
    task.draw().judge(scores)

    after = task.operator.tasks.round_state(task.task, 1)
    assert (after.medians, after.accepted_cohorts) == (expected.medians, expected.accepted)
    paid = {event["account"]: event["amount"] for event in task.events("Rewarded")}
    assert [paid.get(account, 0) for account in everybody] == [account.reward for account in expected.accounts]
    assert task.operator.tasks.state(task.task).pool_left == expected.pool_left
    bonds = [hospital.bond for hospital in task.operator.tasks.hospitals(task.task)]
    slashed = [params.hospital_bond - bond for bond in bonds]
    assert slashed == [account.slash for account in expected.accounts[:3]]
    assert [i for i, amount in enumerate(slashed) if amount] == list(members(expected.harmful)) != []


def test_terms_are_parameters_of_the_contract() -> None:
    from consilium_chain.ledger.structs import TaskParams

    assert {field.name for field in fields(Terms)} <= {field.name for field in fields(TaskParams)}
