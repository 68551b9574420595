"""Metrics against scikit-learn's, and their edges."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import get_args

import numpy as np
import pytest
import sklearn.metrics
from consilium_chain.tasks.data_schemas import Metric
from consilium_client.errors import DataError, ModelError
from consilium_client.models.metrics import WORTH, accuracy, auc, log_loss, macro_f1
from hypothesis import given
from hypothesis import strategies as st
from raised_faults import raises_fault


def both(likely: np.ndarray) -> np.ndarray:
    """Probabilities of two classes, from those of class 1."""
    return np.stack([1 - likely, likely], axis=1)


# Few distinct probabilities, so that ties are common.
pairs = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from([0.01, 0.2, 0.4, 0.5, 0.7, 0.99])), min_size=1, max_size=60
)


@given(pairs)
def test_metrics_equal_the_reference(rows: list[tuple[int, float]]) -> None:
    labels = np.array([row[0] for row in rows], dtype=np.int64)
    likely = np.array([row[1] for row in rows])
    probabilities = both(likely)
    assert accuracy(labels, probabilities) == pytest.approx(sklearn.metrics.accuracy_score(labels, likely >= 0.5))
    f1 = sklearn.metrics.f1_score(labels, likely >= 0.5, average="macro", zero_division=0)
    assert macro_f1(labels, probabilities) == pytest.approx(f1)
    reference = sklearn.metrics.log_loss(labels, likely, labels=[0, 1])
    assert log_loss(labels, probabilities) == pytest.approx(reference)
    if len(set(labels.tolist())) == 2:
        assert auc(labels, probabilities) == pytest.approx(sklearn.metrics.roc_auc_score(labels, likely))
    else:
        assert auc(labels, probabilities) is None


@given(st.integers(3, 6), st.integers(0, 40), st.integers(0, 2**32))
def test_metrics_of_many_classes_equal_the_reference(classes: int, more: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), random.integers(0, classes, more)])
    probabilities = random.dirichlet(np.ones(classes), len(labels))
    called = probabilities.argmax(axis=1)
    assert accuracy(labels, probabilities) == pytest.approx(sklearn.metrics.accuracy_score(labels, called))
    f1 = sklearn.metrics.f1_score(labels, called, average="macro", zero_division=0)
    assert macro_f1(labels, probabilities) == pytest.approx(f1)
    assert log_loss(labels, probabilities) == pytest.approx(
        sklearn.metrics.log_loss(labels, probabilities, labels=range(classes))
    )
    area = sklearn.metrics.roc_auc_score(labels, probabilities, multi_class="ovr", labels=range(classes))
    assert auc(labels, probabilities) == pytest.approx(area)


def test_log_loss_of_certain_mistake_is_bounded() -> None:
    assert log_loss(np.array([1, 0]), both(np.array([0.0, 1.0]))) == pytest.approx(-math.log(1e-7))


@given(pairs)
def test_more_is_better_by_every_metric(rows: list[tuple[int, float]]) -> None:
    labels = np.array([0, 1, *(row[0] for row in rows)], dtype=np.int64)
    probabilities = both(np.array([0.4, 0.7, *(row[1] for row in rows)]))
    perfect = both(labels.astype(np.float64))
    for metric in get_args(Metric):
        assert WORTH[metric](labels, perfect) >= WORTH[metric](labels, probabilities)
        assert WORTH[metric](labels, perfect) >= WORTH[metric](labels, 1 - perfect) + 1


def test_worth_is_the_metric_of_its_name() -> None:
    labels, probabilities = np.array([0, 1, 1, 0]), both(np.array([0.1, 0.8, 0.3, 0.6]))
    found = {metric: WORTH[metric](labels, probabilities) for metric in get_args(Metric)}
    assert found == {
        "log_loss": -log_loss(labels, probabilities),
        "accuracy": 0.5,
        "auc": 0.75,
        "macro_f1": 0.5,
    }
    assert WORTH["auc"](np.array([1, 1]), both(np.array([0.2, 0.9]))) == 0.5


@pytest.mark.parametrize("metric", [accuracy, auc, log_loss, macro_f1])
def test_metrics_refuse_no_rows_and_other_shapes(metric: Callable[..., object]) -> None:
    with raises_fault(DataError, "TooFewRows"):
        metric(np.array([], dtype=np.int64), np.zeros((0, 2)))
    with raises_fault(ModelError, "ShapeMismatch"):
        metric(np.array([0, 1]), np.array([[0.5, 0.5]]))
