"""Each next token of a text: `models.next_token` has the loss, and predictions are its likelihoods, float64 (m, 2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from consilium_chain.tasks.questions import Metric
from numpy.typing import NDArray

from consilium_client.data.examples import Labels
from consilium_client.models import metrics
from consilium_client.models.objectives.base import Answer, Measure, Objective, Predictions, Reduction

if TYPE_CHECKING:
    import torch


class Foretell(Objective):
    """Predictions are of the m tokens that have a next one: this is class 0, and the likeliest other one class 1."""

    label_shape = ()
    answers = (Answer("probability_next", "the next token"), Answer("probability_other", "the likeliest other"))

    @property
    def measures(self) -> Mapping[Metric, Measure]:
        return {
            "accuracy": Measure(metrics.accuracy),
            "log_loss": Measure(metrics.log_loss, more_is_better=False),
            "perplexity": Measure(perplexity, more_is_better=False),
        }

    def loss(
        self, outputs: torch.Tensor, targets: torch.Tensor, reduction: Reduction,
        class_weights: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """`outputs`: logits (n, t, tokens)."""
        from consilium_client.models import next_token

        return next_token.loss(outputs, targets, reduction)

    def predictions(self, outputs: NDArray[np.float64]) -> Predictions:
        """`outputs`: `next_token.likelihoods`, which are predictions."""
        return outputs

    def as_predictions(self, outputs: torch.Tensor) -> torch.Tensor:
        """Each token's probability, (n, t, tokens)."""
        import torch

        return torch.softmax(outputs, dim=-1)


def perplexity(labels: Labels, predictions: Predictions) -> float:
    """e to the mean loss in nats of a token (Jelinek et al., 1977)."""
    return math.exp(metrics.log_loss(labels.astype(np.int64), predictions))
