"""A detector of decoys that has no data: what a lazy voter could run on the public record instead of looking.

It sees all candidates of a round as published, the base, all earlier rounds with their outcomes; it knows the family
and its strength, and has learnt from other tasks on the same data set whose decoys were revealed. It lacks the
seed, the order, and rows. Instead of rows it makes some up: standardised features are about normal, and a model
that has learnt something can label them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_client.models import model_of
from consilium_core.kinds import of_kind
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer

from bench.decoys.rounds import Round, Sum, Vector, layer_slices

MADE_UP_ROWS = 256
FOLDS = 3
TINY = 1e-12
UPWARD = (0, 1, 2)  # the features that know the rarer class: the last bias, its share, the mean probability's change


def features(turn: Round, candidate: Sum, company: Sequence[Sum], twin: Sum | None) -> Vector:
    """All that is read off one candidate, given the other candidates of the round (`company`, without its twin)."""
    update, others = turn.mean_update(candidate), [turn.mean_update(one) for one in company]
    history = [one.joint for one in turn.earlier]
    learnt = turn.base.astype(np.float64) - turn.start
    around = np.mean(others, axis=0) if others else np.zeros_like(update)
    last = history[-1] if history else np.zeros_like(update)
    norm = _norm(update)
    norms = [_norm(one) for one in others] or [norm]
    cosines = [_cosine(update, one) for one in others] or [0.0]
    made_up, shift = _made_up(turn, update, others)
    return np.array(
        [
            update[-1], update[-1] / norm, shift,
            turn.number,
            *_logs(norm / np.median(norms), norm / _norm(last), norm / _norm(learnt), _norm(learnt + update)),
            np.min(cosines), np.max(cosines), _cosine(update, around), _cosine(update, last),
            _cosine(update, learnt), _cosine(update, turn.start), _cosine(update, turn.base),
            _residual(update, others), _residual(update, history), _residual(update, [*others, *history]),
            _cosine(np.abs(update), np.abs(around)), _cosine(np.abs(update), np.abs(last)),
            np.mean(np.sign(update) == np.sign(around)), np.mean(np.sign(update) == np.sign(last)),
            np.abs(update).max() / norm, np.mean(update**4) / np.mean(update**2) ** 2,
            *_layers(turn, update, around, last),
            *_rounding(turn, candidate, twin),
            *made_up,
        ]
    )  # fmt: skip


def _norm(vector: NDArray[np.floating]) -> float:
    return float(np.linalg.norm(vector)) + TINY


def _cosine(one: Vector, other: NDArray[np.floating]) -> float:
    return float(one @ other) / (_norm(one) * _norm(other))


def _logs(*values: float) -> list[float]:
    return [float(np.log(value + TINY)) for value in values]


def _residual(update: Vector, known: Sequence[Vector]) -> float:
    """Share of the update's norm that no combination of `known` explains."""
    if not known:
        return 1.0
    basis, _ = np.linalg.qr(np.array(known).T)
    return _norm(update - basis @ (basis.T @ update)) / _norm(update)


def _layers(turn: Round, update: Vector, around: Vector, last: Vector) -> list[float]:
    """Of first and last layer: share of the norm against the company's and the last round's, and cosines."""
    slices = layer_slices(turn.spec)
    found = []
    for part in (slices[0], slices[-1]):
        share = _norm(update[part]) / _norm(update)
        found += _logs(share / (_norm(around[part]) / _norm(around)), share / (_norm(last[part]) / _norm(last)))
        found += [_cosine(update[part], around[part]), _cosine(update[part], last[part])]
        found += [_cosine(update[part], turn.base[part].astype(np.float64))]
    return found


def _rounding(turn: Round, candidate: Sum, twin: Sum | None) -> list[float]:
    """Traces that encoding may leave: residues, lanes at the end of the range, exact sums with the twin."""
    centred = candidate.lanes.astype(np.int64) - candidate.weight * turn.quantiser.offset
    bound = candidate.weight * turn.quantiser.offset
    exact = 0.0 if twin is None else float(np.mean(twin.lanes + candidate.lanes == np.uint64(2 * bound)))
    return [
        float(np.mean(centred % candidate.divisor == 0)), float(np.mean(np.abs(centred) == bound)),
        float(np.mean(centred % (2 * candidate.divisor) == 0)), float(np.mean(centred == 0)), exact,
    ]  # fmt: skip


