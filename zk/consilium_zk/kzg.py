"""KZG commitments to blobs and their openings (EIP-4844), with Ethereum's ceremony setup.

A commitment takes about 30 ms and an opening somewhat more. The library holds the interpreter's lock meanwhile, so many
blobs want processes, not threads. The first call in a process loads the setup, more than a second.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import accumulate, islice, repeat
from pathlib import Path
from typing import Any, NewType

import ckzg
from eth_utils.crypto import keccak
from py_arkworks_bls12381 import G1Point, Scalar

from .blobs import Blob, add, combine, parse_blob, to_scalars
from .constants import BLS_MODULUS, BYTES_PER_FIELD_ELEMENT, FIELD_ELEMENTS_PER_BLOB, OPENING_TAG, USABLE_SCALARS
from .curve import GENERATOR, compressed, decompress, weighted_sum
from .curve import Commitment as Commitment
from .curve import parse_commitment as parse_commitment
from .encoding import address, bytes32, round_words
from .errors import ArgumentInvalid, Malformed, ShapeWrong

Proof = NewType("Proof", bytes)
"""A KZG opening proof: a G1 point of the prime-order group, compressed, 48 bytes."""

VersionedHash = NewType("VersionedHash", bytes)
"""0x01 followed by the last 31 bytes of the commitment's SHA-256, as BLOBHASH returns it."""

# Of trusted_setup.txt as ethereum/c-kzg-4844 and consensus-specs publish it. The maker of another setup could open any
# commitment to any value.
_SETUP_SHA256 = "d39b9f2d047cc9dca2de58f264b6a09448ccd34db967881a6713eacacf0f26b7"
_POINTS = FIELD_ELEMENTS_PER_BLOB
_SETUP_FILE = Path("typed_transactions", "blob_transactions", "kzg_trusted_setup.txt")


@dataclass(frozen=True)
class Opening:
    """A blob's polynomial at some point: `value`, an integer below BLS_MODULUS, and the proof of it."""

    value: int
    proof: Proof


def setup_path() -> Path:
    """The ceremony's setup inside the installed eth-account. Raises SetupMalformed."""
    spec = find_spec("eth_account")  # finds without importing
    if spec is None or spec.origin is None:
        raise Malformed("SetupMalformed", path=str(_SETUP_FILE), reason="is missing: eth-account is not installed")
    return Path(spec.origin).parent / _SETUP_FILE


def _setup_bytes() -> bytes:
    """The setup file, if it is the ceremony's. Raises SetupMalformed."""
    path = setup_path()
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise Malformed("SetupMalformed", path=str(path), reason="cannot be read") from error
    if hashlib.sha256(raw).hexdigest() != _SETUP_SHA256:
        raise Malformed("SetupMalformed", path=str(path), reason="is not the ceremony's (SHA-256 differs)")
    return raw


@functools.cache
def setup() -> Any:
    """The loaded setup, in ckzg's own representation; once per process. Raises SetupMalformed."""
    _setup_bytes()
    # Precomputation speeds up cell proofs only, and takes up to hundreds of megabytes.
    return ckzg.load_trusted_setup(str(setup_path()), 0)


def commit(blob: Blob, near: int = 0) -> Commitment:
    """The commitment to a blob. Hides it only if a scalar of it is random. Raises BlobMalformed.

    near: any integer, which does not change the commitment. It is subtracted from every scalar, and its commitment is
    added again. Libraries skip zero digits of scalars: if most lanes are as in `LaneLayout.near`, this takes a quarter
    of the time, and the time tells about how many are.

    A process without openings never loads ckzg's setup (1.5 s). It adds up the Lagrange points instead: 0.1 s to load,
    and half as fast afterwards.
    """
    if near:
        everywhere = Blob(_scalar_bytes(near % BLS_MODULUS) * FIELD_ELEMENTS_PER_BLOB)
        return weighted_sum([commit(add([parse_blob(blob)], [everywhere])), GENERATOR], [1, near])
    if not setup.cache_info().currsize:
        return commit_by_points(blob)
    try:
        return Commitment(ckzg.blob_to_kzg_commitment(blob, setup()))
    except (RuntimeError, ValueError) as error:
        raise Malformed("BlobMalformed", reason="the KZG library refuses it") from error


def commits_to(blobs: Iterable[Blob], commitments: Sequence[Commitment], factors: Sequence[int]) -> bool:
    """True if every commitment is its blob's, by one commitment to a combination of all of them.

    factors: uniform below 2^128, drawn after blobs and commitments are fixed. Then a wrong pair passes with a chance of
    2^-128 (small-exponent batch test; Bellare, Garay, Rabin 1998). A blob takes less than 1 ms this way instead of 30,
    in memory of a few dozen. Raises ShapeWrong, PointMalformed.
    """
    expected, remaining = weighted_sum(commitments, factors), iter(factors)
    combined = combine(blobs, remaining)
    if missing := len(list(remaining)):
        raise ShapeWrong("blobs", len(factors) - missing, f"{len(factors)}, one to each commitment")
    return commit(combined) == expected


def commit_by_points(blob: Blob) -> Commitment:
    """The same commitment as the sum of scalar times Lagrange point, in arkworks. Raises BlobMalformed."""
    canonical = to_scalars(parse_blob(blob))
    scalars = [Scalar.from_be_bytes(scalar.to_bytes(BYTES_PER_FIELD_ELEMENT, "big")) for scalar in canonical]
    return Commitment(compressed(G1Point.multiexp_unchecked(_lagrange_points(), scalars)))


