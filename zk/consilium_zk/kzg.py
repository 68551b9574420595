"""KZG commitments to blobs (EIP-4844), with Ethereum's ceremony setup.

A commitment takes about 30 ms. The library holds the interpreter's lock meanwhile, so many blobs want processes, not
threads.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NewType

import ckzg
from eth_utils.crypto import keccak
from py_arkworks_bls12381 import G1Point, Scalar

from .blobs import Blob, add, combine, parse_blob, to_scalars
from .constants import BLS_MODULUS, BYTES_PER_FIELD_ELEMENT, FIELD_ELEMENTS_PER_BLOB, POINT_TAG, USABLE_SCALARS
from .curve import GENERATOR, compressed, weighted_sum
from .curve import Commitment as Commitment
from .curve import parse_commitment as parse_commitment
from .encoding import address, round_words, uint256
from .errors import Malformed, ShapeWrong

VersionedHash = NewType("VersionedHash", bytes)
"""0x01 followed by the last 31 bytes of the commitment's SHA-256, as BLOBHASH returns it."""

# Of trusted_setup.txt as ethereum/c-kzg-4844 and consensus-specs publish it. The maker of another setup could open any
# commitment to any value.
_SETUP_SHA256 = "d39b9f2d047cc9dca2de58f264b6a09448ccd34db967881a6713eacacf0f26b7"
_POINTS = FIELD_ELEMENTS_PER_BLOB
_SETUP_FILE = Path("typed_transactions", "blob_transactions", "kzg_trusted_setup.txt")


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

    A process that has not loaded ckzg's setup (`setup`, 1.5 s) adds up the Lagrange points instead: 0.1 s to load, and
    half as fast afterwards.
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


def versioned_hash(commitment: Commitment) -> VersionedHash:
    """EIP-4844's kzg_to_versioned_hash: 32 bytes."""
    return VersionedHash(b"\x01" + hashlib.sha256(commitment).digest()[1:])


def point_hashes(
    chain_id: int, contract: bytes, task: int, round: int, hospital: bytes, commitments: Sequence[Commitment]
) -> list[bytes]:
    """The hashes by which a hospital commits to its points of a round, 32 bytes for each blob, as ITasks.pointHash.

    keccak256(context, hospital, blob as a word, commitment), with context = keccak256(abi.encode(POINT_TAG, chain id,
    contract, task, round)). Addresses are 20 bytes. A hash names its hospital and blob, so that a copy of it is
    worthless. It hides the point, because a blob has random scalars. Raises ArgumentInvalid, ShapeWrong.
    """
    address("hospital", hospital)
    context = keccak(POINT_TAG + round_words(chain_id, contract, task, round))
    return [
        keccak(context + hospital + uint256("blob", blob) + commitment) for blob, commitment in enumerate(commitments)
    ]


def _scalar_bytes(scalar: int) -> bytes:
    return scalar.to_bytes(BYTES_PER_FIELD_ELEMENT, "big")
