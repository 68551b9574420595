"""Every way to lie about a sum, and the error by which the contract refuses it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from chain_driver import LAYOUT, LocalChain, TaskDriver, refused
from consilium_chain.ledger.publishing import CohortsFate, Commitments, PublishedCohort
from consilium_chain.ledger.roles import CommittedUpdate
from consilium_chain.ledger.structs import Phase
from consilium_zk.blobs import Blob, add, from_scalars, negate
from consilium_zk.curve import Commitment, to_eip2537, weighted_sum
from consilium_zk.curve import negate as negate_point
from consilium_zk.kzg import commit


@pytest.fixture
def committing(local_chain: LocalChain) -> TaskDriver:
    """A task whose statistics round takes commitments; it is a round like any other here."""
    return TaskDriver(local_chain).join()


def refuse_points(task: TaskDriver, *points: Commitment, name: str = "CommitmentMismatch", **values: object) -> None:
    """The aggregator shows these as the points of the first survivors, and the contract refuses the sum."""

    def shown(cohort: PublishedCohort) -> PublishedCohort:
        first = cohort.commitments[0]
        return replace(cohort, commitments=[replace(first, points=[*points, *first.points[len(points) :]])])

    with refused(name, **values):
        task.publish(shown)
    assert task.phase is Phase.UPLOADING  # nothing of a refused batch stays


def copied(task: TaskDriver, index: int, hashes: Sequence[bytes]) -> None:
    """A hospital commits to hashes that are not of its own points."""
    task.updates[task.round, index] = task.make_update(index)
    task.send_commitment(index, CommittedUpdate(hashes))


def test_sum_commitments_refuses_rogue_point(committing: TaskDriver) -> None:
    """Com(X) − ΣC: with it the cohort's sum would be X, whatever the others committed to."""
    committing.commit_all()
    first, target = committing.updates[0, 0].points[0], commit(from_scalars([7] * 4096))
    refuse_points(committing, first, weighted_sum([target, first], [1, -1]), cohort=0, blob=0)
    committing.publish()


def test_sum_commitments_refuses_rogue_blob_beside_a_known_one(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, terms={"statistics_blobs": 2}, lanes=2 * LAYOUT.lanes_per_blob).join().commit_all()
    other, wanted = task.updates[0, 0].points[1], commit(from_scalars([7] * 4096))
    rogue = weighted_sum([wanted, other], [1, -1])

    def shown(cohort: PublishedCohort) -> PublishedCohort:
        second = cohort.commitments[1]
        return replace(cohort, commitments=[cohort.commitments[0], replace(second, points=[other, rogue])])

    with refused("CommitmentMismatch", cohort=0, blob=1):
        task.publish(shown)
    task.publish()


def test_sum_commitments_refuses_cancelling_point(committing: TaskDriver) -> None:
    """−C of another's C: the sum would lack that update."""
    committing.commit_all()
    first = committing.updates[0, 0].points[0]
    refuse_points(committing, first, negate_point(first), cohort=0, blob=0)


def test_copied_commitment_has_no_point(committing: TaskDriver) -> None:
    """Its hash names another hospital, so that neither the copied point nor its own gives it."""
    update = committing.commit(0)
    copied(committing, 1, update.committed.point_hashes)
    for point in (update.points[0], committing.updates[0, 1].points[0]):
        refuse_points(committing, update.points[0], point, cohort=0, blob=0)
    committing.publish(survivors=[0])  # the round goes on without it


def test_commitment_in_anothers_name_does_not_take_its_place(committing: TaskDriver) -> None:
    """A colluder commits to a point of its choice in the name of the other. The aggregator shows it in that one's
    place, and that one's hash in the colluder's.
    """
    first, chosen = committing.commit(0), commit(from_scalars([7] * 4096))
    node = committing.nodes[0]
    named = node.messages.point_hashes(committing.task, 0, node.address, [chosen])
    copied(committing, 1, named)
    order, theirs = [1, 0], list(first.committed.point_hashes)
    for given in (
        Commitments(order, theirs, [chosen]),
        Commitments([0, 1], theirs, [chosen]),
        Commitments([0, 1], named, [chosen]),
        Commitments(order, named, first.points),
    ):
        with refused("CommitmentMismatch", cohort=0, blob=0):
            committing.publish(lambda c, given=given: replace(c, commitments=[given]), survivors=[0])  # type: ignore[misc]
    committing.publish(survivors=[0])


