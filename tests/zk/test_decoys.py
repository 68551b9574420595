from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pytest
from consilium_zk.blobs import Blob, add, blinders, from_scalars, scale, to_scalars, with_blinders
from consilium_zk.constants import BLS_MODULUS, BYTES_PER_EIP2537_G1
from consilium_zk.curve import GENERATOR, Commitment, from_eip2537, weighted_sum
from consilium_zk.decoys import (
    MAX_STRENGTH,
    STRENGTH,
    is_flipped,
    negated_delta_digest,
    negated_delta_lanes,
    negated_delta_points,
    progress_after,
    published_blob,
    published_commitment,
    published_lanes,
    read_lanes,
    seed_commitment,
)
from consilium_zk.errors import ArgumentInvalid, LaneOutOfRange, ShapeWrong
from consilium_zk.kzg import blinder_points, commit, versioned_hash
from consilium_zk.packing import LaneLayout, pack, unpack
from consilium_zk.quantise import Quantiser
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from zk_support import field_blob, load_vectors

SEED = bytes(range(32))
BOTH = pytest.mark.parametrize("flipped", [False, True], ids=["as it is", "flipped"])

Case = tuple[list[int], list[int], int, int, int]


@st.composite
def sums(draw: st.DrawFn) -> Case:
    """Lanes, progress, weight, bits, strength: over all that the functions take, ends included."""
    bits = draw(st.integers(2, 40))
    offset = 2 ** (bits - 1) - 1
    weight = draw(st.integers(1, min(1 << 22, ((1 << 61) - 1) // offset)))
    top = 2 * weight * offset
    lane = st.one_of(st.integers(0, top), st.sampled_from([0, top, top // 2]))
    progress = st.one_of(st.integers(-(1 << 55), 1 << 55), st.integers(-offset, offset))
    pairs = draw(st.lists(st.tuples(lane, progress), min_size=1, max_size=20))
    return [a for a, _ in pairs], [b for _, b in pairs], weight, bits, draw(st.integers(0, MAX_STRENGTH))


def arrays(case: Case) -> tuple[NDArray[np.uint64], NDArray[np.uint64], int, int]:
    """Lanes, negated delta, weight, bits."""
    lanes, progress, weight, bits, strength = case
    return np.array(lanes, np.uint64), negated_delta_lanes(np.array(progress, np.int64), bits, strength), weight, bits


def exact(lane: int, progress: int, weight: int, bits: int, strength: int, flipped: bool) -> Fraction:
    """One published lane by what it stands for, y = x or -x - back, in rational arithmetic."""
    h = 2 ** (bits - 1) - 1
    x = Fraction(lane, weight) - h
    back = max(-h, min(h, floor(Fraction(progress * strength, 16))))
    found: Fraction = 2 * weight * h + weight * (-x - back if flipped else x)
    return found


# Lanes


@given(sums(), st.booleans())
def test_published_lanes_equal_exact_arithmetic_lane_by_lane(case: Case, flipped: bool) -> None:
    found = published_lanes(*arrays(case), flipped)
    assert found.dtype == np.uint64
    lanes, progress, weight, bits, strength = case
    assert found.tolist() == [
        exact(a, b, weight, bits, strength, flipped) for a, b in zip(lanes, progress, strict=True)
    ]


@given(sums(), st.booleans())
def test_published_lanes_fit_and_read_back_as_what_they_were(case: Case, flipped: bool) -> None:
    lanes, negated_delta, weight, bits = arrays(case)
    published = published_lanes(lanes, negated_delta, weight, bits, flipped)
    assert int(published.max()) <= 4 * weight * (2 ** (bits - 1) - 1)
    assert np.array_equal(read_lanes(published, negated_delta, weight, bits, flipped), lanes)


@given(sums())
def test_turning_twice_gives_the_sum(case: Case) -> None:
    """Where the decoy is a valid sum itself, publishing it sign-flipped is publishing the sum as it is."""
    lanes, negated_delta, weight, bits = arrays(case)
    try:
        decoy = read_lanes(
            published_lanes(lanes, negated_delta, weight, bits, False), negated_delta, weight, bits, True
        )
    except LaneOutOfRange:
        return
    assert np.array_equal(
        published_lanes(decoy, negated_delta, weight, bits, True),
        published_lanes(lanes, negated_delta, weight, bits, False),
    )


@given(sums())
def test_without_progress_the_decoy_is_the_mirror_image(case: Case) -> None:
    lanes, weight, bits = np.array(case[0], np.uint64), case[2], case[3]
    negated_delta = negated_delta_lanes(np.zeros(lanes.size, np.int64), bits)
    decoy = read_lanes(published_lanes(lanes, negated_delta, weight, bits, False), negated_delta, weight, bits, True)
    quantiser = Quantiser(bits, 1.0)
    assert np.array_equal(quantiser.dequantise_sum(decoy, weight), -quantiser.dequantise_sum(lanes, weight))


def test_the_decoy_takes_the_progress_back(random: np.random.Generator) -> None:
    quantiser, weight, count = Quantiser(16, 1.0), 20, 4_000
    update, learnt = random.uniform(-0.4, 0.4, count), random.uniform(-0.4, 0.4, count)
    lanes = quantiser.quantise(update) * np.uint64(weight)
    progress = np.rint(learnt / quantiser.step).astype(np.int64)
    for strength in (0, 8, 16, STRENGTH):
        negated_delta = negated_delta_lanes(progress, 16, strength)
        decoy = read_lanes(published_lanes(lanes, negated_delta, weight, 16, True), negated_delta, weight, 16, False)
        mean = quantiser.dequantise_mean(decoy, weight)
        np.testing.assert_allclose(mean, -update - strength / 16 * learnt, atol=2.6 * quantiser.step)


def test_published_lanes_keep_the_weights_common_divisor(random: np.random.Generator) -> None:
    """A sum of multiples of 12 and 16 holds multiples of 4 only; a form that did not would be known by that."""
    lanes = sum(random.integers(0, 2**16 - 1, 5_000, dtype=np.uint64) * np.uint64(weight) for weight in (12, 16))
    negated_delta = negated_delta_lanes(random.integers(-(2**16), 2**16, 5_000), 16)
    for flipped in (False, True):
        assert not (published_lanes(np.asarray(lanes), negated_delta, 28, 16, flipped) % np.uint64(4)).any()


def test_a_rounded_update_flipped_is_the_negated_update_rounded_in_law(random: np.random.Generator) -> None:
    """Stochastic rounding is symmetric: turning after rounding leaves no other noise than rounding what was
    sign-flipped.
    """
    quantiser, count = Quantiser(8, 1.0), 200_000
    values, mirror = np.full(count, 0.3217), negated_delta_lanes(np.zeros(count, np.int64), 8)
    flipped = published_lanes(quantiser.quantise(values, random.random(count)), mirror, 1, 8, True)
    direct = published_lanes(quantiser.quantise(-values, random.random(count)), mirror, 1, 8, False)
    assert set(flipped.tolist()) == set(direct.tolist())
    # Six deviations of the difference of two such means.
    assert abs(float(flipped.mean()) - float(direct.mean())) < 6 * 0.5 * (2 / count) ** 0.5


@given(st.integers(2, 40), st.integers(1, 1000), st.integers(0, 2**62), st.booleans())
def test_read_lanes_takes_a_lane_exactly_where_an_update_could_have_made_it(
    bits: int, weight: int, number: int, flipped: bool
) -> None:
    h = 2 ** (bits - 1) - 1
    lane, back = number % (5 * weight * h), number % (2 * h + 1) - h
    negated_delta = np.array([h + back], np.uint64)
    y = Fraction(lane, weight) - 2 * h
    valid = abs(-y - back if flipped else y) <= h and lane <= 4 * weight * h
    published = np.array([lane], np.uint64)
    if valid:
        (found,) = read_lanes(published, negated_delta, weight, bits, flipped).tolist()
        assert found == weight * h + weight * (-y - back if flipped else y)
    else:
        with pytest.raises(LaneOutOfRange):
            read_lanes(published, negated_delta, weight, bits, flipped)


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
    means = [floor(Fraction(lane, weight) - offset + Fraction(1, 2)) for lane in lanes]
    assert after.tolist() == [a + b for a, b in zip(before, means, strict=True)]


# Blobs: small lanes, so that one blob has few of them


@st.composite
def rounds(draw: st.DrawFn) -> tuple[LaneLayout, list[int], NDArray[np.uint64], np.random.Generator]:
    """Layout, weights, negated delta lanes of one blob, and randomness for updates."""
    bits, weights = draw(st.integers(2, 20)), draw(st.lists(st.integers(1, 300), min_size=1, max_size=3))
    layout = LaneLayout(bits + 1, sum(weights) + draw(st.integers(0, 100)))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    span = draw(st.sampled_from([0, 2**bits, 2**45]))
    return layout, weights, negated_delta_lanes(random.integers(-span, span + 1, layout.lanes_per_blob), bits), random


def updates_of(
    layout: LaneLayout, weights: list[int], random: np.random.Generator
) -> tuple[list[Blob], NDArray[np.uint64]]:
    """Blinded blobs of random updates, some of them at the ends of the range, and the lanes of their weighted sum."""
    top = 2 * ((1 << (layout.bits - 2)) - 1)
    made = []
    for _ in weights:
        lanes = random.integers(0, top + 1, layout.lanes_per_blob, dtype=np.uint64)
        ends = random.random(lanes.size)
        made.append(np.where(ends < 0.2, np.uint64(0), np.where(ends > 0.8, np.uint64(top), lanes)))
    blobs = [blinded(pack(lanes, layout)[0], random) for lanes in made]
    total = sum(lanes * np.uint64(weight) for lanes, weight in zip(made, weights, strict=True))
    return blobs, np.asarray(total)


def blinded(blob: Blob, random: np.random.Generator) -> Blob:
    first, second = (int.from_bytes(random.bytes(40), "big") % BLS_MODULUS for _ in range(2))
    return with_blinders(blob, first, second)


def sum_of(blobs: list[Blob], weights: list[int]) -> Blob:
    return add([scale(blob, weight) for blob, weight in zip(blobs, weights, strict=True)])


def read(blob: Blob, negated_delta: NDArray[np.uint64], weight: int, layout: LaneLayout, flipped: bool) -> Any:
    """The lanes, or None where this reading is no model: what every reader does."""
    try:
        published = unpack([blob], layout.lanes_per_blob, layout, weight)
        return read_lanes(published, negated_delta, weight, layout.bits - 1, flipped)
    except LaneOutOfRange:
        return None


@given(rounds(), st.booleans())
@settings(max_examples=30)
def test_published_blob_holds_the_published_lanes_without_a_carry(case: Any, flipped: bool) -> None:
    layout, weights, negated_delta, random = case
    updates, lanes = updates_of(layout, weights, random)
    weight, bits = sum(weights), layout.bits - 1
    blob = published_blob(sum_of(updates, weights), pack(negated_delta, layout)[0], weight, layout, flipped)
    assert blinders(blob) == (0, 0)
    found = unpack([blob], lanes.size, layout, weight)
    assert np.array_equal(found, published_lanes(lanes, negated_delta, weight, bits, flipped))
    assert np.array_equal(read(blob, negated_delta, weight, layout, flipped), lanes)


@BOTH
def test_published_commitment_commits_to_the_published_blob(flipped: bool, random: np.random.Generator) -> None:
    for bits, weights, span in ((2, [1], 2), (16, [1, 3, 250], 2**17), (20, [300, 300], 0)):
        layout = LaneLayout(bits + 1, sum(weights))
        negated_delta = pack(
            negated_delta_lanes(random.integers(-span, span + 1, layout.lanes_per_blob), bits), layout
        )[0]
        updates, _ = updates_of(layout, weights, random)
        total = sum_of(updates, weights)
        published = published_blob(total, negated_delta, sum(weights), layout, flipped)
        (point,) = negated_delta_points([negated_delta], layout)
        committed = weighted_sum([commit(blob) for blob in updates], weights)
        found = published_commitment(committed, sum(weights), blinders(total), point, layout, flipped)
        assert found == commit(published)


@BOTH
def test_the_equation_holds_for_one_bit_one_pair_of_blinders_and_one_negated_delta(
    flipped: bool, random: np.random.Generator
) -> None:
    layout, weights = LaneLayout(9, 10), [4, 6]
    updates, _ = updates_of(layout, weights, random)
    total, commitments = sum_of(updates, weights), [commit(blob) for blob in updates]
    negated_delta = pack(negated_delta_lanes(random.integers(1, 40, layout.lanes_per_blob), 8), layout)[0]
    published, point = commit(published_blob(total, negated_delta, 10, layout, flipped)), commit(negated_delta)
    first, second = blinders(total)

    def found(blinders: tuple[int, int], negated_delta: Commitment, flipped: bool) -> Commitment:
        return published_commitment(weighted_sum(commitments, weights), 10, blinders, negated_delta, layout, flipped)

    assert found((first, second), point, flipped) == published
    assert found((first, second), point, not flipped) != published
    assert found((first, second + 1), point, flipped) != published
    assert found((second, first), point, flipped) != published
    assert (found((first, second), GENERATOR, flipped) == published) == (not flipped)


@pytest.mark.parametrize("kind", ["above", "field", "carry"])
def test_a_sum_out_of_range_is_no_model_however_it_is_published(kind: str, random: np.random.Generator) -> None:
    """A malicious hospital's lanes or scalars: they never read as another valid model, and the contract's equation
    holds of them as of any other."""
    layout, weight, bits = LaneLayout(9, 10), 10, 8
    top = 2 * weight * (2 ** (bits - 1) - 1)
    negated_delta = negated_delta_lanes(random.integers(-60, 60, layout.lanes_per_blob), bits)
    lanes = random.integers(0, top + 1, layout.lanes_per_blob, dtype=np.uint64)
    good = pack(lanes, layout, weight)[0]
    if kind == "field":
        total = field_blob(7)
    else:  # one scalar: a lane one above the most, or one below zero, which borrows from the next
        scalars = to_scalars(good)
        lane = 3 * layout.lane_bits
        held = scalars[17] >> lane & (1 << layout.lane_bits) - 1
        scalars[17] += (top + 1 - held if kind == "above" else -1 - held) << lane
        total = from_scalars(scalars)
    update = scale(blinded(total, random), pow(weight, -1, BLS_MODULUS))  # what its hospital commits to
    total, packed = scale(update, weight), pack(negated_delta, layout)[0]
    for flipped in (False, True):
        blob = published_blob(total, packed, weight, layout, flipped)
        assert read(blob, negated_delta, weight, layout, flipped) is None
        found = published_commitment(commit(total), weight, blinders(total), commit(packed), layout, flipped)
        assert commit(blob) == found


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=20)
def test_either_form_reads_as_the_same_model_or_as_none(seed: int, edge: bool) -> None:
    """Of any scalars: what is read of the sum does not depend on the secret bit."""
    random = np.random.default_rng(seed)
    layout, weight, bits = LaneLayout(5, 3), 3, 4
    negated_delta = negated_delta_lanes(random.integers(-20, 20, layout.lanes_per_blob), bits)
    top = 2 * weight * (2 ** (bits - 1) - 1)
    lanes = random.integers(0, top + 1, layout.lanes_per_blob, dtype=np.uint64)
    if edge:
        lanes[random.integers(lanes.size)] = top + random.integers(0, 2)
    total = blinded(pack(lanes, layout, weight)[0], random)
    packed = pack(negated_delta, layout)[0]
    plain, flipped = (
        read(published_blob(total, packed, weight, layout, bit), negated_delta, weight, layout, bit)
        for bit in (False, True)
    )
    expected = lanes if int(lanes.max()) <= top else None
    for found in (plain, flipped):
        assert (found is expected is None) or (
            found is not None and expected is not None and np.array_equal(found, expected)
        )


def test_ones_are_three_known_points(random: np.random.Generator) -> None:
    """E, the commitment to one in every lane, which the contract takes from the generator and the blinders' points."""
    layout = LaneLayout(17, 64)
    zero = pack(np.zeros(layout.lanes_per_blob, np.uint64), layout)[0]
    ones = pack(np.full(layout.lanes_per_blob, 2 * (2**15 - 1), np.uint64), layout)[0]
    # A sum of nothing but zeros, of weight two, published as it is: 2h in every lane.
    found = published_commitment(commit(zero), 2, (0, 0), commit(zero), layout, False)
    assert found == commit(ones)
    for index, point in enumerate(blinder_points()):
        unit = with_blinders(zero, int(index == 0), int(index == 1))
        assert commit(unit) == point


def test_negated_delta_points_commit_to_each_blob_in_order(random: np.random.Generator) -> None:
    layout = LaneLayout(17, 64)
    lanes = negated_delta_lanes(random.integers(-(2**16), 2**16, 2 * layout.lanes_per_blob), 16)
    first, second = pack(lanes, layout)
    points = negated_delta_points([first, second, first], layout)
    assert points == [commit(first), commit(second), commit(first)]
    assert negated_delta_digest(points) != negated_delta_digest(points[:2])
    assert negated_delta_digest(points) != negated_delta_digest([points[1], points[0], points[2]])


# The secret bit


def test_is_flipped_is_a_fair_coin_that_depends_on_all_it_is_told() -> None:
    flips = [is_flipped(SEED, 1, round_, cohort) for round_ in range(100) for cohort in range(20)]
    assert 850 < sum(flips) < 1150  # 6.7 deviations
    others = [
        [is_flipped(bytes(32), 1, 1, cohort) for cohort in range(64)],
        [is_flipped(SEED, 2, 1, cohort) for cohort in range(64)],
        [is_flipped(SEED, 1, 2, cohort) for cohort in range(64)],
        [is_flipped(SEED, 1, 1, cohort) for cohort in range(64)],
    ]
    assert len({tuple(row) for row in others}) == len(others)


def test_seed_commitment_is_known_by_the_seed_only() -> None:
    assert seed_commitment(SEED) != seed_commitment(bytes(32))
    assert len(seed_commitment(SEED)) == 32
    with pytest.raises(ShapeWrong):
        seed_commitment(b"short")
    with pytest.raises(ArgumentInvalid):
        is_flipped(SEED, -1, 0, 0)


# What py_ecc and ckzg computed


def raw(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def points_of(text: str) -> list[Commitment]:
    data = raw(text)
    return [from_eip2537(data[i : i + BYTES_PER_EIP2537_G1]) for i in range(0, len(data), BYTES_PER_EIP2537_G1)]


@pytest.mark.parametrize("case", load_vectors("decoys"), ids=lambda case: case["name"])
def test_vectors_of_decoy_rounds(case: dict[str, Any]) -> None:
    layout = LaneLayout(case["bits"] + 1, 1 << (case["lane_bits"] - case["bits"] - 1))
    assert layout.lane_bits == case["lane_bits"]
    seed = raw(case["seed"])
    assert seed_commitment(seed) == raw(case["seed_commitment"])
    assert is_flipped(seed, case["task"], case["round"], case["cohort"]) == case["flipped"]
    negated_deltas = [from_eip2537(raw(blob["negated_delta"])) for blob in case["blobs"]]
    assert negated_delta_digest(negated_deltas) == raw(case["negated_delta_digest"])
    for blob, negated_delta in zip(case["blobs"], negated_deltas, strict=True):
        secret = (int(blob["first"], 16), int(blob["second"], 16))
        for flipped, name in ((False, "hash_as_it_is"), (True, "hash_flipped")):
            total = weighted_sum(points_of(blob["points"]), case["weights"])
            found = published_commitment(total, sum(case["weights"]), secret, negated_delta, layout, flipped)
            assert versioned_hash(found) == raw(blob[name])


@pytest.mark.parametrize("case", load_vectors("progress"), ids=lambda case: case["name"])
def test_vectors_of_what_later_rounds_take_back(case: dict[str, Any]) -> None:
    bits, drawn = case["bits"], case["parameters"]
    layout = LaneLayout(bits + 1, 1 << (case["lane_bits"] - bits - 1))
    rest = case["blobs"] * layout.lanes_per_blob - drawn
    progress = np.zeros(drawn, np.int64)
    for sums in case["rounds"]:
        negated_delta = negated_delta_lanes(progress, bits)
        read = [
            read_lanes(np.array(one["lanes"], np.uint64), negated_delta, one["weight"], bits, one["flipped"])
            for one in sums
        ]
        if read:
            progress = progress_after(progress, np.sum(read, axis=0), sum(one["weight"] for one in sums), bits)
    blobs = pack(negated_delta_lanes(np.pad(progress, (0, rest)), bits), layout)
    assert negated_delta_points(blobs, layout) == points_of(case["negated_delta"])


# Refusals


def test_decoys_refuse_what_is_no_sum() -> None:
    lanes, progress = np.zeros(3, np.uint64), np.zeros(3, np.int64)
    negated_delta = negated_delta_lanes(progress, 8)
    with pytest.raises(LaneOutOfRange) as caught:
        published_lanes(np.array([0, 61], np.uint64), np.zeros(2, np.uint64), 10, 3, True)
    assert (caught.value.index, caught.value.bound) == (1, 60)
    with pytest.raises(LaneOutOfRange) as caught:
        read_lanes(np.array([30, 29], np.uint64), np.zeros(2, np.uint64), 10, 3, False)
    assert (caught.value.index, caught.value.value, caught.value.bound) == (1, -1, 60)
    with pytest.raises(LaneOutOfRange):
        published_lanes(lanes, negated_delta + np.uint64(128), 10, 8, True)
    with pytest.raises(ShapeWrong):
        published_lanes(lanes.astype(np.int64), negated_delta, 10, 8, False)
    with pytest.raises(ShapeWrong):
        published_lanes(lanes, negated_delta[:2], 10, 8, True)
    with pytest.raises(ShapeWrong):
        progress_after(progress.astype(np.float64), lanes, 10, 8)
    with pytest.raises(ShapeWrong):
        progress_after(progress[:2], lanes, 10, 8)
    with pytest.raises(ArgumentInvalid):
        negated_delta_lanes(progress + 2**56, 8)
    for strength in (-1, 256):
        with pytest.raises(ArgumentInvalid):
            negated_delta_lanes(progress, 8, strength)
    for weight, bits in ((0, 8), (2**30, 40), (1, 1), (1, 41)):
        with pytest.raises(ArgumentInvalid):
            published_lanes(lanes, lanes, weight, bits, True)
    layout = LaneLayout(9, 10)
    blob = pack(np.zeros(layout.lanes_per_blob, np.uint64), layout)[0]
    for weight in (0, 11):
        with pytest.raises(ArgumentInvalid):
            published_blob(blob, blob, weight, layout, False)
    with pytest.raises(ArgumentInvalid):
        published_blob(blob, blob, 1, LaneLayout(2, 10), False)  # no bit to spare
