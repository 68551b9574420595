from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consilium_zk import blobs, curve, kzg
from consilium_zk.constants import BLS_MODULUS, BYTES_PER_BLOB
from consilium_zk.errors import ArgumentInvalid, Malformed, ShapeWrong, ZkError
from consilium_zk.packing import LaneLayout, pack
from eth_abi.abi import encode
from eth_abi.packed import encode_packed
from eth_utils.crypto import keccak
from hypothesis import given, settings
from hypothesis import strategies as st
from py_arkworks_bls12381 import G1Point, Scalar
from raised_faults import raises_fault
from zk_support import field_blob, load_vectors

INFINITY = b"\xc0" + bytes(47)


@cache
def lagrange_points() -> list[G1Point]:
    """The setup's Lagrange basis, in the order of a blob's scalars: bit-reversed."""
    lines = kzg.setup_path().read_text().split("\n")
    assert lines[0] == "4096"
    natural = [G1Point.from_compressed_bytes_unchecked(bytes.fromhex(line)) for line in lines[2 : 2 + 4096]]
    return [natural[int(f"{index:012b}"[::-1], 2)] for index in range(4096)]


def independent_commitment(scalars: list[int]) -> bytes:
    return bytes(G1Point.multiexp_unchecked(lagrange_points(), [Scalar(s) for s in scalars]).to_compressed_bytes())


@pytest.mark.parametrize("seed", [0, 1])
def test_commit_equals_a_sum_over_the_setup_file(seed: int) -> None:
    blob = field_blob(seed)
    assert kzg.commit(blob) == independent_commitment(blobs.to_scalars(blob))


@pytest.mark.parametrize("case", load_vectors("kzg/blob_to_kzg_commitment"), ids=lambda case: case["name"])
def test_commit_agrees_with_the_consensus_vectors(case: dict[str, Any]) -> None:
    """A case gives a blob by its first scalar and their ratio, but for some others, cut to a number of bytes."""
    other, ratio, scalars = dict(case["other"]), case["ratio"], [int(case["first"], 16)]
    while len(scalars) < 4096:
        scalars.append(scalars[-1] if ratio == 1 else scalars[-1] * ratio % BLS_MODULUS)
    words = [int(other[place], 16) if place in other else scalar for place, scalar in enumerate(scalars)]
    raw = b"".join(word.to_bytes(32, "big") for word in words)[: case["bytes"]].ljust(case["bytes"], b"\0")
    assert hashlib.sha256(raw).hexdigest() == case["sha256"].removeprefix("0x")
    if case["output"] is None:
        with raises_fault(Malformed, "BlobMalformed"):
            kzg.commit(blobs.Blob(raw))
    else:
        assert "0x" + kzg.commit(blobs.Blob(raw)).hex() == case["output"]


def test_commit_of_known_blobs() -> None:
    assert kzg.commit(blobs.from_scalars([0] * 4096)) == INFINITY
    constant = kzg.commit(blobs.from_scalars([2] * 4096))
    assert constant == (G1Point() * Scalar(2)).to_compressed_bytes()


def test_commit_hides_lanes_behind_either_blinder() -> None:
    (lanes,) = pack(np.full(100, 7, np.uint64), LaneLayout(8, 60))
    commitments = {kzg.commit(blobs.with_blinders(lanes, *pair)) for pair in ((0, 0), (1, 0), (0, 1), (2, 0))}
    assert len(commitments) == 4


def test_commit_refuses_what_is_not_a_blob() -> None:
    for raw in (b"", bytes(BYTES_PER_BLOB - 1), b"\xff" * BYTES_PER_BLOB):
        for near in (0, 5):
            with raises_fault(Malformed, "BlobMalformed"):
                kzg.commit(blobs.Blob(raw), near)


@settings(max_examples=5)
@given(st.lists(st.integers(1, 2**20), min_size=1, max_size=4), st.integers(0, 2**32))
def test_weighted_sum_of_commitments_commits_to_the_weighted_sum(weights: list[int], seed: int) -> None:
    updates = [field_blob(seed + index) for index in range(len(weights))]
    total = blobs.add([blobs.scale(blob, weight) for blob, weight in zip(updates, weights, strict=True)])
    assert curve.weighted_sum([kzg.commit(blob) for blob in updates], weights) == kzg.commit(total)


