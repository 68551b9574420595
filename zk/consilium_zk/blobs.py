"""Arithmetic on blobs, scalar by scalar, modulo the group order.

A blob is 4096 big-endian scalars of 32 bytes (EIP-4844). Sums and multiples are exact: NumPy works on limbs with room
for carries, and one reduction at the end brings every scalar below the modulus.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NewType

import numpy as np
from numpy.typing import NDArray

from .constants import BLS_MODULUS, BYTES_PER_BLOB, BYTES_PER_FIELD_ELEMENT, FIELD_ELEMENTS_PER_BLOB, USABLE_SCALARS
from .errors import ArgumentInvalid, Malformed, ShapeWrong

Blob = NewType("Blob", bytes)
"""131,072 bytes: 4096 big-endian scalars, each below BLS_MODULUS. From `parse_blob` or this package's functions."""

_LIMBS = 8
_LIMB_BITS = 32
_LIMB_MASK = np.int64((1 << _LIMB_BITS) - 1)
# The quotient by the modulus times one limb must fit a signed 64-bit integer.
_MAX_SUMMANDS = 1 << 30
_MODULUS_LIMBS = np.array([[BLS_MODULUS >> (_LIMB_BITS * k) & int(_LIMB_MASK)] for k in range(_LIMBS)])  # (limbs, 1)

_DIGITS = 16
_DIGIT_BITS = 16
# The values of a scalar's digits, in their order in a blob.
_POWERS = [1 << (_DIGIT_BITS * k) for k in reversed(range(_DIGITS))]
# `combine` multiplies matrices of this many blobs' digits, cut into pieces of scalars that stay in cache and that BLAS
# multiplies in one thread.
_GROUP = 8
_PIECE = 64
_PIECES = FIELD_ELEMENTS_PER_BLOB // _PIECE

_Limbs = NDArray[np.int64]  # (limbs, scalars), least significant limb first


