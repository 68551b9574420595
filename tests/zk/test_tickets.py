from __future__ import annotations

import copy
import hashlib
import pickle
from typing import Any

import pytest
from consilium_zk import bls, curve, tickets
from consilium_zk.constants import BLS_MODULUS, POSSESSION_DST, TICKET_DST
from consilium_zk.errors import ArgumentInvalid, Malformed, ShapeWrong
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from hypothesis import given, settings
from hypothesis import strategies as st
from py_arkworks_bls12381 import G1Point, G2Point
from py_ecc.bls import G2Basic
from py_ecc.bls.hash_to_curve import hash_to_G1
from py_ecc.optimized_bls12_381 import FQ, G2, field_modulus, multiply, normalize, pairing
from raised_faults import raises_fault
from zk_support import load_vectors

ADDRESS = st.binary(min_size=20, max_size=20)
STAKING, VOTER = bytes(range(20)), bytes(range(20, 40))
KEY = tickets.generate_secret_key(b"voter one".ljust(32, b"\0"))
OTHER_KEY = tickets.generate_secret_key(b"voter two".ljust(32, b"\0"))
PUBLIC = tickets.public_key(KEY)
MESSAGE = tickets.ticket_message(31337, STAKING, 1, 2, bytes(range(32)), VOTER)
TICKET = tickets.sign_ticket(KEY, MESSAGE)


def py_ecc_g1(encoded: bytes) -> Any:
    return FQ(int.from_bytes(encoded[:64], "big")), FQ(int.from_bytes(encoded[64:], "big")), FQ(1)


def encode_py_ecc_g1(point: Any) -> bytes:
    return b"".join(int(coordinate).to_bytes(64, "big") for coordinate in normalize(point))


@pytest.mark.parametrize("case", load_vectors("bls/hash_to_g1"), ids=lambda case: case["message"][:20])
def test_hash_to_curve_agrees_with_rfc_9380(case: dict[str, Any]) -> None:
    tag = b"QUUX-V01-CS02-with-BLS12381G1_XMD:SHA-256_SSWU_RO_"
    expected = int(case["x"], 16).to_bytes(64, "big") + int(case["y"], 16).to_bytes(64, "big")
    assert curve.point_to_eip2537(G1Point.hash_to_curve(case["message"].encode(), tag)) == expected
    assert encode_py_ecc_g1(hash_to_G1(case["message"].encode(), tag, hashlib.sha256)) == expected


@settings(max_examples=10)
@given(st.binary(min_size=32, max_size=80))
def test_generate_secret_key_equals_py_ecc(seed: bytes) -> None:
    assert tickets.generate_secret_key(seed).reveal() == G2Basic.KeyGen(seed)


@settings(max_examples=5)
@given(st.integers(1, BLS_MODULUS - 1), st.binary(max_size=200))
def test_keys_and_tickets_equal_py_ecc(scalar: int, message: bytes) -> None:
    key = tickets.SecretKey(scalar)
    x, y = normalize(multiply(G2, scalar))
    coordinates = [*x.coeffs, *y.coeffs]
    assert tickets.public_key(key) == b"".join(int(c).to_bytes(64, "big") for c in coordinates)
    expected = multiply(hash_to_G1(message, TICKET_DST, hashlib.sha256), scalar)
    assert tickets.sign_ticket(key, message) == encode_py_ecc_g1(expected)


def test_verify_ticket_agrees_with_py_ecc_pairing() -> None:
    hashed = hash_to_G1(MESSAGE, TICKET_DST, hashlib.sha256)
    assert pairing(G2, py_ecc_g1(TICKET)) == pairing(multiply(G2, KEY.reveal()), hashed)
    assert tickets.verify_ticket(PUBLIC, MESSAGE, TICKET)


