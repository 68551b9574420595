"""Steps of a task's optimiser from the gradients that parameters have."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from consilium_chain.tasks.training_specs import TrainingSpec
from numpy.typing import NDArray
from torch import nn
from torch.optim.sgd import sgd


def proximal_term(parameters: list[nn.Parameter], settings: TrainingSpec) -> Callable[[], None]:
    """Adds the gradient of FedProx's μ/2 · ‖w − base‖² (Li et al., 2020) to the gradients.

    The base is the current parameters. Nothing is added if μ is 0.
    """
    if settings.proximal == 0:
        return lambda: None
    bases = [parameter.detach().clone() for parameter in parameters]

    def pull() -> None:
        for parameter, base in zip(parameters, bases, strict=True):
            if parameter.grad is not None:
                parameter.grad.add_(parameter.detach() - base, alpha=settings.proximal)

    return pull


def _correcting(parameters: list[nn.Parameter], correction: NDArray[np.float32] | None) -> Callable[[], None]:
    """Adds a vector (of all parameters' values) to the gradients."""
    if correction is None:
        return lambda: None
    parts = torch.split(torch.from_numpy(correction), [one.numel() for one in parameters])
    added = [part.view_as(one).to(one.device) for part, one in zip(parts, parameters, strict=True)]

    def add() -> None:
        for parameter, part in zip(parameters, added, strict=True):
            parameter.grad = part.clone() if parameter.grad is None else parameter.grad + part

    return add


def stepper(
    parameters: list[nn.Parameter], settings: TrainingSpec, correction: NDArray[np.float32] | None = None
) -> Callable[[], None]:
    """A function that makes one step of the optimiser. Its momenta begin again in each round."""
    pull, correct = proximal_term(parameters, settings), _correcting(parameters, correction)
    whole = None
    if settings.optimizer == "adamw":
        whole = torch.optim.AdamW(parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay)

    def step() -> None:
        pull()
        correct()
        if whole is None:
            _descend(parameters, settings)
        else:
            whole.step()

    return step


def _descend(parameters: list[nn.Parameter], settings: TrainingSpec) -> None:
    """One SGD step by torch's functional form: the optimiser class takes 1.5 s to load code for compilers."""
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    with torch.no_grad():
        sgd(
            list(parameters), gradients, [None] * len(parameters), foreach=False,
            weight_decay=settings.weight_decay, momentum=0.0, lr=settings.learning_rate, dampening=0.0,
            nesterov=False, maximize=False,
        )  # fmt: skip
