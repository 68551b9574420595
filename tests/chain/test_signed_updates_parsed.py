"""A signed update on its way: what goes in comes out, and no other bytes get through."""

from __future__ import annotations

import functools

import pytest
from consilium_chain.errors import SignedUpdateMalformed
from consilium_chain.messages import signed_update_bytes
from consilium_chain.rounds.signed_updates import SignedUpdate, parse_signed_update, sign_update
from eth_account import Account
from eth_utils.crypto import keccak
from hypothesis import given, settings
from hypothesis import strategies as st

HOSPITAL = Account.from_key(b"\x07" * 32)
OTHER = Account.from_key(b"\x08" * 32).address
CONTRACT = Account.from_key(b"\x01" * 32).address
MOST = 3


@functools.cache
def made(blobs: int) -> SignedUpdate:
    hashes = [keccak(bytes([value])) for value in range(blobs)]
    return sign_update(HOSPITAL, 31_337, CONTRACT, 5, 2, hashes, bytes(range(32)), bytes(range(32, 64)))


def parse(raw: bytes, blobs: int) -> SignedUpdate:
    return parse_signed_update(raw, HOSPITAL.address, blobs)


@given(words=st.lists(st.binary(min_size=32, max_size=32), min_size=4, max_size=4 + MOST))
@settings(max_examples=50)
def test_signed_update_round_trips(words: list[bytes]) -> None:
    update = SignedUpdate(HOSPITAL.address, tuple(words[4:]), *words[:4])
    raw, blobs = update.to_wire(), len(words) - 4
    assert len(raw) == signed_update_bytes(blobs)
    assert parse(raw, blobs) == update
    assert parse(raw, blobs).to_chain(3) == update.to_chain(3)


def test_signed_update_is_of_whoever_sent_it() -> None:
    assert parse_signed_update(made(1).to_wire(), OTHER, 1).hospital == OTHER


@given(blobs=st.integers(1, MOST), asked=st.integers(0, MOST + 1))
def test_signed_update_of_another_blob_count_is_malformed(blobs: int, asked: int) -> None:
    if blobs != asked:
        with pytest.raises(SignedUpdateMalformed, match=f"{signed_update_bytes(blobs)} bytes instead of"):
            parse(made(blobs).to_wire(), asked)


@given(raw=st.binary(max_size=400))
@settings(max_examples=200)
def test_garbage_is_no_signed_update(raw: bytes) -> None:
    for blobs in (0, 1, 2):
        if len(raw) != signed_update_bytes(blobs):
            with pytest.raises(SignedUpdateMalformed):
                parse(raw, blobs)


@given(blobs=st.integers(1, MOST), data=st.data())
@settings(max_examples=100)
def test_changed_bytes_are_another_update(blobs: int, data: st.DataObject) -> None:
    """No two byte strings are the same update: who signs cannot be made to look as if it had signed two."""
    raw = bytearray(made(blobs).to_wire())
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    parsed = parse(bytes(raw), blobs)
    assert parsed != made(blobs)
    assert parsed.to_wire() == bytes(raw)
