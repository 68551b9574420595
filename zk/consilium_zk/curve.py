"""Points of BLS12-381's G1: the two encodings in use, and weighted sums of commitments.

KZG and precompile 0x0A take compressed points (ZCash format, 48 bytes). The contract's G1ADD and G1MSM take x and y as
64-byte padded integers (EIP-2537, 128 bytes). Untrusted bytes enter through `parse_commitment` or `from_eip2537`, which
check curve, subgroup and canonical encoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NewType

from py_arkworks_bls12381 import G1Point, Scalar

from .constants import BLS_MODULUS, BYTES_PER_COMPRESSED_G1, BYTES_PER_EIP2537_G1
from .errors import Malformed, ShapeWrong

Commitment = NewType("Commitment", bytes)
"""A KZG commitment: a G1 point of the prime-order group, compressed, 48 bytes."""

GENERATOR = Commitment(bytes(G1Point().to_compressed_bytes()))
"""The generator of G1: commits to one in every scalar of a blob."""

INFINITY = Commitment(bytes(G1Point.identity().to_compressed_bytes()))
"""The point at infinity: commits to a blob of zeros."""

_NO_POINT = "not on the curve, outside the subgroup, or badly encoded"
_COORDINATE = 48
_PADDED = 64
_PADDING = bytes(_PADDED - _COORDINATE)

# A round meets each of its points several times: signed, on chain, in sums, in calldata. A root and the check of the
# subgroup, 0.1 ms, once for each; all of them take a few MiB.
_decompressed = lru_cache(maxsize=1 << 14)(G1Point.from_compressed_bytes)


def parse_commitment(raw: bytes) -> Commitment:
    """`raw` as a commitment; the point at infinity counts as one. Raises PointMalformed."""
    return Commitment(compressed(decompress(raw, "commitment")))


def decompress(raw: bytes, what: str) -> G1Point:
    """The G1 point of 48 compressed bytes. `what` names it in errors. Raises PointMalformed."""
    if len(raw) != BYTES_PER_COMPRESSED_G1:
        raise Malformed("PointMalformed", what=what, reason=f"{len(raw)} bytes instead of {BYTES_PER_COMPRESSED_G1}")
    try:
        point = _decompressed(bytes(raw))
    except ValueError as error:
        raise Malformed("PointMalformed", what=what, reason=_NO_POINT) from error
    # The library ignores flags and bytes after the infinity bit.
    if compressed(point) != raw:
        raise Malformed("PointMalformed", what=what, reason="not the canonical encoding")
    return point


def compressed(point: G1Point) -> bytes:
    """48 bytes, ZCash format."""
    return bytes(point.to_compressed_bytes())


def padded(coordinates: bytes) -> bytes:
    """Coordinates of 48 bytes, each padded to 64 as in EIP-2537."""
    parts = (coordinates[start : start + _COORDINATE] for start in range(0, len(coordinates), _COORDINATE))
    return b"".join(_PADDING + part for part in parts)


def unpadded(raw: bytes) -> bytes | None:
    """The inverse of `padded`; None if a padding is not zero."""
    parts = [raw[start : start + _PADDED] for start in range(0, len(raw), _PADDED)]
    if any(not part.startswith(_PADDING) for part in parts):
        return None
    return b"".join(part[len(_PADDING) :] for part in parts)


def point_to_eip2537(point: G1Point) -> bytes:
    """128 bytes: x, y, each padded to 64; infinity is all zeros."""
    return padded(bytes(point.to_xy_bytes_be()))


def point_from_eip2537(raw: bytes, what: str) -> G1Point:
    """The G1 point of 128 bytes. `what` names it in errors. Raises PointMalformed."""
    if len(raw) != BYTES_PER_EIP2537_G1:
        raise Malformed("PointMalformed", what=what, reason=f"{len(raw)} bytes instead of {BYTES_PER_EIP2537_G1}")
    coordinates = unpadded(raw)
    if coordinates is None:
        raise Malformed("PointMalformed", what=what, reason="a coordinate's padding is not zero")
    try:
        return G1Point.from_xy_bytes_be(coordinates)
    except ValueError as error:
        raise Malformed("PointMalformed", what=what, reason=_NO_POINT) from error


def to_eip2537(commitment: Commitment) -> bytes:
    """The commitment in EIP-2537 encoding, 128 bytes. Raises PointMalformed."""
    return point_to_eip2537(decompress(commitment, "commitment"))


def from_eip2537(raw: bytes) -> Commitment:
    """The commitment of an EIP-2537 encoding. Raises PointMalformed."""
    return Commitment(compressed(point_from_eip2537(raw, "commitment")))


def weighted_sum(commitments: Sequence[Commitment], weights: Sequence[int]) -> Commitment:
    """Σ weight · commitment, as the contract's G1MSM; weights are any integers.

    The empty sum is the point at infinity. Raises ShapeWrong (lengths differ), PointMalformed.
    """
    if len(commitments) != len(weights):
        raise ShapeWrong("weights", len(weights), f"{len(commitments)}, one for each commitment")
    if not commitments:
        return INFINITY
    points = [decompress(commitment, f"commitment {index}") for index, commitment in enumerate(commitments)]
    return Commitment(compressed(G1Point.multiexp_unchecked(points, [Scalar(w % BLS_MODULUS) for w in weights])))


def negate(commitment: Commitment) -> Commitment:
    """The commitment to the negated blob. Raises PointMalformed."""
    return Commitment(compressed(-decompress(commitment, "commitment")))
