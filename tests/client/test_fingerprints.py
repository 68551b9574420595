"""Fingerprints: the same arithmetic elsewhere agrees, and what was not computed from these rows and models does not."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.features import NumericFeature
from consilium_chain.tasks.model_specs import LogisticSpec, MlpSpec
from consilium_client.errors import FingerprintError
from consilium_client.models.dense import Dense
from consilium_client.voter.evaluating import in_batches
from consilium_client.voter.fingerprints import (
    MOST_VALUES,
    TOLERANCE,
    deviation,
    fingerprint,
    values_of,
    worst_deviation,
)
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from raised_faults import raises_fault
from threadpoolctl import threadpool_limits

COLUMNS, ROWS = 20, 400
SCHEMA = TableSchema(
    features=[NumericFeature(name=f"x{at}", min=0, max=1) for at in range(COLUMNS)], label="y", classes=["no", "yes"]
)
SPECS: list[LogisticSpec | MlpSpec] = [LogisticSpec(), *(MlpSpec(hidden=hidden) for hidden in ([16], [32, 16], [64]))]
MODELS = [Dense(spec, SCHEMA) for spec in SPECS]
IDS = ["logistic", "mlp-16", "mlp-32-16", "mlp-64"]
on_models = pytest.mark.parametrize("model", MODELS, ids=IDS)

Floats = NDArray[np.float64]
Single = NDArray[np.float32]


def parameters_of(model: Dense, seed: int = 1) -> Single:
    size = len(model.initial(0))
    return np.random.default_rng(seed).normal(0, 0.4, size).astype(np.float32)


def rows(seed: int = 2) -> Single:
    return np.random.default_rng(seed).normal(0, 1, (ROWS, COLUMNS)).astype(np.float32)


def activations(model: Dense, parameters: Single, features: Single) -> Floats:
    return model.evaluate(parameters, features).activations


def single(model: Dense, parameters: Single, features: Single) -> Floats:
    """In single precision throughout."""
    values, layers = features, model._layers(parameters)
    for weight, bias in layers[:-1]:
        values = np.maximum(values @ weight.T + bias, np.float32(0))
    if len(layers) == 1:
        values = values @ layers[0][0].T + layers[0][1]
    assert values.dtype == np.float32
    return values.astype(np.float64)


def off(shown: Floats, computed: Floats) -> list[float]:
    """By batch."""
    pairs = zip(in_batches(shown), in_batches(computed), strict=True)
    return [deviation(fingerprint(one), other) for one, other in pairs]


def bfloat16(parameters: Single) -> Single:
    rounded = (parameters.view(np.uint32) + np.uint32(0x8000)) & np.uint32(0xFFFF0000)
    return rounded.view(np.float32)


# The same


@on_models
def test_single_precision_agrees_with_double_by_a_hundredth_of_what_is_allowed(model: Dense) -> None:
    computed = activations(model, parameters_of(model), rows())
    assert max(off(single(model, parameters_of(model), rows()), computed)) < TOLERANCE / 100


@on_models
def test_other_threads_and_another_order_of_rows_agree(model: Dense) -> None:
    order = np.random.default_rng(3).permutation(ROWS)
    computed = activations(model, parameters_of(model), rows())
    with threadpool_limits(1):
        alone = activations(model, parameters_of(model), rows())
    shuffled = np.empty_like(computed)
    shuffled[order] = activations(model, parameters_of(model), rows()[order])
    one_by_one = np.concatenate([activations(model, parameters_of(model), row[None]) for row in rows()])
    for other in (alone, shuffled, one_by_one):
        assert max(off(other, computed)) < 1e-7  # what is left is the value's own precision


def batches(most: float) -> st.SearchStrategy[Floats]:
    shapes = arrays.array_shapes(min_dims=2, max_dims=2, max_side=20)
    numbers = st.floats(-most, most) | st.sampled_from([0.0, 1.0, -1.0])
    return arrays.arrays(np.float64, shapes, elements=numbers)


BATCHES = batches(1e30)


@given(batches(1e300))
def test_a_batchs_own_fingerprint_agrees(batch: Floats) -> None:
    shown = fingerprint(batch)
    assert len(shown) == 8 * values_of(batch.size)
    assert deviation(shown, batch) < 2.0**-23


@given(BATCHES, st.integers(0, 2**32))
def test_which_of_equal_activations_are_shown_is_no_matter(batch: Floats, seed: int) -> None:
    """Two machines may rank what is nearly the same one way and the other."""
    assume(np.abs(batch).max() > 1e-30)
    noise = np.random.default_rng(seed).uniform(-1, 1, batch.shape) * np.abs(batch).max() * TOLERANCE / 4
    assert deviation(fingerprint(batch + noise), batch) < TOLERANCE


# Not the same


@on_models
def test_another_batch_is_told_apart(model: Dense) -> None:
    batches = in_batches(activations(model, parameters_of(model), rows()))
    for index, batch in enumerate(batches):
        assert deviation(fingerprint(batches[index - 1]), batch) > 1_000 * TOLERANCE


@on_models
def test_another_model_is_told_apart(model: Dense) -> None:
    computed = activations(model, parameters_of(model), rows())
    assert min(off(activations(model, parameters_of(model, seed=9), rows()), computed)) > 1_000 * TOLERANCE


@on_models
def test_weights_rounded_to_bfloat16_are_told_apart(model: Dense) -> None:
    computed = activations(model, parameters_of(model), rows())
    assert min(off(activations(model, bfloat16(parameters_of(model)), rows()), computed)) > 5 * TOLERANCE


@on_models
def test_a_model_off_by_a_ten_thousandth_is_told_apart_and_by_a_ten_millionth_not(model: Dense) -> None:
    own = parameters_of(model)
    computed, noise = activations(model, own, rows()), np.random.default_rng(4).normal(0, 1, own.size)
    for size, least, most in ((1e-4, TOLERANCE, 1.0), (1e-7, 0.0, TOLERANCE)):
        changed = (own + size * noise).astype(np.float32)
        found = off(activations(model, changed, rows()), computed)
        assert least < min(found)
        assert max(found) < most


@on_models
def test_one_row_left_out_shows_where_it_has_a_large_activation(model: Dense) -> None:
    """A cheater cannot know these rows beforehand."""
    for batch in in_batches(activations(model, parameters_of(model), rows())):
        row = int(np.unravel_index(np.abs(batch).argmax(), batch.shape)[0])
        skipped = batch.copy()
        skipped[row] = skipped[row - 1]
        assert deviation(fingerprint(skipped), batch) > TOLERANCE


@given(st.integers(0, 2**32), st.data())
def test_a_smaller_activation_in_place_of_a_large_one_is_told_apart(seed: int, data: st.DataObject) -> None:
    """True values of activations that are not the largest: nothing that is shown is wrong."""
    batch = np.random.default_rng(seed).permutation(np.arange(1.0, 257.0)).reshape(16, 16)
    shown = np.frombuffer(fingerprint(batch), "<u4,<f4").copy()
    left_out = np.setdiff1d(np.arange(256), shown["f0"])
    place = data.draw(st.integers(0, MOST_VALUES - 1))
    shown["f0"][place] = other = data.draw(st.sampled_from(left_out.tolist()))
    shown["f1"][place] = batch.ravel()[other]
    assert deviation(np.sort(shown, order="f0").tobytes(), batch) >= 1 / 256 > TOLERANCE


@given(BATCHES, st.data())
def test_a_changed_value_is_told_apart(batch: Floats, data: st.DataObject) -> None:
    values = np.frombuffer(fingerprint(batch), "<u4,<f4").copy()
    scale = float(np.abs(batch).max())
    assume(scale > 1e-30)
    place = data.draw(st.integers(0, len(values) - 1))
    values["f1"][place] = np.float32(values["f1"][place] + scale * 2 * TOLERANCE)
    assert deviation(values.tobytes(), batch) > TOLERANCE


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_agrees_with_nothing(value: float) -> None:
    for batch in (np.ones((2, 2)), np.zeros((2, 2))):
        values = np.frombuffer(fingerprint(batch), "<u4,<f4").copy()
        values["f1"][0] = value
        assert deviation(values.tobytes(), batch) == np.inf


def test_of_zeros_nothing_but_zeros_agree() -> None:
    assert deviation(fingerprint(np.zeros((4, 4))), np.zeros((4, 4))) == 0.0
    assert deviation(fingerprint(np.full((4, 4), 1e-6)), np.zeros((4, 4))) == np.inf


# Malformed


@given(st.binary(max_size=300), st.integers(1, 16), st.integers(1, 8), st.integers(1, 3))
def test_any_bytes_are_compared_or_refused_by_name(raw: bytes, height: int, width: int, models: int) -> None:
    batch = np.ones((height, width))
    for shown in (raw, raw[: 8 * values_of(batch.size) * models]):
        with suppress(FingerprintError):
            assert worst_deviation(shown, [batch] * models) >= 0.0


@pytest.mark.parametrize("places", [[0, 0], [1, 0], [0, 4], [0, 2**32 - 1]])
def test_places_ascend_within_the_batch(places: list[int]) -> None:
    shown = np.array([(place, 1.0) for place in places], "<u4,<f4")
    with raises_fault(FingerprintError, "FingerprintMalformed", match="must ascend and stay below 4"):
        deviation(shown.tobytes(), np.ones((2, 2)))


def test_a_fingerprint_is_of_as_many_models_as_it_should() -> None:
    batch = np.arange(16.0).reshape(4, 4)
    shown = fingerprint(batch)
    assert worst_deviation(shown * 3, [batch] * 3) < 1e-7
    for models in (2, 4):
        with raises_fault(FingerprintError, "FingerprintMalformed"):
            worst_deviation(shown * 3, [batch] * models)


def test_models_of_any_width_have_each_a_fingerprint_of_its_own() -> None:
    """So the one with small activations is checked as well as the one with large ones."""
    random = np.random.default_rng(0)
    large, small = 100 * random.normal(size=(40, 16)), random.normal(size=(40, 2))
    shown = fingerprint(large) + fingerprint(small)
    assert worst_deviation(shown, [large, small]) < 1e-7
    assert worst_deviation(shown, [large, small * 1.001]) > TOLERANCE
    assert worst_deviation(shown, [large * 1.001, small]) > TOLERANCE
    few = [large[:1, :3], small[:1]]
    assert worst_deviation(b"".join(map(fingerprint, few)), few) < 1e-7
    for wrong in (shown[:-8], shown + bytes(8), fingerprint(small) + fingerprint(large[:, :3]), b""):
        with raises_fault(FingerprintError, "FingerprintMalformed"):
            worst_deviation(wrong, few)
