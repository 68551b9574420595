from __future__ import annotations

import pytest
from consilium_zk import blobs
from consilium_zk.constants import BLS_MODULUS, BYTES_PER_BLOB
from consilium_zk.errors import ArgumentInvalid, Malformed, ShapeWrong
from hypothesis import given, settings
from hypothesis import strategies as st
from raised_faults import raises_fault
from zk_support import field_blob

# Where the reduction's estimate is at its worst: around multiples and halves of the modulus, and at limbs' edges.
EDGES = [
    *(BLS_MODULUS * k // d + e for k in (0, 1) for d in (1, 2, 3, 7) for e in (-2, -1, 0, 1, 2)),
    *((1 << b) + e for b in (32, 64, 128, 224, 254) for e in (-1, 0, 1)),
]
SCALARS = st.one_of(st.sampled_from(EDGES), st.integers(0, BLS_MODULUS - 1)).map(lambda s: s % BLS_MODULUS)
FACTORS = st.one_of(st.sampled_from([0, 1, 2**128 - 1, BLS_MODULUS - 1, BLS_MODULUS]), st.integers())


def filled(scalars: list[int]) -> blobs.Blob:
    """A blob that repeats `scalars` to its end."""
    return blobs.from_scalars((scalars * (4096 // len(scalars) + 1))[:4096])


@settings(max_examples=60)
@given(st.lists(SCALARS, min_size=1, max_size=64), st.one_of(st.integers(-(2**31), 2**31), st.integers()))
def test_scale_multiplies_every_scalar(scalars: list[int], weight: int) -> None:
    blob = filled([*scalars, *(s % BLS_MODULUS for s in EDGES)])
    assert blobs.to_scalars(blobs.scale(blob, weight)) == [s * weight % BLS_MODULUS for s in blobs.to_scalars(blob)]


@pytest.mark.parametrize(
    "weight", [0, 1, 2, 3, 2**30 - 1, 2**30, 2**30 + 1, -1, -(2**30), BLS_MODULUS, BLS_MODULUS - 1]
)
def test_scale_holds_at_its_limits(weight: int) -> None:
    blob = filled([s % BLS_MODULUS for s in EDGES])
    assert blobs.to_scalars(blobs.scale(blob, weight)) == [s * weight % BLS_MODULUS for s in blobs.to_scalars(blob)]


@settings(max_examples=40)
@given(st.lists(st.lists(SCALARS, min_size=1, max_size=16), min_size=1, max_size=12))
def test_add_sums_every_scalar(columns: list[list[int]]) -> None:
    summands = [filled(column) for column in columns]
    expected = [sum(row) % BLS_MODULUS for row in zip(*map(blobs.to_scalars, summands), strict=True)]
    assert blobs.to_scalars(blobs.add(summands)) == expected


@settings(max_examples=40)
@given(
    st.lists(st.lists(SCALARS, min_size=1, max_size=16), max_size=6),
    st.lists(st.lists(SCALARS, min_size=1, max_size=16), min_size=1, max_size=6),
)
def test_add_takes_away_every_scalar(more: list[list[int]], less: list[list[int]]) -> None:
    summands, taken = [filled(column) for column in more], [filled(column) for column in less]
    expected = [0] * 4096
    for sign, group in ((1, summands), (-1, taken)):
        for blob in group:
            expected = [e + sign * s for e, s in zip(expected, blobs.to_scalars(blob), strict=True)]
    assert blobs.to_scalars(blobs.add(summands, taken)) == [e % BLS_MODULUS for e in expected]
    assert blobs.add(summands + taken, taken + summands) == bytes(BYTES_PER_BLOB)


def test_add_of_many_equals_scale() -> None:
    blob = field_blob(1)
    assert blobs.add([blob] * 300) == blobs.scale(blob, 300)
    assert blobs.add([], [blob] * 300) == blobs.scale(blob, -300)
    assert blobs.add([blob]) == blob


@settings(max_examples=30)
@given(st.lists(st.tuples(st.lists(SCALARS, min_size=1, max_size=16), FACTORS), min_size=1, max_size=20))
def test_combine_sums_every_scalar_times_its_factor(terms: list[tuple[list[int], int]]) -> None:
    """As many blobs as make three groups, a factor more than there are blobs, which stays unread."""
    parts, factors = [filled(scalars) for scalars, _ in terms], [factor for _, factor in terms]
    expected = [0] * 4096
    for blob, factor in zip(parts, factors, strict=True):
        expected = [e + factor * s for e, s in zip(expected, blobs.to_scalars(blob), strict=True)]
    remaining = iter([*factors, 7])
    assert blobs.to_scalars(blobs.combine(parts, remaining)) == [e % BLS_MODULUS for e in expected]
    assert list(remaining) == [7]


@pytest.mark.parametrize("count", [1, 7, 8, 9, 16, 100])
@pytest.mark.parametrize("factor", [1, 2**128 - 1, BLS_MODULUS - 1])
def test_combine_holds_at_its_limits(count: int, factor: int) -> None:
    """Where digits, their products and the quotient are largest."""
    scalars = [BLS_MODULUS - 1, (0x73EC << 240) - 1, (1 << 254) - 1, 0]
    combined = blobs.combine([filled(scalars)] * count, [factor] * count)
    assert combined == filled([count * factor * scalar % BLS_MODULUS for scalar in scalars])


def test_combine_refuses_nothing_missing_factors_and_wrong_lengths() -> None:
    blob = field_blob(1)
    for parts, factors in (([], []), ([], [1]), ([blob], []), ([blob] * 9, [1] * 8)):
        with pytest.raises(ShapeWrong):
            blobs.combine(parts, factors)
    with raises_fault(Malformed, "BlobMalformed"):
        blobs.combine([blob, blobs.Blob(blob[:-1])], [1, 1])


def test_negate_adds_to_zero() -> None:
    blob = filled([s % BLS_MODULUS for s in EDGES])
    assert blobs.add([blob, blobs.negate(blob)]) == bytes(BYTES_PER_BLOB)
    assert blobs.negate(blobs.negate(blob)) == blob


def test_add_refuses_nothing() -> None:
    with pytest.raises(ShapeWrong):
        blobs.add([])


def test_with_blinders_sets_the_last_two_scalars_only() -> None:
    blob = field_blob(2)
    blinded = blobs.with_blinders(blob, 5, BLS_MODULUS - 1)
    assert blobs.to_scalars(blinded) == [*blobs.to_scalars(blob)[:4094], 5, BLS_MODULUS - 1]
    assert blobs.blinders(blinded) == (5, BLS_MODULUS - 1)


@pytest.mark.parametrize("bad", [-1, BLS_MODULUS, 1 << 256])
def test_with_blinders_refuses_values_outside_the_field_without_showing_them(bad: int) -> None:
    for pair in ((bad, 0), (0, bad)):
        with pytest.raises(ArgumentInvalid) as caught:
            blobs.with_blinders(field_blob(3), *pair)
        assert str(bad) not in str(caught.value)


def test_parse_blob_takes_what_from_scalars_makes() -> None:
    blob = filled([0, 1, BLS_MODULUS - 1])
    assert blobs.parse_blob(bytearray(blob)) == blob  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [BLS_MODULUS, BLS_MODULUS + 1, (1 << 256) - 1, BLS_MODULUS + (1 << 200)])
@pytest.mark.parametrize("index", [0, 2047, 4095])
def test_parse_blob_refuses_a_scalar_not_below_the_modulus(bad: int, index: int) -> None:
    raw = bytearray(filled([BLS_MODULUS - 1]))
    raw[32 * index : 32 * index + 32] = bad.to_bytes(32, "big")
    with raises_fault(Malformed, "BlobMalformed", match=f"scalar {index} "):
        blobs.parse_blob(bytes(raw))


@pytest.mark.parametrize("length", [0, 1, BYTES_PER_BLOB - 1, BYTES_PER_BLOB + 1, 2 * BYTES_PER_BLOB])
def test_parse_blob_refuses_a_wrong_length(length: int) -> None:
    with raises_fault(Malformed, "BlobMalformed"):
        blobs.parse_blob(bytes(length))
    with raises_fault(Malformed, "BlobMalformed"):
        blobs.add([blobs.Blob(bytes(length))])


def test_from_scalars_refuses_wrong_counts_and_values() -> None:
    with pytest.raises(ShapeWrong):
        blobs.from_scalars([0] * 4095)
    for bad in (-1, BLS_MODULUS):
        with raises_fault(Malformed, "BlobMalformed"):
            blobs.from_scalars([0] * 4095 + [bad])


@pytest.mark.parametrize("weight", [3, 1000, 999_983, 2**29 + 1, 2**30 - 35, 2**30])
def test_scale_reduces_products_next_to_multiples_of_the_modulus(weight: int) -> None:
    """Where the estimated quotient may fall on either side of the true one."""
    multiples = [1 + index * 7919 % (weight - 1) for index in range(2048)]
    above = [-(-multiple * BLS_MODULUS // weight) for multiple in multiples]
    blob = blobs.from_scalars([*above, *(scalar - 1 for scalar in above)])
    assert blobs.to_scalars(blobs.scale(blob, weight)) == [s * weight % BLS_MODULUS for s in blobs.to_scalars(blob)]