def parse_blob(raw: bytes) -> Blob:
    """`raw` as a blob. Raises BlobMalformed for a wrong length or a scalar not below the modulus."""
    _require_length(raw)
    tops = np.frombuffer(raw, dtype=">u8")[:: BYTES_PER_FIELD_ELEMENT // 8].astype(np.uint64)
    for index in np.flatnonzero(tops >= np.uint64(BLS_MODULUS >> 192)):
        # Only scalars whose first eight bytes leave it open need the whole comparison.
        start = int(index) * BYTES_PER_FIELD_ELEMENT
        if int.from_bytes(raw[start : start + BYTES_PER_FIELD_ELEMENT], "big") >= BLS_MODULUS:
            raise Malformed("BlobMalformed", reason=f"scalar {int(index)} is not below the modulus")
    return Blob(bytes(raw))


def from_scalars(scalars: Sequence[int]) -> Blob:
    """A blob of 4096 integers below the modulus. Raises ShapeWrong, BlobMalformed."""
    if len(scalars) != FIELD_ELEMENTS_PER_BLOB:
        raise ShapeWrong("scalars", len(scalars), f"{FIELD_ELEMENTS_PER_BLOB}")
    for index, scalar in enumerate(scalars):
        if not 0 <= scalar < BLS_MODULUS:
            raise Malformed("BlobMalformed", reason=f"scalar {index} is not in [0, modulus)")
    return Blob(b"".join(int(scalar).to_bytes(BYTES_PER_FIELD_ELEMENT, "big") for scalar in scalars))


def to_scalars(blob: Blob) -> list[int]:
    """The blob's 4096 integers."""
    return [
        int.from_bytes(blob[start : start + BYTES_PER_FIELD_ELEMENT], "big")
        for start in range(0, BYTES_PER_BLOB, BYTES_PER_FIELD_ELEMENT)
    ]


def blinders(blob: Blob) -> tuple[int, int]:
    """The blob's last two scalars."""
    size = BYTES_PER_FIELD_ELEMENT
    return int.from_bytes(blob[-2 * size : -size], "big"), int.from_bytes(blob[-size:], "big")


def with_blinders(blob: Blob, first: int, second: int) -> Blob:
    """The blob with its last two scalars set: uniform below the modulus, and never used again.

    Raises ArgumentInvalid outside [0, modulus).
    """
    for name, blinder in (("first", first), ("second", second)):
        if not 0 <= blinder < BLS_MODULUS:
            # The value itself is a secret and stays out of the message.
            raise ArgumentInvalid(name, "outside the field", "in [0, modulus)")
    tail = first.to_bytes(BYTES_PER_FIELD_ELEMENT, "big") + second.to_bytes(BYTES_PER_FIELD_ELEMENT, "big")
    return Blob(blob[: USABLE_SCALARS * BYTES_PER_FIELD_ELEMENT] + tail)


def add(blobs: Iterable[Blob], taken: Iterable[Blob] = ()) -> Blob:
    """The sum of `blobs` minus that of `taken`, scalar by scalar modulo the group order; one blob in memory at a time.

    Raises ShapeWrong for no blobs, or more than 2^30.
    """
    total = np.zeros((_LIMBS, FIELD_ELEMENTS_PER_BLOB), dtype=np.int64)
    count = 0
    for blob in blobs:
        total += _limbs(blob)
        count += 1
    for blob in taken:
        total -= _limbs(blob)
        count += 1
    if not 1 <= count <= _MAX_SUMMANDS:
        raise ShapeWrong("blobs", count, f"1 to {_MAX_SUMMANDS}")
    return _reduce(total)


def combine(blobs: Iterable[Blob], factors: Iterable[int]) -> Blob:
    """The sum of each blob times its factor (any integer), modulo the group order, in memory of a few dozen blobs.

    Reads as many factors as there are blobs. Raises ShapeWrong for no blobs or too few factors; BlobMalformed for a
    wrong length.
    """
    return add(_products(blobs, iter(factors)))


def _products(blobs: Iterable[Blob], factors: Iterator[int]) -> Iterator[Blob]:
    """The summands of `combine`: sums of `_GROUP` blobs times their factors."""
    digits = np.empty((_PIECES, _GROUP, _DIGITS, _PIECE))
    taken: list[int] = []
    for count, blob in enumerate(blobs):
        factor = next(factors, None)
        if factor is None:
            raise ShapeWrong("factors", count, "one to each blob")
        digits[:, len(taken)] = _digits(blob)
        taken.append(factor)
        if len(taken) == _GROUP:
            yield _product(digits, taken)
            taken = []
    if taken:
        yield _product(digits[:, : len(taken)], taken)


def _product(digits: NDArray[np.float64], factors: Sequence[int]) -> Blob:
    """digits: (pieces, blobs, digits, scalars of a piece). factors: one for each blob.

    A scalar of digits d_k times a factor f is the sum of d_k · (f · 2^16k mod the order). With the latter in digits
    too, a product of digits is below 2^32 and the sum of 8 · 16 of them below 2^39: exact in float64, in any order. The
    total is below 2^23 times the order, as `_reduce` takes it.
    """
    shifted = b"".join((f * power % BLS_MODULUS).to_bytes(2 * _DIGITS, "little") for f in factors for power in _POWERS)
    table = np.frombuffer(shifted, dtype="<u2").reshape(-1, _DIGITS).T.astype(np.float64)
    sums = table @ digits.reshape(_PIECES, -1, _PIECE)  # (pieces, digits of the result, scalars of a piece)
    by_digit = sums.astype(np.int64).transpose(1, 0, 2).reshape(_DIGITS, FIELD_ELEMENTS_PER_BLOB)
    return _reduce(by_digit[::2] + (by_digit[1::2] << _DIGIT_BITS))


def scale(blob: Blob, weight: int) -> Blob:
    """Every scalar times `weight`, any integer, modulo the group order."""
    if 0 <= weight <= _MAX_SUMMANDS:
        return _reduce(_limbs(blob) * np.int64(weight))
    return combine([blob], [weight])


def negate(blob: Blob) -> Blob:
    """The blob that adds to zero with this one."""
    return add([], [blob])


def _limbs(blob: bytes) -> _Limbs:
    _require_length(blob)
    words = np.frombuffer(blob, dtype=">u4").reshape(FIELD_ELEMENTS_PER_BLOB, _LIMBS)
    return words.T[::-1].astype(np.int64, order="C")


def _digits(blob: bytes) -> NDArray[np.uint16]:
    """(pieces, digits, scalars of a piece), most significant digit first."""
    _require_length(blob)
    return np.frombuffer(blob, dtype=">u2").reshape(_PIECES, _PIECE, _DIGITS).transpose(0, 2, 1)


def _require_length(blob: bytes) -> None:
    if len(blob) != BYTES_PER_BLOB:
        raise Malformed("BlobMalformed", reason=f"{len(blob)} bytes instead of {BYTES_PER_BLOB}")


def _reduce(limbs: _Limbs) -> Blob:
    """The canonical blob of limbs up to 2^62 each, for totals up to 2^30 times the modulus, of either sign."""
    # The three leading limbs, as float64, give the quotient by the modulus with an error of less than a half: taking a
    # half away, it is never too large, and too small by at most one.
    leading = limbs[7] * 2.0**64 + limbs[6] * 2.0**32 + limbs[5]
    quotient = np.floor(leading / float(BLS_MODULUS >> 160) - 0.5).astype(np.int64)
    limbs -= quotient * _MODULUS_LIMBS
    _carry(limbs)
    smaller = limbs - _MODULUS_LIMBS
    fits = _carry(smaller) >= 0
    np.copyto(limbs, smaller, where=fits)
    return Blob(limbs[::-1].T.astype(">u4").tobytes())


def _carry(limbs: _Limbs) -> NDArray[np.int64]:
    """Brings all limbs into [0, 2^32) in place; returns the carry above them, negative for negative totals."""
    carry = np.zeros(limbs.shape[1], dtype=np.int64)
    for k in range(_LIMBS):
        limbs[k] += carry
        np.right_shift(limbs[k], _LIMB_BITS, out=carry)
        limbs[k] &= _LIMB_MASK
    return carry
