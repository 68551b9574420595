"""Measures a task's model on held-out rows: before the first round, and after each.

The chain has only improvements by the task's metric, and no start to add them to. So these figures need rows. They are
a statement of the party that has the rows: the public record does not prove them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from consilium_client.data.examples import joined
from consilium_client.data.kinds import read_examples
from consilium_client.models import model_of
from consilium_client.models.metrics import measured
from consilium_client.replay import FIRST_ROUND, PublicRecord
from consilium_client.task import JoinedTask
from pydantic import BaseModel, ConfigDict, FiniteFloat, NonNegativeInt, PositiveInt


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Quality(_Plain):
    """A model's metrics. `round`: the last one whose sums are in the model; 0 is the start.

    `log_loss` is in nats a row, or of a language model a token. `auc` is None if all rows are of one class; it and
    `macro_f1` are None of a language model.
    """

    round: NonNegativeInt
    accuracy: FiniteFloat
    auc: FiniteFloat | None = None
    macro_f1: FiniteFloat | None = None
    log_loss: FiniteFloat


class Measured(_Plain):
    """`rows`: number of held-out rows, `sources`: number of files or folders that they came from."""

    rows: PositiveInt
    sources: PositiveInt
    rounds: tuple[Quality, ...]


def measure(record: PublicRecord, task: JoinedTask, last: int, paths: Sequence[Path]) -> Measured:
    """Measures the models from the start to round `last` on the rows of all `paths`, taken together.

    Raises the DataErrors of `read_examples`, and the errors of `PublicRecord`.
    """
    held_out = joined([read_examples(path, task.spec.data) for path in paths])
    model = model_of(task.spec)
    inputs = model.inputs(held_out, record.statistics())
    rounds = []
    for done in range(FIRST_ROUND - 1, last + 1):
        answers = model.evaluate(record.base(done + 1), inputs).answers(held_out.labels)
        rounds.append(Quality.model_validate({"round": done, **measured(*answers, task.spec.data.metrics)}))
    return Measured(rows=len(held_out.labels), sources=len(paths), rounds=tuple(rounds))
