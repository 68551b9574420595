from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from consilium_zk import blobs, curve, kzg
from consilium_zk.constants import BLS_MODULUS, BYTES_PER_BLOB
from consilium_zk.errors import ArgumentInvalid, Malformed, ShapeWrong, ZkError
from consilium_zk.packing import LaneLayout, pack
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from hypothesis import given, settings
from hypothesis import strategies as st
from py_arkworks_bls12381 import G1Point, Scalar
from raised_faults import raises_fault
from zk_support import field_blob, load_vectors

INFINITY = b"\xc0" + bytes(47)
PRIMITIVE_ROOT = 7  # generates the multiplicative group of the scalar field (EIP-4844)


@cache
def lagrange_points() -> list[G1Point]:
    """The setup's Lagrange basis, in the order of a blob's scalars: bit-reversed."""
    lines = kzg.setup_path().read_text().split("\n")
    assert lines[0] == "4096"
    natural = [G1Point.from_compressed_bytes_unchecked(bytes.fromhex(line)) for line in lines[2 : 2 + 4096]]
    return [natural[int(f"{index:012b}"[::-1], 2)] for index in range(4096)]


def independent_commitment(scalars: list[int]) -> bytes:
    return bytes(G1Point.multiexp_unchecked(lagrange_points(), [Scalar(s) for s in scalars]).to_compressed_bytes())


