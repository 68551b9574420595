"""The common part of all objectives.

Labels of n examples are as `data.answers` makes them. Predictions are float64 (n, …), as each objective says; of
masks, which are large, float32.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from consilium_chain.tasks.questions import Metric
from numpy.typing import NDArray

from consilium_client.data.examples import Labels
from consilium_client.errors import DataError, ModelError

if TYPE_CHECKING:
    import torch

Predictions = NDArray[np.float64]
Reduction = Literal["mean", "sum"]
Of = Callable[[Any, Predictions], float | None]
Drawn = Callable[[NDArray[np.int64]], dict[str, float | None]]
MOST_WORTH = 500_000.0  # so that no score, a difference of two, exceeds the contract's bound


@dataclass(frozen=True)
class Measure:
    """A metric. `of`: from labels and predictions of the same rows; None where these give it no meaning.
    `more_is_better`: false for errors. `without`: its worth where it has no meaning.
    """

    of: Of
    more_is_better: bool = True
    without: float = 0.0

    def worth(self, labels: Labels, predictions: Predictions) -> float:
        """With more being better, within ± `MOST_WORTH`."""
        found = self.of(labels, predictions)
        if found is None:
            return self.without
        return min(MOST_WORTH, max(-MOST_WORTH, found if self.more_is_better else -found))


@dataclass(frozen=True)
class Answer:
    """One column of predictions. `column`: its name in files. `words`: for people. `unit`: of an amount, perhaps
    empty; None for a chance from 0 to 1.
    """

    column: str
    words: str
    unit: str | None = None


class Objective(ABC):
    """`label_shape`: of one example's label. `answers`: the predictions' columns."""

    label_shape: tuple[int, ...]
    answers: tuple[Answer, ...]

    @property
    @abstractmethod
    def measures(self) -> Mapping[Metric, Measure]:
        """Those of the question's metrics. They raise ShapeMismatch, TooFewRows."""

    def targets(self, labels: Labels) -> NDArray[Any]:
        """The answers that training asks of the rows, (n, …)."""
        return labels

    @abstractmethod
    def loss(
        self, outputs: torch.Tensor, targets: torch.Tensor, reduction: Reduction,
        class_weights: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """The loss of a model's outputs (n, outputs), at least in single precision. A mean or a sum is over rows."""

    @abstractmethod
    def predictions(self, outputs: NDArray[np.float64]) -> Predictions:
        """From a model's outputs (n, outputs), all finite."""

    @abstractmethod
    def as_predictions(self, outputs: torch.Tensor) -> torch.Tensor:
        """The same in torch, for a graph that is exported."""

    def measured(self, labels: Labels, predictions: Predictions) -> dict[str, float | None]:
        """All metrics by name. Raises ShapeMismatch, TooFewRows."""
        return {name: measure.of(labels, predictions) for name, measure in self.measures.items()}

    def measured_again(self, labels: Labels, predictions: Predictions) -> Drawn:
        """The same of drawn rows, by their numbers (m,); a row may be drawn more than once."""
        return lambda drawn: self.measured(labels[drawn], predictions[drawn])


class Differentiable(Objective, ABC):
    """An objective whose gradient NumPy computes, too, for training without torch."""

    @abstractmethod
    def gradient(
        self, outputs: NDArray[np.float32], targets: NDArray[Any], class_weights: NDArray[np.float32] | None = None
    ) -> tuple[float, NDArray[np.float32]]:
        """The mean `loss` of rows, and its gradient by their outputs, float32 (n, outputs)."""


def require_rows(labels: Labels, predictions: Predictions, *shapes: tuple[int, ...]) -> None:
    """Raises ShapeMismatch unless there are as many of both, each row of its shape; TooFewRows if there are none."""
    found = (labels.shape[1:], predictions.shape[1:])
    if len(predictions) != len(labels) or found != shapes:
        expected = (len(labels), *shapes[1])
        raise ModelError("ShapeMismatch", what="predictions", expected=expected, found=predictions.shape)
    if len(labels) == 0:
        raise DataError("TooFewRows", rows=0, at_least=1)
