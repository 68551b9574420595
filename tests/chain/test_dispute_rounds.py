"""Rounds in which the aggregator accuses a cohort, on a real chain: who may say what and when, what readers find of it,
and what it comes to.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from chain_driver import ACCUSATION, BOND, LocalChain, TaskDriver, refused
from consilium_chain.ledger.publishing import CohortsFate
from consilium_chain.ledger.structs import DOES_NOT_MATCH, Outcome, PayoutReason, Phase, Role, SlashReason, VoidReason
from consilium_chain.rounds.timing import dispute_step
from consilium_chain.settlement.settlement import Reason
from decoy_driver import DecoyDriver
from settled_rounds import Scores, assert_as_expected, expected, reasons, slashes

MASKED = {"masked": True, "min_cohort_size": 3, "min_hospitals": 3}
SLASH = BOND // 5  # as for a harmful cohort
AGGREGATOR_SLASH = BOND // 4
KINDS = [TaskDriver, DecoyDriver]


def two_cohorts(chain: LocalChain, kind: type[TaskDriver] = TaskDriver, hospitals: int = 6) -> TaskDriver:
    return kind(chain, hospitals=hospitals, voters=3, terms=MASKED | {"cohorts": 2})


def one_cohort(chain: LocalChain, **terms: int) -> TaskDriver:
    return TaskDriver(chain, hospitals=3, voters=3, terms=MASKED | terms)


def bit_map(indices: Sequence[int]) -> int:
    return sum(1 << index for index in indices)


def judge(task: TaskDriver, genuine: Sequence[int], decoy: Sequence[int]) -> list[list[int]]:
    """Everybody votes alike, and the round is settled; returns the ballots."""
    ballots = [task.ballot(genuine, decoy) if isinstance(task, DecoyDriver) else list(genuine)] * 3
    task.draw().vote(ballots)
    if isinstance(task, DecoyDriver) and task.round_state.viable_cohorts:
        task.open()
    else:
        task.operator.phases.settle(task.task, task.round)
    return ballots


def flipped(task: TaskDriver) -> int | None:
    return 0 if isinstance(task, DecoyDriver) else None


# Who may say what, and when


def test_only_the_aggregator_accuses_and_only_in_masked_tasks(local_chain: LocalChain) -> None:
    task = two_cohorts(local_chain).to_committing().commit_all()
    task.aggregator.aggregator.fix_survivors(task.task, 1, 0b111111)
    said = ACCUSATION.accusation, ACCUSATION.evidence
    with refused("NotAggregator", caller=task.nodes[0].address):
        task.nodes[0].aggregator.accuse_cohort(task.task, 1, 0, *said)
    task.aggregator.aggregator.accuse_cohort(task.task, 1, 0, *said)
    with refused("CohortUnknown", cohort=0):
        task.aggregator.aggregator.accuse_cohort(task.task, 1, 0, *said)
    assert task.operator.record.accusations(task.task, 1) == {0: ACCUSATION}
    assert (task.phase, task.round_state.dropped_cohorts) == (Phase.PUBLISHING, 0b01)
    task.aggregator.aggregator.publish_sums(task.task, 1, CohortsFate(), [task.cohort_sum(1, range(6))])
    assert task.phase is Phase.DISPUTING

    plain = TaskDriver(local_chain).to_committing().commit_all()
    with refused("NotMasked", taskId=plain.task):
        plain.publish(accused=[0])


def test_hospitals_submit_evidence_in_two_steps_and_the_aggregator_names_in_the_third(local_chain: LocalChain) -> None:
    task = two_cohorts(local_chain).to_disputing([0])
    accused, others, aggregator = task.cohort(0), task.cohort(1), task.aggregator
    both, late, silent = accused

    def submit_evidence(hospital: int, evidence: bytes, step: int) -> None:
        task.nodes[hospital].hospital.submit_evidence(task.task, 1, step, evidence)
        now = task.operator.connection.blocks.now()
        assert dispute_step(task.operator.tasks.state(task.task), task.params.publish_window, now) == step

    assert (task.phase, task.round_state.accused) == (Phase.DISPUTING, bit_map(accused))
    assert (task.operator.record.accusations(task.task, 1), task.operator.record.accusations(task.task, 0)) == (
        {0: ACCUSATION},
        {},
    )
    assert task.operator.record.submitted_evidence(task.task, 1) == ({}, {})
    submit_evidence(both, b"points", 0)
    submit_evidence(both, b"other points", 0)
    for stranger in (task.nodes[others[0]], task.judges[0], aggregator):
        with refused("NotAMember", account=stranger.address):
            stranger.hospital.submit_evidence(task.task, 1, 0, b"points")
    with refused("WrongRound", actual=1, given=0):
        task.nodes[both].hospital.submit_evidence(task.task, 0, 0, b"points")
    task.pass_to_step(1)
    with refused("WrongStep", actual=1, given=0):
        submit_evidence(late, b"points", 0)
    submit_evidence(late, b"points", 1)
    submit_evidence(both, b"seeds", 1)
    with refused("PhaseNotOver", taskId=task.task):
        aggregator.aggregator.name_cheaters(task.task, 1, bit_map(accused))
    task.pass_to_step(2)
    with refused("PhaseOver", taskId=task.task):
        task.nodes[silent].hospital.submit_evidence(task.task, 1, 1, b"seeds")
    assert task.operator.record.submitted_evidence(task.task, 1) == (
        {both: b"points"},
        {both: b"seeds", late: b"points"},
    )

    for wrong in ([], others, [silent, others[0]], [6]):
        with refused("CheatersInvalid", hospitals=bit_map(wrong)):
            aggregator.aggregator.name_cheaters(task.task, 1, bit_map(wrong))
    with refused("NotAggregator", caller=task.nodes[both].address):
        task.nodes[both].aggregator.name_cheaters(task.task, 1, bit_map([silent]))
    aggregator.aggregator.name_cheaters(task.task, 1, bit_map([silent]))
    state = task.round_state
    assert (task.phase, state.named, state.guilty) == (Phase.DRAWING, bit_map([silent]), 0)
    with refused("WrongPhase", actual=Phase.DRAWING, wanted=Phase.DISPUTING):
        aggregator.aggregator.name_cheaters(task.task, 1, bit_map([both]))


# What it comes to


@pytest.mark.parametrize("kind", KINDS)
def test_who_is_named_is_slashed_once_the_committee_agrees(local_chain: LocalChain, kind: type[TaskDriver]) -> None:
    task = two_cohorts(local_chain, kind).to_disputing([0])
    (cheater, *others), summed = task.cohort(0), task.cohort(1)
    ballots = judge(task.name([cheater]), [0, 60_000], [0, -80_000])
    wanted = expected(task, ballots, flipped(task))
    assert slashes(task) == [(task.nodes[cheater].address, SLASH, SlashReason.FALSE_UPLOAD)]
    told = reasons(wanted, Role.HOSPITAL)
    assert (told[cheater], {told[other] for other in others}) == (Reason.FALSE_UPLOAD, {Reason.NOT_IN_SUM})
    assert {told[other] for other in summed} == {Reason.PAID} == set(reasons(wanted, Role.VOTER))
    assert_as_expected(task, wanted)


@pytest.mark.parametrize("words", [1, 2])
def test_who_is_named_wrongly_keeps_its_bond_if_most_say_so(local_chain: LocalChain, words: int) -> None:
    """Where the contract itself compares what is published, too: here the committee is asked who is named."""
    task = two_cohorts(local_chain).to_disputing([0])
    (cheater, *_) = task.cohort(0)
    ballots = [[DOES_NOT_MATCH] * 2] * words + [[0, 60_000]] * (3 - words)
    task.name([cheater]).draw().judge(ballots)
    wanted = expected(task, ballots, None)
    if words == 1:
        assert slashes(task) == [(task.nodes[cheater].address, SLASH, SlashReason.FALSE_UPLOAD)]
        assert reasons(wanted, Role.VOTER) == [Reason.FAR, Reason.PAID, Reason.PAID]
    else:
        assert slashes(task) == [(task.aggregator.address, AGGREGATOR_SLASH, SlashReason.MISMATCHED)]
        assert wanted.void is VoidReason.MISMATCHED
    assert_as_expected(task, wanted)


@pytest.mark.parametrize(("kind", "dropped"), [(TaskDriver, [1]), (TaskDriver, []), (DecoyDriver, [])])
def test_round_without_a_sum_is_settled_all_the_same(
    local_chain: LocalChain, kind: type[TaskDriver], dropped: list[int]
) -> None:
    """Nothing is accepted and nothing is disclosed, and the next round follows."""
    accused = [cohort for cohort in range(2) if cohort not in dropped]
    task = two_cohorts(local_chain, kind).to_disputing(accused, dropped)
    named = [task.cohort(cohort)[0] for cohort in accused]
    assert task.round_state.accused == bit_map([i for cohort in accused for i in task.cohort(cohort)])
    if dropped:
        task.pass_to_step(2)
        with refused("CheatersInvalid"):
            task.aggregator.aggregator.name_cheaters(task.task, 1, bit_map([task.cohort(1)[0]]))
    ballots = judge(task.name(named), [0, 0], [0, 0])
    wanted = expected(task, ballots, flipped(task))
    assert (wanted.void, wanted.accepted, wanted.guilty) == (VoidReason.NONE, 0, bit_map(named))
    assert set(reasons(wanted, Role.VOTER)) == {Reason.PAID}
    assert_as_expected(task, wanted)
    assert task.operator.record.decoys_set(task.task, 1) is None
    assert (task.round, task.phase) == (2, Phase.FORMING)
    assert task.form().phase is Phase.COMMITTING


@pytest.mark.parametrize("is_named", [True, False])
def test_who_was_left_out_of_the_survivors_does_not_submit_evidence_but_may_be_named(
    local_chain: LocalChain, is_named: bool
) -> None:
    """Its shares may give nothing, which its cohort's answers show. Nobody is slashed twice in a round."""
    task = two_cohorts(local_chain, hospitals=7).to_committing().commit_all()
    large = max(range(2), key=lambda cohort: len(task.cohort(cohort)))
    left_out, *rest = task.cohort(large)
    task.publish(survivors=[i for i in range(7) if i != left_out], accused=[large])
    assert task.round_state.accused == bit_map([left_out, *rest])
    with refused("NotAMember", account=task.nodes[left_out].address):
        task.nodes[left_out].hospital.submit_evidence(task.task, 1, 0, b"points")
    task.pass_to_step(2)
    ballots = judge(task.name([left_out] if is_named else rest), [60_000] * 2, [])
    wanted = expected(task, ballots, None)
    told = reasons(wanted, Role.HOSPITAL)
    assert told[left_out] is (Reason.FALSE_UPLOAD if is_named else Reason.WITHHELD)
    assert {told[i] for i in rest} == {Reason.NOT_IN_SUM if is_named else Reason.FALSE_UPLOAD}
    assert_as_expected(task, wanted)


