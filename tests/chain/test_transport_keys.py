"""Hospitals' node keys: nobody joins by what is no key, or by another's."""

from __future__ import annotations

from pathlib import Path

import pytest
from chain_driver import LocalChain, TaskDriver, refused
from consilium_chain.errors import TransportKeyMalformed
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.roles import NO_KEY
from consilium_chain.ledger.structs import Role
from consilium_chain.transport_keys import BYTES_PER_KEY, TransportKey, pem_of
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of P-256 (SEC 2)


def join(node: Ledger, task: int, key: bytes, proof: bytes) -> None:
    node.connection.transactions.send(
        node.contracts.tasks.contract.functions.joinAsHospital(task, 1, key, proof, NO_KEY)
    )


@pytest.fixture
def task(local_chain: LocalChain) -> TaskDriver:
    return TaskDriver(local_chain, hospitals=2)


@pytest.mark.parametrize(
    "key",
    [
        b"", bytes(BYTES_PER_KEY), b"transport key", bytes(1 << 14), b"\xff" * BYTES_PER_KEY, b"\x01" * BYTES_PER_KEY,
        bytes(63), bytes(65),
    ],
    ids=["empty", "zeros", "words", "long", "beyond the field", "off the curve", "short", "one too many"],
)  # fmt: skip
def test_join_refuses_what_is_no_key(task: TaskDriver, key: bytes) -> None:
    proof = TransportKey.generate().sign(task.nodes[0].messages.transport(task.task, key))
    with refused("TransportKeyInvalid"):
        join(task.nodes[0], task.task, key, proof)
    with pytest.raises(TransportKeyMalformed):
        pem_of(key)


def test_join_refuses_another_hospitals_key(task: TaskDriver) -> None:
    key = TransportKey.generate()
    node, thief = task.nodes
    proof = key.sign(node.messages.transport(task.task, key.public))
    with refused("TransportKeyInvalid"):
        join(thief, task.task, key.public, proof)
    join(node, task.task, key.public, proof)
    assert task.operator.record.transport_keys(task.task) == {0: key.public}


def test_join_refuses_a_key_twice(task: TaskDriver) -> None:
    key = TransportKey.generate()
    task.nodes[0].hospital.join(task.task, 10, key)
    with refused("TransportKeyTaken"):
        task.nodes[1].hospital.join(task.task, 10, key)


def test_transport_message_is_the_contracts(task: TaskDriver) -> None:
    node, key = task.nodes[0], TransportKey.generate().public
    onchain = node.connection.call(
        node.contracts.tasks.contract.functions.transportMessage(task.task, node.address, key)
    )
    assert bytes(onchain) == node.messages.transport(task.task, key)


def test_join_takes_either_form_of_a_signature(task: TaskDriver) -> None:
    """ECDSA has two for every message: a proof proves the same by both."""
    node, key = task.nodes[0], TransportKey.generate()
    proof = key.sign(node.messages.transport(task.task, key.public))
    other = proof[:32] + (ORDER - int.from_bytes(proof[32:], "big")).to_bytes(32, "big")
    join(node, task.task, key.public, other)


def test_key_file_is_what_flower_reads(tmp_path: Path) -> None:
    key, path = TransportKey.generate(), tmp_path / "transport.key"
    key.write(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert TransportKey.read(path).public == key.public
    assert repr(key) == "TransportKey(hidden)"
    public = serialization.load_pem_public_key(pem_of(key.public))
    assert isinstance(public, ec.EllipticCurvePublicKey)
    assert isinstance(public.curve, ec.SECP256R1)


def test_read_refuses_keys_of_other_curves(tmp_path: Path) -> None:
    path = tmp_path / "key"
    key = ec.generate_private_key(ec.SECP384R1())
    encoding, private = serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH
    path.write_bytes(key.private_bytes(encoding, private, serialization.NoEncryption()))
    with pytest.raises(TransportKeyMalformed, match="secp384r1"):
        TransportKey.read(path)


def test_one_key_votes_for_one_account(local_chain: LocalChain) -> None:
    """Many accounts of one key would all win a seat, or none."""
    from consilium_chain.keystore import voter_key

    judge, other = local_chain.staked(Role.VOTER, 2)
    with refused("VoterKeyTaken", voter=other.address):
        other.voter.register_key(voter_key(judge.connection.signer))
