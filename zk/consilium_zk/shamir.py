"""Shamir's secret sharing in the scalar field: any `threshold` shares give the secret, fewer give nothing of it.

Source: Shamir, How to Share a Secret, CACM 1979.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .constants import BLS_MODULUS
from .errors import ArgumentInvalid, SharesInvalid, SharesTooFew


def split(secret: int, coefficients: Sequence[int], places: Sequence[int]) -> dict[int, int]:
    """A share for each place: the value there of a polynomial that is `secret` at zero.

    coefficients: of the powers from one on, uniform below the modulus and never used again; the threshold is one more
    than their number. places: distinct, in [1, modulus). Raises ArgumentInvalid.
    """
    polynomial = [secret, *coefficients]
    if not all(0 <= value < BLS_MODULUS for value in polynomial):
        raise ArgumentInvalid("polynomial", "outside the field", "in [0, modulus)")  # the values are secret
    _require_places(places)
    return {place: _value_at(polynomial, place) for place in places}


def recover(shares: Mapping[int, int], threshold: int) -> int:
    """The secret from shares by place.

    Raises SharesTooFew, ArgumentInvalid, and SharesInconsistent if more than `threshold` do not lie on one polynomial.
    """
    if threshold < 1:
        raise ArgumentInvalid("threshold", threshold, "at least 1")
    if len(shares) < threshold:
        raise SharesTooFew(len(shares), threshold)
    _require_places(list(shares))
    if not all(0 <= share < BLS_MODULUS for share in shares.values()):
        raise ArgumentInvalid("share", "outside the field", "in [0, modulus)")
    places = sorted(shares)
    basis = {place: shares[place] for place in places[:threshold]}
    for place in places[threshold:]:
        if _interpolate(basis, place) != shares[place]:
            raise SharesInvalid("SharesInconsistent", places=tuple(places), threshold=threshold)
    return _interpolate(basis, 0)


def _value_at(polynomial: Sequence[int], place: int) -> int:
    value = 0
    for coefficient in reversed(polynomial):
        value = (value * place + coefficient) % BLS_MODULUS
    return value


def _interpolate(shares: Mapping[int, int], at: int) -> int:
    total = 0
    for place, share in shares.items():
        above, below = 1, 1
        for other in shares:
            if other != place:
                above = above * (at - other) % BLS_MODULUS
                below = below * (place - other) % BLS_MODULUS
        total += share * above * pow(below, -1, BLS_MODULUS)
    return total % BLS_MODULUS


def _require_places(places: Sequence[int]) -> None:
    if len(set(places)) != len(places) or not all(0 < place < BLS_MODULUS for place in places):
        raise ArgumentInvalid("places", list(places), "distinct and in [1, modulus)")
