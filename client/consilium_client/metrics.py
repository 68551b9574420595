"""What a model's probabilities are worth on labelled rows. Labels are 0/1 (n,), probabilities of class 1 (n,)."""

from __future__ import annotations

import numpy as np
from consilium_chain.task_spec import Metric
from numpy.typing import NDArray

from consilium_client.errors import ShapeMismatch, TooFewRows

LEAST_PROBABILITY = 1e-7  # one certain mistake costs at most 16.1, not infinity


def log_loss(labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """Mean negative log-likelihood in nats. Raises ShapeMismatch, TooFewRows."""
    _check(labels, probabilities)
    clipped = np.clip(probabilities, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    return float(-np.mean(np.where(labels == 1, np.log(clipped), np.log1p(-clipped))))


def accuracy(labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """Share of rows on the right side of one half. Raises ShapeMismatch, TooFewRows."""
    _check(labels, probabilities)
    return float(np.mean((probabilities >= 0.5) == (labels == 1)))


def auc(labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float | None:
    """Chance that a random row of class 1 ranks above one of class 0, ties counting half; None with one class only.

    Raises ShapeMismatch, TooFewRows.
    """
    _check(labels, probabilities)
    positives = int(np.count_nonzero(labels == 1))
    negatives = len(labels) - positives
    if positives == 0 or negatives == 0:
        return None
    _, place, counts = np.unique(probabilities, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts - 1) / 2  # ties share the mean of their ranks
    rank_sum = float(mean_rank[place][labels == 1].sum())
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


def macro_f1(labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """Mean over the classes that are there or predicted of F1 = 2·TP / (2·TP + FP + FN), at one half.

    Raises ShapeMismatch, TooFewRows.
    """
    _check(labels, probabilities)
    predicted = (probabilities >= 0.5).astype(np.int64)
    scores = []
    for name in (0, 1):
        hits = np.count_nonzero((labels == name) & (predicted == name))
        named = np.count_nonzero(labels == name) + np.count_nonzero(predicted == name)  # 2·TP + FP + FN
        if named:
            scores.append(2 * hits / named)
    return float(np.mean(scores))


def worth(metric: Metric, labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """By a task's metric, so that more is better: log_loss with its sign changed. AUC of one class alone is 0.5.

    Raises ShapeMismatch, TooFewRows.
    """
    if metric == "log_loss":
        return -log_loss(labels, probabilities)
    if metric == "accuracy":
        return accuracy(labels, probabilities)
    if metric == "macro_f1":
        return macro_f1(labels, probabilities)
    known = auc(labels, probabilities)
    return 0.5 if known is None else known


def _check(labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> None:
    if labels.ndim != 1 or probabilities.shape != labels.shape:
        raise ShapeMismatch("probabilities", labels.shape, probabilities.shape)
    if len(labels) == 0:
        raise TooFewRows(0, 1)
