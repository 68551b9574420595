"""Metrics of a model's probabilities (n, classes) on rows with labels (n,), which are class numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from consilium_client.errors import DataError, ModelError

LEAST_PROBABILITY = 1e-7  # one certain mistake costs at most 16.1, not infinity
BIN_EDGES = np.linspace(0.0, 1.0, 11)[1:-1]


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
    present = _ranked(labels, probabilities)
    if not present:
        return None
    return float(np.mean([area(labels == one, probabilities[:, one]) for one in present]))


def area(is_one: NDArray[np.bool_], likely: NDArray[np.float64]) -> float:
    """Chance that a random row of one ranks above a random other row, ties counting half. Both exist."""
    positives = int(np.count_nonzero(is_one))
    negatives = len(is_one) - positives
    _, inverse, counts = np.unique(likely, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts - 1) / 2  # ties share the mean of their ranks
    rank_sum = float(mean_rank[inverse][is_one].sum())
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


def pr_auc(labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float | None:
    """Average precision: precision at each distinct probability, weighted by the recall that it adds. The mean over the
    present classes, each against the rest; of two classes, of class 1. None with one class only.

    Raises ShapeMismatch, TooFewRows.
    """
    _check(labels, probabilities)
    present = _ranked(labels, probabilities)
    if not present:
        return None
    return float(np.mean([_average_precision(labels == one, probabilities[:, one]) for one in present]))


def _average_precision(is_one: NDArray[np.bool_], likely: NDArray[np.float64]) -> float:
    order = np.argsort(-likely, kind="stable")
    hits, called = np.cumsum(is_one[order]), np.arange(1, len(order) + 1)
    last = np.flatnonzero(np.diff(-likely[order], append=1.0))  # of each probability: ties are called together
    gained = np.diff(hits[last], prepend=0) / hits[-1]
    return float(np.sum(gained * hits[last] / called[last]))


def calibration_error(labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """Mean distance of confidence and accuracy over ten equal bins of the likeliest class's probability, by rows; with
    two classes, of class 1's probability and its share (Naeini et al., 2015).

    Raises ShapeMismatch, TooFewRows.
    """
    _check(labels, probabilities)
    if probabilities.shape[1] == 2:
        likely, right = probabilities[:, 1], labels == 1
    else:
        likely, right = probabilities.max(axis=1), predicted(probabilities) == labels
    bins = np.searchsorted(BIN_EDGES, likely)
    gaps = np.bincount(bins, weights=likely - right, minlength=len(BIN_EDGES) + 1)
    return float(np.abs(gaps).sum() / len(labels))


def brier(labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """Mean squared error of a row's probabilities, halved: with two classes it is that of class 1 (Brier, 1950).

    Raises ShapeMismatch, TooFewRows.
    """
    _check(labels, probabilities)
    own = np.zeros_like(probabilities)
    own[np.arange(len(labels)), labels] = 1.0
    return float(np.mean(np.sum((probabilities - own) ** 2, axis=1)) / 2)


def dice(hits: NDArray[np.float64], own: NDArray[np.float64], called: NDArray[np.float64]) -> float | None:
    """Mean of Dice = 2·TP / (2·TP + FP + FN) over the classes that are there: that some pixel has. None without any.

    Of each class (classes,): the pixels rightly called it, those that have it, those called it. A class that nobody
    marked does not count, also where it is called: else a single wrong pixel would cost the whole mean a class.
    """
    present = own > 0
    if not present.any():
        return None
    return float(np.mean(2 * hits[present] / (own[present] + called[present])))


def _ranked(labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> list[int]:
    """The classes to rank each against the rest; none if one alone is present."""
    present = [int(label) for label in np.unique(labels)]
    if len(present) < 2:
        return []
    return [1] if probabilities.shape[1] == 2 else present  # of two, class 0 against 1 is the same once more


def _check(labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> None:
    if labels.ndim != 1 or probabilities.ndim != 2 or len(probabilities) != len(labels):
        raise ModelError(
            "ShapeMismatch", what="probabilities", expected=(len(labels), "classes"), found=probabilities.shape
        )
    if len(labels) == 0:
        raise DataError("TooFewRows", rows=0, at_least=1)
