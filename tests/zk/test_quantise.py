from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from consilium_zk.errors import ArgumentInvalid, ShapeWrong, UpdateInvalid, ZkError
from consilium_zk.quantise import Quantiser, clip_norm
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from raised_faults import raises_fault

BITS = st.integers(2, 40)
RANGES = st.floats(1e-6, 1e6)
UNIT = st.floats(0, 1, exclude_max=True)


def reference(quantiser: Quantiser, value: float, uniform: float | None) -> int:
    """One value, in plain Python floats, which are IEEE 754 doubles as well."""
    steps = value / quantiser.step
    rounded = round(steps) if uniform is None else math.floor(steps + uniform)
    return max(-quantiser.offset, min(quantiser.offset, rounded)) + quantiser.offset


@given(BITS, RANGES, st.lists(st.tuples(st.floats(-1e6, 1e6), UNIT), min_size=1, max_size=40))
def test_quantise_equals_plain_python(bits: int, value_range: float, pairs: list[tuple[float, float]]) -> None:
    quantiser = Quantiser(bits, value_range)
    values, uniforms = (np.array(column) for column in zip(*pairs, strict=True))
    assert quantiser.quantise(values).tolist() == [reference(quantiser, v, None) for v, _ in pairs]
    assert quantiser.quantise(values, uniforms).tolist() == [reference(quantiser, v, u) for v, u in pairs]


@given(BITS, RANGES, st.data())
def test_quantise_then_mean_is_within_one_step(bits: int, value_range: float, data: st.DataObject) -> None:
    quantiser = Quantiser(bits, value_range)
    values = data.draw(hnp.arrays(np.float64, (7,), elements=st.floats(-value_range, value_range)))
    uniforms = data.draw(hnp.arrays(np.float64, (7,), elements=UNIT))
    slack = value_range * 1e-9
    nearest = quantiser.dequantise_mean(quantiser.quantise(values), 1)
    assert np.all(np.abs(nearest - values) <= quantiser.step / 2 + slack)
    stochastic = quantiser.dequantise_mean(quantiser.quantise(values, uniforms), 1)
    assert np.all(np.abs(stochastic - values) <= quantiser.step + slack)


