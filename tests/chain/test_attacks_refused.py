"""Every way to lie about a sum, and the error by which the contract refuses it."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from pathlib import Path

import pytest
from chain_driver import LocalChain, TaskDriver, refused
from consilium_chain.ledger.publishing import CohortsFate, PublishedCohort
from consilium_chain.ledger.roles import CommittedUpdate
from consilium_chain.ledger.structs import Phase
from consilium_zk.blobs import Blob, add, from_scalars, negate
from consilium_zk.constants import BLS_MODULUS
from consilium_zk.curve import from_eip2537, to_eip2537, weighted_sum
from consilium_zk.curve import negate as negate_point
from consilium_zk.kzg import Commitment, Opening, Proof, commit, open_at, open_combined


@pytest.fixture
def committing(local_chain: LocalChain) -> TaskDriver:
    """A task whose statistics round takes commitments; it is a round like any other here."""
    return TaskDriver(local_chain).join()


def refuse_commitment(task: TaskDriver, update: CommittedUpdate, index: int = 1) -> None:
    node = task.nodes[index]
    with refused("OpeningInvalid", hospital=node.address):
        node.hospital.commit_update(task.task, task.round, update)
    assert not task.round_state.committed >> index & 1


def rogue_point(task: TaskDriver) -> Commitment:
    """Com(X) − ΣC: with it the cohort's sum would be X, whatever the others committed to."""
    target = commit(from_scalars([7] * 4096))
    others = [
        point for points in task.operator.record.committed_points(task.task, task.round).values() for point in points
    ]
    return weighted_sum([target, *map(negate_point, others)], [1] * (1 + len(others)))


def test_commit_update_refuses_rogue_commitment(committing: TaskDriver) -> None:
    honest = committing.commit(0)
    rogue = rogue_point(committing)
    guess = Opening(secrets.randbelow(BLS_MODULUS), honest.committed.opening.proof)
    refuse_commitment(committing, CommittedUpdate(to_eip2537(rogue), guess))


def test_commit_update_refuses_rogue_commitment_with_opening_of_target(committing: TaskDriver) -> None:
    committing.commit(0)
    rogue = rogue_point(committing)
    target = committing.committed(1, 0, [from_scalars([7] * 4096)])
    refuse_commitment(committing, CommittedUpdate(to_eip2537(rogue), target.opening))


def test_commit_update_refuses_cancelling_commitment(committing: TaskDriver) -> None:
    """−C of another's C, opened by negating what that one showed: the challenge is another."""
    shown = committing.commit(0).committed
    opening = Opening(-shown.opening.value % BLS_MODULUS, Proof(negate_point(Commitment(shown.opening.proof))))
    negated = to_eip2537(negate_point(from_eip2537(shown.points)))
    refuse_commitment(committing, CommittedUpdate(negated, opening))


def test_commit_update_refuses_copied_commitment(committing: TaskDriver) -> None:
    refuse_commitment(committing, committing.commit(0).committed)


def test_commit_update_refuses_replay_in_next_round(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain).to_committing()
    old = task.commit(0).committed
    task.commit(1)
    task.pass_deadline()
    task.tick().form()  # the aggregator was silent: round 1 is void, round 2 has begun
    assert (task.round, task.phase) == (2, Phase.COMMITTING)
    refuse_commitment(task, old, index=0)
    task.commit(0)  # the same hospital may commit to anything with an opening for this round


def test_commit_update_refuses_replay_of_statistics_round(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain).to_committing()
    refuse_commitment(task, task.updates[0, 1].committed)


def test_commit_update_refuses_replay_from_another_task(committing: TaskDriver, local_chain: LocalChain) -> None:
    other = TaskDriver(local_chain).join()
    refuse_commitment(committing, other.commit(1).committed)


def test_commit_update_refuses_opening_of_other_blobs(local_chain: LocalChain) -> None:
    """One opening stands for all blobs: it must be that of exactly these, in this order."""
    task = TaskDriver(local_chain, terms={"statistics_blobs": 2}).join()
    first, second = (commit(task.make_update(0).blobs[0]) for _ in range(2))
    blobs = [task.make_update(0).blobs[0] for _ in range(2)]
    honest = task.committed(0, 0, blobs)
    swapped = honest.points[128:] + honest.points[:128]
    for points in (swapped, honest.points[:128] * 2, to_eip2537(first) + to_eip2537(second)):
        refuse_commitment(task, CommittedUpdate(points, honest.opening), index=0)
    task.nodes[0].hospital.commit_update(task.task, 0, honest)


