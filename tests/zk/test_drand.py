from __future__ import annotations

import json
from typing import Any

import pytest
from consilium_zk import bls, drand
from consilium_zk.errors import ArgumentInvalid, Malformed
from hypothesis import given
from hypothesis import strategies as st
from raised_faults import raises_fault
from zk_support import VECTORS

DOCUMENT = json.loads((VECTORS / "drand_quicknet.json").read_text())
ROUNDS = {case["round"]: case for case in DOCUMENT["rounds"]}
INVALID_ROUND = DOCUMENT["invalid_round"]
INVALID = [case for case in DOCUMENT["invalid"] if "compressed" in case]
NO_POINT = {
    "identity",
    "outside the subgroup",
    "signature plus a point of order 3",
    "signature minus a point of order 3",
}


def unhexed(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def test_vectors_are_there() -> None:
    assert len(ROUNDS) == 9
    assert len(INVALID) == 8
    assert {case["name"] for case in INVALID} > NO_POINT


def test_quicknet_is_the_published_chain() -> None:
    assert (drand.QUICKNET.genesis, drand.QUICKNET.period) == (DOCUMENT["genesis"], DOCUMENT["period"])
    assert drand.QUICKNET.public_key == unhexed(DOCUMENT["public_key_point"])
    assert DOCUMENT["chain_hash"] == drand.QUICKNET_HASH


@pytest.mark.parametrize("case", ROUNDS.values(), ids=ROUNDS)
def test_published_rounds_verify(case: dict[str, Any]) -> None:
    signature = drand.QUICKNET.parse_signature(case["round"], unhexed(case["signature"]))
    assert signature == unhexed(case["point"])
    assert drand.randomness(signature) == unhexed(case["randomness"])
    assert drand.seed(case["round"], signature) == unhexed(case["seed"])
    assert drand.QUICKNET.start(case["round"]) == case["time"]


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case["name"])
def test_parse_signature_refuses_invalid_points(case: dict[str, Any]) -> None:
    with raises_fault(Malformed, "PointMalformed" if case["name"] in NO_POINT else "RoundUnsigned"):
        drand.QUICKNET.parse_signature(INVALID_ROUND, unhexed(case["compressed"]))


@given(st.integers(0, 8 * 48 - 1))
def test_parse_signature_refuses_every_flipped_bit(bit: int) -> None:
    raw = bytearray(unhexed(ROUNDS[INVALID_ROUND]["signature"]))
    raw[bit // 8] ^= 1 << bit % 8
    with pytest.raises(Malformed) as caught:
        drand.QUICKNET.parse_signature(INVALID_ROUND, bytes(raw))
    assert caught.value.name in ("PointMalformed", "RoundUnsigned")


@pytest.mark.parametrize("length", [0, 47, 49, 96, 128])
def test_parse_signature_refuses_other_lengths(length: int) -> None:
    raw = unhexed(ROUNDS[INVALID_ROUND]["point"]).ljust(length, b"\0")[:length]
    with raises_fault(Malformed, "PointMalformed", match=f"{length} bytes"):
        drand.QUICKNET.parse_signature(INVALID_ROUND, raw)


@pytest.mark.parametrize("round_", [-1, 0, 2**64])
def test_rounds_are_eight_bytes_from_one_on(round_: int) -> None:
    signature = unhexed(ROUNDS[INVALID_ROUND]["signature"])
    for attempt in (drand.QUICKNET.start, drand.round_message, lambda r: drand.QUICKNET.parse_signature(r, signature)):
        with pytest.raises(ArgumentInvalid) as caught:
            attempt(round_)
        assert (caught.value.name, caught.value.value) == ("round", round_)


def test_chain_refuses_rounds_that_take_no_time() -> None:
    with pytest.raises(ArgumentInvalid, match="period"):
        drand.DrandChain(0, 0, drand.QUICKNET.public_key)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        unhexed(DOCUMENT["public_key"])[:-1],
        unhexed(DOCUMENT["public_key_point"]),
        b"\xc0" + bytes(95),
        b"\xc0" + bytes(94) + b"\x01",
        bytes([unhexed(DOCUMENT["public_key"])[0] & 0x7F]) + unhexed(DOCUMENT["public_key"])[1:],
        unhexed(DOCUMENT["public_key"])[:-1] + b"\x5b",
    ],
    ids=["empty", "short", "uncompressed", "identity", "identity with a tail", "without its flag", "off the curve"],
)
def test_decompress_public_key_refuses(raw: bytes) -> None:
    with raises_fault(Malformed, "KeyMalformed"):
        bls.decompress_public_key(raw)
