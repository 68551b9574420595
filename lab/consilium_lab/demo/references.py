"""References for a federated run: training on all rows, training alone, and plain averaging.

All three read the demo's frames as nodes do (written as CSV, then read), train with the task's settings, and are tested
on all held-out rows. A metric that these rows do not have is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean

import numpy as np
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.examples import Examples, joined
from consilium_client.data.standardise import public_sums, sums_of
from consilium_client.evaluation.own import start_with, train_alone
from consilium_client.models import Vector, model_of
from consilium_client.models.outer import outer_of
from consilium_client.models.training import in_round, learn
from consilium_zk.basis import BYTES_PER_SEED, Basis, Coordinates, Dense
from consilium_zk.quantise import Quantiser, clip_norm
from numpy.typing import NDArray

from consilium_lab.demo.datasets import DemoData, examples_of
from consilium_lab.seeds import seed_of

Metrics = dict[str, float]


@dataclass
class FedavgRun:
    """`history[r]`: the metrics after r rounds. The two sizes are the largest that occurred, for clip and range."""

    parameters: Vector
    history: list[Metrics]
    largest_coordinate: float = 0.0
    longest_update: float = 0.0
    weights: list[int] = field(default_factory=list)


def pooled(data: DemoData, spec: TaskSpec, seed: int) -> Metrics:
    """One model on all hospitals' rows, for rounds × epochs epochs: the result of shared data.

    Always with exact statistics, since one owner of all rows would have them.
    """
    return trained_pooled(spec, *_examples(data), seed)


def trained_pooled(spec: TaskSpec, parts: Sequence[Examples], held_out: Examples, seed: int) -> Metrics:
    """`pooled` on examples that are read already."""
    sums = _summed(parts, spec.data)
    return evaluated(spec, train_alone(spec, joined(parts), sums, seed), sums, held_out)


def local_only(data: DemoData, spec: TaskSpec, seed: int) -> Metrics:
    """Mean over hospitals of a model on their own rows and statistics, tested on all held-out rows."""
    return mean_alone(spec, *_examples(data), seed)


def mean_alone(spec: TaskSpec, parts: Sequence[Examples], held_out: Examples, seed: int) -> Metrics:
    """`local_only` on examples that are read already."""
    return mean_of(each_alone(spec, parts, held_out, seed))


def each_alone(spec: TaskSpec, parts: Sequence[Examples], held_out: Examples, seed: int) -> list[Metrics]:
    """`trained_alone` of each hospital."""
    return [trained_alone(spec, own, held_out, seed_of(seed, index)) for index, own in enumerate(parts)]


def mean_of(results: Sequence[Metrics]) -> Metrics:
    return {name: fmean(result[name] for result in results) for name in results[0]}


def trained_alone(spec: TaskSpec, own: Examples, held_out: Examples, seed: int) -> Metrics:
    """A model on one hospital's rows and statistics, tested on all held-out rows."""
    sums = _summed([own], spec.data)
    return evaluated(spec, train_alone(spec, own, sums, seed), sums, held_out)


def simulate_fedavg(
    data: DemoData, spec: TaskSpec, seed: int, rounds: int | None = None, *, quantised: bool = True
) -> FedavgRun:
    """Federated averaging in this process, with the task's weights, outer step and, by default, clip and quantiser.

    It has no cohorts, masks, votes or chain. A run of the platform that accepts every cohort should match it.
    """
    return fedavg(spec, *_examples(data), seed, rounds, quantised=quantised)


def fedavg(
    spec: TaskSpec, parts: Sequence[Examples], held_out: Examples, seed: int, rounds: int | None = None, *,
    quantised: bool,
) -> FedavgRun:  # fmt: skip
    """`simulate_fedavg` on examples that are read already. Quantised, by the task's codec with another draw of it."""
    model = model_of(spec)
    basis = spec.basis(bytes(BYTES_PER_SEED)) if quantised else Dense(spec.parameters)
    sums = _summed(parts, spec.data) if spec.statistics == "exact" else public_sums(spec.data)
    inputs = [model.inputs(part, sums) for part in parts]
    weights = [row_weight(part.rows, spec) for part in parts]
    base = start_with(spec, parts, seed)
    outer = outer_of(spec.outer)
    state = outer.begin(base)
    run = FedavgRun(base, [evaluated(spec, base, sums, held_out)], weights=weights)
    for round_number in range(spec.rounds.rounds if rounds is None else rounds):
        total = np.zeros(basis.size)
        for index, (part, own) in enumerate(zip(parts, inputs, strict=True)):
            this = in_round(spec, round_number + 1)
            update = learn(this, basis, run.parameters, own, part.labels, seed_of(seed, index, round_number))
            run.largest_coordinate = max(run.largest_coordinate, float(np.abs(update).max()))
            run.longest_update = max(run.longest_update, float(np.linalg.norm(update)))
            total += weights[index] * (over_the_wire(update, spec) if quantised else update)
        state = outer.after(state, partial(_spread, basis, total / sum(weights)))
        run.parameters = state.model
        run.history.append(evaluated(spec, run.parameters, sums, held_out))
    return run


def _spread(basis: Basis, mean: Coordinates, part: slice) -> NDArray[np.float64]:
    return basis.spread(mean, part.start, part.stop)


def row_weight(rows: int, spec: TaskSpec) -> int:
    """A hospital's weight by the contract's rule: rows in steps, at least 1, at most the task's maximum."""
    return min(max(math.ceil(rows / spec.rounds.rows_per_weight), 1), spec.rounds.max_weight)


def over_the_wire(update: NDArray[np.float64], spec: TaskSpec) -> NDArray[np.float64]:
    """An update after clipping and rounding, as it enters the sum."""
    quantiser = Quantiser(spec.update.bits, spec.update.value_range)
    return quantiser.dequantise_sum(quantiser.quantise(clip_norm(update, spec.update.clip_norm)), 1)


def _examples(data: DemoData) -> tuple[list[Examples], Examples]:
    """Hospitals' examples, and all voters' as one set."""
    return examples_of(data.hospitals, data.schema), joined(examples_of(data.held_out, data.schema))


def _summed(parts: Sequence[Examples], schema: DataSchema) -> NDArray[np.float64]:
    return np.asarray(np.sum([sums_of(part, schema) for part in parts], axis=0))


def evaluated(spec: TaskSpec, parameters: Vector, sums: NDArray[np.float64], held_out: Examples) -> Metrics:
    """Metrics of a model on held-out rows. `sums`: of the rows by which features are standardised."""
    model = model_of(spec)
    answers = model.evaluate(parameters, model.inputs(held_out, sums)).answers(held_out.labels)
    found = model.objective.measured(*answers)
    return {name: math.nan if value is None else value for name, value in found.items()}