def test_commitment_of_an_earlier_round_has_no_point(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain).to_committing()
    old = task.updates[0, 1]
    task.commit(0)
    copied(task, 1, old.committed.point_hashes)
    refuse_points(task, task.updates[task.round, 0].points[0], old.points[0], cohort=0, blob=0)
    task.publish(survivors=[0])


def test_commitment_of_another_task_has_no_point(committing: TaskDriver, local_chain: LocalChain) -> None:
    other = TaskDriver(local_chain).join()
    other.nodes = committing.nodes
    elsewhere = other.make_update(1, 0)
    committing.commit(0)
    copied(committing, 1, elsewhere.committed.point_hashes)
    refuse_points(committing, committing.updates[0, 0].points[0], elsewhere.points[0], cohort=0, blob=0)


def test_commitments_of_blobs_in_another_order_have_no_points(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, hospitals=1, terms={"statistics_blobs": 2}, lanes=2 * LAYOUT.lanes_per_blob).join()
    update = task.make_update(0)
    hashes = update.committed.point_hashes
    task.updates[0, 0] = update
    task.send_commitment(0, CommittedUpdate([hashes[1], hashes[0]]))
    for points in (update.points, update.points[::-1]):
        given = [replace(own, points=[point]) for own, point in zip(task.commitments(0, [0]), points, strict=True)]
        with refused("CommitmentMismatch", cohort=0, blob=0):
            task.publish(lambda c, given=given: replace(c, commitments=given))  # type: ignore[misc]


OUTSIDE = json.loads((Path(__file__).parents[1] / "vectors" / "protocol.json").read_text())["outside_g1"]["point"]


@pytest.mark.parametrize(
    ("raw", "compressed", "error"),
    [
        (bytes(128), b"\xc0" + bytes(47), "CommitmentMalformed"),
        (bytes(127) + b"\x01", b"\x80" + bytes(47), "PrecompileFailed"),
        (bytes.fromhex(OUTSIDE.removeprefix("0x")), None, "PrecompileFailed"),
    ],
    ids=["infinity", "off the curve", "outside the subgroup"],
)
def test_sum_commitments_refuses_points_outside_the_group(
    committing: TaskDriver, raw: bytes, compressed: bytes | None, error: str
) -> None:
    """Even where the hospital committed to just them."""
    committing.commit(0)
    half = (0xD0088F51CBFF34D258DD3DB21A5D66BB23BA5C279C2895FB39869507B587B120F55FFFF58A9FFFFDCFF7FFFFFFFD555).to_bytes(
        48, "big"
    )
    flag = 0xA0 if raw[80:] > half else 0x80
    told = compressed or bytes([raw[16] | flag]) + raw[17:64]
    copied(committing, 1, committing.committed(1, 0, [Commitment(told)]).point_hashes)

    class Raw(Commitments):
        def to_chain(self) -> tuple[bytes, list[bytes], bytes]:
            return bytes(self.order), [], to_eip2537(self.points[0]) + raw

    first = committing.updates[0, 0].points[0]
    with refused(error):
        committing.publish(lambda c: replace(c, commitments=[Raw([0, 1], [], [first])]))


@pytest.mark.parametrize("count", [0, 2])
def test_commit_update_refuses_wrong_blob_count(committing: TaskDriver, count: int) -> None:
    hashes = list(committing.make_update(0).committed.point_hashes) * count
    with refused("PointsWrong", given=32 * count, wanted=32):
        committing.send_commitment(0, CommittedUpdate(hashes))


@pytest.mark.parametrize("cohort", [1, 255, 256, 2**256 - 1])
def test_commit_update_refuses_another_cohort(committing: TaskDriver, cohort: int) -> None:
    node, update = committing.nodes[0], committing.make_update(0)
    with refused("NotInCohort", hospital=node.address, cohort=cohort):
        node.hospital.commit_update(committing.task, 0, cohort, update.committed)


def test_commit_update_refuses_outsider(committing: TaskDriver, local_chain: LocalChain) -> None:
    outsider = local_chain.funded()
    update = committing.make_update(0)
    with refused("NotAMember", taskId=committing.task, account=outsider.address):
        outsider.hospital.commit_update(committing.task, 0, 0, update.committed)


