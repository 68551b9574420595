"""Federated averaging on the Wisconsin data through the client's own code, for the distribution of real scores.

Each task splits the rows among 20 hospitals, and runs five rounds from zero with honest hospitals. In each round every
kind of cohort is made from the real updates, after clipping and rounding. Voters score it. Each holds 34 rows
(as in the demo), drawn with replacement, class by class, from the 30 % held out. They also score each cohort's decoy
(`consilium_zk.decoys`, here in floating point).
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping

import numpy as np
from consilium_chain.tasks.limits import MICRO
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.examples import Examples
from consilium_client.data.standardise import sums_of
from consilium_client.models import model_of
from consilium_client.models.metrics import losses
from consilium_client.models.training import train
from consilium_zk.decoys import STRENGTH, STRENGTH_UNIT
from numpy.typing import NDArray

from consilium_lab.adversaries.nodes import SIGN_FLIP_FACTOR
from consilium_lab.demo.datasets import deal_wdbc, examples_of
from consilium_lab.demo.references import over_the_wire, row_weight
from consilium_lab.demo.task_file import task_spec
from consilium_lab.economics.bank import NO_MODEL, Bank, Conduct, Integers, Kind
from consilium_lab.economics.rules import ROUNDS_PER_TASK
from consilium_lab.economics.world import Reals

HOSPITALS, VOTERS, ROWS = 20, 40, 34
SIZES = (1, 2, 4)
TASKS = 8


def measure(seed: int, tasks: int = TASKS, progress: Callable[[int], None] = lambda done: None) -> Bank:
    """A bank of `tasks` tasks, about a second each. `progress` is called with the number of finished ones."""
    scores, decoys, truth = (defaultdict[Kind, list[Integers]](list) for _ in range(3))
    for index in range(tasks):
        task = _Task(int(np.random.SeedSequence((seed, index)).generate_state(1)[0]))
        rounds = [task.round(r) for r in range(ROUNDS_PER_TASK)]
        for kind, part in itertools.product(rounds[0], range(3)):
            (scores, decoys, truth)[part][kind].append(np.stack([found[kind][part] for found in rounds]))
        progress(index + 1)
    return Bank(_stacked(scores), _stacked(decoys), _stacked(truth), ROWS)


def _stacked(of: Mapping[Kind, list[Integers]]) -> Mapping[Kind, Integers]:
    return {kind: np.stack(tasks) for kind, tasks in of.items()}


class _Task:
    """One split of the rows, and the honest run's model, round by round."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = np.random.default_rng(seed)
        data = deal_wdbc(HOSPITALS, 1, seed)
        self.spec: TaskSpec = task_spec(data)
        self.tables = examples_of(data.hospitals, data.schema)
        (self.held_out,) = examples_of(data.held_out, data.schema)
        self.model = model_of(self.spec)
        sums = np.sum([sums_of(table, data.schema) for table in self.tables], axis=0)
        self.inputs = [self.model.inputs(table, sums) for table in self.tables]
        self.held_out_inputs = self.model.inputs(self.held_out, sums)
        self.weights = np.array([row_weight(table.rows, self.spec) for table in self.tables])
        self.initial = self.model.initial(seed).astype(np.float64)
        self.base = self.initial
        self.voters = self._voters()

    def round(self, number: int) -> Mapping[Kind, tuple[Integers, Integers, Integers]]:
        """Per kind of cohort the scores by voter, those of the decoys, and the truth; then the model moves on."""
        updates = self._updates(number)
        base_losses = self._losses(self.base)
        order = self.random.permutation(HOSPITALS)
        found = {}
        for size in SIZES:
            cohorts = [order[start :: HOSPITALS // size] for start in range(HOSPITALS // size)]
            for conduct in Conduct:
                for deviants in [0] if conduct is Conduct.HONEST else range(1, size + 1):
                    means = np.stack([self._mean(updates, conduct, cohort, deviants) for cohort in cohorts])
                    scores, truth = self._scores(base_losses, means)
                    found[conduct, size, deviants] = scores, self._decoy_scores(base_losses, means), truth
        self.base = self.base + np.average(updates[Conduct.HONEST], axis=0, weights=self.weights)
        return found

    def _updates(self, number: int) -> dict[Conduct, Reals]:
        honest = np.stack([self._trained(i, number, table) for i, table in enumerate(self.tables)])
        flipped = [table.relabelled(1 - table.labels) for table in self.tables]
        noise = self.random.standard_normal(honest.shape)
        raw = {
            Conduct.HONEST: honest,
            Conduct.ZERO: np.zeros_like(honest),
            Conduct.NOISE: noise * (np.linalg.norm(honest) / np.linalg.norm(noise)),
            Conduct.SIGN_FLIP: SIGN_FLIP_FACTOR * honest,
            Conduct.LABEL_FLIP: np.stack([self._trained(i, number, table) for i, table in enumerate(flipped)]),
        }
        return {
            conduct: np.stack([over_the_wire(update, self.spec) for update in updates])
            for conduct, updates in raw.items()
        }

    def _trained(self, index: int, number: int, table: Examples) -> Reals:
        seed = int(np.random.SeedSequence((self.seed, index, number)).generate_state(1)[0])
        base = self.base.astype(np.float32)
        trained = train(self.spec, base, self.inputs[index], table.labels, seed)
        return np.subtract(trained, base, dtype=np.float64)

    def _mean(self, updates: Mapping[Conduct, Reals], conduct: Conduct, cohort: Integers, deviants: int) -> Reals:
        """The cohort's weighted mean. Its first members are the deviants (the split is random)."""
        sent = np.concatenate([updates[conduct][cohort[:deviants]], updates[Conduct.HONEST][cohort[deviants:]]])
        return np.asarray(np.average(sent, axis=0, weights=self.weights[cohort]))

    def _decoy_scores(self, base_losses: Reals, means: Reals) -> Integers:
        """Scores of the cohorts' decoys. A decoy with a value out of the quantiser's range is not a model."""
        reach = self.spec.update.value_range
        back = np.clip((self.base - self.initial) * STRENGTH / STRENGTH_UNIT, -reach, reach)
        decoys = -means - back
        is_model = (np.abs(decoys) <= reach).all(axis=1, keepdims=True)
        return np.where(is_model, self._scores(base_losses, decoys)[0], NO_MODEL)

    def _voters(self) -> NDArray[np.int64]:
        """Row numbers, (voters, rows): each class in its share of the held-out rows."""
        labels = self.held_out.labels
        positives = round(ROWS * float(labels.mean()))
        parts = [
            self.random.choice(np.flatnonzero(labels == label), (VOTERS, count))
            for label, count in ((0, ROWS - positives), (1, positives))
        ]
        return np.concatenate(parts, axis=1)

    def _scores(self, base_losses: Reals, steps: Reals) -> tuple[Integers, Integers]:
        saved = np.stack([base_losses - self._losses(self.base + step) for step in steps])
        return _millionths(saved[:, self.voters].mean(axis=2)), _millionths(saved.mean(axis=1))

    def _losses(self, parameters: Reals) -> Reals:
        """The loss of every held-out row."""
        evaluation = self.model.evaluate(parameters.astype(np.float32), self.held_out_inputs)
        return losses(self.held_out.labels, evaluation.predictions)


def _millionths(scores: Reals) -> Integers:
    return np.rint(scores * MICRO).astype(np.int64)
