"""Shamir's secret sharing in the scalar field: any `threshold` shares give the secret, fewer give nothing of it.

Source: Shamir, How to Share a Secret, CACM 1979.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .constants import BLS_MODULUS
from .errors import ArgumentInvalid, SharesInvalid, SharesTooFew


def split(secret: int, coefficients: Sequence[int], coordinates: Sequence[int]) -> dict[int, int]:
    """A share for each coordinate: the value there of a polynomial that is `secret` at zero.

    coefficients: of the powers from one on, uniform below the modulus and never used again; the threshold is one more
    than their number. coordinates: distinct, in [1, modulus). Raises ArgumentInvalid.
    """
    polynomial = [secret, *coefficients]
    if not all(0 <= value < BLS_MODULUS for value in polynomial):
        raise ArgumentInvalid("polynomial", "outside the field", "in [0, modulus)")  # the values are secret
    _require_coordinates(coordinates)
    return {coordinate: _value_at(polynomial, coordinate) for coordinate in coordinates}


def recover(shares: Mapping[int, int], threshold: int) -> int:
    """The secret from shares by coordinate.

    Raises SharesTooFew, ArgumentInvalid, and SharesInconsistent if more than `threshold` do not lie on one polynomial.
    """
    if threshold < 1:
        raise ArgumentInvalid("threshold", threshold, "at least 1")
    if len(shares) < threshold:
        raise SharesTooFew(len(shares), threshold)
    _require_coordinates(list(shares))
    if not all(0 <= share < BLS_MODULUS for share in shares.values()):
        raise ArgumentInvalid("share", "outside the field", "in [0, modulus)")
    coordinates = sorted(shares)
    basis = {coordinate: shares[coordinate] for coordinate in coordinates[:threshold]}
    for coordinate in coordinates[threshold:]:
        if _interpolate(basis, coordinate) != shares[coordinate]:
            raise SharesInvalid("SharesInconsistent", coordinates=tuple(coordinates), threshold=threshold)
    return _interpolate(basis, 0)


def _value_at(polynomial: Sequence[int], coordinate: int) -> int:
    value = 0
    for coefficient in reversed(polynomial):
        value = (value * coordinate + coefficient) % BLS_MODULUS
    return value


def _interpolate(shares: Mapping[int, int], at: int) -> int:
    total = 0
    for coordinate, share in shares.items():
        above, below = 1, 1
        for other in shares:
            if other != coordinate:
                above = above * (at - other) % BLS_MODULUS
                below = below * (coordinate - other) % BLS_MODULUS
        total += share * above * pow(below, -1, BLS_MODULUS)
    return total % BLS_MODULUS


def _require_coordinates(coordinates: Sequence[int]) -> None:
    if len(set(coordinates)) != len(coordinates) or not all(0 < coordinate < BLS_MODULUS for coordinate in coordinates):
        raise ArgumentInvalid("coordinates", list(coordinates), "distinct and in [1, modulus)")
