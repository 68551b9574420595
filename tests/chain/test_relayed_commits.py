"""Hospitals without ether sign their updates, and another commits them, all by one check."""

from __future__ import annotations

import secrets
from dataclasses import replace

import pytest
from chain_driver import LocalChain, TaskDriver, refused
from consilium_chain.ledger.structs import Phase
from consilium_chain.rounds.signed_updates import SignedUpdate, commitment_message, sign_update, update_batches
from consilium_zk.blobs import Blob
from consilium_zk.constants import BLS_MODULUS, BYTES_PER_EIP2537_G1
from consilium_zk.curve import from_eip2537, negate, to_eip2537
from consilium_zk.kzg import Opening, Proof, commit
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


def refuse(task: TaskDriver, updates: list[SignedUpdate], name: str, index: int) -> None:
    with refused(name, hospital=task.nodes[index].address):
        task.aggregator.aggregator.commit_updates(task.task, 0, updates)
    assert task.round_state.committed == 0


def test_commit_updates_for_hospitals_without_ether(relaying: TaskDriver, local_chain: LocalChain) -> None:
    (receipt,) = relaying.aggregator.aggregator.commit_updates(relaying.task, 0, signed_by_all(relaying))
    assert (relaying.round_state.committed, relaying.phase) == (0b111, Phase.UPLOADING)
    found = relaying.operator.record.committed_points(relaying.task, 0)
    assert found == {node.address: [commit(relaying.updates[0, i].blobs[0])] for i, node in enumerate(relaying.nodes)}
    assert receipt.gas_used < 16_000_000
    for node in relaying.nodes:
        assert int(local_chain.rpc("eth_getBalance", node.address, "latest"), 16) == 0
    relaying.publish()  # the sums commit to what was relayed
    assert relaying.phase is Phase.FORMING


def test_commit_updates_skips_who_committed_meanwhile(relaying: TaskDriver, local_chain: LocalChain) -> None:
    updates = signed_by_all(relaying)
    local_chain.rpc("anvil_setBalance", relaying.nodes[1].address, hex(10**18))
    relaying.nodes[1].hospital.commit_update(relaying.task, 0, relaying.updates[0, 1].committed)
    relaying.aggregator.aggregator.commit_updates(relaying.task, 0, updates[:2])
    assert relaying.round_state.committed == 0b011
    relaying.aggregator.aggregator.commit_updates(relaying.task, 0, updates)
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
        updates[1] = sign_update(account, *place, made.points, made.opening)
        refuse(relaying, updates, "SignatureInvalid", 1)


def test_commit_updates_refuses_replay_in_next_round(relaying: TaskDriver) -> None:
    old = signed_by_all(relaying)
    relaying.aggregator.aggregator.commit_updates(relaying.task, 0, old)
    relaying.publish()
    relaying.form()
    with refused("SignatureInvalid", hospital=old[0].hospital):
        relaying.aggregator.aggregator.commit_updates(relaying.task, 1, old)
    relaying.aggregator.aggregator.commit_updates(relaying.task, 1, [signed(relaying, i, 1) for i in range(COUNT)])
    assert relaying.phase is Phase.UPLOADING


def test_commit_updates_refuses_changed_points(relaying: TaskDriver) -> None:
    updates = signed_by_all(relaying)
    negated = to_eip2537(negate(from_eip2537(updates[1].points)))
    for points in (negated, updates[0].points):
        refuse(relaying, [updates[0], replace(updates[1], points=points), updates[2]], "SignatureInvalid", 1)


@pytest.mark.parametrize("wrong", range(COUNT))
def test_commit_updates_names_whose_opening_is_changed(relaying: TaskDriver, wrong: int) -> None:
    updates = signed_by_all(relaying)
    opening, other = updates[wrong].opening, updates[wrong - 1].opening
    for changed in (
        Opening((opening.value + 1) % BLS_MODULUS, opening.proof),
        Opening(opening.value, other.proof),
        Opening(opening.value, Proof(b"\xc0" + bytes(47))),
        Opening(opening.value + BLS_MODULUS, opening.proof),
    ):
        updates[wrong] = replace(updates[wrong], opening=changed)
        refuse(relaying, updates, "OpeningInvalid", wrong)


def test_commit_updates_refuses_openings_whose_errors_cancel(relaying: TaskDriver) -> None:
    updates = signed_by_all(relaying)
    error = secrets.randbelow(BLS_MODULUS - 1) + 1
    for index, sign in ((0, 1), (1, -1)):
        opening = updates[index].opening
        value = (opening.value + sign * error) % BLS_MODULUS
        updates[index] = replace(updates[index], opening=Opening(value, opening.proof))
    refuse(relaying, updates, "OpeningInvalid", 0)


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
        relaying.aggregator.aggregator.commit_updates(relaying.task, 0, [signed(relaying, 0), update])


@pytest.mark.parametrize("blobs", [1, 3])
def test_digest_is_eth_accounts(local_chain: LocalChain, blobs: int) -> None:
    ledger = local_chain.treasury
    points = [commit(Blob(bytes(131_071) + bytes([i + 1]))) for i in range(blobs)]
    chain, contract = ledger.connection.chain_id, ledger.deployment.tasks
    digests = keccak(b"a share bundle"), keccak(b"a base")
    message = commitment_message(chain, contract, 7, 2, b"".join(map(to_eip2537, points)), *digests)
    expected = keccak(b"\x19" + b"".join(encode_typed_data(full_message=message)))
    assert bytes(ledger.contracts.tasks.read("commitmentDigest", 7, 2, b"".join(points), *digests)) == expected


@settings(max_examples=50)
@given(count=st.integers(0, 400), blobs=st.integers(1, 128))
def test_batches_keep_order_and_fit_a_transaction(count: int, blobs: int) -> None:
    points = bytes(BYTES_PER_EIP2537_G1 * blobs)
    address = Account.from_key(b"\x01" * 32).address
    updates = [SignedUpdate(address, points, Opening(i, Proof(b"")), b"", b"", b"", b"") for i in range(count)]
    cut = list(update_batches(updates))
    assert [update for batch in cut for update in batch] == updates
    assert all(batch and len(batch) * (40_000 + 36_000 * blobs) <= 16_000_000 for batch in cut)
