"""Several answers of yes or no: cross-entropy of each. Predictions are chances of a yes, float64 (n, labels)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from consilium_chain.tasks.questions import Metric, Multilabel
from numpy.typing import NDArray

from consilium_client.data.examples import Labels
from consilium_client.models import metrics
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

Real = TypeVar("Real", np.float32, np.float64)


class MarkEach(Differentiable):
    """Labels are float64 (n, labels), 0 or 1. A metric is the mean of those of all labels that have one."""

    def __init__(self, asked: Multilabel) -> None:
        self._labels = tuple(asked.labels)
        self.label_shape = (len(self._labels),)
        self.answers = tuple(Answer(f"probability_{name}", name) for name in self._labels)

    @property
    def measures(self) -> Mapping[Metric, Measure]:
        return {
            "accuracy": Measure(self._mean(metrics.accuracy)),
            "auc": Measure(self._mean(metrics.auc), without=0.5),
            "log_loss": Measure(self._mean(metrics.log_loss), more_is_better=False),
            "pr_auc": Measure(self._mean(metrics.pr_auc)),
            "calibration_error": Measure(self._mean(metrics.calibration_error), more_is_better=False),
            "brier": Measure(self._mean(metrics.brier), more_is_better=False),
        }

    def _mean(
        self, metric: Callable[[NDArray[np.int64], NDArray[np.float64]], float | None]
    ) -> Callable[[Labels, Predictions], float | None]:
        def mean(labels: Labels, predictions: Predictions) -> float | None:
            require_rows(labels, predictions, self.label_shape, self.label_shape)
            both = zip(labels.T.astype(np.int64), predictions.T, strict=True)
            values = [metric(own, np.stack([1 - likely, likely], axis=1)) for own, likely in both]
            known = [one for one in values if one is not None]
            return float(np.mean(known)) if known else None

        return mean

    def loss(
        self, outputs: torch.Tensor, targets: torch.Tensor, reduction: Reduction,
        class_weights: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """In nats, the mean of a row's labels."""
        from torch import bfloat16
        from torch.nn.functional import binary_cross_entropy_with_logits

        logits = outputs.float() if outputs.dtype is bfloat16 else outputs
        of_rows = binary_cross_entropy_with_logits(logits, targets.to(logits.dtype), reduction="none").mean(dim=1)
        return of_rows.mean() if reduction == "mean" else of_rows.sum()

    def gradient(
        self, outputs: NDArray[np.float32], targets: NDArray[Any], class_weights: NDArray[np.float32] | None = None
    ) -> tuple[float, NDArray[np.float32]]:
        targets = targets.astype(np.float32)
        return float(yes_loss(outputs, targets).mean()), (sigmoid(outputs) - targets) / np.float32(outputs.size)

    def predictions(self, outputs: NDArray[np.float64]) -> Predictions:
        return sigmoid(outputs)

    def as_predictions(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.sigmoid()


def sigmoid(values: NDArray[Real]) -> NDArray[Real]:
    """1 / (1 + e^-x), without an overflow."""
    small = np.exp(-np.abs(values))
    found: NDArray[Real] = np.where(values >= 0, 1 / (1 + small), small / (1 + small))
    return found


def yes_loss(outputs: NDArray[np.float32], targets: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cross-entropy in nats of each answer, a yes (1) or a no (0), without an overflow."""
    found: NDArray[np.float32] = np.maximum(outputs, 0) - outputs * targets + np.log1p(np.exp(-np.abs(outputs)))
    return found