def test_commit_update_refuses_voter(committing: TaskDriver) -> None:
    judge = committing.judges[0]
    with refused("NotAMember", account=judge.address):
        judge.hospital.commit_update(committing.task, 0, 0, committing.make_update(0).committed)


def test_commit_update_refuses_second_commitment(committing: TaskDriver) -> None:
    committing.commit(0)
    with refused("AlreadyCommitted", account=committing.nodes[0].address):
        committing.send_commitment(0, committing.make_update(0).committed)


def test_commit_update_refuses_other_round(committing: TaskDriver) -> None:
    with refused("WrongRound", actual=0, given=1):
        committing.send_commitment(0, committing.make_update(0, round_=1).committed, round_=1)


def test_commit_update_refuses_late_commitment(committing: TaskDriver) -> None:
    committing.commit(0)
    late = committing.make_update(1)
    committing.pass_deadline()
    with refused("PhaseOver", taskId=committing.task):
        committing.send_commitment(1, late.committed)
    committing.tick()
    with refused("WrongPhase", actual=Phase.UPLOADING, wanted=Phase.COMMITTING):
        committing.send_commitment(1, late.committed)


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


def test_sum_commitments_refuses_commitments_in_another_order(committing: TaskDriver) -> None:
    committing.commit_all()
    given = committing.commitments(0, range(2))[0]
    turned = Commitments([1, 0], [], given.points[::-1])
    for wrong in (turned, replace(given, points=given.points[::-1]), replace(given, order=[1, 0])):
        with refused("CommitmentMismatch", cohort=0, blob=0):
            committing.publish(lambda c, wrong=wrong: replace(c, commitments=[wrong]))  # type: ignore[misc]


@pytest.mark.parametrize("order", [[0, 0], [1, 1], [0, 2], [0, 255]])
def test_sum_commitments_refuses_another_set_of_hospitals(committing: TaskDriver, order: list[int]) -> None:
    committing.commit_all()
    with refused("CommitmentMismatch", cohort=0, blob=0):
        committing.publish(lambda c: replace(c, commitments=[replace(c.commitments[0], order=order)]))


def test_sum_commitments_refuses_a_survivor_among_the_others(committing: TaskDriver) -> None:
    """The sum would lack its update."""
    committing.commit_all()
    hashes = committing.updates[0, 1].committed.point_hashes
    points = committing.updates[0, 0].points
    with refused("PointsWrong", given=32, wanted=0):
        committing.publish(lambda c: replace(c, commitments=[Commitments([0, 1], hashes, points)]))


@pytest.mark.parametrize("change", ["one point less", "one more", "an index less", "one index more", "another hash"])
def test_sum_commitments_refuses_wrong_lengths(committing: TaskDriver, change: str) -> None:
    committing.commit_all()
    given = committing.commitments(0, range(2))[0]
    wrong, length, wanted = {
        "one point less": (replace(given, points=given.points[:1]), 128, 256),
        "one more": (replace(given, points=[*given.points, given.points[0]]), 384, 256),
        "an index less": (replace(given, order=[0]), 1, 2),
        "one index more": (replace(given, order=[0, 1, 1]), 3, 2),
        "another hash": (replace(given, others=[bytes(32)]), 32, 0),
    }[change]
    with refused("PointsWrong", given=length, wanted=wanted):
        committing.publish(lambda c: replace(c, commitments=[wrong]))


def test_sum_commitments_refuses_points_that_only_add_up(committing: TaskDriver) -> None:
    committing.commit_all()
    shift = commit(from_scalars([3] * 4096))
    first, second = (committing.updates[0, i].points[0] for i in range(2))
    refuse_points(
        committing, weighted_sum([first, shift], [1, 1]), weighted_sum([second, shift], [1, -1]), cohort=0, blob=0
    )


def test_points_are_shown_for_anybody_to_read(committing: TaskDriver) -> None:
    """Those of survivors, and of nobody else; the others' stay hidden."""
    committing.commit_all()
    assert committing.operator.record.shown_points(committing.task, 0) == {}
    committing.publish(survivors=[1])
    node, update = committing.nodes[1], committing.updates[0, 1]
    assert committing.operator.record.shown_points(committing.task, 0) == {node.address: {0: update.points[0]}}


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
