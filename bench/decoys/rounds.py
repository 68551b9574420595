"""Rounds of federated averaging, played in this process with the nodes' own code, as material for studying decoys.

Everything that is public in a round is kept: the base, each cohort's lanes and weight, the committee's scores.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from consilium_chain.tasks.model_specs import LogisticSpec, MlpSpec, widths
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.examples import Examples
from consilium_client.data.standardise import sums_of
from consilium_client.models import Inputs, model_of
from consilium_client.models.metrics import log_loss
from consilium_client.models.training import train
from consilium_lab.demo.datasets import DemoData, deal_heart, deal_wdbc, examples_of
from consilium_lab.demo.references import row_weight
from consilium_lab.demo.task_file import TaskSettings, task_spec
from consilium_zk.decoys import progress_after
from consilium_zk.quantise import Quantiser, clip_norm
from numpy.random import Generator
from numpy.typing import NDArray

HEART = Path(__file__).resolve().parents[3] / "shared" / "data" / "heart"

Vector = NDArray[np.float64]
Lanes = NDArray[np.uint64]


@dataclass(frozen=True)
class Scenario:
    """A task to play. `changes` are sections of the demo's task file that differ; `noise` is the deviation of the
    Gaussian noise that a hospital adds to each value of its update, as with local differential privacy."""

    name: str
    label: str
    data: str
    hospitals: int
    voters: int
    cohorts: int
    rounds: int
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    noise: float = 0.0

    def deal(self, seed: int) -> DemoData:
        if self.data == "heart":
            return deal_heart(HEART, self.voters, seed)
        return deal_wdbc(self.hospitals, self.voters, seed)

    def spec(self, data: DemoData) -> TaskSpec:
        plain = task_spec(data, TaskSettings(rounds=self.rounds, cohorts=self.cohorts, masked=False)).model_dump()
        return TaskSpec.model_validate(
            {**plain, **{name: {**plain[name], **new} for name, new in self.changes.items()}}
        )


@dataclass(frozen=True)
class Sum:
    """A published sum: lanes (p,), total weight, and the greatest common divisor of its members' weights."""

    lanes: Lanes
    weight: int
    divisor: int


@dataclass
class Round:
    """What everybody can read once a round is published, and the committee's scores of it."""

    number: int
    spec: TaskSpec
    base: NDArray[np.float32]
    start: NDArray[np.float32]  # initial parameters of the task
    progress: NDArray[np.int64]  # from there to the base, in quantiser steps
    earlier: list[Round]
    cohorts: list[Sum] = field(default_factory=list)
    again: list[Sum] = field(default_factory=list)  # the same cohorts, had their hospitals shuffled rows otherwise
    scores: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))  # (voters, cohorts)
    accepted: list[int] = field(default_factory=list)

    @cached_property
    def quantiser(self) -> Quantiser:
        return Quantiser(self.spec.update.bits, self.spec.update.value_range)

    def mean_update(self, published: Sum) -> Vector:
        return self.quantiser.dequantise_mean(published.lanes, published.weight)

    @cached_property
    def updates(self) -> list[Vector]:
        return [self.mean_update(cohort) for cohort in self.cohorts]

    @cached_property
    def joint(self) -> Vector:
        """Weighted mean of all cohorts' updates."""
        weights = [cohort.weight for cohort in self.cohorts]
        joint: Vector = np.average(self.updates, axis=0, weights=weights)
        return joint


class Committee:
    """Voters, each with held-out rows; scores are improvements of the log loss over the base."""

    def __init__(self, spec: TaskSpec, sums: Vector, held_out: Sequence[Examples]) -> None:
        self._model = model_of(spec)
        self._rows = [(self._model.inputs(part, sums), part.labels) for part in held_out]

    @property
    def row_counts(self) -> list[int]:
        return [len(labels) for _, labels in self._rows]

    def losses(self, parameters: NDArray[np.float32]) -> Vector:
        return np.array([log_loss(y, self._model.evaluate(parameters, x).predictions) for x, y in self._rows])

    def score(self, turn: Round, published: Sum) -> Vector:
        """Improvement in nats, one per voter."""
        candidate = turn.base + turn.mean_update(published).astype(np.float32)
        return self.losses(turn.base) - self.losses(candidate)


