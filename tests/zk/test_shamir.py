"""Secrets in shares."""

from __future__ import annotations

import pytest
from consilium_zk.constants import BLS_MODULUS
from consilium_zk.errors import ArgumentInvalid, SharesInvalid, SharesTooFew
from consilium_zk.shamir import recover, split
from hypothesis import assume, given
from hypothesis import strategies as st
from raised_faults import raises_fault

SCALARS = st.integers(0, BLS_MODULUS - 1)
COORDINATES = st.lists(st.integers(1, 256), min_size=1, max_size=24, unique=True)


@given(SCALARS, COORDINATES, st.data())
def test_any_threshold_of_shares_give_the_secret(secret: int, coordinates: list[int], data: st.DataObject) -> None:
    threshold = data.draw(st.integers(1, len(coordinates)))
    coefficients = data.draw(st.lists(SCALARS, min_size=threshold - 1, max_size=threshold - 1))
    shares = split(secret, coefficients, coordinates)
    chosen = data.draw(st.lists(st.sampled_from(coordinates), min_size=threshold, unique=True))
    assert recover({coordinate: shares[coordinate] for coordinate in chosen}, threshold) == secret


@given(SCALARS, SCALARS, st.lists(SCALARS, min_size=1, max_size=6))
def test_fewer_shares_fit_any_secret(secret: int, other: int, coefficients: list[int]) -> None:
    """What one share less than the threshold say fits every secret alike: some polynomial has them and that secret."""
    threshold = len(coefficients) + 1
    shares = split(secret, coefficients, range(1, threshold + 1))
    del shares[threshold]
    with pytest.raises(SharesTooFew):
        recover(shares, threshold)
    # The polynomial through the shares and the other secret, told by its value at one more coordinate.
    through = {BLS_MODULUS - 1: lagrange({0: other} | shares, BLS_MODULUS - 1)} | shares
    assert recover(through, threshold) == other


def lagrange(points: dict[int, int], at: int) -> int:
    total = 0
    for x, y in points.items():
        for other in points:
            if other != x:
                y = y * (at - other) * pow(x - other, -1, BLS_MODULUS) % BLS_MODULUS
        total += y
    return total % BLS_MODULUS


@given(SCALARS, st.lists(SCALARS, min_size=1, max_size=5), st.integers(1, BLS_MODULUS - 1), st.data())
def test_a_wrong_share_among_more_than_needed_is_seen(
    secret: int, coefficients: list[int], error: int, data: st.DataObject
) -> None:
    threshold = len(coefficients) + 1
    shares = split(secret, coefficients, range(1, threshold + 3))
    wrong = data.draw(st.sampled_from(sorted(shares)))
    shares[wrong] = (shares[wrong] + error) % BLS_MODULUS
    with raises_fault(SharesInvalid, "SharesInconsistent") as caught:
        recover(shares, threshold)
    assert caught.value.values == {"coordinates": tuple(range(1, threshold + 3)), "threshold": threshold}


@given(SCALARS, st.lists(SCALARS, max_size=4), SCALARS, st.lists(SCALARS, max_size=4))
def test_shares_add_up(first: int, one: list[int], second: int, other: list[int]) -> None:
    size = min(len(one), len(other))
    one, other = one[:size], other[:size]
    coordinates = range(1, size + 2)
    left, right = split(first, one, coordinates), split(second, other, coordinates)
    both = {coordinate: (left[coordinate] + right[coordinate]) % BLS_MODULUS for coordinate in coordinates}
    assert recover(both, size + 1) == (first + second) % BLS_MODULUS


def test_fewer_coordinates_than_the_threshold_get_shares_that_give_nothing() -> None:
    with pytest.raises(SharesTooFew):
        recover(split(1, [1, 2], [1, 2]), 3)


def test_what_is_out_of_range_is_refused_by_name() -> None:
    for bad in ([0, 1], [1, 1], [BLS_MODULUS, 1]):
        with pytest.raises(ArgumentInvalid, match="coordinates"):
            split(1, [], bad)
    with pytest.raises(ArgumentInvalid, match="polynomial") as caught:
        split(BLS_MODULUS + 12_345, [], [1])
    assert "12345" not in str(caught.value)
    with pytest.raises(ArgumentInvalid, match="threshold"):
        recover({1: 1}, 0)
    with pytest.raises(ArgumentInvalid, match="coordinates"):
        recover({0: 1}, 1)
    with pytest.raises(ArgumentInvalid, match="share") as caught:
        recover({1: BLS_MODULUS + 12_345}, 1)
    assert "12345" not in str(caught.value)


@given(SCALARS, SCALARS)
def test_a_threshold_of_one_is_the_secret_itself(secret: int, other: int) -> None:
    assume(secret != other)
    assert split(secret, [], [3, 9]) == {3: secret, 9: secret}
