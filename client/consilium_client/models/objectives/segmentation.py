"""Each pixel's class: cross-entropy and soft Dice. Predictions are classes' probabilities, float32 (n, classes, height,
width).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from consilium_chain.tasks.questions import Metric, Segmentation
from numpy.typing import NDArray

from consilium_client.data.examples import Labels
from consilium_client.models.metrics import LEAST_PROBABILITY, dice
from consilium_client.models.objectives.base import (
    Answer,
    Drawn,
    Measure,
    Objective,
    Predictions,
    Reduction,
    require_rows,
)

if TYPE_CHECKING:
    import torch

SMOOTHING = 1.0  # pixels
Tallies = NDArray[np.float64]


class Segment(Objective):
    """Labels are uint8 (n, height, width), classes' numbers. All metrics are of all pixels of all rows together.

    Outputs are logits (n, classes, height, width), or flattened to (n, outputs), as a program gives them.
    """

    def __init__(self, asked: Segmentation, size: tuple[int, int]) -> None:
        self._classes = len(asked.classes)
        self.label_shape = size
        self.answers = tuple(Answer(f"probability_{name}", name) for name in asked.classes)

    @property
    def measures(self) -> Mapping[Metric, Measure]:
        return {
            "dice": Measure(self._whole("dice"), without=1.0),
            "accuracy": Measure(self._whole("accuracy")),
            "log_loss": Measure(self._whole("log_loss"), more_is_better=False),
            "brier": Measure(self._whole("brier"), more_is_better=False),
        }

    def _whole(self, name: Metric) -> Callable[[Labels, Predictions], float | None]:
        return lambda labels, predictions: self._metrics(self.tallies(labels, predictions).sum(axis=0))[name]

    def tallies(self, labels: Labels, predictions: Predictions) -> Tallies:
        """Each row's sums over its pixels, float64 (n, 3 + 3 · classes): pixels, losses in nats, halved squared errors;
        then of each class the hits, the pixels that have it, and the pixels that are called it.
        """
        require_rows(labels, predictions, self.label_shape, (self._classes, *self.label_shape))
        return np.stack([self._of_row(*row) for row in zip(labels, predictions, strict=True)])

    def _of_row(self, label: Labels, chances: Predictions) -> Tallies:
        truth, likely = label.ravel().astype(np.int64), chances.reshape(self._classes, -1).astype(np.float64)
        own = likely[truth, np.arange(len(truth))]
        losses = -np.log(np.clip(own, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY))
        errors = (likely**2).sum(axis=0) - 2 * own + 1
        called = self._classes - 1 - np.argmax(likely[::-1], axis=0)  # the last of equals, as in `metrics.predicted`
        counted = [np.bincount(one, minlength=self._classes) for one in (truth[truth == called], truth, called)]
        return np.concatenate([[len(truth), losses.sum(), errors.sum() / 2], *counted])

    def _metrics(self, tallies: Tallies) -> dict[str, float | None]:
        pixels, losses, errors = tallies[:3].tolist()
        hits, own, called = tallies[3:].reshape(3, -1)
        return {
            "dice": dice(hits[1:], own[1:], called[1:]), "accuracy": float(hits.sum()) / pixels,
            "log_loss": losses / pixels, "brier": errors / pixels,
        }  # fmt: skip

    def measured(self, labels: Labels, predictions: Predictions) -> dict[str, float | None]:
        return self._metrics(self.tallies(labels, predictions).sum(axis=0))

    def measured_again(self, labels: Labels, predictions: Predictions) -> Drawn:
        tallies = self.tallies(labels, predictions)
        return lambda drawn: self._metrics(tallies[drawn].sum(axis=0))

    def loss(
        self, outputs: torch.Tensor, targets: torch.Tensor, reduction: Reduction,
        class_weights: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """A row's own: its pixels' mean cross-entropy in nats, and 1 less its soft Dice (Milletari et al., 2016), the
        mean over the foreground classes that its mask has. A mask without any has the cross-entropy alone.
        """
        from torch import bfloat16
        from torch.nn.functional import log_softmax, one_hot

        logits = outputs.float() if outputs.dtype is bfloat16 else outputs
        likely = log_softmax(logits.reshape(-1, self._classes, *self.label_shape), dim=1)
        truth = one_hot(targets.long(), self._classes).movedim(-1, 1).to(likely.dtype)
        rows = -(likely * truth).sum(dim=1).mean(dim=(1, 2))
        chances, marked = likely.exp()[:, 1:], truth[:, 1:]
        both = (chances * marked).sum(dim=(2, 3))
        sizes = marked.sum(dim=(2, 3))
        overlap = (2 * both + SMOOTHING) / (chances.sum(dim=(2, 3)) + sizes + SMOOTHING)
        present = (sizes > 0).to(likely.dtype)
        rows = rows + ((1 - overlap) * present).sum(dim=1) / present.sum(dim=1).clamp(min=1)
        return rows.mean() if reduction == "mean" else rows.sum()

    def predictions(self, outputs: NDArray[np.float64]) -> Predictions:
        outputs = outputs.reshape(-1, self._classes, *self.label_shape)
        powers = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        shares: NDArray[Any] = (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)
        return shares

    def as_predictions(self, outputs: torch.Tensor) -> torch.Tensor:
        import torch

        return torch.softmax(outputs.reshape(-1, self._classes, *self.label_shape), dim=1)
