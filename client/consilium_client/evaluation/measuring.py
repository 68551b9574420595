"""A finished model on labelled rows: metrics with intervals, calibration, subgroups and importance. Pure.

An interval is the bootstrap's (Efron 1979): rows are drawn again with replacement, and the middle 95 % of the metric's
values are kept. Its draws follow from the seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from consilium_chain.evaluations.measures import RESAMPLES, Bin, Calibration, Evaluated, Group, Importance, Measure
from consilium_chain.tasks.data_schemas import DataSchema, TableSchema
from consilium_chain.tasks.questions import Classification, Metric, Multilabel, Question
from numpy.typing import NDArray

from consilium_client.data.answers import answers_of
from consilium_client.data.examples import Labels
from consilium_client.data.table.reader import Table
from consilium_client.evaluation.importance import importances, subgroups
from consilium_client.models import Evaluation
from consilium_client.models.objectives import objective_of
from consilium_client.models.objectives.base import Objective, Predictions

LEVEL = 0.95
LEAST_ROWS = 10  # for an interval: below, draws of the same few rows say little
BINS = 10
MOST_SITES = 256
Z = 1.959964  # the normal distribution's 97.5th percentile

Again = Callable[[Table], Evaluation]


@dataclass(frozen=True)
class Rows:
    """Labelled rows of a schema. `labels`: (n, …). `found`: a model's evaluation of the same n rows."""

    schema: DataSchema
    labels: Labels
    found: Evaluation
    seed: int
    resamples: int = RESAMPLES

    def group(self, number: int, name: str | None, of: NDArray[np.bool_]) -> Group:
        """Those of `of` (n,). Each `number` has its own draws. Raises TooFewRows."""
        (answers, predictions), rows = self.found.answers(self.labels), self.found.rows
        random, part = np.random.default_rng([self.seed, number]), of if rows is None else of[rows]
        numbers = None if rows is None else np.unique(rows[part], return_inverse=True)[1]
        objective = objective_of(self.schema)
        measures = measured(answers[part], predictions[part], objective, random, self.resamples, numbers)
        own = self.labels[of]
        return Group(name=name, rows=len(own), classes=dict(answers_of(self.schema).counts(own)), measures=measures)

    def evaluated(self, table: tuple[Table, Again] | None) -> Evaluated:
        """All of them. `table`: the rows, if they are of a table, and the evaluation of others like them.

        Raises TooFewRows.
        """
        schema, labels = self.schema, self.labels
        parts, by, important = list[tuple[str, NDArray[np.bool_]]](), None, tuple[Importance, ...]()
        if table is not None and isinstance(schema, TableSchema):
            (rows, again), by = table, schema.asked.shown[0]
            parts, worth = list(subgroups(rows, schema)), objective_of(schema).measures[by].worth
            important = importances(rows, schema, lambda dealt: worth(*again(dealt).answers(labels)), self.seed)
        return Evaluated(
            all_rows=self.group(0, None, np.ones(len(labels), np.bool_)),
            calibration=calibration(labels, self.found.predictions, schema.asked),
            subgroups=tuple(self.group(MOST_SITES + at, name, of) for at, (name, of) in enumerate(parts, 1)),
            importance_by=by, importance=important,
        )  # fmt: skip


def measured(
    labels: Labels, predictions: Predictions, objective: Objective, random: np.random.Generator, resamples: int,
    rows: NDArray[np.int64] | None = None,
) -> dict[Metric, Measure]:  # fmt: skip
    """Each of the objective's metrics with its interval. `rows`: the number of each one's row, ascending from 0, where
    a row has several: rows are drawn, each with all of its own. Raises TooFewRows.
    """
    names, again = list(objective.measures), objective.measured_again(labels, predictions)
    values = again(np.arange(len(labels)))
    draws: dict[str, list[float]] = {name: [] for name in names}
    parts = None if rows is None else np.split(np.arange(len(labels)), np.flatnonzero(np.diff(rows)) + 1)
    many = len(labels) if parts is None else len(parts)
    for _ in range(resamples if many >= LEAST_ROWS else 0):
        drawn = random.integers(many, size=many)
        if parts is not None:
            drawn = np.concatenate([parts[one] for one in drawn.tolist()])
        for name, value in again(drawn).items():
            if value is not None:
                draws[name].append(value)
    return {name: _measure(values[name], draws[name], resamples) for name in names}


def _measure(value: float | None, draws: Sequence[float], resamples: int) -> Measure:
    if value is None or not draws or 2 * len(draws) < resamples:
        return Measure(value=value, low=None, high=None)
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Measure(value=value, low=float(low), high=float(high))


def calibration(labels: Labels, predictions: Predictions, asked: Question) -> tuple[Calibration, ...]:
    """The curve of each class or label; of two classes the second's, since the other's is its mirror image. None of
    other questions.
    """
    if isinstance(asked, Multilabel):
        each = zip(asked.labels, labels.T, predictions.T, strict=True)
        return tuple(_curve(name, own == 1, likely) for name, own, likely in each)
    if not isinstance(asked, Classification):
        return ()
    curves = range(1, 2) if len(asked.classes) == 2 else range(len(asked.classes))
    return tuple(_curve(asked.classes[one], labels == one, predictions[:, one]) for one in curves)


def _curve(name: str, is_class: NDArray[np.bool_], likely: NDArray[np.float64]) -> Calibration:
    edges = np.linspace(0.0, 1.0, BINS + 1)
    indices = np.searchsorted(edges[1:-1], likely)
    bins = tuple(
        _bin(edges[at : at + 2].tolist(), is_class[indices == at], likely[indices == at])
        for at in np.unique(indices).tolist()
    )
    error = sum(one.rows * abs(one.predicted - one.observed) for one in bins) / len(is_class)
    return Calibration(class_name=name, error=error, bins=bins)


def _bin(edges: list[float], is_class: NDArray[np.bool_], likely: NDArray[np.float64]) -> Bin:
    above, up_to = edges
    observed, rows = float(is_class.mean()), len(likely)
    low, high = wilson(observed, rows)
    return Bin(
        above=above, up_to=up_to, rows=rows, predicted=float(likely.mean()), observed=observed, low=low, high=high
    )


def wilson(share: float, rows: int) -> tuple[float, float]:
    """The 95 % interval of a share of so many rows."""
    middle = (share + Z**2 / (2 * rows)) / (1 + Z**2 / rows)
    half = Z / (1 + Z**2 / rows) * math.sqrt(share * (1 - share) / rows + Z**2 / (4 * rows**2))
    return max(0.0, middle - half), min(1.0, middle + half)
