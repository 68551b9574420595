from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from consilium_zk import blobs
from consilium_zk.constants import BLS_MODULUS, BYTES_PER_BLOB, USABLE_SCALARS
from consilium_zk.errors import ArgumentInvalid, LaneOutOfRange, Malformed, ShapeWrong, UpdateInvalid
from consilium_zk.packing import LaneLayout, pack, packed, unpack
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from raised_faults import raises_fault


@st.composite
def layouts(draw: st.DrawFn) -> LaneLayout:
    bits = draw(st.integers(2, 40))
    return LaneLayout(bits, draw(st.integers(1, 1 << min(63 - bits, 24))))


def reference_scalars(lanes: list[int], layout: LaneLayout) -> list[int]:
    """The packing said plainly: lane i of a scalar at bit i * lane_bits."""
    per = layout.lanes_per_scalar
    return [
        sum(lane << (i * layout.lane_bits) for i, lane in enumerate(lanes[start : start + per]))
        for start in range(0, len(lanes), per)
    ]


@given(layouts())
def test_lane_layout_has_room_for_every_honest_sum(layout: LaneLayout) -> None:
    assert layout.lane_bits == layout.bits + math.ceil(math.log2(layout.total_weight))
    assert layout.max_sum(layout.total_weight) < 1 << layout.lane_bits
    assert layout.lanes_per_scalar * layout.lane_bits <= 252
    assert layout.lanes_per_blob == 4094 * layout.lanes_per_scalar
    assert layout.blobs_for(1) == layout.blobs_for(layout.lanes_per_blob) == 1
    assert layout.blobs_for(layout.lanes_per_blob + 1) == 2


def test_lane_layout_refuses_lanes_beyond_63_bits() -> None:
    assert LaneLayout(40, 2**23).lane_bits == 63
    with raises_fault(UpdateInvalid, "LanesTooWide") as caught:
        LaneLayout(40, 2**23 + 1)
    assert caught.value.values["lane_bits"] == 64
    assert "lower the bits, the weights or the number of hospitals" in str(caught.value)


@pytest.mark.parametrize(("bits", "weight"), [(1, 1), (41, 1), (8, 0), (8, -3)])
def test_lane_layout_refuses_bad_settings(bits: int, weight: int) -> None:
    with pytest.raises(ArgumentInvalid):
        LaneLayout(bits, weight)


@given(layouts(), st.integers(1, 300), st.integers(0, 2**32))
def test_pack_equals_the_plain_packing(layout: LaneLayout, count: int, seed: int) -> None:
    lanes = np.random.default_rng(seed).integers(0, 2**layout.bits - 1, count, dtype=np.uint64)
    (blob,) = pack(lanes, layout)
    expected = reference_scalars(lanes.tolist(), layout)
    scalars = blobs.to_scalars(blob)
    assert scalars[: len(expected)] == expected
    assert not any(scalars[len(expected) :])
    assert blobs.parse_blob(blob) == blob


@pytest.mark.parametrize(("bits", "weight"), [(2, 1), (8, 60), (16, 1000), (40, 2**23)])
@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_unpack_undoes_pack_at_blob_edges(bits: int, weight: int, extra: int, random: np.random.Generator) -> None:
    layout = LaneLayout(bits, weight)
    count = 2 * layout.lanes_per_blob + extra
    lanes = random.integers(0, 2**bits - 1, count, dtype=np.uint64)
    packed = pack(lanes, layout)
    assert len(packed) == layout.blobs_for(count)
    assert all(len(blob) == BYTES_PER_BLOB and blobs.blinders(blob) == (0, 0) for blob in packed)
    np.testing.assert_array_equal(unpack(packed, count, layout, 1), lanes)