def test_commit_update_refuses_rogue_blob_beside_a_known_one(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, terms={"statistics_blobs": 2}).join()
    first, second, known, wanted = (task.make_update(0).blobs[0] for _ in range(4))
    task.nodes[0].hospital.commit_update(task.task, 0, task.committed(0, 0, [first, second]))
    rogue = weighted_sum([commit(wanted), commit(second)], [1, -1])
    challenge = task.nodes[1].messages.challenge(task.task, 0, task.nodes[1].address, [commit(known), rogue])
    points = to_eip2537(commit(known)) + to_eip2537(rogue)
    refuse_commitment(task, CommittedUpdate(points, open_combined([known, wanted], challenge)))


NO_PROOF = b"\xc0" + bytes(47)


@pytest.mark.parametrize(
    ("points", "proof", "error"),
    [
        (b"", NO_PROOF, "PointsWrong"),
        (bytes(127), NO_PROOF, "PointsWrong"),
        (bytes(129), NO_PROOF, "PointsWrong"),
        (bytes(128), NO_PROOF, "CommitmentMalformed"),
        (b"\xff" * 128, NO_PROOF, "CommitmentMalformed"),
        (bytes(127) + b"\x01", NO_PROOF, "OpeningInvalid"),
        (bytes(127) + b"\x01", NO_PROOF[:-1], "OpeningInvalid"),
    ],
    ids=["empty", "short", "long", "infinity", "all ones", "off the curve", "short proof"],
)
def test_commit_update_refuses_malformed_points(
    committing: TaskDriver, points: bytes, proof: bytes, error: str
) -> None:
    with refused(error):
        committing.nodes[0].hospital.commit_update(
            committing.task, 0, CommittedUpdate(points, Opening(0, Proof(proof)))
        )


def test_commit_update_refuses_point_outside_subgroup(committing: TaskDriver) -> None:
    vectors = json.loads((Path(__file__).parents[1] / "vectors" / "protocol.json").read_text())
    outside = bytes.fromhex(vectors["outside_g1"]["point"].removeprefix("0x"))
    refuse_commitment(committing, CommittedUpdate(outside, Opening(0, Proof(NO_PROOF))))


def test_commit_update_refuses_value_at_or_above_modulus(committing: TaskDriver) -> None:
    update = committing.make_update(0)
    opening = update.committed.opening
    shifted = Opening(opening.value + BLS_MODULUS, opening.proof)
    refuse_commitment(committing, CommittedUpdate(update.committed.points, shifted), index=0)


def test_commit_update_refuses_outsider(committing: TaskDriver, local_chain: LocalChain) -> None:
    outsider = local_chain.funded()
    update = committing.make_update(0)
    with refused("NotAMember", taskId=committing.task, account=outsider.address):
        outsider.hospital.commit_update(committing.task, 0, update.committed)


def test_commit_update_refuses_voter(committing: TaskDriver) -> None:
    judge = committing.judges[0]
    with refused("NotAMember", account=judge.address):
        judge.hospital.commit_update(committing.task, 0, committing.make_update(0).committed)


def test_commit_update_refuses_second_commitment(committing: TaskDriver) -> None:
    committing.commit(0)
    with refused("AlreadyCommitted", account=committing.nodes[0].address):
        committing.nodes[0].hospital.commit_update(committing.task, 0, committing.make_update(0).committed)


@pytest.mark.parametrize("count", [0, 2])
def test_commit_update_refuses_wrong_blob_count(committing: TaskDriver, count: int) -> None:
    update = committing.make_update(0).committed
    with refused("PointsWrong", given=128 * count, wanted=128):
        committing.nodes[0].hospital.commit_update(
            committing.task, 0, CommittedUpdate(update.points * count, update.opening)
        )


def test_commit_update_refuses_other_round(committing: TaskDriver) -> None:
    with refused("WrongRound", actual=0, given=1):
        committing.nodes[0].hospital.commit_update(committing.task, 1, committing.make_update(0, round_=1).committed)


def test_commit_update_refuses_late_commitment(committing: TaskDriver) -> None:
    committing.commit(0)
    late = committing.make_update(1)
    committing.pass_deadline()
    with refused("PhaseOver", taskId=committing.task):
        committing.nodes[1].hospital.commit_update(committing.task, 0, late.committed)
    committing.tick()
    with refused("WrongPhase", actual=Phase.UPLOADING, wanted=Phase.COMMITTING):
        committing.nodes[1].hospital.commit_update(committing.task, 0, late.committed)


def one_bit_changed(cohort: PublishedCohort) -> PublishedCohort:
    raw = bytearray(cohort.blobs[0])
    raw[31] ^= 1
    return replace(cohort, blobs=[Blob(bytes(raw)), *cohort.blobs[1:]])