def test_negated_commitment_takes_a_dropped_update_out() -> None:
    kept, dropped = field_blob(10), field_blob(11)
    commitments = [kzg.commit(kept), kzg.commit(dropped)]
    everybody = curve.weighted_sum(commitments, [3, 5])
    assert curve.weighted_sum([everybody, curve.negate(commitments[1])], [1, 5]) == kzg.commit(blobs.scale(kept, 3))
    assert curve.negate(commitments[1]) == kzg.commit(blobs.negate(dropped))


POINTS = [kzg.Commitment(bytes([0x80 + i]) * 48) for i in range(3)]

BOUND: dict[str, Any] = {
    "chain_id": 31337,
    "contract": bytes(range(20)),
    "task": 4,
    "round": 2,
    "hospital": bytes(range(100, 120)),
    "commitments": POINTS,
}


@given(
    st.integers(0, 2**256 - 1),
    st.binary(min_size=20, max_size=20),
    st.integers(0, 2**256 - 1),
    st.integers(0, 2**64),
    st.binary(min_size=20, max_size=20),
    st.lists(st.binary(min_size=48, max_size=48), max_size=4),
)
def test_point_hashes_equal_abi_encoding(
    chain_id: int, contract: bytes, task: int, round: int, hospital: bytes, commitments: list[bytes]
) -> None:
    tag = keccak(text="CONSILIUM-V1-POINT")
    context = keccak(
        encode(["bytes32", "uint256", "address", "uint256", "uint256"], [tag, chain_id, contract, task, round])
    )
    expected = [
        keccak(encode_packed(["bytes32", "address", "uint256", "bytes"], [context, hospital, blob, point]))
        for blob, point in enumerate(commitments)
    ]
    found = kzg.point_hashes(chain_id, contract, task, round, hospital, [kzg.Commitment(c) for c in commitments])
    assert found == expected


def test_point_hashes_are_those_of_the_vectors() -> None:
    vectors = json.loads((Path(__file__).parents[1] / "vectors" / "protocol.json").read_text())
    for case in [*vectors["committed"], vectors["committed_three"]]:
        points, contract, hospital = (
            bytes.fromhex(text.removeprefix("0x")) for text in (case["commitments"], vectors["tasks"], case["hospital"])
        )
        found = kzg.point_hashes(
            vectors["chain_id"], contract, vectors["task"], vectors["round"], hospital,
            [kzg.parse_commitment(points[i : i + 48]) for i in range(0, len(points), 48)],
        )  # fmt: skip
        assert ["0x" + one.hex() for one in found] == case["point_hashes"]


OTHERS: dict[str, Any] = {
    "chain_id": 1,
    "contract": bytes(20),
    "task": 5,
    "round": 3,
    "hospital": bytes(range(101, 121)),
    "commitments": POINTS[1:] + POINTS[:1],
}


def test_point_hashes_are_bound_to_place_hospital_blob_and_point() -> None:
    found = [
        kzg.point_hashes(**BOUND),
        *(kzg.point_hashes(**(BOUND | {name: other})) for name, other in OTHERS.items()),
    ]
    assert len({one for row in found for one in row}) == len(found) * len(POINTS)
    same = kzg.point_hashes(**(BOUND | {"commitments": POINTS[:1] * 3}))
    assert len(set(same)) == 3


@pytest.mark.parametrize(
    ("name", "bad", "error"),
    [
        ("chain_id", -1, ArgumentInvalid),
        ("task", 1 << 256, ArgumentInvalid),
        ("contract", bytes(19), ShapeWrong),
        ("hospital", bytes(32), ShapeWrong),
    ],
)
def test_point_hashes_refuse_what_does_not_encode(name: str, bad: Any, error: type[ZkError]) -> None:
    with pytest.raises(error):
        kzg.point_hashes(**(BOUND | {name: bad}))