@given(st.integers(2, 20), st.lists(st.integers(1, 50), min_size=1, max_size=6), st.integers(0, 2**32))
def test_unpack_of_weighted_sums_equals_exact_sums(bits: int, weights: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    layout = LaneLayout(bits, sum(weights))
    updates = [random.integers(0, 2**bits - 1, 500, dtype=np.uint64) for _ in weights]
    updates[0][:] = 2**bits - 2  # the widest that is allowed, in every lane
    packed = [blobs.with_blinders(pack(update, layout)[0], *draw_blinders(random)) for update in updates]
    total = blobs.add([blobs.scale(blob, weight) for blob, weight in zip(packed, weights, strict=True)])
    exact = sum(update * np.uint64(weight) for update, weight in zip(updates, weights, strict=True))
    np.testing.assert_array_equal(unpack([total], 500, layout, sum(weights)), exact)
    np.testing.assert_array_equal(
        unpack(pack(np.asarray(exact), layout, sum(weights)), 500, layout, sum(weights)), exact
    )


@settings(max_examples=25)
@given(st.lists(st.integers(0, 70_000), min_size=1, max_size=4).filter(any), st.integers(0, 2**32))
def test_packed_equals_pack_however_lanes_are_cut(sizes: list[int], seed: int) -> None:
    layout = LaneLayout(30, 3)  # 28,658 lanes a blob
    lanes = np.random.default_rng(seed).integers(0, 2**30 - 1, sum(sizes), dtype=np.uint64)
    buffer = np.empty(max(sizes), dtype=np.uint64)

    def chunks() -> Iterator[NDArray[np.uint64]]:
        """All in one array, as who reads a file might hand them over."""
        start = 0
        for size in sizes:
            buffer[:size] = lanes[start : start + size]
            yield buffer[:size]
            start += size

    assert list(packed(chunks(), layout)) == pack(lanes, layout)


def test_packed_makes_a_blob_before_it_reads_on() -> None:
    layout = LaneLayout(8, 60)
    read = 0

    def chunks() -> Iterator[NDArray[np.uint64]]:
        nonlocal read
        for read in range(1, 4):
            yield np.full(layout.lanes_per_blob + 1, read, np.uint64)

    for index, blob in enumerate(packed(chunks(), layout)):
        assert len(blob) == BYTES_PER_BLOB
        assert read == min(index + 1, 3)


def draw_blinders(random: np.random.Generator) -> tuple[int, int]:
    first, second = (int.from_bytes(random.bytes(48), "big") % BLS_MODULUS for _ in range(2))
    return first, second


@given(layouts(), st.data())
def test_near_leaves_the_highest_lane_of_scalars_that_hold_nothing_else(
    layout: LaneLayout, data: st.DataObject
) -> None:
    lane = data.draw(st.integers(0, 2**layout.bits - 2))
    (blob,) = pack(np.full(layout.lanes_per_blob, lane, np.uint64), layout)
    left = blobs.to_scalars(blob)[0] - layout.near(lane)
    assert left == lane << (layout.lanes_per_scalar - 1) * layout.lane_bits


def test_pack_refuses_a_lane_above_the_bound() -> None:
    layout = LaneLayout(8, 60)
    lanes = np.full(200_000, 254, dtype=np.uint64)
    pack(lanes, layout)
    lanes[150_000] = 255
    with pytest.raises(LaneOutOfRange) as caught:
        pack(lanes, layout)
    assert (caught.value.index, caught.value.value, caught.value.bound) == (150_000, 255, 254)
    with pytest.raises(LaneOutOfRange) as caught:
        list(packed(np.split(lanes, [120_000, 149_999]), layout))
    assert caught.value.index == 150_000
    pack(lanes, layout, total_weight=2)


def test_pack_refuses_wrong_arrays() -> None:
    layout = LaneLayout(8, 1)
    for lanes in (np.zeros(0, np.uint64), np.zeros((2, 2), np.uint64), np.zeros(3, np.int64), np.zeros(3)):
        with pytest.raises(ShapeWrong):
            pack(lanes, layout)  # type: ignore[arg-type]
    for chunks in ([], [np.zeros(0, np.uint64)] * 2, [np.zeros(3, np.uint64), np.zeros(3)]):
        with pytest.raises(ShapeWrong):
            list(packed(chunks, layout))  # type: ignore[arg-type]
    with pytest.raises(ArgumentInvalid):
        pack(np.zeros(3, np.uint64), layout, total_weight=2)


def poke(blob: blobs.Blob, scalar: int, value: int) -> blobs.Blob:
    scalars = blobs.to_scalars(blob)
    scalars[scalar] = value
    return blobs.from_scalars(scalars)


COUNT = 1000
LAYOUT = LaneLayout(8, 60)  # lanes of 14 bits, 18 in a scalar, exactly 252 bits
NARROW = LaneLayout(40, 2)  # lanes of 41 bits, 6 in a scalar, 246 bits


@pytest.mark.parametrize(
    ("layout", "scalar", "value", "index", "found", "bound"),
    [
        pytest.param(LAYOUT, 3, 255 << 28, 56, 255, 254, id="lane-above-the-bound"),
        pytest.param(LAYOUT, 3, 1 << 252, 71, 1 << 14, 254, id="bit-above-the-highest-lane"),
        pytest.param(LAYOUT, 3, BLS_MODULUS - 1, 71, (BLS_MODULUS - 1) >> 238, 254, id="negative-one"),
        pytest.param(LAYOUT, 55, 1 << (10 * 14), 1000, 1, 0, id="unused-lane-of-the-last-scalar"),
        pytest.param(LAYOUT, 56, 1, 1008, 1, 0, id="first-unused-scalar"),
        pytest.param(LAYOUT, 4093, 1, 4093 * 18, 1, 0, id="last-usable-scalar"),
        pytest.param(NARROW, 2, 1 << 246, 17, 1 << 41, 2**40 - 2, id="bit-between-lanes-and-252"),
        pytest.param(NARROW, 4000, 1 << 250, 24005, 1 << 45, 2**40 - 2, id="bit-above-lanes-of-an-unused-scalar"),
    ],
)
def test_unpack_refuses_overflow(
    layout: LaneLayout, scalar: int, value: int, index: int, found: int, bound: int
) -> None:
    (blob,) = pack(np.zeros(COUNT, np.uint64), layout)
    with pytest.raises(LaneOutOfRange) as caught:
        unpack([poke(blob, scalar, value)], COUNT, layout, 1)
    assert (caught.value.index, caught.value.value, caught.value.bound) == (index, found, bound)


def test_unpack_names_lanes_of_later_blobs() -> None:
    count = LAYOUT.lanes_per_blob + 10
    packed = pack(np.zeros(count, np.uint64), LAYOUT)
    with pytest.raises(LaneOutOfRange) as caught:
        unpack([packed[0], poke(packed[1], 0, 255)], count, LAYOUT, 1)
    assert caught.value.index == LAYOUT.lanes_per_blob


def test_unpack_ignores_blinders() -> None:
    (blob,) = pack(np.arange(COUNT, dtype=np.uint64) % 255, LAYOUT)
    blinded = blobs.with_blinders(blob, BLS_MODULUS - 1, BLS_MODULUS - 2)
    assert unpack([blinded], COUNT, LAYOUT, 1).tolist() == [i % 255 for i in range(COUNT)]
    assert USABLE_SCALARS == 4094


def test_unpack_refuses_an_update_whose_lane_wraps_the_field() -> None:
    """A hospital that packs -1 instead of a lane turns up in public, whoever adds to it."""
    (honest,) = pack(np.full(COUNT, 200, np.uint64), LAYOUT)
    (rogue,) = pack(np.zeros(COUNT, np.uint64), LAYOUT)
    total = blobs.add([honest, poke(rogue, 0, BLS_MODULUS - (200 + (201 << 14)))])
    with pytest.raises(LaneOutOfRange):
        unpack([total], COUNT, LAYOUT, 2)


def test_unpack_refuses_wrong_blobs() -> None:
    packed = pack(np.zeros(COUNT, np.uint64), LAYOUT)
    with pytest.raises(ShapeWrong):
        unpack([], COUNT, LAYOUT, 1)
    with pytest.raises(ShapeWrong):
        unpack(packed * 2, COUNT, LAYOUT, 1)
    with raises_fault(Malformed, "BlobMalformed"):
        unpack([packed[0][:-1]], COUNT, LAYOUT, 1)
    for weight in (0, 61):
        with pytest.raises(ArgumentInvalid):
            unpack(packed, COUNT, LAYOUT, weight)
    with pytest.raises(ArgumentInvalid):
        unpack(packed, 0, LAYOUT, 1)