@functools.cache
def blinder_points() -> tuple[Commitment, Commitment]:
    """The Lagrange points of a blob's last two scalars, which commit to its blinders. Raises SetupMalformed."""
    first, second = (Commitment(compressed(point)) for point in _lagrange_points()[USABLE_SCALARS:])
    return first, second


@functools.cache
def _lagrange_points() -> list[Any]:
    """The setup's 4096 Lagrange points in the order of a blob's scalars.

    Unchecked, for the file's hash is pinned: the ceremony's points are on the curve and in the group.
    """
    words = _setup_bytes().split()
    points = [G1Point.from_compressed_bytes_unchecked(bytes.fromhex(word.decode())) for word in words[2 : 2 + _POINTS]]
    return [points[_bit_reversed(index)] for index in range(_POINTS)]


def _bit_reversed(index: int) -> int:
    """A blob's scalars are evaluations in bit-reversed order (EIP-4844); the file's points are in natural order."""
    return int(f"{index:0{_POINTS.bit_length() - 1}b}"[::-1], 2)


def open_at(blob: Blob, z: int) -> Opening:
    """The value at `z`, in [0, BLS_MODULUS), and its proof.

    Raises ArgumentInvalid, ChallengeOnDomain, BlobMalformed.
    """
    if not 0 <= z < BLS_MODULUS:
        raise ArgumentInvalid("z", z, "in [0, BLS_MODULUS)")
    if pow(z, FIELD_ELEMENTS_PER_BLOB, BLS_MODULUS) == 1:
        raise Malformed("ChallengeOnDomain", challenge=z)
    try:
        proof, value = ckzg.compute_kzg_proof(blob, _scalar_bytes(z), setup())
    except (RuntimeError, ValueError) as error:
        raise Malformed("BlobMalformed", reason="the KZG library refuses it") from error
    return Opening(int.from_bytes(value, "big"), Proof(proof))


def parse_opening(value: bytes, proof: bytes) -> Opening:
    """An opening from its 32-byte value and 48-byte proof. Raises OpeningInvalid, PointMalformed."""
    number = int.from_bytes(value, "big")
    if len(value) != BYTES_PER_FIELD_ELEMENT or number >= BLS_MODULUS:
        raise Malformed("OpeningInvalid", reason="the value is not a canonical scalar")
    return Opening(number, Proof(compressed(decompress(proof, "proof"))))


def verify_opening(commitment: Commitment, z: int, opening: Opening) -> bool:
    """True if the committed polynomial takes the KZG proof's value at `z`.

    Raises ArgumentInvalid (z or value outside the field), PointMalformed (commitment or proof).
    """
    for name, number in (("z", z), ("value", opening.value)):
        if not 0 <= number < BLS_MODULUS:
            raise ArgumentInvalid(name, number, "in [0, BLS_MODULUS)")
    try:
        return bool(
            ckzg.verify_kzg_proof(commitment, _scalar_bytes(z), _scalar_bytes(opening.value), opening.proof, setup())
        )
    except (RuntimeError, ValueError) as error:
        raise Malformed("PointMalformed", what="commitment or proof", reason="the KZG library refuses it") from error


def versioned_hash(commitment: Commitment) -> VersionedHash:
    """EIP-4844's kzg_to_versioned_hash: 32 bytes."""
    return VersionedHash(b"\x01" + hashlib.sha256(commitment).digest()[1:])


@dataclass(frozen=True)
class Challenge:
    """The KZG proof that a round requests of a hospital's commitments C_0, C_1, …: the sum of ratio^i · C_i, at
    `point`.

    Both scalars are unpredictable before the commitments are fixed. A blob that its sender does not know stays in the
    combination except for one ratio in 2^247, so one opening proves knowledge of all blobs.
    """

    ratio: int
    point: int


def challenge(
    chain_id: int, contract: bytes, task: int, round: int, hospital: bytes, commitments: Sequence[Commitment]
) -> Challenge:
    """The challenge to `hospital` for its commitments of this round, one per blob, in order.

    The ratio is t modulo the group order with t = keccak256(abi.encode(OPENING_TAG, chain id, contract, task, round,
    hospital, keccak256(commitments))), the point keccak256(t) likewise, as in ITasks.challenge. Addresses are 20 bytes.
    So nobody can post another's commitments or replay openings. Raises ArgumentInvalid, ShapeWrong.
    """
    sender, digest = address("hospital", hospital), bytes32("commitments", keccak(b"".join(commitments)))
    transcript = keccak(OPENING_TAG + round_words(chain_id, contract, task, round) + sender + digest)
    ratio, point = (int.from_bytes(raw, "big") % BLS_MODULUS for raw in (transcript, keccak(transcript)))
    return Challenge(ratio, point)


def open_combined(blobs: Iterable[Blob], challenge: Challenge) -> Opening:
    """The one opening that answers a challenge, for any number of blobs, in memory of a few dozen.

    Raises ShapeWrong for no blobs; ChallengeOnDomain, BlobMalformed.
    """
    return open_at(combine(blobs, _powers(challenge)), challenge.point)


def combined_commitment(commitments: Sequence[Commitment], challenge: Challenge) -> Commitment:
    """The commitment that `open_combined` opens, from the commitments alone. Raises ShapeWrong, PointMalformed."""
    return weighted_sum(commitments, list(islice(_powers(challenge), len(commitments))))


def _powers(challenge: Challenge) -> Iterator[int]:
    """The factors of blobs in order, without end."""
    return accumulate(repeat(challenge.ratio), lambda power, ratio: power * ratio % BLS_MODULUS, initial=1)


def _scalar_bytes(scalar: int) -> bytes:
    return scalar.to_bytes(BYTES_PER_FIELD_ELEMENT, "big")
