"""One of several classes: cross-entropy, and each class's probability, float64 (n, classes), with row sums 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from consilium_chain.tasks.questions import Classification, Metric
from numpy.typing import NDArray

from consilium_client.models import metrics
from consilium_client.models.objectives.base import Answer, Differentiable, Measure, Predictions, Reduction
from consilium_client.models.objectives.multilabel import sigmoid, yes_loss

if TYPE_CHECKING:
    import torch


class Classify(Differentiable):
    label_shape = ()

    def __init__(self, asked: Classification) -> None:
        self._classes = asked.classes
        self.answers = tuple(Answer(f"probability_{name}", name) for name in asked.classes)

    @property
    def measures(self) -> Mapping[Metric, Measure]:
        return {
            "accuracy": Measure(metrics.accuracy),
            "auc": Measure(metrics.auc, without=0.5),
            "macro_f1": Measure(metrics.macro_f1),
            "log_loss": Measure(metrics.log_loss, more_is_better=False),
            "pr_auc": Measure(metrics.pr_auc),
            "calibration_error": Measure(metrics.calibration_error, more_is_better=False),
            "brier": Measure(metrics.brier, more_is_better=False),
        }

    def loss(
        self, outputs: torch.Tensor, targets: torch.Tensor, reduction: Reduction,
        class_weights: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """In nats; of one output, of class 1 against class 0. Each row counts times its class's weight, if there are
        any, float32 (classes,).
        """
        from torch import bfloat16
        from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

        logits = outputs.float() if outputs.dtype is bfloat16 else outputs
        rows = None if class_weights is None else class_weights[targets]
        if logits.shape[1] == 1:
            return binary_cross_entropy_with_logits(
                logits.squeeze(1), targets.to(logits.dtype), reduction=reduction, weight=rows
            )
        if rows is None:
            return cross_entropy(logits, targets, reduction=reduction)
        weighted = cross_entropy(logits, targets, reduction="none") * rows
        return weighted.mean() if reduction == "mean" else weighted.sum()

    def gradient(
        self, outputs: NDArray[np.float32], targets: NDArray[Any], class_weights: NDArray[np.float32] | None = None
    ) -> tuple[float, NDArray[np.float32]]:
        count = len(outputs)
        rows = np.ones((count, 1), np.float32) if class_weights is None else class_weights[targets][:, None]
        if outputs.shape[1] == 1:
            own = targets[:, None].astype(np.float32)
            losses, slopes = yes_loss(outputs, own), sigmoid(outputs) - own
        else:
            shifted = outputs - outputs.max(axis=1, keepdims=True)
            logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
            losses, slopes = -logs[np.arange(count), targets][:, None], np.exp(logs)
            slopes[np.arange(count), targets] -= 1
        return float((losses * rows).mean()), np.asarray(slopes * rows / count, np.float32)

    def predictions(self, outputs: NDArray[np.float64]) -> Predictions:
        if outputs.shape[1] == 1:  # class 0's is zero
            outputs = np.hstack([np.zeros_like(outputs), outputs])
        powers = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        shares: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
        return shares

    def as_predictions(self, outputs: torch.Tensor) -> torch.Tensor:
        import torch

        if outputs.shape[1] == 1:
            outputs = torch.cat([torch.zeros_like(outputs), outputs], dim=1)
        return torch.softmax(outputs, dim=-1)
