"""What two keys agree on, alike from both ends, and proofs of it that hold for one context and two keys alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from consilium_zk.errors import AgreementUnproven, Malformed
from consilium_zk.key_exchange import (
    BYTES_PER_SHOWN,
    agreed,
    agreed_point,
    derived,
    is_possessed,
    is_usable,
    prove_possession,
    public_key,
    show_agreed,
    shown_point,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl.bindings import crypto_core_ed25519_add, crypto_scalarmult_ed25519_base_noclamp
from raised_faults import raises_fault
from zk_support import BAD_KEYS

PRIVATE = st.binary(min_size=32, max_size=32)
CONTEXT = b"chain, contract, task, round, accusation, pair"
ANNA, BERT, EVE = (bytes([k]) * 32 for k in (1, 2, 3))


@given(PRIVATE, PRIVATE, st.binary(max_size=50))
def test_both_ends_agree(one: bytes, other: bytes, info: bytes) -> None:
    assert agreed_point(one, public_key(other)) == agreed_point(other, public_key(one))
    assert agreed(one, public_key(other), b"tag", info, 40) == agreed(other, public_key(one), b"tag", info, 40)
    assert agreed(one, public_key(other), b"tag", info, 40) != agreed(one, public_key(other), b"other", info, 40)


def test_keys_are_ed25519s_and_derivation_is_hkdf() -> None:
    # RFC 8032, section 7.1, tests 1 and 2; RFC 5869, appendix A.1
    first = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    second = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
    assert public_key(first).hex() == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    assert public_key(second).hex() == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    known = derived(b"\x0b" * 22, bytes(range(13)), bytes(range(0xF0, 0xFA)), 42)
    assert known.hex() == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"


@pytest.mark.parametrize("key", BAD_KEYS.values(), ids=BAD_KEYS)
def test_keys_that_are_no_points_of_the_group_are_refused(key: bytes) -> None:
    assert not is_usable(key)
    assert not is_possessed(key, prove_possession(ANNA, CONTEXT), CONTEXT)
    with raises_fault(Malformed, "KeyMalformed"):
        agreed_point(ANNA, key)


@pytest.mark.parametrize("key", [bytes(31), bytes(33), b""])
def test_keys_of_another_length_are_refused(key: bytes) -> None:
    assert not is_usable(key)
    calls: list[Callable[[], object]] = [
        lambda: agreed_point(ANNA, key),
        lambda: agreed_point(key, public_key(ANNA)),
        lambda: public_key(key),
        lambda: prove_possession(key, CONTEXT),
    ]
    for call in calls:
        with raises_fault(Malformed, "KeyMalformed"):
            call()


@settings(max_examples=25)
@given(PRIVATE, PRIVATE, st.binary(max_size=50))
def test_what_is_shown_is_the_agreed_point(one: bytes, other: bytes, context: bytes) -> None:
    shown = show_agreed(one, public_key(other), context)
    assert shown == show_agreed(one, public_key(other), context)
    assert len(shown) == BYTES_PER_SHOWN
    assert shown_point(public_key(one), public_key(other), shown, context) == agreed_point(one, public_key(other))


def test_a_proof_is_of_two_keys_and_one_context() -> None:
    anna, bert, eve = (public_key(private) for private in (ANNA, BERT, EVE))
    shown = show_agreed(ANNA, bert, CONTEXT)
    for claim in (
        (bert, anna, shown, CONTEXT),
        (anna, eve, shown, CONTEXT),
        (eve, bert, shown, CONTEXT),
        (anna, bert, shown, CONTEXT + b"\0"),
        (anna, bert, shown[:-1], CONTEXT),
        (anna, bert, agreed_point(ANNA, eve) + shown[32:], CONTEXT),
        (anna, bert, bytes(96), CONTEXT),
        (anna, bert, b"\xff" * 96, CONTEXT),
        (BAD_KEYS["zero"], bert, shown, CONTEXT),
        *((anna, bert, key + shown[32:], CONTEXT) for key in BAD_KEYS.values()),
    ):
        with pytest.raises(AgreementUnproven):
            shown_point(*claim)


@given(st.integers(0, 8 * BYTES_PER_SHOWN - 1))
def test_a_changed_bit_proves_nothing(bit: int) -> None:
    shown = bytearray(show_agreed(ANNA, public_key(BERT), CONTEXT))
    shown[bit // 8] ^= 1 << bit % 8
    with pytest.raises(AgreementUnproven):
        shown_point(public_key(ANNA), public_key(BERT), bytes(shown), CONTEXT)


def test_possession_is_of_one_key_and_one_context() -> None:
    proof = prove_possession(ANNA, CONTEXT)
    assert is_possessed(public_key(ANNA), proof, CONTEXT)
    assert not is_possessed(public_key(BERT), proof, CONTEXT)
    assert not is_possessed(public_key(ANNA), proof, CONTEXT + b"\0")
    assert not is_possessed(public_key(ANNA), proof[:-1], CONTEXT)


def test_a_key_made_of_anothers_is_not_possessed() -> None:
    """What Bert agrees on with such a key tells what it agrees on with Anna: it must be shown to nobody."""
    step = (5).to_bytes(32, "little")
    made = crypto_core_ed25519_add(public_key(ANNA), crypto_scalarmult_ed25519_base_noclamp(step))
    assert is_usable(made)
    for proof in (prove_possession(ANNA, CONTEXT), prove_possession(EVE, CONTEXT), bytes(64)):
        assert not is_possessed(made, proof, CONTEXT)
