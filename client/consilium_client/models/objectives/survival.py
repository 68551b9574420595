"""The time until an event, in intervals, each with a hazard of its own (Gensheimer and Narasimhan, PeerJ 2019).

Predictions are the chances that the event has not happened by the end of each interval, float64 (n, intervals).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from consilium_chain.tasks.questions import Metric, Survival
from numpy.typing import NDArray

from consilium_client.data.examples import Labels
from consilium_client.models.metrics import LEAST_PROBABILITY, area
from consilium_client.models.objectives.base import (
    Answer,
    Differentiable,
    Measure,
    Predictions,
    Reduction,
    require_rows,
)
from consilium_client.models.objectives.multilabel import sigmoid, yes_loss

if TYPE_CHECKING:
    import torch


class Survive(Differentiable):
    """Labels are float64 (n, 2): the time, and 1 for an event or 0 for censoring. An event at a bound is in the
    interval that ends there. Events after the last bound count as none.
    """

    label_shape = (2,)

    def __init__(self, asked: Survival) -> None:
        self._bounds = np.array(asked.bounds)
        self._widths = np.diff(self._bounds, prepend=0.0)
        self._asked = asked
        words = (f"no {asked.event} by {bound:g} {asked.unit}".rstrip() for bound in asked.bounds)
        self.answers = tuple(Answer(one.replace(" ", "_"), one) for one in words)

    @property
    def measures(self) -> Mapping[Metric, Measure]:
        return {
            "log_loss": Measure(self._log_loss, more_is_better=False),
            "c_index": Measure(self._c_index, without=0.5),
            "brier": Measure(self._brier, more_is_better=False),
        }

    def _survived(self, labels: Labels) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """By row the number of intervals that it certainly survived, and whether the event was in the next."""
        times, count = labels[:, 0], len(self._bounds)
        happened = (labels[:, 1] == 1) & (times <= self._bounds[-1])
        before = np.searchsorted(self._bounds, times, side="left")  # bounds below the time
        until = np.searchsorted(self._bounds, times, side="right")  # and those at it
        survived = np.where(happened, before, np.minimum(until, count))
        return survived.astype(np.int64), happened

    def targets(self, labels: Labels) -> NDArray[Any]:
        """By interval 1 if it was survived, then by interval 1 if the event was in it: float32 (n, 2 · intervals)."""
        survived, happened = self._survived(labels)
        intervals = np.arange(len(self._bounds))
        through = intervals < survived[:, None]
        inside = (intervals == survived[:, None]) & happened[:, None]
        return np.hstack([through, inside]).astype(np.float32)

    def loss(
        self, outputs: torch.Tensor, targets: torch.Tensor, reduction: Reduction,
        class_weights: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """Negative log-likelihood of a row in nats."""
        from torch import bfloat16
        from torch.nn.functional import logsigmoid

        logits = outputs.float() if outputs.dtype is bfloat16 else outputs
        through, inside = targets.to(logits.dtype).chunk(2, dim=1)
        of_rows = -(through * logsigmoid(-logits) + inside * logsigmoid(logits)).sum(dim=1)
        return of_rows.mean() if reduction == "mean" else of_rows.sum()

    def gradient(
        self, outputs: NDArray[np.float32], targets: NDArray[Any], class_weights: NDArray[np.float32] | None = None
    ) -> tuple[float, NDArray[np.float32]]:
        through, inside = np.split(targets.astype(np.float32), 2, axis=1)
        known = through + inside  # 1 for an interval that counts, 0 for later ones
        losses, slopes = known * yes_loss(outputs, inside), known * (sigmoid(outputs) - inside)
        return float(losses.sum(axis=1).mean()), np.asarray(slopes / len(outputs), np.float32)

    def predictions(self, outputs: NDArray[np.float64]) -> Predictions:
        return np.asarray(np.cumprod(sigmoid(-outputs), axis=1), np.float64)

    def as_predictions(self, outputs: torch.Tensor) -> torch.Tensor:
        """By a sum of logarithms: ONNX has no product of this kind."""
        from torch.nn.functional import softplus

        return (-softplus(outputs)).cumsum(dim=1).exp()

    def _chances(self, predictions: Predictions) -> NDArray[np.float64]:
        """With those at time 0, which are 1: (n, intervals + 1)."""
        return np.hstack([np.ones((len(predictions), 1)), predictions])

    def _log_loss(self, labels: Labels, predictions: Predictions) -> float:
        """Mean negative log-likelihood of a row in nats."""
        require_rows(labels, predictions, (2,), self._shape)
        survived, happened = self._survived(labels)
        chances, rows = self._chances(predictions), np.arange(len(labels))
        own = chances[rows, survived]
        after = chances[rows, np.minimum(survived + 1, len(self._bounds))]
        likely = np.where(happened, own - after, own)
        return float(np.mean(-np.log(np.clip(likely, LEAST_PROBABILITY, 1.0))))

    def _c_index(self, labels: Labels, predictions: Predictions) -> float | None:
        """Chance that of two rows that with the event in an earlier interval has the shorter expected time, ties
        counting half (Harrell et al., 1982), on whole intervals. None without such a pair.
        """
        require_rows(labels, predictions, (2,), self._shape)
        survived, happened = self._survived(labels)
        chances = self._chances(predictions)
        expected = ((chances[:, :-1] + chances[:, 1:]) / 2 * self._widths).sum(axis=1)
        pairs = won = 0.0
        for interval in range(len(self._bounds)):
            early = happened & (survived == interval)
            rows = early | (survived > interval)
            count = float(np.count_nonzero(early)) * float(np.count_nonzero(rows & ~early))
            if count:
                won += count * area(early[rows], -expected[rows])
                pairs += count
        return won / pairs if pairs else None

    def _brier(self, labels: Labels, predictions: Predictions) -> float:
        """Mean squared error of the chances at each bound, each weighted by its interval's length. Rows that are
        censored before count by the others' inverse chance of being seen (Graf et al., 1999).
        """
        require_rows(labels, predictions, (2,), self._shape)
        times, happened = labels[:, 0], labels[:, 1] == 1
        seen, total = Seen(times, happened), 0.0
        for width, bound, chance in zip(self._widths, self._bounds, predictions.T, strict=True):
            gone, there = happened & (times <= bound), times > bound
            errors = seen.weights(times) * gone * chance**2 + seen.weights(bound) * there * (1 - chance) ** 2
            total += width * float(np.mean(errors))
        return total / float(self._bounds[-1])

    @property
    def _shape(self) -> tuple[int, ...]:
        return (len(self._bounds),)


class Seen:
    """The chance that a row is not yet censored, of Kaplan and Meier (1958). Events at a time count before censoring
    at it.
    """

    def __init__(self, times: NDArray[np.float64], happened: NDArray[np.bool_]) -> None:
        self._times, inverse = np.unique(times, return_inverse=True)
        left = np.bincount(inverse, minlength=len(self._times))
        events = np.bincount(inverse, weights=happened, minlength=len(self._times))
        at_risk = left[::-1].cumsum()[::-1] - events
        censored = left - events
        self._chances = np.cumprod(1 - censored / np.maximum(at_risk, 1))

    def weights(self, times: Any) -> NDArray[np.float64]:
        """One over the chance at each time; 0 where no row is seen."""
        chances = np.concatenate([[1.0], self._chances])[np.searchsorted(self._times, times, side="right")]
        return np.asarray(np.divide(1.0, chances, out=np.zeros_like(chances), where=chances > 0))