def evaluate(scalars: list[int], z: int) -> int:
    """The blob's polynomial at `z`, by the barycentric formula (consensus-specs, polynomial-commitments)."""
    root = pow(PRIMITIVE_ROOT, (BLS_MODULUS - 1) // 4096, BLS_MODULUS)
    total = 0
    for index, scalar in enumerate(scalars):
        point = pow(root, int(f"{index:012b}"[::-1], 2), BLS_MODULUS)
        total += scalar * point * pow(z - point, -1, BLS_MODULUS)
    return total * (pow(z, 4096, BLS_MODULUS) - 1) * pow(4096, -1, BLS_MODULUS) % BLS_MODULUS


@pytest.mark.parametrize("seed", [0, 1])
def test_commit_equals_a_sum_over_the_setup_file(seed: int) -> None:
    blob = field_blob(seed)
    assert kzg.commit(blob) == independent_commitment(blobs.to_scalars(blob))


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
def test_challenge_equals_abi_encoding(
    chain_id: int, contract: bytes, task: int, round: int, hospital: bytes, commitments: list[bytes]
) -> None:
    encoded = encode(
        ["bytes32", "uint256", "address", "uint256", "uint256", "address", "bytes32"],
        [keccak(text="CONSILIUM-V1-OPENING"), chain_id, contract, task, round, hospital, keccak(b"".join(commitments))],
    )
    ratio = int.from_bytes(keccak(encoded), "big") % BLS_MODULUS
    point = int.from_bytes(keccak(keccak(encoded)), "big") % BLS_MODULUS
    challenge = kzg.challenge(chain_id, contract, task, round, hospital, [kzg.Commitment(c) for c in commitments])
    assert challenge == kzg.Challenge(ratio, point)


OTHERS: dict[str, Any] = {
    "chain_id": 1,
    "contract": bytes(20),
    "task": 5,
    "round": 3,
    "hospital": bytes(range(101, 121)),
    "commitments": POINTS[:2],
}


@pytest.mark.parametrize("count", [1, 2, 5])
def test_open_combined_verifies_at_its_challenge_and_nowhere_else(count: int) -> None:
    own = [field_blob(20 + i) for i in range(count)]
    commitments = [kzg.commit(blob) for blob in own]
    bound = BOUND | {"commitments": commitments}
    challenge = kzg.challenge(**bound)
    opening = kzg.open_combined(own, challenge)
    values = [evaluate(blobs.to_scalars(blob), challenge.point) for blob in own]
    assert opening.value == sum(pow(challenge.ratio, i, BLS_MODULUS) * v for i, v in enumerate(values)) % BLS_MODULUS
    combined = kzg.combined_commitment(commitments, challenge)
    assert kzg.verify_opening(combined, challenge.point, opening)
    for name, other in OTHERS.items():
        elsewhere = kzg.challenge(**(bound | {name: other}))
        assert not kzg.verify_opening(kzg.combined_commitment(commitments, elsewhere), elsewhere.point, opening), name


def test_open_combined_of_a_rogue_commitment_cannot_be_borrowed() -> None:
    """Com(X) - ΣC opens to what its parts open to, but only their owners can prove their parts at this challenge."""
    honest, wanted, known = field_blob(21), field_blob(22), field_blob(23)
    rogue = curve.weighted_sum([kzg.commit(wanted), kzg.commit(honest)], [1, -1])
    for own, commitments in (([], [rogue]), ([known], [kzg.commit(known), rogue])):
        challenge = kzg.challenge(**(BOUND | {"commitments": commitments}))
        combined = kzg.combined_commitment(commitments, challenge)
        for guess in (wanted, honest):
            assert not kzg.verify_opening(combined, challenge.point, kzg.open_combined([*own, guess], challenge))


def test_open_combined_shows_what_cancels_at_another_ratio() -> None:
    """Two rogue points that cancel at a ratio chosen beforehand do not at the one that follows from them."""
    honest, mine = field_blob(21), field_blob(22)
    guessed = 7
    first = curve.weighted_sum([kzg.commit(mine), kzg.commit(honest)], [1, 1])
    second = curve.weighted_sum([kzg.commit(honest)], [-pow(guessed, -1, BLS_MODULUS)])
    challenge = kzg.challenge(**(BOUND | {"commitments": [first, second]}))
    prepared = kzg.Challenge(guessed, challenge.point)
    opening = kzg.open_at(mine, challenge.point)
    assert kzg.verify_opening(kzg.combined_commitment([first, second], prepared), challenge.point, opening)
    assert not kzg.verify_opening(kzg.combined_commitment([first, second], challenge), challenge.point, opening)


@pytest.mark.parametrize(
    ("name", "bad", "error"),
    [
        ("chain_id", -1, ArgumentInvalid),
        ("task", 1 << 256, ArgumentInvalid),
        ("contract", bytes(19), ShapeWrong),
        ("hospital", bytes(32), ShapeWrong),
    ],
)
def test_challenge_refuses_what_does_not_encode(name: str, bad: Any, error: type[ZkError]) -> None:
    with pytest.raises(error):
        kzg.challenge(**(BOUND | {name: bad}))


@pytest.mark.parametrize("power", [0, 1, 2047, 4095])
def test_open_at_refuses_the_domain(power: int) -> None:
    root = pow(PRIMITIVE_ROOT, (BLS_MODULUS - 1) // 4096, BLS_MODULUS)
    with raises_fault(Malformed, "ChallengeOnDomain"):
        kzg.open_at(field_blob(23), pow(root, power, BLS_MODULUS))


def test_open_at_refuses_what_is_not_a_scalar_or_blob() -> None:
    for z in (-1, BLS_MODULUS):
        with pytest.raises(ArgumentInvalid):
            kzg.open_at(field_blob(23), z)
    with raises_fault(Malformed, "BlobMalformed"):
        kzg.open_at(blobs.Blob(b"\xff" * BYTES_PER_BLOB), 5)


def test_verify_opening_refuses_changed_values_and_malformed_points() -> None:
    blob = field_blob(24)
    commitment, opening = kzg.commit(blob), kzg.open_at(blob, 5)
    assert not kzg.verify_opening(commitment, 5, kzg.Opening(opening.value ^ 1, opening.proof))
    with pytest.raises(ArgumentInvalid):
        kzg.verify_opening(commitment, 5, kzg.Opening(BLS_MODULUS, opening.proof))
    with raises_fault(Malformed, "PointMalformed"):
        kzg.verify_opening(commitment, 5, kzg.Opening(opening.value, kzg.Proof(b"\x01" * 48)))
    with raises_fault(Malformed, "PointMalformed"):
        kzg.verify_opening(kzg.Commitment(b""), 5, opening)


def test_versioned_hash_is_that_of_eip_4844() -> None:
    commitment = kzg.commit(field_blob(25))
    assert kzg.versioned_hash(commitment) == b"\x01" + hashlib.sha256(commitment).digest()[1:]


REFUSED_FOR = {"commitment": Malformed, "proof": Malformed, "y": Malformed, "z": ArgumentInvalid}


@pytest.mark.parametrize("case", load_vectors("kzg/verify_kzg_proof"), ids=lambda case: case["name"])
def test_verify_opening_agrees_with_the_consensus_vectors(case: dict[str, Any]) -> None:
    raw = {name: bytes.fromhex(value.removeprefix("0x")) for name, value in case["input"].items()}

    def verify() -> bool:
        opening = kzg.parse_opening(raw["y"], raw["proof"])
        return kzg.verify_opening(kzg.parse_commitment(raw["commitment"]), int.from_bytes(raw["z"], "big"), opening)

    if case["output"] is None:
        _, wrong, _ = case["name"].split("_")
        with pytest.raises(REFUSED_FOR[wrong]):
            verify()
    else:
        assert verify() is case["output"]


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


def test_open_combined_refuses_nothing() -> None:
    with pytest.raises(ShapeWrong):
        kzg.open_combined([], kzg.Challenge(3, 5))


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
    challenge = kzg.Challenge(ratio, 5)
    commitments = [kzg.commit(part) for part in parts]
    alive: list[int] = []
    assert blobs.combine(in_turn(parts, alive), iter(factors)) == blobs.combine(parts, factors)
    assert blobs.add(in_turn(parts, alive), in_turn(parts[1:], alive)) == parts[0]
    opening = kzg.open_combined(in_turn(parts, alive), challenge)
    assert opening == kzg.open_combined(parts, challenge) == kzg.open_at(blobs.combine(parts, factors), 5)
    assert kzg.verify_opening(kzg.combined_commitment(commitments, challenge), 5, opening)
    assert kzg.commits_to(in_turn(parts, alive), commitments, factors)
    assert max(alive) == 1


def test_commits_to_refuses_another_number_of_blobs() -> None:
    parts = [field_blob(seed) for seed in (1, 2)]
    commitments = [kzg.commit(part) for part in parts]
    for some in (parts[:1], [*parts, blobs.from_scalars([0] * 4096)], []):
        with pytest.raises(ShapeWrong):
            kzg.commits_to(iter(some), commitments, [3, 5])