def test_publish_refuses_changed_blob_and_takes_the_right_one_after(committing: TaskDriver) -> None:
    committing.commit_all()
    expected = committing.cohort_sum(0, range(2))
    with refused("BlobMismatch", cohort=0, blob=0):
        committing.publish(one_bit_changed)
    after_refusal = committing.phase
    assert after_refusal is Phase.UPLOADING  # nothing of a refused batch stays
    committing.publish()
    assert committing.operator.tasks.expected_blob_hashes(committing.task, 0, 0, 1)[0][1:] != bytes(31)
    assert committing.phase is Phase.FORMING
    assert expected.blobs


def test_publish_refuses_sum_without_a_survivor(committing: TaskDriver) -> None:
    committing.commit_all()
    missing = committing.updates[0, 1].blobs[0]
    with refused("BlobMismatch", cohort=0, blob=0):
        committing.publish(lambda c: replace(c, blobs=[add([c.blobs[0], negate(missing)])]))


def test_publish_refuses_sum_of_other_weights(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain).to_committing().commit_all()
    extra = task.updates[1, 0].blobs[0]
    with refused("BlobMismatch", cohort=0, blob=0):
        task.publish(lambda c: replace(c, blobs=[add([c.blobs[0], extra])]))


def test_publish_refuses_two_cohorts_sums_in_each_others_place(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, terms={"cohorts": 2}).to_committing().commit_all()
    other = task.cohort_sum(1, range(2)).blobs
    with refused("BlobMismatch", cohort=0, blob=0):
        task.publish(lambda c: replace(c, blobs=other))


def test_sum_commitments_refuses_points_in_another_order(committing: TaskDriver) -> None:
    committing.commit_all()
    with refused("CommitmentMismatch", hospital=committing.nodes[0].address, blob=0):
        committing.publish(lambda c: replace(c, points=[list(reversed(c.points[0]))]))


@pytest.mark.parametrize("change", ["one less", "one more", "cut"])
def test_sum_commitments_refuses_wrong_number_of_points(committing: TaskDriver, change: str) -> None:
    committing.commit_all()
    points = committing.cohort_sum(0, range(2)).points[0]
    wrong = {"one less": points[:1], "one more": [*points, points[0]], "cut": [points[0], points[1][:-1]]}[change]
    with refused("PointsWrong", given=len(b"".join(wrong)), wanted=256):
        committing.publish(lambda c: replace(c, points=[wrong]))


def test_sum_commitments_refuses_points_that_only_add_up(committing: TaskDriver) -> None:
    committing.commit_all()
    shift = commit(from_scalars([3] * 4096))
    first, second = (commit(committing.updates[0, i].blobs[0]) for i in range(2))
    moved = [weighted_sum([first, shift], [1, 1]), weighted_sum([second, shift], [1, -1])]
    with refused("CommitmentMismatch", hospital=committing.nodes[0].address):
        committing.publish(lambda c: replace(c, points=[[to_eip2537(point) for point in moved]]))


def test_fix_survivors_refuses_anybody_but_the_aggregator(committing: TaskDriver) -> None:
    committing.commit_all()
    hospital = committing.nodes[0]
    with refused("NotAggregator", caller=hospital.address):
        hospital.connection.transactions.send(
            hospital.contracts.tasks.contract.functions.fixSurvivors(committing.task, 0, 0b11)
        )


def test_fix_survivors_refuses_a_hospital_that_never_committed(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain).join()
    task.commit(0)
    task.pass_deadline()
    task.tick()
    with refused("SurvivorsInvalid", survivors=0b11):
        task.aggregator.aggregator.publish_sums(task.task, 0, CohortsFate(0b11), [])


def test_fix_survivors_refuses_a_second_set(committing: TaskDriver) -> None:
    """Two sets of survivors would give the difference of two sums: one hospital's update."""
    committing.commit_all()
    committing.aggregator.aggregator.publish_sums(committing.task, 0, CohortsFate(0b11), [])
    with refused("WrongPhase", actual=Phase.PUBLISHING, wanted=Phase.UPLOADING):
        committing.aggregator.aggregator.publish_sums(committing.task, 0, CohortsFate(0b01), [])


def test_commit_update_refuses_opening_at_a_chosen_point(committing: TaskDriver) -> None:
    update = committing.make_update(0)
    chosen = open_at(update.blobs[0], 12_345)
    refuse_commitment(committing, CommittedUpdate(update.committed.points, chosen), index=0)
