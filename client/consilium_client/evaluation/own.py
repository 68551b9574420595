"""A node's own evaluation of a task's model, on rows that the node never trained on. Nothing of it leaves the node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import RecordIncomplete
from consilium_chain.evaluations.measures import Evaluated, Measure
from consilium_chain.evaluations.site_report import Subject
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND, Outcome
from consilium_chain.rounds.machine import has_ended
from consilium_chain.tasks.questions import Metric
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_core.private_files import read_private_file, write_private_file
from numpy.typing import NDArray

from consilium_client.config import HospitalAccountSettings
from consilium_client.data.examples import Examples
from consilium_client.data.standardise import counted_start, round_0_values, sums_of
from consilium_client.data.table.reader import Table
from consilium_client.errors import ClientError
from consilium_client.evaluation.measuring import Again, Rows
from consilium_client.models import Inputs, Vector, digest_of, model_of, start_of
from consilium_client.models.training import train
from consilium_client.models.weights import named_tensors, parse_model_tensors, shared_tensors, vector_of
from consilium_client.replay import FIRST_ROUND, PublicRecord
from consilium_client.task import JoinedTask

TRAINED_WITHOUT = "held-out"  # folder in a hospital's home


@dataclass(frozen=True)
class OwnEvaluation:
    """`found`: the model's; `start`, `alone`: metrics of the starting model, and of one that this hospital's training
    rows give alone, on the same rows. `has_ended`: no round will change the model.
    """

    subject: Subject
    spec: TaskSpec
    has_ended: bool
    found: Evaluated
    start: dict[Metric, Measure]
    alone: dict[Metric, Measure] | None = None


def evaluate_own(
    ledger: Ledger,
    store: ArtifactStore,
    task: JoinedTask,
    held_out: Examples,
    *,
    trained_on: Examples | None = None,
    local: Path | None = None,
    seed: int = 0,
    device: str | None = None,
) -> OwnEvaluation:
    """`trained_on`: also evaluates a model that is trained on these rows alone, on `device` (as `train` has it).
    `local`: this hospital's local tensors.

    Raises RecordIncomplete for a task without a model, ModelError, TooFewRows, and the errors of `PublicRecord`.
    """
    spec, record = task.spec, PublicRecord(ledger, store, task)
    model, last = model_of(spec), _last_round(ledger, task.number)
    model.require_installed()
    base, sums = record.base(last + 1), record.statistics()
    inputs = model.inputs(held_out, sums)

    def metrics(parameters: Vector, inputs: Inputs) -> dict[Metric, Measure]:
        found = model.evaluate(parameters, inputs)
        return Rows(spec.data, held_out.labels, found, seed).group(0, None, np.ones(held_out.rows, np.bool_)).measures

    own = base if local is None else _with_local(spec, base, local)
    rows = Rows(spec.data, held_out.labels, model.evaluate(own, inputs), seed)
    again: Again = lambda dealt: model.evaluate(own, model.inputs(dealt, sums))  # noqa: E731
    alone = None
    if trained_on is not None:
        sums_alone = sums_of(trained_on, spec.data)
        alone = metrics(train_alone(spec, trained_on, sums_alone, seed, device), model.inputs(held_out, sums_alone))
    return OwnEvaluation(
        subject=Subject(
            chain_id=ledger.connection.chain_id, contract=ledger.deployment.tasks, task=task.number,
            spec_hash=task.params.spec_hash.hex(), round=last,
            sha256=digest_of(vector_of(shared_tensors(spec, base))).hex(),
        ),
        spec=spec, has_ended=has_ended(ledger.tasks.state(task.number)),
        found=rows.evaluated((held_out, again) if isinstance(held_out, Table) else None),
        start=metrics(record.base(FIRST_ROUND), inputs), alone=alone,
    )  # fmt: skip


def train_alone(
    spec: TaskSpec, examples: Examples, sums: NDArray[np.float64], seed: int, device: str | None = None
) -> Vector:
    """A model of these rows alone, for as many epochs or steps as the task's rounds have together, without noise."""
    model, training, rounds = model_of(spec), spec.training, spec.rounds.rounds
    more = {"epochs": rounds * training.epochs} if training.steps is None else {"steps": rounds * training.steps}
    longer = spec.model_copy(update={"training": training.model_copy(update=more)})
    rows = model.inputs(examples, sums), examples.labels
    return train(longer, start_with(spec, [examples], seed), *rows, seed, device=device)


def start_with(spec: TaskSpec, parts: Sequence[Examples], seed: int) -> Vector:
    """A first base, by the counts of these rows if the task counts them."""
    if not spec.starts_counted:
        return start_of(spec, seed)
    sums = np.asarray(np.sum([round_0_values(part, spec) for part in parts], axis=0))
    return start_of(spec, seed, counted_start(sums, spec))


def note_trained(settings: HospitalAccountSettings, task_key: str) -> None:
    """Notes the share of rows that a task's training leaves out. A smaller one from before stays."""
    path, before = settings.home / TRAINED_WITHOUT / task_key, trained_without(settings, task_key)
    if before is None or settings.held_out < before:
        write_private_file(path, repr(settings.held_out))


def trained_without(settings: HospitalAccountSettings, task_key: str) -> float | None:
    """The share of rows that no round of the task trained on; None if this home never trained in it."""
    path = settings.home / TRAINED_WITHOUT / task_key
    return float(read_private_file(path)) if path.exists() else None


def require_never_trained(settings: HospitalAccountSettings, task: int, task_key: str) -> HospitalAccountSettings:
    """The settings with the share of rows that the task never trained on. Raises ClientError (NothingHeldOut)."""
    share = min(settings.held_out, trained_without(settings, task_key) or 0.0)
    if share == 0:
        raise ClientError("NothingHeldOut", task=task)
    return settings.model_copy(update={"held_out": share})


def _last_round(ledger: Ledger, task: int) -> int:
    rounds = range(ledger.tasks.state(task).round, STATISTICS_ROUND, -1)
    for one in rounds:
        if ledger.tasks.round_state(task, one).outcome is not Outcome.PENDING:
            return one
    raise RecordIncomplete(f"task {task} has no model yet: its first training round is not over")


def _with_local(spec: TaskSpec, base: Vector, local: Path) -> Vector:
    own = parse_model_tensors(local.read_bytes(), spec, spec.training.local)
    return vector_of({**named_tensors(spec, base), **own})