def test_verify_ticket_refuses_other_keys_messages_tags_and_signs() -> None:
    assert not tickets.verify_ticket(tickets.public_key(OTHER_KEY), MESSAGE, TICKET)
    assert not tickets.verify_ticket(PUBLIC, MESSAGE, tickets.sign_ticket(OTHER_KEY, MESSAGE))
    for other in (
        tickets.ticket_message(1, STAKING, 1, 2, bytes(range(32)), VOTER),
        tickets.ticket_message(31337, VOTER, 1, 2, bytes(range(32)), VOTER),
        tickets.ticket_message(31337, STAKING, 2, 2, bytes(range(32)), VOTER),
        tickets.ticket_message(31337, STAKING, 1, 3, bytes(range(32)), VOTER),
        tickets.ticket_message(31337, STAKING, 1, 2, bytes(32), VOTER),
        tickets.ticket_message(31337, STAKING, 1, 2, bytes(range(32)), STAKING),
    ):
        assert not tickets.verify_ticket(PUBLIC, other, TICKET)
    negated = TICKET[:64] + (field_modulus - int.from_bytes(TICKET[64:], "big")).to_bytes(64, "big")
    assert not tickets.verify_ticket(PUBLIC, MESSAGE, tickets.parse_ticket(negated))
    under_the_other_tag = encode_py_ecc_g1(multiply(hash_to_G1(MESSAGE, POSSESSION_DST, hashlib.sha256), KEY.reveal()))
    assert not tickets.verify_ticket(PUBLIC, MESSAGE, tickets.parse_ticket(under_the_other_tag))


def test_identity_key_and_ticket_are_refused() -> None:
    identity_key, identity = bls.PublicKey(bytes(256)), tickets.Ticket(bytes(128))
    with raises_fault(Malformed, "KeyMalformed"):
        tickets.verify_ticket(identity_key, MESSAGE, TICKET)
    with raises_fault(Malformed, "PointMalformed"):
        tickets.verify_ticket(PUBLIC, MESSAGE, identity)
    with raises_fault(Malformed, "PointMalformed"):
        # The pairing equation itself would hold.
        tickets.verify_ticket(identity_key, MESSAGE, identity)
    with raises_fault(Malformed, "KeyMalformed"):
        bls.parse_public_key(identity_key)
    with raises_fault(Malformed, "PointMalformed"):
        tickets.parse_ticket(identity)


def outside_subgroup_g2() -> bytes:
    """A point on the twist that is not in the prime-order subgroup."""
    for x in range(1, 200):
        raw = bytes([0x80]) + bytes(47) + x.to_bytes(48, "big")
        try:
            point = G2Point.from_compressed_bytes_unchecked(raw)
        except ValueError:
            continue
        if not point.is_in_subgroup():
            flat = point.to_xy_bytes_be()
            return b"".join(bytes(16) + flat[start : start + 48] for start in range(0, 192, 48))
    raise AssertionError("no such point")


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="empty"),
        pytest.param(PUBLIC[:-1], id="short"),
        pytest.param(PUBLIC + b"\0", id="long"),
        pytest.param(b"\1" + PUBLIC[1:], id="padding"),
        pytest.param(PUBLIC[64:128] + PUBLIC[:64] + PUBLIC[128:], id="coefficients-swapped"),
        pytest.param(
            (int.from_bytes(PUBLIC[:64], "big") + field_modulus).to_bytes(64, "big") + PUBLIC[64:],
            id="x-not-below-the-field",
        ),
        pytest.param(outside_subgroup_g2(), id="outside-subgroup"),
    ],
)
def test_parse_public_key_refuses(raw: bytes) -> None:
    with raises_fault(Malformed, "KeyMalformed"):
        bls.parse_public_key(raw)


def test_parse_takes_what_the_package_makes() -> None:
    assert bls.parse_public_key(PUBLIC) == PUBLIC
    assert tickets.parse_ticket(TICKET) == TICKET
    with raises_fault(Malformed, "PointMalformed"):
        tickets.parse_ticket(TICKET[:-1])


def test_secret_key_hides_itself() -> None:
    scalar = KEY.reveal()
    assert str(scalar) not in f"{KEY!r} {KEY} {[KEY]}"
    assert f"{scalar:x}" not in repr(KEY)
    with pytest.raises(TypeError):
        pickle.dumps(KEY)
    with pytest.raises(TypeError):
        copy.deepcopy(KEY)
    for bad in (0, -1, BLS_MODULUS):
        with raises_fault(Malformed, "KeyMalformed") as caught:
            tickets.SecretKey(bad)
        assert str(BLS_MODULUS) not in str(caught.value)
    with raises_fault(Malformed, "KeyMalformed"):
        tickets.generate_secret_key(bytes(31))


