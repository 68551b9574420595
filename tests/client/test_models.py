"""Models: parameter counts and order, round trips, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from consilium_chain.task_spec import ModelSpec
from consilium_client.errors import ShapeMismatch, UpdateNotFinite
from consilium_client.models import initial_parameters, predict
from consilium_client.training import flatten, load
from hypothesis import given
from hypothesis import strategies as st

specs = st.one_of(
    st.just(ModelSpec(name="logistic")),
    st.lists(st.integers(1, 9), min_size=1, max_size=3).map(lambda hidden: ModelSpec(name="mlp", hidden=hidden)),
)


@given(specs, st.integers(1, 12), st.integers(0, 2**64))
def test_flatten_of_load_returns_the_parameters(spec: ModelSpec, columns: int, seed: int) -> None:
    start = initial_parameters(spec, columns, seed)
    assert start.dtype == np.float32
    assert start.shape == (spec.parameters(columns),)
    parameters = np.random.default_rng(seed).normal(size=start.shape).astype(np.float32)
    np.testing.assert_array_equal(flatten(load(spec, columns, parameters)), parameters)


def test_initial_parameters_depend_on_seed_alone() -> None:
    spec = ModelSpec(name="mlp", hidden=[5])
    first = initial_parameters(spec, 4, 7)
    torch.manual_seed(123)
    np.testing.assert_array_equal(initial_parameters(spec, 4, 7), first)
    assert not np.array_equal(initial_parameters(spec, 4, 8), first)
    np.testing.assert_array_equal(initial_parameters(ModelSpec(name="logistic"), 4, 7), np.zeros(5, np.float32))


def test_load_copies_the_parameters() -> None:
    """The module holds a copy: training it does not write into the caller's vector."""
    parameters = np.zeros(3, dtype=np.float32)
    module = load(ModelSpec(name="logistic"), 2, parameters)
    with torch.no_grad():
        module[0].weight += 1
    np.testing.assert_array_equal(parameters, 0)


def test_predict_matches_the_formula() -> None:
    """Order of parameters, by hand: weights (outputs, inputs) row by row, bias, next layer."""
    spec = ModelSpec(name="mlp", hidden=[2])
    w1, b1, w2, b2 = (
        np.array([[1.0, -2.0], [0.5, 3.0]]),
        np.array([0.1, -0.2]),
        np.array([[2.0, -1.0]]),
        np.array([0.3]),
    )
    parameters = np.concatenate([w1.ravel(), b1, w2.ravel(), b2]).astype(np.float32)
    x = np.array([[1.0, 2.0], [-1.0, 0.5], [0.0, 0.0]], dtype=np.float32)
    logits = np.maximum(x @ w1.T + b1, 0) @ w2.T + b2
    np.testing.assert_allclose(predict(spec, 2, parameters, x), 1 / (1 + np.exp(-logits[:, 0])), rtol=1e-6)


def test_predict_survives_extreme_logits() -> None:
    parameters = np.array([3e38, 0], dtype=np.float32)
    x = np.array([[3e38], [-3e38]], dtype=np.float32)
    np.testing.assert_array_equal(predict(ModelSpec(name="logistic"), 1, parameters, x), [1.0, 0.0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_load_refuses_parameters_that_are_not_finite(bad: float) -> None:
    with pytest.raises(UpdateNotFinite):
        load(ModelSpec(name="logistic"), 1, np.array([bad, 0], dtype=np.float32))


def test_shapes_are_checked() -> None:
    spec = ModelSpec(name="logistic")
    with pytest.raises(ShapeMismatch):
        load(spec, 2, np.zeros(4, dtype=np.float32))
    with pytest.raises(ShapeMismatch):
        predict(spec, 2, np.zeros(3, dtype=np.float32), np.zeros((5, 3), dtype=np.float32))