def play(scenario: Scenario, seed: int) -> tuple[Committee, list[Round]]:
    """All rounds of one task. Cohorts are dealt anew every round; what the committee's medians accept is averaged."""
    data = scenario.deal(seed)
    spec = scenario.spec(data)
    tables, model = examples_of(data.hospitals, data.schema), model_of(spec)
    sums = np.sum([sums_of(table, data.schema) for table in tables], axis=0)
    committee = Committee(spec, sums, examples_of(data.held_out, data.schema))
    features = [model.inputs(table, sums) for table in tables]
    generator = np.random.default_rng([seed, 7])
    start = model.initial(seed)
    weights = [row_weight(table.rows, spec) for table in tables]
    base, progress, turns = start, np.zeros(len(start), np.int64), list[Round]()
    for number in range(1, spec.rounds.rounds + 1):
        turn = Round(number, spec, base, start, progress, list(turns))

        def lanes(turn: Round = turn) -> list[Lanes]:
            return [
                _train(scenario, turn, rows, table, generator) for rows, table in zip(features, tables, strict=True)
            ]

        dealt = np.array_split(generator.permutation(len(tables)), scenario.cohorts)
        turn.cohorts, turn.again = _sums(dealt, lanes(), weights), _sums(dealt, lanes(), weights)
        turn.scores = np.array([committee.score(turn, cohort) for cohort in turn.cohorts]).T
        turn.accepted = [int(i) for i in np.flatnonzero(lower_median(turn.scores) >= spec.judging.accept_floor)]
        turns.append(turn)
        base, progress = _next_base(turn)
    return committee, turns


def lower_median(scores: NDArray[np.float64]) -> Vector:
    """Per candidate, as the contract takes it: scores (voters, candidates)."""
    middle: Vector = np.sort(scores, axis=0)[(len(scores) - 1) // 2]
    return middle


def _train(scenario: Scenario, turn: Round, rows: Inputs, table: Examples, generator: Generator) -> Lanes:
    """One hospital's lanes, as it would commit to them."""
    trained = train(turn.spec, turn.base, rows, table.labels, int(generator.integers(2**62)))
    update = trained.astype(np.float64) - turn.base + generator.normal(0, scenario.noise, len(turn.base))
    return turn.quantiser.quantise(clip_norm(update, turn.spec.update.clip_norm), generator.random(len(turn.base)))


def _sums(dealt: list[NDArray[np.intp]], lanes: list[Lanes], weights: list[int]) -> list[Sum]:
    found = []
    for members in dealt:
        mine = [weights[i] for i in members]
        total: Lanes = np.sum([lanes[i] * np.uint64(weights[i]) for i in members], axis=0, dtype=np.uint64)
        found.append(Sum(total, sum(mine), math.gcd(*mine)))
    return found


def _next_base(turn: Round) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    if not turn.accepted:
        return turn.base, turn.progress
    sums = [turn.cohorts[i] for i in turn.accepted]
    lanes: Lanes = np.sum([one.lanes for one in sums], axis=0, dtype=np.uint64)
    weight = sum(one.weight for one in sums)
    base = turn.base + turn.quantiser.dequantise_mean(lanes, weight).astype(np.float32)
    return base, progress_after(turn.progress, lanes, weight, turn.spec.update.bits)


def layer_slices(spec: TaskSpec) -> list[slice]:
    """Each layer's weights and bias in the parameter vector, from the input on."""
    assert isinstance(spec.model, LogisticSpec | MlpSpec)
    ends = np.cumsum([0, *((a + 1) * b for a, b in itertools.pairwise(widths(spec.model, spec.data)))])
    return [slice(int(a), int(b)) for a, b in itertools.pairwise(ends)]
