"""Metrics of a model's probabilities (n, classes) on rows with labels (n,), which are class numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np
from consilium_chain.tasks.data_schemas import Metric
from numpy.typing import NDArray

from consilium_client.errors import DataError, ModelError

LEAST_PROBABILITY = 1e-7  # one certain mistake costs at most 16.1, not infinity


def log_loss(labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """Mean negative log-likelihood in nats. Raises ShapeMismatch, TooFewRows."""
    return float(losses(labels, probabilities).mean())


def losses(labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each row's negative log-likelihood, float64 (n,). Raises ShapeMismatch, TooFewRows."""
    _check(labels, probabilities)
    own = probabilities[np.arange(len(labels)), labels]
    found: NDArray[np.float64] = -np.log(np.clip(own, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY))
    return found


def predicted(probabilities: NDArray[np.float64]) -> NDArray[np.int64]:
    """The likeliest class (n,); the last of equals, so that with two classes one half is class 1."""
    found: NDArray[np.int64] = probabilities.shape[1] - 1 - np.argmax(probabilities[:, ::-1], axis=1)
    return found


def accuracy(labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """Share of rows whose likeliest class is theirs. Raises ShapeMismatch, TooFewRows."""
    _check(labels, probabilities)
    return float(np.mean(predicted(probabilities) == labels))


def auc(labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float | None:
    """Chance that a random row of a class ranks above a row of another class by that class's probability, with ties
    counting half: the mean over the present classes, each against the rest. None with one class only.

    Raises ShapeMismatch, TooFewRows.
    """
    _check(labels, probabilities)
    present = [int(label) for label in np.unique(labels)]
    if len(present) < 2:
        return None
    if probabilities.shape[1] == 2:  # class 0 against 1 is the same once more
        present = [1]
    return float(np.mean([_area(labels == one, probabilities[:, one]) for one in present]))


def _area(is_one: NDArray[np.bool_], likely: NDArray[np.float64]) -> float:
    positives = int(np.count_nonzero(is_one))
    negatives = len(is_one) - positives
    _, place, counts = np.unique(likely, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts - 1) / 2  # ties share the mean of their ranks
    rank_sum = float(mean_rank[place][is_one].sum())
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


def macro_f1(labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """Mean of F1 = 2·TP / (2·TP + FP + FN) over the present and the predicted classes.

    Raises ShapeMismatch, TooFewRows.
    """
    _check(labels, probabilities)
    called = predicted(probabilities)
    scores = []
    for one in range(probabilities.shape[1]):
        hits = np.count_nonzero((labels == one) & (called == one))
        named = np.count_nonzero(labels == one) + np.count_nonzero(called == one)  # 2·TP + FP + FN
        if named:
            scores.append(2 * hits / named)
    return float(np.mean(scores))


METRICS: Mapping[Metric, Callable[[NDArray[np.int64], NDArray[np.float64]], float | None]] = {
    "accuracy": accuracy,
    "auc": auc,
    "macro_f1": macro_f1,
    "log_loss": log_loss,
}


def measured(
    labels: NDArray[np.int64], probabilities: NDArray[np.float64], metrics: Collection[Metric] = tuple(METRICS)
) -> dict[str, float | None]:
    """All metrics by name, None where one has no meaning: those that are not in `metrics` (a schema's), and `auc`
    without a second class. Raises ShapeMismatch, TooFewRows.
    """
    return {name: metric(labels, probabilities) if name in metrics else None for name, metric in METRICS.items()}


def _auc_or_half(labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    known = auc(labels, probabilities)
    return 0.5 if known is None else known


def _gained(labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    return -log_loss(labels, probabilities)


WORTH: Mapping[Metric, Callable[[NDArray[np.int64], NDArray[np.float64]], float]] = {
    "log_loss": _gained,
    "accuracy": accuracy,
    "auc": _auc_or_half,
    "macro_f1": macro_f1,
}
"""By a task's metric, with more being better: log_loss has its sign changed. The AUC of a single class is 0.5."""


def _check(labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> None:
    if labels.ndim != 1 or probabilities.ndim != 2 or len(probabilities) != len(labels):
        raise ModelError(
            "ShapeMismatch", what="probabilities", expected=(len(labels), "classes"), found=probabilities.shape
        )
    if len(labels) == 0:
        raise DataError("TooFewRows", rows=0, at_least=1)
