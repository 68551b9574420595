from __future__ import annotations

import pytest
from consilium_zk import curve
from consilium_zk.constants import BLS_MODULUS
from consilium_zk.errors import Malformed, ShapeWrong
from hypothesis import given, settings
from hypothesis import strategies as st
from py_arkworks_bls12381 import G1Point, Scalar
from py_ecc.bls.point_compression import compress_G1
from py_ecc.optimized_bls12_381 import G1, Z1, add, field_modulus, multiply, neg, normalize
from raised_faults import raises_fault

INFINITY = b"\xc0" + bytes(47)


def py_ecc_commitment(scalar: int) -> curve.Commitment:
    return curve.Commitment(compress_G1(multiply(G1, scalar)).to_bytes(48, "big"))


def small_order_x() -> bytes:
    """A compressed point on the curve but outside the prime-order subgroup."""
    for x in range(1, 100):
        y_squared = (x**3 + 4) % field_modulus
        if pow(y_squared, (field_modulus - 1) // 2, field_modulus) == 1:
            raw = (x | 1 << 383).to_bytes(48, "big")
            if not G1Point.from_compressed_bytes_unchecked(raw).is_in_subgroup():
                return raw
    raise AssertionError("no such point")


OUTSIDE = small_order_x()


@settings(max_examples=20)
@given(st.integers(1, BLS_MODULUS - 1))
def test_to_eip2537_equals_py_ecc_and_comes_back(scalar: int) -> None:
    x, y = normalize(multiply(G1, scalar))
    commitment = py_ecc_commitment(scalar)
    encoded = curve.to_eip2537(commitment)
    assert encoded == int(x).to_bytes(64, "big") + int(y).to_bytes(64, "big")
    assert curve.from_eip2537(encoded) == commitment
    assert curve.parse_commitment(commitment) == commitment


def test_infinity_has_one_encoding_in_each_format() -> None:
    assert curve.parse_commitment(INFINITY) == INFINITY
    assert curve.to_eip2537(curve.Commitment(INFINITY)) == bytes(128)
    assert curve.from_eip2537(bytes(128)) == INFINITY


@settings(max_examples=10)
@given(st.lists(st.tuples(st.integers(1, BLS_MODULUS - 1), st.integers(-(2**40), 2**40)), max_size=4))
def test_weighted_sum_equals_py_ecc(terms: list[tuple[int, int]]) -> None:
    expected = Z1
    for scalar, weight in terms:
        term = multiply(multiply(G1, scalar), abs(weight))
        expected = add(expected, neg(term) if weight < 0 else term)
    result = curve.weighted_sum([py_ecc_commitment(s) for s, _ in terms], [w for _, w in terms])
    assert result == compress_G1(expected).to_bytes(48, "big")


def test_weighted_sum_refuses_uneven_lengths_and_bad_points() -> None:
    with pytest.raises(ShapeWrong):
        curve.weighted_sum([curve.Commitment(INFINITY)], [])
    with raises_fault(Malformed, "PointMalformed", match="commitment 1"):
        curve.weighted_sum([curve.Commitment(INFINITY), curve.Commitment(OUTSIDE)], [1, 1])


def test_negate_adds_to_infinity() -> None:
    commitment = py_ecc_commitment(12345)
    assert curve.weighted_sum([commitment, curve.negate(commitment)], [1, 1]) == INFINITY
    assert curve.negate(curve.Commitment(INFINITY)) == INFINITY


GENERATOR = bytes((G1Point() * Scalar(1)).to_compressed_bytes())
GENERATOR_X = int.from_bytes(GENERATOR, "big") & (1 << 381) - 1


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="empty"),
        pytest.param(GENERATOR[:-1], id="short"),
        pytest.param(GENERATOR + b"\0", id="long"),
        pytest.param(OUTSIDE, id="outside-subgroup"),
        pytest.param((1 << 383 | 1).to_bytes(48, "big"), id="not-on-curve"),
        pytest.param((GENERATOR_X).to_bytes(48, "big"), id="compression-flag-missing"),
        pytest.param((1 << 383 | field_modulus + 1).to_bytes(48, "big"), id="x-not-below-the-field"),
        pytest.param(b"\xc0" + bytes(46) + b"\1", id="infinity-with-x"),
        pytest.param(b"\xe0" + bytes(47), id="infinity-with-sign"),
        pytest.param(b"\x40" + bytes(47), id="infinity-without-compression"),
    ],
)
def test_parse_commitment_refuses(raw: bytes) -> None:
    with raises_fault(Malformed, "PointMalformed"):
        curve.parse_commitment(raw)


ENCODED = curve.to_eip2537(curve.Commitment(GENERATOR))


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="empty"),
        pytest.param(ENCODED[:-1], id="short"),
        pytest.param(ENCODED + b"\0", id="long"),
        pytest.param(b"\1" + ENCODED[1:], id="padding-of-x"),
        pytest.param(ENCODED[:64] + b"\1" + ENCODED[65:], id="padding-of-y"),
        pytest.param(ENCODED[64:] + ENCODED[:64], id="not-on-curve"),
        pytest.param(ENCODED[:64] + bytes(64), id="y-missing"),
        pytest.param((GENERATOR_X + field_modulus).to_bytes(64, "big") + ENCODED[64:], id="x-not-below-the-field"),
        pytest.param(bytes(16) + b"\x40" + bytes(111), id="infinity-flag-of-the-other-format"),
        pytest.param(curve.point_to_eip2537(G1Point.from_compressed_bytes_unchecked(OUTSIDE)), id="outside-subgroup"),
    ],
)
def test_from_eip2537_refuses(raw: bytes) -> None:
    with raises_fault(Malformed, "PointMalformed"):
        curve.from_eip2537(raw)
