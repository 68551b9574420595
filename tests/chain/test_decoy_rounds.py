"""Decoy rounds and publication by digest on a real chain: what is settled, paid, slashed and explained, and how every
lie about a hidden sum is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from chain_driver import BOND, SHARED_WINDOWS, LocalChain, TaskDriver, refused
from consilium_chain.ledger.publishing import CohortsFate, DisclosedCohort, PublishedCohort
from consilium_chain.ledger.structs import (
    DOES_NOT_MATCH,
    Outcome,
    PayoutReason,
    Phase,
    Role,
    SlashReason,
    VoidReason,
    members,
)
from consilium_chain.settlement.settlement import Reason
from consilium_zk.blobs import Blob, add, negate
from consilium_zk.constants import BLS_MODULUS
from consilium_zk.curve import GENERATOR
from consilium_zk.decoys import published_blob, read_lanes, seed_commitment
from consilium_zk.kzg import commit, versioned_hash
from consilium_zk.packing import unpack
from decoy_driver import BITS, DECOY_LAYOUT, SETTLE_GAS, DecoyDriver
from settled_rounds import Scores, assert_as_expected, expected, reasons, slashes

GOOD, BAD = [60_000, 40_000], [-80_000, -90_000]


# Rounds that go well


@pytest.mark.parametrize(
    "flipped", [0b01, *(pytest.param(other, marks=pytest.mark.deep) for other in (0b00, 0b10, 0b11))]
)
def test_decoy_round_settles_whichever_sums_are_flipped(local_chain: LocalChain, flipped: int) -> None:
    """Two honest voters, one that is a little off, a lazy one, and one that takes every decoy for the sum."""
    task = DecoyDriver(local_chain, hospitals=3, voters=5, flipped=flipped, terms={"cohorts": 2})
    task.to_committing().commit_all()
    sums = [task.cohort_sum(cohort, range(3)) for cohort in range(2)]
    task.publish()
    state = task.round_state
    assert (state.summed_cohorts, state.flipped_cohorts) == (0, 0)  # nobody can tell yet
    shown = [task.shown_sum(cohort, range(3)) for cohort in range(2)]
    hashes = [task.operator.tasks.expected_blob_hashes(task.task, 1, cohort, 1)[0] for cohort in range(2)]
    assert hashes == [versioned_hash(commit(cohort.blobs[0])) for cohort in shown]
    ballots = [
        task.ballot(GOOD, BAD),
        task.ballot(GOOD, BAD),
        task.ballot([60_100, 40_100], [-80_100, -90_100]),
        [0] * 4,
        task.ballot(BAD, GOOD),
    ]
    task.draw().vote(ballots)
    task.open()

    after = task.operator.tasks.round_state(task.task, 1)
    assert (after.flipped_cohorts, after.summed_cohorts) == (flipped, 0b11)
    wanted = expected(task, ballots, flipped)
    failed = Reason.FAILED_DECOY
    assert reasons(wanted, Role.VOTER) == [Reason.PAID] * 3 + [failed] * 2
    assert_as_expected(task, wanted)
    # What anybody reads of the published blobs, once it is known how, is the exact sum of what was committed.
    negated_delta = task.hidden[1].negated_delta.lanes
    for cohort in range(2):
        present = list(members(task.operator.tasks.cohort_members(task.task, 1, cohort)))
        weights = [task.weight(i, 1) for i in present]
        lanes = unpack(shown[cohort].blobs, task.lanes, DECOY_LAYOUT, sum(weights))
        exact = sum(w * task.updates[1, i].lanes for w, i in zip(weights, present, strict=True))
        is_flipped = bool(flipped >> cohort & 1)
        np.testing.assert_array_equal(read_lanes(lanes, negated_delta, sum(weights), BITS, is_flipped), exact)
        assert sums[cohort].blobs != shown[cohort].blobs


def test_who_does_not_tell_the_sums_from_their_decoys_is_slashed(local_chain: LocalChain) -> None:
    task = DecoyDriver(local_chain, hospitals=2, voters=4, flipped=0b10, terms={"cohorts": 2})
    task.to_scoring()
    honest, far = task.ballot(GOOD, BAD), task.ballot([90_000, 40_000], BAD)
    ballots = [honest, honest, [0] * 4, far]
    task.vote(ballots)
    task.open()
    wanted = expected(task, ballots, 0b10)
    assert reasons(wanted, Role.VOTER) == [Reason.PAID, Reason.PAID, Reason.FAILED_DECOY, Reason.FAR]
    assert slashes(task) == [(task.judges[2].address, BOND // 2, SlashReason.FAILED_DECOY)]
    assert_as_expected(task, wanted)
    assert (task.round, task.phase) == (2, Phase.FORMING)


def test_pairs_within_the_margin_test_nobody_and_pay_no_voter(local_chain: LocalChain) -> None:
    task = DecoyDriver(local_chain, voters=3, flipped=1, terms={"cohorts": 1})
    task.to_scoring()
    ballots = [task.ballot([50_000], [1]), task.ballot([50_000], [1]), [7, 7]]
    task.vote(ballots)
    task.open()
    wanted = expected(task, ballots, 1)
    assert reasons(wanted, Role.VOTER) == [Reason.UNTESTED] * 3
    assert_as_expected(task, wanted)


def test_update_of_several_blobs_is_disclosed_blob_by_blob_by_anybody(local_chain: LocalChain) -> None:
    task = DecoyDriver(local_chain, voters=2, flipped=1, terms={"update_blobs": 3, "statistics_blobs": 3, "rounds": 1})
    task.to_scoring()
    ballots = [task.ballot([60_000], [-80_000])] * 2
    task.vote(ballots)
    first, rest = task.disclosed()[0].blobs[:1], task.disclosed()[0].blobs[1:]
    stranger = local_chain.funded()
    task.open(lambda _: [DisclosedCohort(0, first)], by=stranger, settle_gas=10**8)
    assert (task.phase, task.round_state.summed_cohorts) == (Phase.DISCLOSING, 0)
    with refused("CommitmentMismatch", blob=1):
        task.open(lambda _: [DisclosedCohort(0, [*first, *reversed(rest)])], by=stranger)
    task.open(by=stranger)
    assert task.phase is Phase.ENDED
    assert_as_expected(task, expected(task, ballots, 1))


def test_second_round_hides_by_its_own_seed_and_negated_delta(local_chain: LocalChain) -> None:
    task = DecoyDriver(local_chain, voters=2, terms={"cohorts": 2})
    task.to_scoring()
    task.vote([task.ballot(GOOD, BAD)] * 2)
    task.open()
    task.flipped = 0b11
    task.form().commit_all().publish()
    task.draw().vote([task.ballot(GOOD, BAD)] * 2)
    task.open()
    assert task.operator.tasks.round_state(task.task, 2).flipped_cohorts == 0b11
    assert (task.phase, slashes(task)) == (Phase.ENDED, [])


# Publication by digest


@pytest.mark.parametrize("driver", [TaskDriver, DecoyDriver])
def test_digests_task_settles_without_a_blob_transaction(local_chain: LocalChain, driver: type[TaskDriver]) -> None:
    first = local_chain.treasury.connection.blocks.number()
    task = driver(local_chain, voters=2, terms={"digests": True, "rounds": 1})
    task.to_scoring()
    assert task.operator.tasks.round_state(task.task, 0).outcome is Outcome.SETTLED
    if isinstance(task, DecoyDriver):
        ballots = [task.ballot([60_000], [-80_000])] * 2
        task.vote(ballots)
        task.open()
    else:
        ballots = [[60_000]] * 2
        task.judge(ballots)
    assert_as_expected(task, expected(task, ballots, 0 if isinstance(task, DecoyDriver) else None))
    assert task.phase is Phase.ENDED
    assert local_chain.blob_transactions(first) == 0


def test_blobs_task_sends_blobs(local_chain: LocalChain) -> None:
    """What the test above counts is there to be counted."""
    first = local_chain.treasury.connection.blocks.number()
    DecoyDriver(local_chain).to_scoring()
    assert local_chain.blob_transactions(first) == 2


def test_digest_of_another_sum_is_refused_at_once_without_decoys(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, terms={"digests": True}).to_committing().commit_all()
    with refused("BlobMismatch", cohort=0, blob=0):
        task.publish(one_bit_changed)


@pytest.mark.parametrize(
    ("driver", "digests"),
    [
        (DecoyDriver, True), (TaskDriver, False),
        *(pytest.param(*one, marks=pytest.mark.deep) for one in ((DecoyDriver, False), (TaskDriver, True))),
    ],
)  # fmt: skip
def test_publication_that_was_begun_goes_on_where_it_was_left(
    local_chain: LocalChain, driver: type[TaskDriver], digests: bool
) -> None:
    task = driver(local_chain, hospitals=4, terms={"cohorts": 2, "digests": digests}).to_committing().commit_all()
    sums = [task.shown_sum(cohort, range(4)) for cohort in range(2)]
    sums = [replace(one, digests=[versioned_hash(commit(blob)) for blob in one.blobs]) for one in sums]
    send = task.aggregator.aggregator.publish_digests if digests else task.aggregator.aggregator.publish_sums
    send(task.task, 1, CohortsFate(0b1111), sums[:1], task.decoys)
    first_phase = task.phase
    assert first_phase is Phase.PUBLISHING
    before = task.aggregator.record.published_so_far(task.task, 1)
    assert before.published == {(0, 0)}
    assert before.decoys == task.decoys
    assert before.summed == (set() if task.decoys else {(0, 0)})
    send(task.task, 1, CohortsFate(), sums, task.decoys, before=before)
    assert task.phase is Phase.DRAWING
    assert task.round_state.published_cohorts == 0b11


def test_digests_are_refused_in_a_task_of_blobs(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain).join().commit_all()
    total = task.cohort_sum(0, range(2))
    total = replace(total, digests=[versioned_hash(commit(total.blobs[0]))])
    with refused("NotByDigest", taskId=task.task):
        task.aggregator.aggregator.publish_digests(task.task, 0, CohortsFate(0b11), [total])


# What does not match


@pytest.mark.parametrize(
    ("kind", "words"), [("decoys", 2), ("digests", 2), ("both", 3), pytest.param("decoys", 3, marks=pytest.mark.deep)]
)
def test_word_of_most_slashes_the_aggregator_and_of_few_goes_unpaid(
    local_chain: LocalChain, kind: str, words: int
) -> None:
    has_decoys, terms = kind != "digests", {"digests": kind != "decoys"}
    task = (DecoyDriver if has_decoys else TaskDriver)(local_chain, voters=4, terms=terms).to_scoring()
    size = 2 if has_decoys else 1
    honest = [60_000, -80_000][:size]
    ballots: Scores = [*[[DOES_NOT_MATCH] * size] * words, *[honest] * (4 - words)]
    task.vote(ballots)
    if has_decoys and words == 2:
        assert isinstance(task, DecoyDriver)
        task.open()
    else:
        task.operator.phases.settle(task.task, 1)
    wanted = expected(task, ballots, 0 if has_decoys and words == 2 else None)
    assert (wanted.void is VoidReason.MISMATCHED) == (words == 3)
    assert task.operator.tasks.round_state(task.task, 1).mismatched == (1 << words) - 1
    if words == 3:
        assert slashes(task) == [(task.aggregator.address, BOND // 4, SlashReason.MISMATCHED)]
    assert_as_expected(task, wanted)


def test_one_word_among_honest_ballots_is_unpaid_and_not_slashed(local_chain: LocalChain) -> None:
    task = DecoyDriver(local_chain, voters=3, flipped=1).to_scoring()
    assert isinstance(task, DecoyDriver)
    honest = task.ballot([60_000], [-80_000])
    ballots = [honest, [DOES_NOT_MATCH] * 2, honest]
    task.vote(ballots)
    task.open()
    wanted = expected(task, ballots, 1)
    assert reasons(wanted, Role.VOTER) == [Reason.PAID, Reason.FAR, Reason.PAID]
    assert slashes(task) == []
    assert_as_expected(task, wanted)


def test_statistics_that_do_not_match_slash_the_aggregator(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, voters=3, terms={"digests": True}).join().commit_all()
    task.publish()
    task.draw().judge([[DOES_NOT_MATCH], [DOES_NOT_MATCH], [0]])
    assert task.operator.tasks.round_state(task.task, 0).void_reason is VoidReason.MISMATCHED
    assert slashes(task) == [(task.aggregator.address, BOND // 4, SlashReason.MISMATCHED)]
    assert local_chain.unaccounted() == 0


def test_plain_blobs_cannot_be_said_not_to_match(local_chain: LocalChain) -> None:
    """There the score is one like any other, and a very bad one."""
    task = TaskDriver(local_chain, voters=3).to_scoring()
    task.judge([[DOES_NOT_MATCH]] * 3)
    state = task.operator.tasks.round_state(task.task, 1)
    assert (state.outcome, state.mismatched, state.medians) == (Outcome.SETTLED, 0, (DOES_NOT_MATCH,))


# Nothing disclosed


@pytest.mark.parametrize("silent", [False, True])
def test_round_that_is_not_disclosed_slashes_the_aggregator(local_chain: LocalChain, silent: bool) -> None:
    task = DecoyDriver(local_chain, voters=3, flipped=1).to_scoring()
    assert isinstance(task, DecoyDriver)
    honest = task.ballot([60_000], [-80_000])
    ballots: Scores = [honest, honest, None if silent else honest]
    task.vote(ballots)
    if silent:
        task.pass_deadline()
    task.operator.phases.settle(task.task, 1)
    assert task.phase is Phase.DISCLOSING
    with refused("PhaseNotOver", taskId=task.task):
        task.tick()
    task.pass_deadline()
    with refused("PhaseOver", taskId=task.task):
        task.open()
    task.tick()
    wanted = expected(task, ballots, None)
    assert wanted.void is VoidReason.NOT_DISCLOSED
    assert_as_expected(task, wanted)
    assert (task.aggregator.address, BOND // 4, SlashReason.NOT_DISCLOSED) in slashes(task)
    assert (task.round, task.phase) == (2, Phase.FORMING)


def test_opening_one_cohort_of_two_is_not_enough(local_chain: LocalChain) -> None:
    task = DecoyDriver(local_chain, voters=2, terms={"cohorts": 2}).to_scoring()
    assert isinstance(task, DecoyDriver)
    task.vote([task.ballot(GOOD, BAD)] * 2)
    task.open(lambda disclosed: disclosed[:1], settle_gas=10**8)
    with refused("CohortsNotDisclosed", disclosed=0b01, wanted=0b11):
        task.operator.phases.settle(task.task, 1)
    task.pass_deadline()
    task.tick()
    assert task.operator.tasks.round_state(task.task, 1).void_reason is VoidReason.NOT_DISCLOSED


# Withheld uploads


@pytest.mark.parametrize("driver", [TaskDriver, DecoyDriver])
def test_withheld_upload_costs_the_hospital_and_the_aggregators_fee(
    local_chain: LocalChain, driver: type[TaskDriver]
) -> None:
    task = driver(local_chain, hospitals=3, voters=2).to_committing().commit_all()
    task.publish(survivors=[0, 2])
    even_part = 10_001 // 2 // 10 // 3  # of the aggregator's fee of a round: far below a fiftieth of the bond
    task.draw()
    if isinstance(task, DecoyDriver):
        ballots = [task.ballot([60_000], [-80_000])] * 2
        task.vote(ballots)
        task.open()
    else:
        ballots = [[60_000]] * 2
        task.judge(ballots)
    assert (task.nodes[1].address, even_part, SlashReason.WITHHELD_UPLOAD) in slashes(task)
    assert task.operator.tasks.hospitals(task.task)[1].bond == BOND - even_part
    wanted = expected(task, ballots, 0 if isinstance(task, DecoyDriver) else None)
    assert reasons(wanted, Role.HOSPITAL) == [Reason.PAID, Reason.WITHHELD, Reason.PAID]
    assert_as_expected(task, wanted)
    # The rows' weights are 1, 2, 3: what it cost the hospital, it cost the aggregator, too.
    assert wanted.account(Role.AGGREGATOR).part == 4


@pytest.mark.parametrize(("terms", "slash"), [({"withheld_slash_bps": 0}, 0), ({"pool": 10**24}, BOND // 50)])
def test_withheld_slash_is_what_the_terms_say_up_to_the_fee(
    local_chain: LocalChain, terms: dict[str, int], slash: int
) -> None:
    bond = {"aggregator_bond": 400_000 * 10**18} if "pool" in terms else {}
    task = TaskDriver(local_chain, hospitals=2, terms=terms | bond).to_committing().commit_all()
    task.publish(survivors=[0])
    task.draw().judge([[1_000]])
    assert [amount for _, amount, _ in slashes(task)] == [slash] * bool(slash)
    payout = task.operator.tasks.explain(task.task, 1, task.nodes[1].address)
    assert (payout.reason, payout.slash) == (PayoutReason.WITHHELD, slash)


# Lies about a hidden sum


def one_bit_changed(cohort: PublishedCohort) -> PublishedCohort:
    raw = bytearray(cohort.blobs[0])
    raw[31] ^= 1
    return replace(cohort, blobs=[Blob(bytes(raw)), *cohort.blobs[1:]])


def hidden_otherwise(
    task: DecoyDriver, cohort: PublishedCohort, flipped: bool, weight: int, without: int | None = None
) -> PublishedCohort:
    total = task.cohort_sum(cohort.index, range(task.hospitals)).blobs[0]
    if without is not None:
        total = add([total, negate(task.updates[1, without].blobs[0])])
    negated_delta = task.hiding().negated_delta
    return replace(cohort, blobs=[published_blob(total, negated_delta.blobs[0], weight, negated_delta.layout, flipped)])


def other_way(task: DecoyDriver, cohort: PublishedCohort) -> PublishedCohort:
    return hidden_otherwise(task, cohort, not task.flipped, task.weight_of(0, range(2)))


def without_a_survivor(task: DecoyDriver, cohort: PublishedCohort) -> PublishedCohort:
    return hidden_otherwise(task, cohort, bool(task.flipped), task.weight_of(0, range(2)), without=0)


def as_if_it_weighed_more(task: DecoyDriver, cohort: PublishedCohort) -> PublishedCohort:
    return hidden_otherwise(task, cohort, bool(task.flipped), task.weight_of(0, range(2)) + 1)


def not_hidden(task: DecoyDriver, cohort: PublishedCohort) -> PublishedCohort:
    return task.cohort_sum(0, range(2))


def bit_changed(task: DecoyDriver, cohort: PublishedCohort) -> PublishedCohort:
    return one_bit_changed(cohort)


LIES = [bit_changed, other_way, without_a_survivor, as_if_it_weighed_more, not_hidden]


# Each once, and both ways of each for depth: that it is not the hidden sum is found in one and the same way.
@pytest.mark.parametrize(
    ("lie", "flipped", "digests"),
    [
        pytest.param(
            lie, flipped, bool((place + flipped) % 2), marks=[] if flipped == place // 2 % 2 else pytest.mark.deep
        )
        for place, lie in enumerate(LIES)
        for flipped in (0, 1)
    ],
)
def test_opening_refuses_what_is_not_the_hidden_sum(
    local_chain: LocalChain,
    lie: Callable[[DecoyDriver, PublishedCohort], PublishedCohort],
    flipped: int,
    digests: bool,
) -> None:
    task = DecoyDriver(local_chain, flipped=flipped, terms={"digests": digests})
    task.to_committing().commit_all()
    task.publish(lambda cohort: lie(task, cohort))
    task.draw().vote([task.ballot([60_000], [-80_000])])
    with refused("BlobMismatch", cohort=0, blob=0):
        task.open()
    task.operator.phases.settle(task.task, 1)
    task.pass_deadline()
    task.tick()
    assert slashes(task) == [(task.aggregator.address, BOND // 4, SlashReason.NOT_DISCLOSED)]
    assert task.operator.tasks.round_state(task.task, 1).void_reason is VoidReason.NOT_DISCLOSED
    assert task.events("Rewarded") == []


@pytest.fixture(scope="module")
def played(local_chain: LocalChain) -> DecoyDriver:
    task = DecoyDriver(local_chain, voters=1, flipped=1, terms=SHARED_WINDOWS)
    task.to_scoring()
    task.vote([task.ballot([60_000], [-80_000])])
    task.open()
    task.form().commit_all().publish()
    task.draw().vote([task.ballot([60_000], [-80_000])])
    return task


@pytest.fixture
def revealed(played: DecoyDriver) -> Iterator[DecoyDriver]:
    """The second of two rounds, all revealed: there is a disclosure to replay. What tests open is undone."""
    with played.chain.undone():
        yield played


def test_opening_refuses_seed_and_negated_delta_of_another_round(revealed: DecoyDriver) -> None:
    first, second = revealed.hidden[1], revealed.hidden[2]
    for seed, negated_delta in [
        (first.seed, first.negated_delta), (first.seed, second.negated_delta), (second.seed, first.negated_delta),
        (bytes(32), second.negated_delta), (seed_commitment(second.seed), second.negated_delta),
    ]:  # fmt: skip
        with refused("DecoysMismatch", taskId=revealed.task, round=2):
            revealed.open(seed=seed, negated_delta=negated_delta.points)
    with refused("DecoysMismatch", taskId=revealed.task, round=2):
        revealed.open(negated_delta=[GENERATOR])
    with refused("DecoysMismatch", taskId=revealed.task, round=2):
        revealed.open(negated_delta=[])
    revealed.open()  # nothing of what was refused stays
    assert revealed.phase is Phase.ENDED
    assert slashes(revealed) == []


def test_opening_refuses_replay_of_another_rounds_points(revealed: DecoyDriver) -> None:
    points = [revealed.updates[1, index].points[0] for index in range(2)]

    def replayed(disclosed: list[DisclosedCohort]) -> list[DisclosedCohort]:
        pair = revealed.hidden[1].secrets.blinders[0][0]
        (blob,) = disclosed[0].blobs
        given = replace(blob, blinders=pair, commitments=replace(blob.commitments, points=points))
        return [replace(disclosed[0], blobs=[given])]

    with refused("CommitmentMismatch", cohort=0, blob=0):
        revealed.open(replayed)


def test_opening_refuses_a_settled_round(revealed: DecoyDriver) -> None:
    disclosed, hidden = revealed.disclosed(), revealed.hidden[2]
    revealed.open()
    with refused("WrongPhase", actual=Phase.ENDED, wanted=Phase.DISCLOSING):
        revealed.aggregator.aggregator.disclose_decoys(
            revealed.task, 2, hidden.seed, hidden.negated_delta.points, disclosed, SETTLE_GAS
        )


@pytest.mark.parametrize(
    "blinders",
    [
        lambda one, two: (two, one),
        lambda one, two: ((one + 1) % BLS_MODULUS, two),
        lambda one, two: (one, (two - 1) % BLS_MODULUS),
        lambda one, two: (0, 0),
        lambda one, two: (-one % BLS_MODULUS, -two % BLS_MODULUS),
    ],
    ids=["swapped", "first", "second", "none", "negated"],
)
def test_opening_refuses_other_blinders(revealed: DecoyDriver, blinders: Callable[[int, int], tuple[int, int]]) -> None:
    def otherwise(disclosed: list[DisclosedCohort]) -> list[DisclosedCohort]:
        (blob,) = disclosed[0].blobs
        return [replace(disclosed[0], blobs=[replace(blob, blinders=blinders(*blob.blinders))])]

    with refused("BlobMismatch", cohort=0, blob=0):
        revealed.open(otherwise)


@pytest.mark.parametrize("change", ["reversed", "one less", "one more"])
def test_opening_refuses_other_points(revealed: DecoyDriver, change: str) -> None:
    def otherwise(disclosed: list[DisclosedCohort]) -> list[DisclosedCohort]:
        (blob,) = disclosed[0].blobs
        shown = list(blob.commitments.points)
        points = {
            "reversed": shown[::-1],
            "one less": shown[:1],
            "one more": [*shown, shown[0]],
        }[change]
        return [replace(disclosed[0], blobs=[replace(blob, commitments=replace(blob.commitments, points=points))])]

    with refused("CommitmentMismatch" if change == "reversed" else "PointsWrong"):
        revealed.open(otherwise)


def test_opening_refuses_cohorts_and_blobs_that_are_not_there(revealed: DecoyDriver) -> None:
    with refused("CohortUnknown", cohort=1):
        revealed.open(lambda disclosed: [replace(disclosed[0], index=1)])
    with refused("BlobUnknown", blob=1, blobs=1):
        revealed.open(lambda disclosed: [replace(disclosed[0], blobs=list(disclosed[0].blobs) * 2)])


def test_opening_is_refused_before_all_have_revealed(local_chain: LocalChain) -> None:
    """A voter that knew the sign-flipped sums could still fill its ballot by that."""
    task = DecoyDriver(local_chain, voters=2).to_scoring()
    assert isinstance(task, DecoyDriver)
    with refused("WrongPhase", actual=Phase.SCORING, wanted=Phase.DISCLOSING):
        task.open()
    for voter in range(2):
        task.score(voter, task.ballot([60_000], [-80_000]))
    task.reveal(0)
    with refused("PhaseNotOver", taskId=task.task):
        task.open()
    task.reveal(1)
    task.open()
    assert task.operator.tasks.round_state(task.task, 1).outcome is Outcome.SETTLED


def test_decoys_are_set_once_before_publication_and_only_where_there_are_some(local_chain: LocalChain) -> None:
    task = DecoyDriver(local_chain).to_committing().commit_all()
    assert isinstance(task, DecoyDriver)
    with refused("DecoyRound", taskId=task.task, round=1):  # nobody may show the sum's hash beside the decoy's
        task.aggregator.aggregator.publish_sums(task.task, 1, CohortsFate(0b11), [task.cohort_sum(0, range(2))])
    task.aggregator.aggregator.publish_sums(task.task, 1, CohortsFate(0b11), [])
    calls = task.aggregator.contracts.tasks.contract.functions
    with refused("DecoysNotSet", taskId=task.task, round=1):
        task.aggregator.connection.transactions.send(calls.publish(task.task, 1, 0, 0, 0, 1))
    said = task.hiding().decoys
    other = local_chain.funded()
    with refused("NotAggregator", caller=other.address):
        other.connection.transactions.send(
            other.contracts.tasks.contract.functions.setDecoys(
                task.task, 1, said.seed_commitment, said.negated_delta_digest
            )
        )
    task.aggregator.connection.transactions.send(
        calls.setDecoys(task.task, 1, said.seed_commitment, said.negated_delta_digest)
    )
    with refused("DecoysAlreadySet", taskId=task.task, round=1):
        task.aggregator.connection.transactions.send(calls.setDecoys(task.task, 1, bytes(32), bytes(32)))
    assert task.operator.record.decoys_set(task.task, 1) == said

    plain = TaskDriver(local_chain).to_committing().commit_all()
    with refused("NotADecoyRound", taskId=plain.task, round=1):
        plain.aggregator.aggregator.publish_sums(plain.task, 1, CohortsFate(0b11), [], said)


def test_ballots_of_a_decoy_round_hold_two_scores_of_each_cohort(local_chain: LocalChain) -> None:
    task = DecoyDriver(local_chain, terms={"cohorts": 2}).to_scoring()
    task.score(0, [1, 2])
    with refused("ScoreCountWrong", given=2, wanted=4):
        task.reveal(0)