@given(
    st.integers(0, 2**256 - 1),
    ADDRESS,
    st.integers(0, 2**256 - 1),
    st.integers(0, 2**64),
    st.binary(min_size=32, max_size=32),
    ADDRESS,
)
def test_ticket_message_equals_abi_encoding(
    chain_id: int, contract: bytes, task: int, round: int, seed: bytes, voter: bytes
) -> None:
    kinds = ["uint256", "address", "uint256", "uint256", "bytes32", "address"]
    expected = encode(kinds, [chain_id, contract, task, round, seed, voter])
    assert tickets.ticket_message(chain_id, contract, task, round, seed, voter) == expected


@given(st.integers(0, 2**256 - 1), ADDRESS, ADDRESS, st.one_of(st.just(PUBLIC), st.binary(max_size=300)))
def test_possession_message_equals_abi_encoding(chain_id: int, staking: bytes, voter: bytes, key: bytes) -> None:
    expected = encode(["uint256", "address", "address", "bytes"], [chain_id, staking, voter, key])
    assert tickets.possession_message(chain_id, staking, voter, bls.PublicKey(key)) == expected


def test_messages_refuse_what_does_not_encode() -> None:
    with pytest.raises(ArgumentInvalid):
        tickets.ticket_message(-1, STAKING, 1, 2, bytes(32), VOTER)
    with pytest.raises(ShapeWrong):
        tickets.ticket_message(1, STAKING[1:], 1, 2, bytes(32), VOTER)
    with pytest.raises(ShapeWrong):
        tickets.ticket_message(1, STAKING, 1, 2, bytes(33), VOTER)


def test_possession_proof_verifies_for_its_voter_contract_chain_and_key_only() -> None:
    proof = tickets.prove_possession(KEY, 31337, STAKING, VOTER)
    hashed = hash_to_G1(tickets.possession_message(31337, STAKING, VOTER, PUBLIC), POSSESSION_DST, hashlib.sha256)
    assert proof == encode_py_ecc_g1(multiply(hashed, KEY.reveal()))
    assert tickets.verify_possession(PUBLIC, 31337, STAKING, VOTER, proof)
    assert not tickets.verify_possession(PUBLIC, 31337, STAKING, STAKING, proof)
    assert not tickets.verify_possession(PUBLIC, 31337, VOTER, VOTER, proof)
    assert not tickets.verify_possession(PUBLIC, 1, STAKING, VOTER, proof)
    assert not tickets.verify_possession(tickets.public_key(OTHER_KEY), 31337, STAKING, VOTER, proof)
    as_ticket = tickets.sign_ticket(KEY, tickets.possession_message(31337, STAKING, VOTER, PUBLIC))
    assert not tickets.verify_possession(PUBLIC, 31337, STAKING, VOTER, as_ticket)
    with raises_fault(Malformed, "KeyMalformed"):
        tickets.verify_possession(bls.PublicKey(bytes(256)), 31337, STAKING, VOTER, proof)


def test_draw_is_the_tickets_hash() -> None:
    assert tickets.draw(TICKET) == int.from_bytes(keccak(TICKET), "big")


@given(st.integers(0, 2**16), st.integers(0, 2**128), st.integers(1, 2**136))
def test_seat_threshold_is_the_stakes_share(seats: int, bond: int, total: int) -> None:
    threshold = tickets.seat_threshold(seats, bond, total)
    if seats * bond >= total:
        assert threshold == 2**256
    else:
        assert threshold == (2**256 - 1) * seats * bond // total < 2**256


def test_seat_threshold_edges() -> None:
    assert tickets.seat_threshold(3, 0, 10) == 0
    assert tickets.seat_threshold(1, 10, 10) == 2**256
    assert tickets.draw(TICKET) >= tickets.seat_threshold(3, 0, 10)
    assert tickets.draw(TICKET) < tickets.seat_threshold(3, 4, 10)
    for seats, bond, total in ((-1, 1, 1), (1, -1, 1), (1, 1, 0)):
        with pytest.raises(ArgumentInvalid):
            tickets.seat_threshold(seats, bond, total)


@given(st.integers(1, 50), st.integers(1, 10**9), st.integers(1, 10**9), st.integers(0, 10**12))
def test_seat_threshold_gains_nothing_from_splitting_a_stake(seats: int, one: int, two: int, rest: int) -> None:
    """Expected seats of the parts never exceed those of the whole while the whole is below one certain seat."""
    total = one + two + rest
    whole = tickets.seat_threshold(seats, one + two, total)
    parts = tickets.seat_threshold(seats, one, total) + tickets.seat_threshold(seats, two, total)
    if whole < 2**256:
        assert whole - 1 <= parts <= whole
