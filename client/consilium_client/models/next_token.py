"""Language models: each token of a text foretells the next one. Losses and metrics count tokens, not texts.

A mean loss in nats has its perplexity, e to its power (Jelinek et al., 1977).
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import log_softmax, softmax

from consilium_client.models import Inputs

NONE: Final = -100  # no token is asked for: the text has ended


def targets_of(tokens: Inputs, padding: int) -> NDArray[np.int64]:
    """The next token of each, int64 (n, t), NONE at a text's end and for padding. `tokens`: int64 (n, t)."""
    found = np.full(tokens.shape, NONE, np.int64)
    following = tokens[:, 1:].astype(np.int64)
    found[:, :-1] = np.where(following == padding, NONE, following)
    return found


def loss(logits: torch.Tensor, targets: torch.Tensor, reduction: Literal["mean", "sum"]) -> torch.Tensor:
    """Cross-entropy in nats of logits (n, t, tokens). The mean is over all tokens that are asked for; a sum is over
    rows, of each row's mean, so that a long text counts as much as a short one where a row's part is bounded.
    """
    asked = targets >= 0
    likely = log_softmax(logits.float() if logits.dtype is torch.bfloat16 else logits, dim=-1)
    own = likely.gather(-1, targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    losses = torch.where(asked, -own, torch.zeros_like(own))
    if reduction == "mean":
        return losses.sum() / asked.sum().clamp(min=1)
    return (losses.sum(dim=1) / asked.sum(dim=1).clamp(min=1)).sum()


def likelihoods(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Of each token the probability of the next one, and of the likeliest other one: (n, t, 2)."""
    shares = softmax(logits, dim=-1)
    index = targets.clamp(min=0).unsqueeze(-1)
    own = shares.gather(-1, index)
    others = shares.scatter(-1, index, -1.0).amax(dim=-1, keepdim=True)
    return torch.cat([own, others], dim=-1)
