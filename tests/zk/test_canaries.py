from __future__ import annotations

import time
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pytest
from consilium_zk.blobs import Blob, with_blinders
from consilium_zk.canaries import (
    MAX_STRENGTH,
    STRENGTH,
    STRENGTH_UNIT,
    canary_lanes,
    half_range,
    is_turned,
    progress_after,
    retreat_lanes,
    seed_commitment,
)
from consilium_zk.constants import BYTES_PER_BLOB
from consilium_zk.curve import Commitment, compressed, weighted_sum
from consilium_zk.errors import ArgumentInvalid, LaneOutOfRange, ShapeWrong
from consilium_zk.kzg import commit
from consilium_zk.packing import LaneLayout, pack, unpack
from consilium_zk.quantise import Quantiser
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from py_arkworks_bls12381 import G1Point

SEED = bytes(range(32))


@st.composite
def sums(draw: st.DrawFn) -> tuple[list[int], list[int], int, int, int]:
    """Lanes, progress, weight, bits, strength: over all that the function takes, ends included."""
    bits = draw(st.integers(2, 40))
    weight = draw(st.integers(1, min(1 << 22, ((1 << 62) - 1) // ((1 << (bits - 1)) - 1))))
    top = weight * ((1 << bits) - 2)
    lane = st.one_of(st.integers(0, top), st.sampled_from([0, top, top // 2]))
    pairs = draw(st.lists(st.tuples(lane, st.integers(-(1 << 55), 1 << 55)), min_size=1, max_size=20))
    return [a for a, _ in pairs], [b for _, b in pairs], weight, bits, draw(st.integers(0, MAX_STRENGTH))


def turn(lanes: NDArray[np.uint64], progress: NDArray[np.int64], weight: int, bits: int, strength: int) -> Any:
    return canary_lanes(lanes, retreat_lanes(progress, bits, strength), weight, bits)


def reference(lane: int, progress: int, weight: int, bits: int, strength: int) -> int:
    """One lane in exact rational arithmetic, as the contract's dispute would compute it."""
    top, half = weight * (2**bits - 2), (2 ** (bits - 1) - 1) // 2
    back = max(-half, min(half, floor(Fraction(progress * strength, 16))))
    return (top - weight * back - lane) % (top + 1)


@given(sums())
def test_canary_lanes_equals_exact_arithmetic_lane_by_lane(case: tuple[list[int], list[int], int, int, int]) -> None:
    lanes, progress, *rest = case
    found = turn(np.array(lanes, np.uint64), np.array(progress, np.int64), *rest)
    assert found.dtype == np.uint64
    assert found.tolist() == [reference(a, b, *rest) for a, b in zip(lanes, progress, strict=True)]


@given(sums())
def test_canary_lanes_twice_gives_the_sum_and_stays_in_range(case: tuple[list[int], list[int], int, int, int]) -> None:
    lanes, progress = np.array(case[0], np.uint64), np.array(case[1], np.int64)
    weight, bits, strength = case[2:]
    turned = turn(lanes, progress, weight, bits, strength)
    assert int(turned.max()) <= weight * (2**bits - 2)
    assert np.array_equal(turn(turned, progress, weight, bits, strength), lanes)


@given(sums())
def test_canary_lanes_without_progress_negates_the_update_exactly(
    case: tuple[list[int], list[int], int, int, int],
) -> None:
    lanes, (weight, bits, strength) = np.array(case[0], np.uint64), case[2:]
    turned = turn(lanes, np.zeros(lanes.size, np.int64), weight, bits, strength)
    quantiser = Quantiser(bits, 1.0)
    assert np.array_equal(quantiser.dequantise_sum(turned, weight), -quantiser.dequantise_sum(lanes, weight))


def test_canary_lanes_keep_the_weights_common_divisor(random: np.random.Generator) -> None:
    """A sum of multiples of 12 and 16 holds multiples of 4 only; a canary that did not would be known by that."""
    bits, weights = 16, (12, 16)
    lanes = sum(random.integers(2**13, 2**15, 5_000, dtype=np.uint64) * np.uint64(weight) for weight in weights)
    progress = random.integers(-(2**14), 2**14, 5_000)
    turned = turn(np.asarray(lanes), progress, sum(weights), bits, STRENGTH_UNIT)
    wrapped = np.abs(turned.astype(np.int64) - 28 * 32767) > 28 * 24575
    assert not (turned[~wrapped] % np.uint64(4)).any()
    assert (~wrapped).mean() > 0.5


def test_canary_lanes_of_a_rounded_update_are_those_of_the_negated_update_in_law(random: np.random.Generator) -> None:
    """Stochastic rounding is symmetric: turning after rounding leaves no other noise than rounding what was turned."""
    quantiser, count = Quantiser(8, 1.0), 200_000
    values = np.full(count, 0.3217)
    turned = turn(quantiser.quantise(values, random.random(count)), np.zeros(count, np.int64), 1, 8, STRENGTH)
    direct = quantiser.quantise(-values, random.random(count))
    assert set(turned.tolist()) == set(direct.tolist())
    # Six deviations of the difference of two such means.
    assert abs(float(turned.mean()) - float(direct.mean())) < 6 * 0.5 * (2 / count) ** 0.5


def test_canary_lanes_take_the_progress_back(random: np.random.Generator) -> None:
    quantiser, weight, count = Quantiser(16, 1.0), 20, 4_000
    update, learnt = random.uniform(-0.4, 0.4, count), random.uniform(-0.4, 0.4, count)
    lanes = quantiser.quantise(update) * np.uint64(weight)
    progress = np.rint(learnt / quantiser.step).astype(np.int64)
    for strength in (0, 8, 16):
        mean = quantiser.dequantise_mean(turn(lanes, progress, weight, 16, strength), weight)
        np.testing.assert_allclose(mean, -update - strength / 16 * learnt, atol=2.1 * quantiser.step)


def test_canary_lanes_pack_as_a_sum_does(random: np.random.Generator) -> None:
    layout = LaneLayout(16, 128)
    lanes = random.integers(0, 30 * (2**16 - 2), 50_000, dtype=np.uint64)
    turned = turn(lanes, random.integers(-(2**17), 2**17, 50_000), 30, 16, STRENGTH)
    blobs = pack(turned, layout, 30)
    assert len(blobs) == len(pack(lanes, layout, 30))
    assert np.array_equal(unpack(blobs, 50_000, layout, 30), turned)


@given(
    st.integers(2, 40),
    st.integers(1, 1000),
    st.lists(st.tuples(st.integers(0, 2**50), st.integers(-(2**50), 2**50)), min_size=1, max_size=20),
)
def test_progress_after_adds_the_rounded_mean(bits: int, weight: int, pairs: list[tuple[int, int]]) -> None:
    offset = 2 ** (bits - 1) - 1
    lanes = [number % (2 * weight * offset + 1) for number, _ in pairs]
    before = [progress for _, progress in pairs]
    after = progress_after(np.array(before, np.int64), np.array(lanes, np.uint64), weight, bits)
    exact = [floor(Fraction(lane, weight) - offset + Fraction(1, 2)) for lane in lanes]
    assert after.tolist() == [a + b for a, b in zip(before, exact, strict=True)]


def test_canary_lanes_of_a_million_lanes_take_under_a_second(random: np.random.Generator) -> None:
    lanes = random.integers(0, 60 * (2**16 - 2), 1_000_000, dtype=np.uint64)
    progress = random.integers(-(2**15), 2**15, 1_000_000)
    started = time.process_time()
    turn(lanes, progress, 60, 16, STRENGTH)
    assert time.process_time() - started < 1


def test_is_turned_is_a_fair_coin_that_depends_on_all_it_is_told() -> None:
    flips = [is_turned(SEED, 1, round_, cohort) for round_ in range(100) for cohort in range(20)]
    assert 850 < sum(flips) < 1150  # 6.7 deviations
    others = [
        [is_turned(bytes(32), 1, 1, cohort) for cohort in range(64)],
        [is_turned(SEED, 2, 1, cohort) for cohort in range(64)],
        [is_turned(SEED, 1, 2, cohort) for cohort in range(64)],
        [is_turned(SEED, 1, 1, cohort) for cohort in range(64)],
    ]
    assert len({tuple(row) for row in others}) == len(others)


def test_seed_commitment_is_known_by_the_seed_only() -> None:
    assert seed_commitment(SEED) != seed_commitment(bytes(32))
    assert len(seed_commitment(SEED)) == 32
    with pytest.raises(ShapeWrong):
        seed_commitment(b"short")
    with pytest.raises(ArgumentInvalid):
        is_turned(SEED, -1, 0, 0)


def test_canary_lanes_commitment_is_linear(random: np.random.Generator) -> None:
    """What a contract compares: commitments to canary, sum, retreat and ones; and ones from three known points."""
    layout, weight = LaneLayout(16, 64), 24
    count, half = layout.lanes_per_blob, half_range(16)
    lanes = random.integers(weight * 2**14, weight * (3 * 2**14 - 2), count, dtype=np.uint64)
    retreat = retreat_lanes(random.integers(-(2**17), 2**17, count), 16)
    canary, ones = canary_lanes(lanes, retreat, weight, 16), np.ones(count, np.uint64)
    points = [commit(pack(each, layout, weight)[0]) for each in (ones, retreat, lanes)]
    factors = [weight * (2**16 - 2 + half), -weight, -1]
    assert commit(pack(canary, layout, weight)[0]) == weighted_sum(points, factors)

    scalar = sum(1 << (lane * layout.lane_bits) for lane in range(layout.lanes_per_scalar))
    last = [with_blinders(Blob(bytes(BYTES_PER_BLOB)), *blinders) for blinders in ((1, 0), (0, 1))]
    generator = Commitment(compressed(G1Point()))
    known = [generator, *(commit(blob) for blob in last)]
    assert points[0] == weighted_sum(known, [scalar, -scalar, -scalar])


def test_canary_lanes_refuse_what_is_no_sum() -> None:
    lanes, progress = np.zeros(3, np.uint64), np.zeros(3, np.int64)
    with pytest.raises(LaneOutOfRange) as caught:
        canary_lanes(np.array([0, 61], np.uint64), np.zeros(2, np.uint64), 10, 3)
    assert (caught.value.index, caught.value.bound) == (1, 60)
    with pytest.raises(LaneOutOfRange):
        canary_lanes(lanes, lanes + np.uint64(2 * half_range(8) + 1), 10, 8)
    with pytest.raises(ShapeWrong):
        canary_lanes(lanes.astype(np.int64), lanes, 10, 8)
    with pytest.raises(ShapeWrong):
        canary_lanes(lanes, lanes[:2], 10, 8)
    with pytest.raises(ShapeWrong):
        progress_after(progress.astype(np.float64), lanes, 10, 8)
    with pytest.raises(ShapeWrong):
        progress_after(progress[:2], lanes, 10, 8)
    with pytest.raises(ArgumentInvalid):
        retreat_lanes(progress + 2**56, 8)
    for strength in (-1, 256):
        with pytest.raises(ArgumentInvalid):
            retreat_lanes(progress, 8, strength)
    for weight, bits in ((0, 8), (2**30, 40), (1, 1), (1, 41)):
        with pytest.raises(ArgumentInvalid):
            canary_lanes(lanes, lanes, weight, bits)
