"""Models: parameter counts and order, round trips, what they compute, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.features import CategoryFeature, NumericFeature
from consilium_chain.tasks.model_specs import LogisticSpec, MlpSpec
from consilium_client.errors import ModelError
from consilium_client.models.dense import Dense
from consilium_client.models.torch_parameters import flatten
from hypothesis import given
from hypothesis import strategies as st
from raised_faults import raises_fault

specs = st.one_of(
    st.just(LogisticSpec()),
    st.lists(st.integers(1, 9), min_size=1, max_size=3).map(lambda hidden: MlpSpec(hidden=hidden)),
)


def schema(columns: int, classes: int = 2) -> TableSchema:
    features: list[NumericFeature | CategoryFeature] = [
        NumericFeature(name=f"x{at}", min=0, max=1) for at in range(columns)
    ]
    return TableSchema(features=features, label="y", classes=[f"class {at}" for at in range(classes)])


@given(specs, st.integers(1, 12), st.integers(2, 5), st.integers(0, 2**64))
def test_module_holds_the_parameters(spec: Any, columns: int, classes: int, seed: int) -> None:
    data = schema(columns, classes)
    model = Dense(spec, data)
    start = model.initial(seed)
    assert start.dtype == np.float32
    assert start.shape == (spec.parameters(data),)
    parameters = np.random.default_rng(seed).normal(size=start.shape).astype(np.float32)
    module = model.module(parameters)
    np.testing.assert_array_equal(flatten(module), parameters)
    assert module(torch.zeros(3, columns)).shape == (3, 1 if classes == 2 else classes)


@given(specs, st.integers(1, 6), st.integers(2, 5), st.integers(0, 2**64))
def test_evaluate_computes_what_the_module_does(spec: Any, columns: int, classes: int, seed: int) -> None:
    model, random = Dense(spec, schema(columns, classes)), np.random.default_rng(seed)
    parameters = random.normal(size=model.initial(0).shape).astype(np.float32)
    rows = random.normal(size=(7, columns)).astype(np.float32)
    found = model.evaluate(parameters, rows)
    logits = model.module(parameters)(torch.from_numpy(rows)).detach()
    if classes == 2:
        logits = torch.cat([torch.zeros_like(logits), logits], dim=1)
    np.testing.assert_allclose(found.predictions, torch.softmax(logits, dim=1).numpy(), atol=1e-5)
    np.testing.assert_allclose(found.predictions.sum(axis=1), 1)


def test_initial_parameters_depend_on_seed_alone() -> None:
    model = Dense(MlpSpec(hidden=[5]), schema(4))
    first = model.initial(7)
    torch.manual_seed(123)
    np.testing.assert_array_equal(model.initial(7), first)
    assert not np.array_equal(model.initial(8), first)
    np.testing.assert_array_equal(Dense(LogisticSpec(), schema(4)).initial(7), np.zeros(5, np.float32))


def test_module_copies_the_parameters() -> None:
    """Training it does not write into the caller's vector."""
    parameters = np.zeros(3, dtype=np.float32)
    module = Dense(LogisticSpec(), schema(2)).module(parameters)
    with torch.no_grad():
        next(module.parameters()).add_(1)
    np.testing.assert_array_equal(parameters, 0)


def test_evaluate_matches_the_formula() -> None:
    """Order of parameters, by hand: weights (outputs, inputs) row by row, bias, next layer."""
    w1, b1, w2, b2 = (
        np.array([[1.0, -2.0], [0.5, 3.0]]),
        np.array([0.1, -0.2]),
        np.array([[2.0, -1.0]]),
        np.array([0.3]),
    )
    parameters = np.concatenate([w1.ravel(), b1, w2.ravel(), b2]).astype(np.float32)
    x = np.array([[1.0, 2.0], [-1.0, 0.5], [0.0, 0.0]], dtype=np.float32)
    hidden = np.maximum(x @ w1.T + b1, 0)
    likely = 1 / (1 + np.exp(-(hidden @ w2.T + b2)[:, 0]))
    found = Dense(MlpSpec(hidden=[2]), schema(2)).evaluate(parameters, x)
    np.testing.assert_allclose(found.predictions, np.stack([1 - likely, likely], axis=1), rtol=1e-6)
    np.testing.assert_allclose(found.activations, hidden, rtol=1e-6)


def test_evaluate_survives_extreme_logits() -> None:
    parameters = np.array([3e38, 0], dtype=np.float32)
    x = np.array([[3e38], [-3e38]], dtype=np.float32)
    found = Dense(LogisticSpec(), schema(1)).evaluate(parameters, x)
    np.testing.assert_array_equal(found.predictions, [[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_parameters_that_are_not_finite_are_refused(bad: float) -> None:
    model, parameters = Dense(LogisticSpec(), schema(1)), np.array([bad, 0], dtype=np.float32)
    with raises_fault(ModelError, "UpdateNotFinite"):
        model.module(parameters)
    with raises_fault(ModelError, "UpdateNotFinite"):
        model.evaluate(parameters, np.zeros((1, 1), np.float32))


def test_shapes_are_checked() -> None:
    model = Dense(LogisticSpec(), schema(2))
    with raises_fault(ModelError, "ShapeMismatch"):
        model.module(np.zeros(4, dtype=np.float32))
    with raises_fault(ModelError, "ShapeMismatch"):
        model.evaluate(np.zeros(3, dtype=np.float32), np.zeros((5, 3), dtype=np.float32))
