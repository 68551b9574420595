"""Hospitals without ether sign their updates, and another commits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from chain_driver import LocalChain, TaskDriver, refused
from consilium_chain.ledger.structs import Phase
from consilium_chain.rounds.signed_updates import (
    SignedUpdate,
    commitment_message,
    relayed_gas,
    sign_update,
    update_batches,
)
from consilium_chain.rpc.outgoing import Receipt
from consilium_zk.blobs import Blob
from consilium_zk.kzg import commit
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_utils.crypto import keccak
from hypothesis import given, settings
from hypothesis import strategies as st

COUNT = 3
KEY_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141  # of secp256k1


@pytest.fixture
def relaying(local_chain: LocalChain) -> TaskDriver:
    """A task whose statistics round takes commitments, of hospitals that can send nothing."""
    task = TaskDriver(local_chain, hospitals=COUNT).join_without_ether()
    assert task.phase is Phase.COMMITTING
    return task


def signed(task: TaskDriver, index: int, round_: int = 0) -> SignedUpdate:
    update = task.make_update(index, round_)
    task.updates[round_, index] = update
    return task.nodes[index].hospital.sign_update(task.task, round_, update.committed)


def signed_by_all(task: TaskDriver) -> list[SignedUpdate]:
    return [signed(task, index) for index in range(COUNT)]


def relay(task: TaskDriver, updates: Sequence[SignedUpdate], round_: int = 0) -> list[Receipt]:
    return task.aggregator.aggregator.commit_updates(task.task, round_, [(0, update) for update in updates])


def refuse(task: TaskDriver, updates: list[SignedUpdate], name: str, index: int) -> None:
    with refused(name, hospital=task.nodes[index].address):
        relay(task, updates)
    assert task.round_state.committed == 0


def test_commit_updates_for_hospitals_without_ether(relaying: TaskDriver, local_chain: LocalChain) -> None:
    (receipt,) = relay(relaying, signed_by_all(relaying))
    assert (relaying.round_state.committed, relaying.phase) == (0b111, Phase.UPLOADING)
    found = relaying.operator.record.point_hashes(relaying.task, 0)
    made = [relaying.updates[0, index].committed for index in range(COUNT)]
    assert found == {node.address: own.point_hashes for node, own in zip(relaying.nodes, made, strict=True)}
    assert receipt.gas_used < 16_000_000
    for node in relaying.nodes:
        assert int(local_chain.rpc("eth_getBalance", node.address, "latest"), 16) == 0
    relaying.publish()  # the sums commit to what was relayed
    assert relaying.phase is Phase.FORMING


def test_commit_updates_skips_who_committed_meanwhile(relaying: TaskDriver, local_chain: LocalChain) -> None:
    updates = signed_by_all(relaying)
    local_chain.rpc("anvil_setBalance", relaying.nodes[1].address, hex(10**18))
    relaying.send_commitment(1, relaying.updates[0, 1].committed)
    relay(relaying, updates[:2])
    assert relaying.round_state.committed == 0b011
    relay(relaying, updates)
    assert (relaying.round_state.committed, relaying.phase) == (0b111, Phase.UPLOADING)


def test_commit_updates_refuses_anothers_signature(relaying: TaskDriver) -> None:
    updates = signed_by_all(relaying)
    update = relaying.updates[0, 1].committed
    forged = relaying.nodes[0].hospital.sign_update(relaying.task, 0, update)
    updates[1] = replace(forged, hospital=relaying.nodes[1].address)
    refuse(relaying, updates, "SignatureInvalid", 1)


def test_commit_updates_refuses_signature_of_other_place(relaying: TaskDriver) -> None:
    """Of another chain, contract, task or round."""
    updates = signed_by_all(relaying)
    node, made = relaying.nodes[1], updates[1]
    account = node.connection.account
    assert account is not None
    chain, contract, task = node.connection.chain_id, node.deployment.tasks, relaying.task
    for place in (
        (chain + 1, contract, task, 0),
        (chain, node.deployment.staking, task, 0),
        (chain, contract, task + 1, 0),
        (chain, contract, task, 1),
    ):
        updates[1] = sign_update(account, *place, made.point_hashes)
        refuse(relaying, updates, "SignatureInvalid", 1)


def test_commit_updates_refuses_replay_in_next_round(relaying: TaskDriver) -> None:
    old = signed_by_all(relaying)
    relay(relaying, old)
    relaying.publish()
    relaying.form()
    with refused("SignatureInvalid", hospital=old[0].hospital):
        relay(relaying, old, 1)
    relay(relaying, [signed(relaying, i, 1) for i in range(COUNT)], 1)
    assert relaying.phase is Phase.UPLOADING


def test_commit_updates_refuses_changed_hashes(relaying: TaskDriver) -> None:
    updates = signed_by_all(relaying)
    for hashes in ((bytes(32),), updates[0].point_hashes):
        changed = replace(updates[1], point_hashes=hashes)
        refuse(relaying, [updates[0], changed, updates[2]], "SignatureInvalid", 1)


@pytest.mark.parametrize("wrong", range(COUNT))
def test_commit_updates_names_who_is_in_no_such_cohort(relaying: TaskDriver, wrong: int) -> None:
    updates = [(0, update) for update in signed_by_all(relaying)]
    updates[wrong] = (1, updates[wrong][1])
    with refused("NotInCohort", hospital=relaying.nodes[wrong].address, cohort=1):
        relaying.aggregator.aggregator.commit_updates(relaying.task, 0, updates)
    assert relaying.round_state.committed == 0


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2], [2, 0, 3, 1]])
def test_cohorts_in_any_order_sum_as_ever(local_chain: LocalChain, order: list[int]) -> None:
    """Also where updates of one cohort do not follow one another, and where one hospital commits by itself."""
    task = TaskDriver(local_chain, hospitals=4, terms={"cohorts": 2}).to_committing()
    round_ = task.round
    updates = {index: signed(task, index, round_) for index in order}
    task.send_commitment(order[1], task.updates[round_, order[1]].committed)
    batch = [(task.cohort_of(index), updates[index]) for index in order]
    task.aggregator.aggregator.commit_updates(task.task, round_, batch)
    task.publish()
    assert task.phase is Phase.DRAWING


def test_commit_updates_refuses_malleable_signature(relaying: TaskDriver) -> None:
    updates = signed_by_all(relaying)
    vs = int.from_bytes(updates[2].vs, "big")
    flag, s = vs >> 255, vs & (1 << 255) - 1
    for high in (KEY_ORDER - s | (1 - flag) << 255, KEY_ORDER - s & (1 << 255) - 1, vs ^ 1 << 255):
        changed = replace(updates[2], vs=high.to_bytes(32, "big"))
        refuse(relaying, [*updates[:2], changed], "SignatureInvalid", 2)


def test_commit_updates_refuses_outsider(relaying: TaskDriver) -> None:
    outsider = relaying.judges[0]
    update = outsider.hospital.sign_update(relaying.task, 0, relaying.make_update(0).committed)
    with refused("NotAMember", taskId=relaying.task, account=outsider.address):
        relay(relaying, [signed(relaying, 0), update])


@pytest.mark.parametrize("blobs", [1, 3])
def test_digest_is_eth_accounts(local_chain: LocalChain, blobs: int) -> None:
    ledger = local_chain.treasury
    hashes = [keccak(bytes([blob])) for blob in range(blobs)]
    chain, contract = ledger.connection.chain_id, ledger.deployment.tasks
    digests = keccak(b"a share bundle"), keccak(b"a base")
    message = commitment_message(chain, contract, 7, 2, hashes, *digests)
    expected = keccak(b"\x19" + b"".join(encode_typed_data(full_message=message)))
    assert bytes(ledger.contracts.tasks.read("commitmentDigest", 7, 2, hashes, *digests)) == expected


def test_point_hash_is_the_contracts(local_chain: LocalChain) -> None:
    ledger = local_chain.treasury
    points = [commit(Blob(bytes(131_071) + bytes([i + 1]))) for i in range(3)]
    found = ledger.messages.point_hashes(7, 2, ledger.address, points)
    read = [
        ledger.contracts.tasks.read("pointHash", 7, 2, ledger.address, blob, point) for blob, point in enumerate(points)
    ]
    assert list(map(bytes, read)) == found
    assert len(set(found)) == 3


@settings(max_examples=50)
@given(count=st.integers(0, 400), blobs=st.integers(1, 128))
def test_batches_keep_order_and_fit_a_transaction(count: int, blobs: int) -> None:
    address = Account.from_key(b"\x01" * 32).address
    updates = [(i % 3, SignedUpdate(address, (bytes(32),) * blobs, b"", b"", b"", b"")) for i in range(count)]
    cut = list(update_batches(updates))
    assert [update for batch in cut for update in batch] == updates
    assert all(batch and relayed_gas(batch) <= 16_777_216 for batch in cut)