@pytest.mark.parametrize("agrees", [True, False])
def test_statistics_without_a_sum_end_the_task_and_slash_whose_doing_it_is(
    local_chain: LocalChain, agrees: bool
) -> None:
    task = one_cohort(local_chain).join().commit_all()
    task.publish(accused=[0])
    task.name([1]).draw().judge([[0 if agrees else DOES_NOT_MATCH]] * 3)
    state = task.operator.tasks.round_state(task.task, 0)
    cheater, aggregator = task.nodes[1].address, task.aggregator.address
    reason = VoidReason.NO_SUMS if agrees else VoidReason.MISMATCHED
    assert (state.outcome, state.void_reason, state.guilty) == (Outcome.VOID, reason, 0b10 if agrees else 0)
    told = [
        task.operator.tasks.explain(task.task, 0, account) for account in (cheater, task.nodes[0].address, aggregator)
    ]
    if agrees:
        assert slashes(task) == [(cheater, SLASH, SlashReason.FALSE_UPLOAD)]
        assert [one.reason for one in told] == [PayoutReason.FALSE_UPLOAD, PayoutReason.VOID, PayoutReason.VOID]
        assert [one.slash for one in told] == [SLASH, 0, 0]
    else:
        assert slashes(task) == [(aggregator, AGGREGATOR_SLASH, SlashReason.MISMATCHED)]
        assert [one.reason for one in told] == [PayoutReason.VOID, PayoutReason.VOID, PayoutReason.MISMATCHED]
        assert [one.slash for one in told] == [0, 0, AGGREGATOR_SLASH]
    assert task.phase is Phase.ENDED
    assert local_chain.unaccounted() == 0