def test_versioned_hash_is_that_of_eip_4844() -> None:
    commitment = kzg.commit(field_blob(25))
    assert kzg.versioned_hash(commitment) == b"\x01" + hashlib.sha256(commitment).digest()[1:]


def test_setup_refuses_another_setup(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = kzg.setup_path().read_bytes()
    forged = tmp_path / "setup.txt"
    forged.write_bytes(real[:-2] + b"0\n")
    for path in (forged, tmp_path / "missing.txt"):
        monkeypatch.setattr(kzg, "setup_path", lambda path=path: path)
        with raises_fault(Malformed, "SetupMalformed"):
            kzg.setup.__wrapped__()


@given(seed=st.integers(0, 2**32))
@settings(max_examples=3)
def test_commit_by_points_equals_the_library(seed: int) -> None:
    blob = field_blob(seed)
    kzg.setup()
    assert kzg.commit_by_points(blob) == kzg.commit(blob)


@given(
    seed=st.integers(0, 2**32),
    near=st.one_of(st.sampled_from([1, -1, BLS_MODULUS - 1, BLS_MODULUS, 2**256]), st.integers(0, BLS_MODULUS - 1)),
)
@settings(max_examples=8)
def test_commit_is_the_same_whatever_it_is_near(seed: int, near: int) -> None:
    layout, random = LaneLayout(8, 10), np.random.default_rng(seed)
    lanes = random.integers(126, 129, layout.lanes_per_blob, dtype=np.uint64)
    update = blobs.with_blinders(pack(lanes, layout)[0], near % BLS_MODULUS, seed)
    for blob in (update, field_blob(seed)):
        assert kzg.commit(blob, near) == kzg.commit(blob, layout.near(127)) == kzg.commit(blob)


def test_commits_to_tells_a_wrong_blob_and_a_swapped_pair() -> None:
    parts = [field_blob(seed) for seed in (1, 2, 3)]
    commitments = [kzg.commit(part) for part in parts]
    factors = [3**80, 5**50, 7**40]
    assert kzg.commits_to(parts, commitments, factors)
    assert not kzg.commits_to([parts[0], parts[1], field_blob(4)], commitments, factors)
    assert not kzg.commits_to([parts[1], parts[0], parts[2]], commitments, factors)


class Counted(bytes):
    """A blob, and how many of them are alive."""

    alive = 0

    def __init__(self, *_: object) -> None:
        Counted.alive += 1

    def __del__(self) -> None:
        Counted.alive -= 1


def in_turn(parts: list[blobs.Blob], most: list[int]) -> Iterator[blobs.Blob]:
    """The blobs; appends to `most` how many of those that were handed out are alive."""
    before = Counted.alive
    for part in parts:
        yield blobs.Blob(Counted(part))
        most.append(Counted.alive - before)


@given(st.integers(1, 5), st.integers(0, 2**32), st.integers(0, BLS_MODULUS - 1))
@settings(max_examples=4)
def test_blobs_read_in_turn_give_the_same_and_are_let_go(count: int, seed: int, ratio: int) -> None:
    parts = [field_blob(seed + index) for index in range(count)]
    factors = [pow(ratio, index, BLS_MODULUS) for index in range(count)]
    commitments = [kzg.commit(part) for part in parts]
    alive: list[int] = []
    assert blobs.combine(in_turn(parts, alive), iter(factors)) == blobs.combine(parts, factors)
    assert blobs.add(in_turn(parts, alive), in_turn(parts[1:], alive)) == parts[0]
    assert kzg.commits_to(in_turn(parts, alive), commitments, factors)
    assert max(alive) == 1


def test_commits_to_refuses_another_number_of_blobs() -> None:
    parts = [field_blob(seed) for seed in (1, 2)]
    commitments = [kzg.commit(part) for part in parts]
    for some in (parts[:1], [*parts, blobs.from_scalars([0] * 4096)], []):
        with pytest.raises(ShapeWrong):
            kzg.commits_to(iter(some), commitments, [3, 5])
