"""Metrics against scikit-learn's, and their edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn.metrics
from consilium_client.errors import ShapeMismatch, TooFewRows
from consilium_client.metrics import accuracy, auc, log_loss
from hypothesis import given
from hypothesis import strategies as st

# Few distinct probabilities, so that ties are common.
pairs = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from([0.01, 0.2, 0.4, 0.5, 0.7, 0.99])), min_size=1, max_size=60
)


@given(pairs)
def test_metrics_equal_the_reference(rows: list[tuple[int, float]]) -> None:
    labels = np.array([row[0] for row in rows], dtype=np.int64)
    probabilities = np.array([row[1] for row in rows])
    assert accuracy(labels, probabilities) == pytest.approx(
        sklearn.metrics.accuracy_score(labels, probabilities >= 0.5)
    )
    reference = sklearn.metrics.log_loss(labels, probabilities, labels=[0, 1])
    assert log_loss(labels, probabilities) == pytest.approx(reference)
    if len(set(labels.tolist())) == 2:
        assert auc(labels, probabilities) == pytest.approx(sklearn.metrics.roc_auc_score(labels, probabilities))
    else:
        assert auc(labels, probabilities) is None


def test_log_loss_of_certain_mistake_is_bounded() -> None:
    assert log_loss(np.array([1, 0]), np.array([0.0, 1.0])) == pytest.approx(-math.log(1e-7))


@pytest.mark.parametrize("metric", [accuracy, auc, log_loss])
def test_metrics_refuse_no_rows_and_other_shapes(metric) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TooFewRows):
        metric(np.array([], dtype=np.int64), np.array([]))
    with pytest.raises(ShapeMismatch):
        metric(np.array([0, 1]), np.array([0.5]))