def test_aggregator_that_accuses_and_names_nobody_is_slashed(local_chain: LocalChain) -> None:
    task = one_cohort(local_chain).to_disputing([0])
    with refused("PhaseNotOver", taskId=task.task):
        task.tick()
    task.pass_deadline()
    with refused("PhaseOver", taskId=task.task):
        task.aggregator.aggregator.name_cheaters(task.task, 1, 0b001)
    task.tick()
    state = task.operator.tasks.round_state(task.task, 1)
    assert (state.outcome, state.void_reason, state.guilty) == (Outcome.VOID, VoidReason.NOT_PUBLISHED, 0)
    assert slashes(task) == [(task.aggregator.address, AGGREGATOR_SLASH, SlashReason.NOT_PUBLISHED)]
    told = [task.operator.tasks.explain(task.task, 1, one.address).reason for one in (*task.nodes, task.aggregator)]
    assert told == [PayoutReason.VOID] * 3 + [PayoutReason.NOT_PUBLISHED]
    assert (task.round, task.phase) == (2, Phase.FORMING)


def test_nobody_is_guilty_by_too_few_ballots(local_chain: LocalChain) -> None:
    task = one_cohort(local_chain, min_reveals=2).to_disputing([0])
    ballots: Scores = [[0], None, None]
    task.name([0]).draw().vote(ballots)
    task.pass_deadline()
    task.operator.phases.settle(task.task, 1)
    wanted = expected(task, ballots, None)
    assert (wanted.void, wanted.guilty) == (VoidReason.TOO_FEW_SCORES, 0)
    assert {reason for _, _, reason in slashes(task)} == {SlashReason.NOT_REVEALED}
    assert_as_expected(task, wanted)
