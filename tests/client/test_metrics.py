"""Metrics against scikit-learn's, and their edges."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import sklearn.metrics
from consilium_chain.tasks.questions import Classification
from consilium_client.errors import DataError, ModelError
from consilium_client.models.metrics import accuracy, auc, brier, calibration_error, log_loss, macro_f1, pr_auc
from consilium_client.models.objectives.classification import Classify
from hypothesis import given
from hypothesis import strategies as st
from raised_faults import raises_fault

YES_OR_NO = Classify(Classification("label", ("no", "yes")))


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
    for measure in YES_OR_NO.measures.values():
        assert measure.worth(labels, perfect) >= measure.worth(labels, probabilities)
        assert measure.worth(labels, perfect) > measure.worth(labels, 1 - perfect)


def test_worth_is_the_metric_of_its_name() -> None:
    labels, probabilities = np.array([0, 1, 1, 0]), both(np.array([0.1, 0.8, 0.3, 0.6]))
    found = {metric: measure.worth(labels, probabilities) for metric, measure in YES_OR_NO.measures.items()}
    assert found == {
        "log_loss": -log_loss(labels, probabilities),
        "accuracy": 0.5,
        "auc": 0.75,
        "macro_f1": 0.5,
        "pr_auc": pytest.approx(5 / 6),
        "calibration_error": pytest.approx(-0.4),
        "brier": pytest.approx(-(0.01 + 0.04 + 0.49 + 0.36) / 4),
    }
    assert YES_OR_NO.measures["auc"].worth(np.array([1, 1]), both(np.array([0.2, 0.9]))) == 0.5


@given(pairs)
def test_precision_and_brier_equal_the_reference(rows: list[tuple[int, float]]) -> None:
    labels = np.array([0, 1, *(row[0] for row in rows)], dtype=np.int64)
    likely = np.array([0.4, 0.7, *(row[1] for row in rows)])
    assert pr_auc(labels, both(likely)) == pytest.approx(sklearn.metrics.average_precision_score(labels, likely))
    assert brier(labels, both(likely)) == pytest.approx(sklearn.metrics.brier_score_loss(labels, likely))


@given(st.integers(3, 6), st.integers(0, 40), st.integers(0, 2**32))
def test_precision_of_many_classes_equals_the_reference(classes: int, more: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), random.integers(0, classes, more)])
    probabilities = random.dirichlet(np.ones(classes), len(labels))
    each = [sklearn.metrics.average_precision_score(labels == one, probabilities[:, one]) for one in range(classes)]
    assert pr_auc(labels, probabilities) == pytest.approx(np.mean(each))


def test_calibration_error_is_none_of_honest_probabilities_and_the_gap_of_others() -> None:
    random = np.random.default_rng(0)
    likely = random.uniform(0, 1, 200_000)
    labels = (random.uniform(0, 1, 200_000) < likely).astype(np.int64)
    assert calibration_error(labels, both(likely)) < 0.005
    assert calibration_error(np.array([1] * 5 + [0] * 5), both(np.full(10, 0.8))) == pytest.approx(0.3)


@pytest.mark.parametrize("metric", [accuracy, auc, log_loss, macro_f1, pr_auc, calibration_error, brier])
def test_metrics_refuse_no_rows_and_other_shapes(metric: Callable[..., object]) -> None:
    with raises_fault(DataError, "TooFewRows"):
        metric(np.array([], dtype=np.int64), np.zeros((0, 2)))
    with raises_fault(ModelError, "ShapeMismatch"):
        metric(np.array([0, 1]), np.array([[0.5, 0.5]]))
