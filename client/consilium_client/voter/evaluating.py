"""Evaluates a round's models on held-out rows: a voter does so for its ballot, and an auditor to check it.

Rows are in the order of their digests, so a voter's commitment does not depend on the order in a file. They are in
batches of `BATCH_ROWS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from consilium_chain.ledger.structs import INVALID_SCORE, RoundState, ballot_size, members
from consilium_chain.tasks.limits import MICRO
from consilium_zk.evaluation import BATCH_ROWS, batch_count
from eth_utils.crypto import keccak
from numpy.typing import NDArray

from consilium_client.data.examples import Examples
from consilium_client.models import Evaluation, Inputs, Vector, model_of
from consilium_client.models.worth import worth_of
from consilium_client.replay import PublicRecord
from consilium_client.task import JoinedTask
from consilium_client.voter.fingerprints import fingerprint

BASE: Final = -1
"""The base's index. It has no score of its own in a ballot."""


@dataclass(frozen=True)
class Judged:
    """A ballot's scores, and by batch the fingerprints of all models, in the order of `Judge.models`."""

    scores: tuple[int, ...]
    fingerprints: tuple[bytes, ...]


def row_digests(examples: Examples) -> list[bytes]:
    """keccak256 of each row with its label, the same for every file format."""
    return [keccak(row) for row in examples.row_bytes()]


def in_batches(activations: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """(n, width) as one array for each batch. The n rows may lack whole batches."""
    return [activations[start : start + BATCH_ROWS] for start in range(0, len(activations), BATCH_ROWS)]


class Judge:
    """Judges by one voter's examples in one task. `rows`: their digests, in the order of evaluation.

    Methods that read raise the errors of `PublicRecord`.
    """

    def __init__(self, task: JoinedTask, record: PublicRecord, examples: Examples) -> None:
        self.task, self.record = task, record
        digests = row_digests(examples)
        order = sorted(range(len(digests)), key=digests.__getitem__)
        self.rows = [digests[index] for index in order]
        self._examples, self._order = examples, np.array(order)
        self._model = model_of(task.spec)

    @property
    def rounding(self) -> int:
        """The largest difference between two machines' scores, in millionths, because sums round differently."""
        return self._model.rounding

    @property
    def batches(self) -> int:
        return batch_count(len(self.rows))

    def models(self, round_: int, state: RoundState) -> Iterator[tuple[int, Vector]]:
        """The base, then each cohort's candidates that are valid models, by the index of their scores in a ballot."""
        yield BASE, self.record.base(round_)
        for cohort in members(state.viable_cohorts):
            for flipped, candidate in enumerate(self.record.candidates(round_, cohort, state)):
                if candidate is not None:
                    yield flipped * state.cohorts + cohort, candidate

    def evaluate(self, parameters: Vector, batches: Sequence[int] | None = None) -> Evaluation:
        """On all rows, or on those of some batches (ascending)."""
        inputs = self._inputs
        if batches is not None:
            inputs = np.concatenate([inputs[k * BATCH_ROWS : (k + 1) * BATCH_ROWS] for k in batches])
        return self._model.evaluate(parameters, inputs)

    @cached_property
    def _inputs(self) -> Inputs:
        """In the order of `rows`."""
        inputs: Inputs = self._model.inputs(self._examples, self.record.statistics())[self._order]
        return inputs

    def worth(self, evaluation: Evaluation) -> float:
        """The worth of an evaluation on all rows, by the task's metric."""
        return worth_of(self.task.spec)(*evaluation.answers(self._examples.labels[self._order]))

    def scores(self, round_: int, state: RoundState, worths: Mapping[int, float]) -> tuple[int, ...]:
        """Each candidate's improvement over the base, in millionths. `worths`: by index in the ballot, the base's too.

        A cohort without a published sum has a score of 0, one without a valid model INVALID_SCORE.
        """
        found = [0] * ballot_size(self.task.params, round_, state.cohorts)
        for index in range(len(found)):
            if state.viable_cohorts >> index % state.cohorts & 1:
                known = index in worths
                found[index] = round((worths[index] - worths[BASE]) * MICRO) if known else INVALID_SCORE
        return tuple(found)

    def judged(self, round_: int, state: RoundState) -> Judged:
        """An honest voter's scores in a training round, and the fingerprints that show its evaluation."""
        worths: dict[int, float] = {}
        prints: list[list[bytes]] = [[] for _ in range(self.batches)]
        for index, parameters in self.models(round_, state):
            evaluation = self.evaluate(parameters)
            worths[index] = self.worth(evaluation)
            for own, activations in zip(prints, in_batches(evaluation.activations), strict=True):
                own.append(fingerprint(activations))
        return Judged(self.scores(round_, state, worths), tuple(map(b"".join, prints)))
