"""Measures a task's model on held-out rows: before the first round, and after each.

The chain has only improvements by the task's metric, and no start to add them to. So these figures need rows. They are
a statement of the party that has the rows: the public record does not prove them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from consilium_chain.tasks.questions import Metric
from consilium_client.data.examples import joined
from consilium_client.data.kinds import read_examples
from consilium_client.models import model_of
from consilium_client.replay import FIRST_ROUND, PublicRecord
from consilium_client.task import JoinedTask
from pydantic import BaseModel, ConfigDict, FiniteFloat, NonNegativeInt, PositiveInt


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Quality(_Plain):
    """A model's metrics. `round`: the last one whose sums are in the model; 0 is the start.

    None: of another question, or without a meaning for these rows. `log_loss` is in nats a row, or of a language model
    a token.
    """

    round: NonNegativeInt
    accuracy: FiniteFloat | None = None
    auc: FiniteFloat | None = None
    macro_f1: FiniteFloat | None = None
    log_loss: FiniteFloat | None = None
    pr_auc: FiniteFloat | None = None
    calibration_error: FiniteFloat | None = None
    brier: FiniteFloat | None = None
    perplexity: FiniteFloat | None = None
    squared_error: FiniteFloat | None = None
    absolute_error: FiniteFloat | None = None
    r2: FiniteFloat | None = None
    c_index: FiniteFloat | None = None
    dice: FiniteFloat | None = None

    def of(self, metric: Metric) -> float | None:
        found: float | None = getattr(self, metric)
        return found


class Measured(_Plain):
    """`rows`: number of held-out rows, `sources`: number of files or folders that they came from."""

    rows: PositiveInt
    sources: PositiveInt
    rounds: tuple[Quality, ...]

    @property
    def headline(self) -> Metric:
        """The one that a line shows."""
        known: tuple[Metric, ...] = ("dice", "accuracy", "c_index", "r2")
        return next((metric for metric in known if self.rounds[-1].of(metric) is not None), "log_loss")


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
        rounds.append(Quality.model_validate({"round": done, **model.objective.measured(*answers)}))
    return Measured(rows=len(held_out.labels), sources=len(paths), rounds=tuple(rounds))
