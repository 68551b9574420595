"""Verification of BLS signatures: keys in G2, signatures in G1.

IETF draft-irtf-cfrg-bls-signature, "minimal signature size". Points are in EIP-2537 encoding, as in the contracts. The
identity is refused, for anybody can sign for such a key.
"""

from __future__ import annotations

from typing import NewType

from py_arkworks_bls12381 import GT, G1Point, G2Point

from .constants import BYTES_PER_COMPRESSED_G2, BYTES_PER_EIP2537_G1, BYTES_PER_EIP2537_G2
from .curve import padded, point_from_eip2537, unpadded
from .errors import Malformed

PublicKey = NewType("PublicKey", bytes)
"""A G2 point, not the identity: x.c0, x.c1, y.c0, y.c1, each padded to 64 bytes; 256 bytes."""


def parse_public_key(raw: bytes) -> PublicKey:
    """`raw` as a key: on the curve, in the subgroup, not the identity. Raises KeyMalformed."""
    _key_point(raw)
    return PublicKey(bytes(raw))


def decompress_public_key(raw: bytes) -> PublicKey:
    """The key of 96 compressed bytes (ZCash format). Raises KeyMalformed."""
    if len(raw) != BYTES_PER_COMPRESSED_G2:
        raise Malformed("KeyMalformed", reason=f"it has {len(raw)} bytes instead of {BYTES_PER_COMPRESSED_G2}")
    try:
        point = G2Point.from_compressed_bytes(raw)
    except ValueError as error:
        raise Malformed(
            "KeyMalformed", reason="it is not on the curve, outside the subgroup, or badly encoded"
        ) from error
    if bytes(point.to_compressed_bytes()) != raw:  # the library takes any flags and bytes behind the infinity bit
        raise Malformed("KeyMalformed", reason="its encoding is not canonical")
    if point == G2Point.identity():
        raise Malformed("KeyMalformed", reason="it is the identity, for which anybody can sign")
    return key_to_eip2537(point)


def key_to_eip2537(point: G2Point) -> PublicKey:
    """The key of a point that is not the identity."""
    return PublicKey(padded(bytes(point.to_xy_bytes_be())))


def verify(key: bytes, message: bytes, signature: bytes, tag: bytes) -> bool:
    """True if e(signature, generator) equals e(H(message), key), H hashing under `tag` (RFC 9380).

    signature: 128 bytes; key: 256 bytes. Raises KeyMalformed, PointMalformed; identities are refused.
    """
    points = [signature_point(signature), -G1Point.hash_to_curve(message, tag)]
    return bool(GT.pairing_check(points, [G2Point(), _key_point(key)]))


def signature_point(raw: bytes) -> G1Point:
    """The point of a signature's 128 bytes. Raises PointMalformed, also for the identity."""
    point = point_from_eip2537(raw, "signature")
    if raw == bytes(BYTES_PER_EIP2537_G1):
        raise Malformed("PointMalformed", what="signature", reason="it is the identity")
    return point


def _key_point(raw: bytes) -> G2Point:
    if len(raw) != BYTES_PER_EIP2537_G2:
        raise Malformed("KeyMalformed", reason=f"it has {len(raw)} bytes instead of {BYTES_PER_EIP2537_G2}")
    if raw == bytes(BYTES_PER_EIP2537_G2):
        raise Malformed("KeyMalformed", reason="it is the identity, for which anybody can sign")
    coordinates = unpadded(raw)
    if coordinates is None:
        raise Malformed("KeyMalformed", reason="a coordinate's padding is not zero")
    try:
        return G2Point.from_xy_bytes_be(coordinates)
    except ValueError as error:
        raise Malformed(
            "KeyMalformed", reason="it is not on the curve, outside the subgroup, or badly encoded"
        ) from error
