"""An amount: squared error in the question's deviations. Predictions are in the amount's unit, float64 (n, 1).

They are clamped to the question's range, as labels are, so no score exceeds the contract's bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from consilium_chain.tasks.questions import Metric, Regression
from numpy.typing import NDArray

from consilium_client.data.examples import Labels
from consilium_client.models.objectives.base import (
    Answer,
    Differentiable,
    Measure,
    Predictions,
    Reduction,
    require_rows,
)

if TYPE_CHECKING:
    import torch


class Regress(Differentiable):
    """Labels are float64 (n, 1), within the range."""

    label_shape = (1,)

    def __init__(self, asked: Regression) -> None:
        self._asked, self.answers = asked, (Answer(asked.label, asked.label, asked.unit),)

    @property
    def measures(self) -> Mapping[Metric, Measure]:
        return {
            "squared_error": Measure(self._squared_error, more_is_better=False),
            "absolute_error": Measure(self._absolute_error, more_is_better=False),
            "r2": Measure(r2),
        }

    def targets(self, labels: Labels) -> NDArray[Any]:
        """(amount − mean) / deviation, float32 (n, 1)."""
        return ((labels - self._asked.mean) / self._asked.deviation).astype(np.float32)

    def loss(
        self, outputs: torch.Tensor, targets: torch.Tensor, reduction: Reduction,
        class_weights: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        from torch import bfloat16
        from torch.nn.functional import mse_loss

        outputs = outputs.float() if outputs.dtype is bfloat16 else outputs
        return mse_loss(outputs, targets.to(outputs.dtype), reduction=reduction)

    def gradient(
        self, outputs: NDArray[np.float32], targets: NDArray[Any], class_weights: NDArray[np.float32] | None = None
    ) -> tuple[float, NDArray[np.float32]]:
        errors = outputs - targets.astype(np.float32)
        return float((errors * errors).mean()), errors * np.float32(2 / errors.size)

    def predictions(self, outputs: NDArray[np.float64]) -> Predictions:
        found: Predictions = np.clip(
            outputs * self._asked.deviation + self._asked.mean, self._asked.min, self._asked.max
        )
        return found

    def as_predictions(self, outputs: torch.Tensor) -> torch.Tensor:
        return (outputs * self._asked.deviation + self._asked.mean).clamp(self._asked.min, self._asked.max)

    def _errors(self, labels: Labels, predictions: Predictions) -> NDArray[np.float64]:
        """In deviations, float64 (n, 1)."""
        require_rows(labels, predictions, (1,), (1,))
        found: NDArray[np.float64] = (predictions - labels) / self._asked.deviation
        return found

    def _squared_error(self, labels: Labels, predictions: Predictions) -> float:
        """Mean of squares, in the question's deviations."""
        return float(np.mean(self._errors(labels, predictions) ** 2))

    def _absolute_error(self, labels: Labels, predictions: Predictions) -> float:
        """Mean of sizes, in the question's deviations."""
        return float(np.mean(np.abs(self._errors(labels, predictions))))


def r2(labels: Labels, predictions: Predictions) -> float | None:
    """Share of the labels' variance that predictions explain; None if all labels are equal."""
    require_rows(labels, predictions, (1,), (1,))
    spread = float(np.sum((labels - labels.mean()) ** 2))
    return 1 - float(np.sum((predictions - labels) ** 2)) / spread if spread > 0 else None