def _made_up(turn: Round, update: Vector, others: Sequence[Vector]) -> tuple[list[float], float]:
    """Losses saved on made-up rows labelled by the base, and by the base with the company's median update; how many
    labels change; and by how much the mean probability does. Each row comes with its negative: no side is favoured."""
    model = model_of(turn.spec)
    half = (
        np.random.default_rng(0)
        .standard_normal((MADE_UP_ROWS // 2, of_kind(TableSchema, turn.spec.data).columns))
        .astype(np.float32)
    )
    rows = np.concatenate([half, -half])

    def probabilities(step: Vector) -> Vector:
        likely = model.evaluate((turn.base + step).astype(np.float32), rows).predictions[:, 1]
        return np.clip(likely, 1e-7, 1 - 1e-7)

    before, after = probabilities(np.zeros_like(update)), probabilities(update)
    joint = probabilities(np.median(others, axis=0)) if others else before
    saved = [_cross(teacher, before) - _cross(teacher, after) for teacher in (before, joint)]
    return [*saved, float(np.mean((after - 0.5) * (before - 0.5) < 0))], float(np.mean(after - before))


def _cross(teacher: Vector, guess: Vector) -> float:
    return float(-np.mean(teacher * np.log(guess) + (1 - teacher) * np.log1p(-guess)))


@dataclass
class Sample:
    """One candidate: of which task, round and cohort, whether a decoy, and its features."""

    task: int
    round: int
    cohort: int
    decoy: bool
    paired: bool  # a decoy, or the genuine sum that it stands beside
    features: Vector
    median: float  # the committee's score of it


def round_samples(task: int, turn: Round, decoys: Mapping[int, Sum], twins: bool) -> list[Sample]:
    """Every candidate of a round. With `twins`, a candidate's company is its own side only: the other cohorts' sums
    as they would be, were it the genuine one; and so for its twin."""
    found, rows = list[tuple[int, bool]](), []
    for cohort, genuine in enumerate(turn.cohorts):
        rest = [other for other in range(len(turn.cohorts)) if other != cohort]
        company = [turn.cohorts[other] for other in rest]
        twin = decoys.get(cohort)
        if twin is None:
            company += list(decoys.values())
        else:
            beside = [decoys[other] for other in rest] if twins else company
            rows.append(features(turn, twin, beside, genuine))
            found.append((cohort, True))
        rows.append(features(turn, genuine, company, twin))
        found.append((cohort, False))
    inputs = np.nan_to_num(np.array(rows))
    inputs = np.hstack([inputs, inputs - np.median(inputs, axis=0)])
    return [
        Sample(task, turn.number, cohort, decoy, cohort in decoys, row, 0.0)
        for (cohort, decoy), row in zip(found, inputs, strict=True)
    ]


def suspicion(samples: Sequence[Sample], stranger: bool) -> Vector:
    """How much each sample looks a decoy, in [0, 1], by a detector that learnt from other tasks only.

    A stranger does not use what tells which way is up: that the illness is the rarer class. Mean of a forest and of a
    logistic model on ranks, three folds by task.
    """
    inputs, labels, tasks = _arrays(samples, stranger)
    found = np.zeros(len(samples))
    for known, unseen in GroupKFold(FOLDS).split(inputs, labels, tasks):
        forest = ExtraTreesClassifier(60, min_samples_leaf=2, random_state=0, class_weight="balanced")
        ranks = QuantileTransformer(n_quantiles=30, output_distribution="normal", random_state=0)
        linear = make_pipeline(ranks, LogisticRegression(C=0.3, max_iter=300, class_weight="balanced"))
        for model in (forest, linear):
            found[unseen] += model.fit(inputs[known], labels[known]).predict_proba(inputs[unseen])[:, 1] / 2
    return found


def guessed_scores(samples: Sequence[Sample]) -> Vector:
    """The committee's median of each sample, as guessed without data by who saw other tasks' medians."""
    inputs, _, tasks = _arrays(samples, stranger=False)
    medians = np.array([sample.median for sample in samples])
    found = np.zeros(len(samples))
    for known, unseen in GroupKFold(FOLDS).split(inputs, medians, tasks):
        forest = ExtraTreesRegressor(100, min_samples_leaf=2, random_state=0)
        found[unseen] = forest.fit(inputs[known], medians[known]).predict(inputs[unseen])
    return found


def _arrays(samples: Sequence[Sample], stranger: bool) -> tuple[Vector, NDArray[np.bool_], NDArray[np.int64]]:
    inputs = np.array([sample.features for sample in samples])
    if stranger:
        count = inputs.shape[1] // 2
        inputs = np.delete(inputs, [half + i for half in (0, count) for i in UPWARD], axis=1)
    labels = np.array([sample.decoy for sample in samples])
    return inputs, labels, np.array([sample.task for sample in samples])
