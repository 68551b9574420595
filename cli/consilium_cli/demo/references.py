"""What a federated run is held against: training on everybody's rows, training alone, and plain averaging.

All three read the demo's frames the way nodes do (written as CSV, read back), train with the task's own settings,
and are tested on everybody's held-out rows. Metric dictionaries hold accuracy, auc and log_loss.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

import numpy as np
from consilium_chain.task_spec import DataSchema, TaskSpec
from consilium_client.metrics import accuracy, auc, log_loss
from consilium_client.models import initial_parameters, predict
from consilium_client.standardise import Standardiser, table_sums
from consilium_client.tables import Table, read_table
from consilium_client.training import train
from consilium_zk.quantise import Quantiser, clip_norm
from numpy.typing import NDArray

from consilium_cli.demo.datasets import DemoData, Frame, write_csv

Metrics = dict[str, float]
Parameters = NDArray[np.float32]


@dataclass
class FedavgRun:
    """`history[r]` is the metrics after r rounds; the two sizes are the largest seen, to set clip and range by."""

    parameters: Parameters
    history: list[Metrics]
    largest_coordinate: float = 0.0
    longest_update: float = 0.0
    weights: list[int] = field(default_factory=list)


def pooled(data: DemoData, spec: TaskSpec, seed: int) -> Metrics:
    """One model on all hospitals' rows, for rounds × epochs epochs: what sharing the data would give."""
    tables, held_out = _tables(data)
    everyone = _joined(tables)
    standardiser = _standardiser(tables, data.schema)
    parameters = _train_alone(spec, everyone, standardiser, seed)
    return _evaluate(spec, parameters, standardiser, held_out)


def local_only(data: DemoData, spec: TaskSpec, seed: int) -> Metrics:
    """Mean over hospitals of a model on own rows, own standardisation, tested on everybody's held-out rows."""
    tables, held_out = _tables(data)
    results = []
    for index, table in enumerate(tables):
        standardiser = _standardiser([table], data.schema)
        parameters = _train_alone(spec, table, standardiser, _seed(seed, index))
        results.append(_evaluate(spec, parameters, standardiser, held_out))
    return {name: fmean(result[name] for result in results) for name in results[0]}


def simulate_fedavg(
    data: DemoData, spec: TaskSpec, seed: int, rounds: int | None = None, *, quantised: bool = True
) -> FedavgRun:
    """Federated averaging in this process: the task's weights and, unless switched off, its clip and quantiser.

    No cohorts, masks, votes or chain: what a run of the platform in which every cohort is accepted should match.
    """
    tables, held_out = _tables(data)
    standardiser = _standardiser(tables, data.schema)
    features = [standardiser.transform(table) for table in tables]
    weights = [row_weight(table.rows, spec) for table in tables]
    base = initial_parameters(spec.model, data.schema.columns, seed)
    run = FedavgRun(base, [_evaluate(spec, base, standardiser, held_out)], weights=weights)
    for round_number in range(spec.rounds.rounds if rounds is None else rounds):
        total = np.zeros(len(base))
        for index, (table, rows) in enumerate(zip(tables, features, strict=True)):
            trained = train(spec, run.parameters, rows, table.labels, _seed(seed, index, round_number))
            update = trained.astype(np.float64) - run.parameters
            run.largest_coordinate = max(run.largest_coordinate, float(np.abs(update).max()))
            run.longest_update = max(run.longest_update, float(np.linalg.norm(update)))
            total += weights[index] * (over_the_wire(update, spec) if quantised else update)
        run.parameters = (run.parameters + total / sum(weights)).astype(np.float32)
        run.history.append(_evaluate(spec, run.parameters, standardiser, held_out))
    return run


def row_weight(rows: int, spec: TaskSpec) -> int:
    """A hospital's weight as the contract sets it: rows in steps, at least 1, capped by the task."""
    return min(max(math.ceil(rows / spec.rounds.rows_per_weight), 1), spec.rounds.max_weight)


def over_the_wire(update: NDArray[np.float64], spec: TaskSpec) -> NDArray[np.float64]:
    """An update after clipping and rounding, as the sum will count it."""
    quantiser = Quantiser(spec.update.bits, spec.update.value_range)
    return quantiser.dequantise_sum(quantiser.quantise(clip_norm(update, spec.update.clip_norm)), 1)


def _tables(data: DemoData) -> tuple[list[Table], Table]:
    """Hospitals' tables, and all voters' rows as one table, through the files that nodes would read."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "rows.csv"

        def through_file(frame: Frame) -> Table:
            write_csv(frame, path)
            return read_table(path, data.schema)

        hospitals = [through_file(frame) for frame in data.hospitals]
        return hospitals, _joined([through_file(frame) for frame in data.held_out])


def _joined(tables: Sequence[Table]) -> Table:
    return Table(
        features=np.concatenate([table.features for table in tables]),
        labels=np.concatenate([table.labels for table in tables]),
    )


def _standardiser(tables: Sequence[Table], schema: DataSchema) -> Standardiser:
    return Standardiser.from_sums(np.sum([table_sums(table, schema) for table in tables], axis=0))


def _train_alone(spec: TaskSpec, table: Table, standardiser: Standardiser, seed: int) -> Parameters:
    epochs = spec.rounds.rounds * spec.training.epochs
    longer = spec.model_copy(update={"training": spec.training.model_copy(update={"epochs": epochs})})
    start = initial_parameters(spec.model, spec.data.columns, seed)
    return train(longer, start, standardiser.transform(table), table.labels, seed)


def _evaluate(spec: TaskSpec, parameters: Parameters, standardiser: Standardiser, held_out: Table) -> Metrics:
    probabilities = predict(spec.model, spec.data.columns, parameters, standardiser.transform(held_out))
    area = auc(held_out.labels, probabilities)
    return {
        "accuracy": accuracy(held_out.labels, probabilities),
        "auc": math.nan if area is None else area,
        "log_loss": log_loss(held_out.labels, probabilities),
    }


def _seed(*parts: int) -> int:
    """One seed per hospital and round out of the run's seed."""
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0])
