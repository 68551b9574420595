"""Scores of honest and harmful cohorts on tables of a rare class: six sites that differ, trained by the nodes' code.

Each site and each voter draws its own shift of the columns' means, of the coefficients and of the prevalence. In each
round three of the six sites make a cohort; the model moves on by all six.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from consilium_chain.tasks.questions import Classification, Metric
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.models import Vector, model_of, start_of
from consilium_client.models.objectives.classification import Classify
from consilium_client.models.training import train
from consilium_lab.adversaries.nodes import SIGN_FLIP_FACTOR
from consilium_lab.demo.references import over_the_wire
from numpy.typing import NDArray

Reals = NDArray[np.float64]
METRICS: tuple[Metric, ...] = ("log_loss", "brier", "accuracy", "calibration_error", "auc", "macro_f1", "pr_auc")
MEASURES = Classify(Classification("died", ("no", "yes"))).measures
Rows = tuple[NDArray[np.float32], NDArray[np.int64]]

COLUMNS, SITES, SITE_ROWS, ROUNDS, VOTERS = 12, 6, 500, 8, 15
STRENGTH = 1.3  # length of the true coefficients: the best AUC is about .8
MEANS_VARY, COEFFICIENTS_VARY, PREVALENCE_VARIES = 0.2, 0.12, 0.25  # between sites; the last in log odds
LEAST_PART = 0.6  # of the rows of the rarest class that voters have on average, a task asks for so many
HONEST, SIGN, LABELS, ONE_SIGN = "honest", "sign-flipped", "label-flipped", "one sign-flipped"
LABELS_TEN, NOISE, SCALED = "label-flipped, times ten", "noise", "honest, times ten"
TEN = 10.0


def task_of(sections: Mapping[str, Any], prevalence: float | None = None) -> TaskSpec:
    """`prevalence`: of class 1, that the task states; None without."""
    columns = [{"name": f"x{k}", "min": -6, "max": 6, "mean": 0, "deviation": 1} for k in range(COLUMNS)]
    start = {} if prevalence is None else {"start": {"name": "seed", "prevalence": [1 - prevalence, prevalence]}}
    return TaskSpec.model_validate(
        {
            "name": "a rare class", "data": {"label": "died", "classes": ["no", "yes"], "features": columns},
            "model": {"name": "logistic"},
            "rounds": {"cohorts": 2, "min_hospitals": SITES, "max_hospitals": SITES}, **start, **sections,
        }
    )  # fmt: skip


def asked_of_class(prevalence: float, rows: int) -> int:
    """The `least_of_class` of a task whose voters have so many rows."""
    return max(1, math.floor(LEAST_PART * min(prevalence, 1 - prevalence) * rows))


class World:
    """One draw of the truth, and of sites by it."""

    def __init__(self, prevalence: float, seed: int) -> None:
        self.prevalence, self.seed = prevalence, seed
        self.random = np.random.default_rng([seed, round(1_000 * prevalence)])
        direction = self.random.standard_normal(COLUMNS)
        self._coefficients = direction * STRENGTH / np.linalg.norm(direction)
        self._intercept = _intercept(prevalence, self.random.standard_normal((20_000, COLUMNS)) @ self._coefficients)
        self.sites = [self.drawn(SITE_ROWS, 1) for _ in range(SITES)]

    def drawn(self, rows: int, of_class: int) -> Rows:
        """Rows of one new site, at least `of_class` of each class; another site if one has fewer."""
        while True:
            means = self.random.normal(0, MEANS_VARY, COLUMNS)
            coefficients = self._coefficients + self.random.normal(0, COEFFICIENTS_VARY, COLUMNS)
            intercept = self._intercept + self.random.normal(0, PREVALENCE_VARIES)
            columns = self.random.normal(means, 1, (rows, COLUMNS)).astype(np.float32)
            chance = 1 / (1 + np.exp(-(columns @ coefficients + intercept)))
            labels = (self.random.random(rows) < chance).astype(np.int64)
            if of_class <= labels.sum() <= rows - of_class:
                return columns, labels

    def everybody(self, rows: int) -> Rows:
        """Rows of twenty new sites."""
        parts = [self.drawn(rows // 20, 0) for _ in range(20)]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _intercept(prevalence: float, logits: Reals) -> float:
    low, high = -20.0, 20.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if np.mean(1 / (1 + np.exp(-(logits + middle)))) > prevalence else (middle, high)
    return low


@dataclass(frozen=True)
class Scored:
    """Scores of a round's cohorts, (voters, metrics) in the order of `METRICS`. `conduct`: of the cohort's sites."""

    round: int
    conduct: str
    rows: int
    scores: Reals


def updates(spec: TaskSpec, base: Vector, sites: list[Rows], seed: int) -> Reals:
    """As they enter the sums, (sites, p)."""
    return np.stack(
        [
            over_the_wire(np.subtract(train(spec, base, *site, seed + index), base, dtype=np.float64), spec)
            for index, site in enumerate(sites)
        ]
    )


def played(spec: TaskSpec, prevalence: float, seed: int, sizes: tuple[int, ...]) -> Iterator[Scored]:
    """All rounds of one task. Each voter keeps its rows."""
    world, model = World(prevalence, seed), model_of(spec)
    voters = {rows: [world.drawn(rows, asked_of_class(prevalence, rows)) for _ in range(VOTERS)] for rows in sizes}
    flipped = [(columns, 1 - labels) for columns, labels in world.sites]
    base = start_of(spec, seed).astype(np.float64)

    def worths(parameters: Reals, rows: Rows) -> list[float]:
        answers = model.evaluate(parameters.astype(np.float32), rows[0]).predictions
        return [MEASURES[metric].worth(rows[1], answers) for metric in METRICS]

    for number in range(1, ROUNDS + 1):
        start, draw = base.astype(np.float32), 1_000 * seed + 10 * number
        honest = updates(spec, start, world.sites, draw)
        signs = np.stack([over_the_wire(SIGN_FLIP_FACTOR * update, spec) for update in honest])
        order = world.random.permutation(SITES)
        first, second = order[: SITES // 2], order[SITES // 2 :]
        labels = updates(spec, start, [flipped[index] for index in first], draw)
        noise = world.random.standard_normal(honest[first].shape) * spec.update.clip_norm / math.sqrt(honest.shape[1])
        cohorts = [
            (HONEST, honest[first]), (HONEST, honest[second]), (SIGN, signs[first]), (LABELS, labels),
            *((name, np.stack([over_the_wire(one, spec) for one in sent])) for name, sent in (
                (LABELS_TEN, TEN * labels), (NOISE, noise), (SCALED, TEN * honest[first]),
            )),
            (ONE_SIGN, np.concatenate([signs[first[:1]], honest[first[1:]]])),
        ]  # fmt: skip
        for rows, those in voters.items():
            before = np.array([worths(base, own) for own in those])
            for conduct, sent in cohorts:
                after = np.array([worths(base + sent.mean(axis=0), own) for own in those])
                yield Scored(number, conduct, rows, after - before)
        base = base + honest.mean(axis=0)


def calibration(spec: TaskSpec, prevalence: float, seed: int, rounds: int) -> tuple[float, float]:
    """The mean probability of class 1 after so many rounds, and its share, on rows of new sites."""
    world, model = World(prevalence, seed), model_of(spec)
    base = start_of(spec, seed).astype(np.float64)
    for number in range(1, rounds + 1):
        base = base + updates(spec, base.astype(np.float32), world.sites, 1_000 * seed + 10 * number).mean(axis=0)
    columns, labels = world.everybody(20_000)
    predicted = model.evaluate(base.astype(np.float32), columns).predictions[:, 1]
    return float(predicted.mean()), float(labels.mean())