@pytest.mark.parametrize("bits", [2, 8, 40])
def test_quantise_clamps_to_the_ends(bits: int) -> None:
    quantiser = Quantiser(bits, 0.3)
    values = np.array([-1e300, -0.3, 0.0, 0.3, 1e300])
    top = 2**bits - 2
    assert quantiser.quantise(values).tolist() == [0, 0, top // 2, top, top]
    just_below_one = np.full(5, np.nextafter(1.0, 0.0))
    lanes = quantiser.quantise(values, just_below_one)
    assert lanes.dtype == np.uint64
    assert lanes.max() == top
    assert lanes[0] == 0


def test_quantise_stochastic_rounding_is_unbiased(random: np.random.Generator) -> None:
    quantiser = Quantiser(4, 1.0)
    count = 400_000
    for value in (-0.93, -0.2, 0.011, 0.5, 0.77):
        lanes = quantiser.quantise(np.full(count, value), random.random(count))
        mean = quantiser.dequantise_mean(np.array([lanes.sum()], dtype=np.uint64), count)[0]
        # Six standard deviations of the mean of `count` roundings, each within one step.
        assert abs(mean - value) < 6 * quantiser.step / 2 / math.sqrt(count)


def test_quantise_takes_float32_as_the_same_doubles(random: np.random.Generator) -> None:
    values = random.normal(0, 1, 100_000).astype(np.float32)
    quantiser = Quantiser(12, 2.0)
    np.testing.assert_array_equal(quantiser.quantise(values), quantiser.quantise(values.astype(np.float64)))


def test_quantise_leaves_its_inputs_alone_and_takes_strides(random: np.random.Generator) -> None:
    values, uniforms = random.normal(0, 1, 70_001), random.random(70_001)
    kept = values.copy(), uniforms.copy()
    values.setflags(write=False)
    lanes = Quantiser(8, 1.0).quantise(values, uniforms)
    assert np.array_equal(values, kept[0])
    assert np.array_equal(uniforms, kept[1])
    assert np.array_equal(Quantiser(8, 1.0).quantise(values[::-3], uniforms[::-3]), lanes[::-3])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_quantise_refuses_what_is_not_finite(bad: float) -> None:
    values = np.zeros(100_000)
    values[99_998] = bad
    with raises_fault(UpdateInvalid, "NotFinite") as caught:
        Quantiser(8, 1.0).quantise(values)
    assert caught.value.values["index"] == 99_998
    assert isinstance(caught.value, ZkError)


@pytest.mark.parametrize("bad", [1.0, -1e-9, np.nan])
def test_quantise_refuses_uniforms_outside_the_unit_interval(bad: float) -> None:
    with pytest.raises(ArgumentInvalid):
        Quantiser(8, 1.0).quantise(np.zeros(3), np.array([0.0, bad, 0.5]))


def test_quantise_refuses_wrong_shapes() -> None:
    quantiser = Quantiser(8, 1.0)
    with pytest.raises(ShapeWrong):
        quantiser.quantise(np.zeros((2, 2)))
    with pytest.raises(ShapeWrong):
        quantiser.quantise(np.zeros(3, dtype=np.int64))
    with pytest.raises(ShapeWrong):
        quantiser.quantise(np.zeros(3), np.zeros(2))
    with pytest.raises(ShapeWrong):
        quantiser.dequantise_mean(np.zeros(3), 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("bits", "value_range"), [(1, 1.0), (41, 1.0), (8, 0.0), (8, -1.0), (8, np.inf), (8, np.nan), (8, 5e-324)]
)
def test_quantiser_refuses_bad_settings(bits: int, value_range: float) -> None:
    with pytest.raises(ArgumentInvalid):
        Quantiser(bits, value_range)


@given(BITS, st.lists(st.tuples(st.integers(0, 2**40), st.integers(1, 1000)), min_size=1, max_size=20))
def test_dequantise_mean_equals_exact_arithmetic(bits: int, updates: list[tuple[int, int]]) -> None:
    quantiser = Quantiser(bits, 0.7)
    lanes = [(number % (2**bits - 1), weight) for number, weight in updates]
    total_weight = sum(weight for _, weight in lanes)
    lane_sum = sum(number * weight for number, weight in lanes)
    exact = Fraction(lane_sum - total_weight * quantiser.offset) * Fraction(quantiser.step) / total_weight
    mean = quantiser.dequantise_mean(np.array([lane_sum], dtype=np.uint64), total_weight)[0]
    assert mean == pytest.approx(float(exact), rel=1e-15, abs=0)
    total = quantiser.dequantise_sum(np.array([lane_sum], dtype=np.uint64), total_weight)[0]
    assert total == pytest.approx(float(exact * total_weight), rel=1e-15, abs=0)


def test_dequantise_refuses_impossible_weights_and_sums() -> None:
    quantiser = Quantiser(8, 1.0)
    for weight in (0, -1, 2**60):
        with pytest.raises(ArgumentInvalid):
            quantiser.dequantise_sum(np.zeros(1, dtype=np.uint64), weight)
    with pytest.raises(ArgumentInvalid):
        quantiser.dequantise_sum(np.array([2**63], dtype=np.uint64), 1)


@given(hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(-1e150, 1e150)), st.floats(1e-3, 1e3))
def test_clip_norm_bounds_the_norm_and_keeps_the_direction(vector: np.ndarray, max_norm: float) -> None:
    clipped = clip_norm(vector, max_norm)
    assert np.linalg.norm(clipped) <= max_norm * (1 + 1e-12)
    if np.linalg.norm(vector) <= max_norm * (1 - 1e-12):
        assert np.array_equal(clipped, vector)
    else:
        scale = np.abs(vector).max()
        np.testing.assert_allclose(clipped / np.abs(clipped).max(), vector / scale, rtol=1e-9, atol=1e-12)


def test_clip_norm_survives_extremes_and_refuses_nonsense() -> None:
    huge = clip_norm(np.array([1e308, -1e308]), 1.0)
    np.testing.assert_allclose(huge, [math.sqrt(0.5), -math.sqrt(0.5)], rtol=1e-12)
    assert clip_norm(np.zeros(3), 1.0).tolist() == [0, 0, 0]
    assert clip_norm(np.zeros(0), 1.0).shape == (0,)
    with raises_fault(UpdateInvalid, "NotFinite"):
        clip_norm(np.array([0.0, np.nan]), 1.0)
    for max_norm in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ArgumentInvalid):
            clip_norm(np.ones(2), max_norm)
