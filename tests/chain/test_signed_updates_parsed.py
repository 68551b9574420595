"""A signed update on its way: what goes in comes out, and no other bytes get through."""

from __future__ import annotations

import functools

import pytest
from consilium_chain.errors import SignedUpdateMalformed
from consilium_chain.messages import signed_update_bytes
from consilium_chain.rounds.signed_updates import SignedUpdate, parse_signed_update, sign_update
from consilium_zk.blobs import from_scalars
from consilium_zk.constants import BLS_MODULUS, BYTES_PER_COMPRESSED_G1
from consilium_zk.curve import to_eip2537
from consilium_zk.kzg import Opening, commit, open_at
from eth_account import Account
from hypothesis import given, settings
from hypothesis import strategies as st

HOSPITAL = Account.from_key(b"\x07" * 32)
OTHER = Account.from_key(b"\x08" * 32).address
CONTRACT = Account.from_key(b"\x01" * 32).address
MOST = 3
NOT_A_POINT = b"\x80" + b"\xff" * (BYTES_PER_COMPRESSED_G1 - 1)


@functools.cache
def made(blobs: int) -> SignedUpdate:
    contents = [from_scalars([value + 1] * 4096) for value in range(blobs)]
    points = b"".join(to_eip2537(commit(blob)) for blob in contents)
    return sign_update(
        HOSPITAL, 31_337, CONTRACT, 5, 2, points, open_at(contents[0], 99), bytes(range(32)), bytes(range(32, 64))
    )


def parse(raw: bytes, blobs: int) -> SignedUpdate:
    return parse_signed_update(raw, HOSPITAL.address, blobs)


@given(blobs=st.integers(1, MOST), value=st.integers(0, BLS_MODULUS - 1), words=st.binary(min_size=128, max_size=128))
@settings(max_examples=50)
def test_signed_update_round_trips(blobs: int, value: int, words: bytes) -> None:
    proof = made(blobs).opening.proof
    cut = [words[at : at + 32] for at in range(0, 128, 32)]
    update = SignedUpdate(HOSPITAL.address, made(blobs).points, Opening(value, proof), *cut)
    raw = update.to_wire()
    assert len(raw) == signed_update_bytes(blobs)
    assert parse(raw, blobs) == update
    assert parse(raw, blobs).to_chain() == update.to_chain()


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
        with pytest.raises(SignedUpdateMalformed):
            parse(raw, blobs)
    with pytest.raises(SignedUpdateMalformed):
        parse(raw.ljust(signed_update_bytes(1), b"\xff")[: signed_update_bytes(1)], 1)


@given(blobs=st.integers(1, MOST), data=st.data())
@settings(max_examples=100)
def test_changed_bytes_are_malformed_or_another_update(blobs: int, data: st.DataObject) -> None:
    """No two byte strings are the same update: who signs cannot be made to look as if it had signed two."""
    raw = bytearray(made(blobs).to_wire())
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    try:
        parsed = parse(bytes(raw), blobs)
    except SignedUpdateMalformed:
        return
    assert parsed != made(blobs)
    assert parsed.to_wire() == bytes(raw)


@pytest.mark.parametrize(
    ("start", "wrong"),
    [
        (64, BLS_MODULUS.to_bytes(32, "big")),
        (64, b"\xff" * 32),
        (96, NOT_A_POINT),
        (208, NOT_A_POINT),
        (256, NOT_A_POINT),
        (256, bytes(BYTES_PER_COMPRESSED_G1)),
        (256, b"\xc0" + bytes(46) + b"\x01"),  # infinity, but with something behind it
    ],
    ids=["value is the modulus", "huge value", "proof", "first point", "last point", "zeros", "dirty infinity"],
)
def test_signed_update_of_no_scalar_or_no_point_is_malformed(start: int, wrong: bytes) -> None:
    raw = bytearray(made(2).to_wire())
    raw[start : start + len(wrong)] = wrong
    with pytest.raises(SignedUpdateMalformed):
        parse(bytes(raw), 2)
