"""Each row's own gradient of a program, for differential privacy.

A row's gradient is taken of the program on that row alone. So whatever the graph does, no row has a part in another's.
A row whose gradient is not finite, or cannot be computed, counts as zero: a hospital that fails on it would tell of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch.func import grad_and_value, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from consilium_client.programs.errors import ProgramError
from consilium_client.programs.interpreter import FAULTS, Interpreter

MOST_AT_ONCE: Final = 1 << 26  # gradient values: a quarter of a gigabyte
TRIED: Final = 3  # rows
FEW_TOKENS: Final = 2  # that every model of tokens knows
APART: Final = 1e-6  # logits of a row by itself and among others, relative to their size

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def take_row_gradients(module: Interpreter, loss: Loss, rows: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Sets each parameter's `grad_sample` (n, *shape), as Opacus' optimisers read it. Returns the sum of the losses.

    `loss`: of logits (1, …, outputs) and targets (1, …).
    """
    parameters = [one.detach() for one in module.trained]
    if not len(rows):
        for one in module.trained:
            one.grad_sample = torch.zeros((0, *one.shape), device=one.device)
        return torch.zeros(())

    def of_row(trained: list[torch.Tensor], row: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return loss(module.computed(row[None], trained=trained)[-1], target[None])

    at_once = max(1, MOST_AT_ONCE // sum(one.numel() for one in parameters))
    many = vmap(grad_and_value(of_row), in_dims=(None, 0, 0), randomness="different", chunk_size=at_once)
    with sdpa_kernel(SDPBackend.MATH):  # the others have no rule for many rows at once
        try:
            gradients, losses = many(parameters, rows, targets)
        except (ProgramError, *FAULTS):  # of some rows
            gradients, losses = _one_by_one(grad_and_value(of_row), parameters, rows, targets)
    for one, own in zip(module.trained, gradients, strict=True):
        one.grad_sample = torch.nan_to_num(own, nan=0.0, posinf=0.0, neginf=0.0)
    summed: torch.Tensor = losses.sum()
    return summed


def _one_by_one(
    of_row: Callable[..., tuple[list[torch.Tensor], torch.Tensor]],
    parameters: list[torch.Tensor],
    rows: torch.Tensor,
    targets: torch.Tensor,
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Gradients (n, *shape) and losses (n,), zero where a row cannot be computed."""
    found = []
    for row, target in zip(rows, targets, strict=True):
        try:
            found.append(of_row(parameters, row, target))
        except (ProgramError, *FAULTS):
            found.append(([torch.zeros_like(one) for one in parameters], torch.zeros((), device=rows.device)))
    gradients, losses = zip(*found, strict=True)
    return [torch.stack(own) for own in zip(*gradients, strict=True)], torch.stack(losses)


def require_apart(module: Interpreter) -> None:
    """Raises ProgramError (RowsMixed) if a row's logits depend on the rows beside it: training a row by itself would
    make another model than its author means.
    """
    generator = torch.Generator().manual_seed(0)
    shape = (TRIED, *module.program.shape)
    if module.program.type_ == "int64":
        rows = torch.randint(0, FEW_TOKENS, shape, generator=generator)
    else:
        rows = torch.randn(shape, generator=generator).double()
    module = module.double().eval()
    with torch.no_grad():
        together = module(rows)
        alone = torch.cat([module(one[None]) for one in rows])
    if not torch.allclose(together, alone, rtol=0, atol=APART * float(together.abs().max())):
        raise ProgramError("RowsMixed")
