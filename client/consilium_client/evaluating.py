"""A round's models evaluated on held-out rows: by a voter for its ballot, and again by an auditor of it.

Rows are taken in the order of their digests, so that the order of a file is no part of what a voter commits to, and in
batches of `BATCH_ROWS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from consilium_chain.task_spec import MICRO, ModelSpec
from consilium_chain.views import INVALID_SCORE, RoundState, ballot_size, members
from consilium_zk.evaluation import BATCH_ROWS, batch_count
from eth_utils.crypto import keccak
from numpy.typing import NDArray

from consilium_client.fingerprints import fingerprint
from consilium_client.metrics import worth
from consilium_client.models import layers_of, predict
from consilium_client.replay import PublicRecord, Vector
from consilium_client.standardise import Standardiser
from consilium_client.tables import Table
from consilium_client.task import JoinedTask

BASE: Final = -1
"""Where in a ballot the base is: no score is its own."""


@dataclass(frozen=True)
class Evaluation:
    """Probabilities of class 1, float64 (n,), and the activations (n, width) before the last layer; without a hidden
    layer the logits (n, 1).
    """

    probabilities: NDArray[np.float64]
    activations: NDArray[np.float64]


@dataclass(frozen=True)
class Judged:
    """A ballot's scores, and by batch the fingerprints of all models, in the order of `Judge.models`."""

    scores: tuple[int, ...]
    fingerprints: tuple[bytes, ...]


def row_digests(table: Table) -> list[bytes]:
    """keccak256 of what each row holds, whatever file it came from: features, one NaN where missing, then the label."""
    features = np.where(np.isnan(table.features), np.nan, table.features + 0.0).astype("<f8")  # no negative zero
    labels = table.labels.astype("<i8")
    return [keccak(row.tobytes() + label.tobytes()) for row, label in zip(features, labels, strict=True)]


def in_batches(activations: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """(n, width) as one array for each batch; whole batches may be left out of the n rows."""
    return [activations[start : start + BATCH_ROWS] for start in range(0, len(activations), BATCH_ROWS)]


def evaluate(
    spec: ModelSpec, columns: int, parameters: NDArray[np.float32], features: NDArray[np.float32]
) -> Evaluation:
    """Raises ShapeMismatch, UpdateNotFinite."""
    probabilities = predict(spec, columns, parameters, features)
    layers = [(weight.T.astype(np.float64), bias) for weight, bias in layers_of(spec, columns, parameters)]
    values = features.astype(np.float64)
    for weight, bias in layers[:-1]:
        values = np.maximum(values @ weight + bias, 0.0)
    if len(layers) == 1:
        values = values @ layers[0][0] + layers[0][1]
    return Evaluation(probabilities, values)


class Judge:
    """Of one table in one task. `rows`: their digests, in the order in which they are judged.

    Reading raises as `PublicRecord` does.
    """

    def __init__(self, task: JoinedTask, record: PublicRecord, table: Table) -> None:
        self.task, self.record = task, record
        digests = row_digests(table)
        order = sorted(range(len(digests)), key=digests.__getitem__)
        self.rows = [digests[index] for index in order]
        self._table, self._order = table, np.array(order)
        self._features: NDArray[np.float32] | None = None

    @property
    def batches(self) -> int:
        return batch_count(len(self.rows))

    def models(self, round_: int, state: RoundState) -> Iterator[tuple[int, Vector]]:
        """The base, then each cohort's candidates that are valid models, and where in a ballot their scores are."""
        yield BASE, self.record.base(round_)
        for cohort in members(state.viable_cohorts):
            for turned, candidate in enumerate(self.record.candidates(round_, cohort, state)):
                if candidate is not None:
                    yield turned * state.cohorts + cohort, candidate

    def evaluate(self, parameters: Vector, batches: Sequence[int] | None = None) -> Evaluation:
        """On all rows, or on those of some batches (ascending)."""
        if self._features is None:
            features = Standardiser.from_sums(self.record.statistics()).transform(self._table)
            self._features = features[self._order]
        spec, features = self.task.spec, self._features
        if batches is not None:
            features = np.concatenate([features[k * BATCH_ROWS : (k + 1) * BATCH_ROWS] for k in batches])
        return evaluate(spec.model, spec.data.columns, parameters, features)

    def worth(self, evaluation: Evaluation) -> float:
        """Of an evaluation on all rows, by the task's metric."""
        labels = self._table.labels[self._order]
        return worth(self.task.spec.judging.metric, labels, evaluation.probabilities)

    def scores(self, round_: int, state: RoundState, worths: Mapping[int, float]) -> tuple[int, ...]:
        """Each candidate's improvement over the base, in millionths. `worths`: by place in the ballot, the base's too.

        A cohort without a published sum has a score of 0, one without a valid model INVALID_SCORE.
        """
        found = [0] * ballot_size(self.task.params, round_, state.cohorts)
        for place in range(len(found)):
            if state.viable_cohorts >> place % state.cohorts & 1:
                known = place in worths
                found[place] = round((worths[place] - worths[BASE]) * MICRO) if known else INVALID_SCORE
        return tuple(found)

    def judged(self, round_: int, state: RoundState) -> Judged:
        """What an honest voter says of a training round, and what shows that it has looked."""
        worths: dict[int, float] = {}
        prints: list[list[bytes]] = [[] for _ in range(self.batches)]
        for place, parameters in self.models(round_, state):
            evaluation = self.evaluate(parameters)
            worths[place] = self.worth(evaluation)
            for own, activations in zip(prints, in_batches(evaluation.activations), strict=True):
                own.append(fingerprint(activations))
        return Judged(self.scores(round_, state, worths), tuple(map(b"".join, prints)))
