"""A module's learnt tensors as one vector, in the module's own order, and its evaluation in parts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from consilium_client.models import Inputs, Vector


def evaluated(
    body: Callable[[torch.Tensor], torch.Tensor], last: nn.Module, inputs: Inputs, at_once: int, threads: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The last layer's outputs, and the activations of `body`, which gets so many rows at once."""
    torch.set_num_threads(threads)
    with torch.no_grad():
        activations = torch.cat([body(part) for part in torch.split(torch.from_numpy(inputs), at_once)])
        outputs = last(activations)
    return outputs.double().numpy(), activations.double().numpy()


def load(module: nn.Module, parameters: Vector) -> None:
    """Copies `parameters`, of the right length, into the module."""
    position = 0
    for into in learnt(module):
        values = parameters[position : position + into.numel()].astype(np.float32)
        with torch.no_grad():
            into.copy_(torch.from_numpy(values).view_as(into))
        position += into.numel()


def flatten(module: nn.Module) -> Vector:
    """float32 (p,)."""
    parts = [one.detach().reshape(-1).cpu().numpy() for one in learnt(module)]
    return np.concatenate(parts, dtype=np.float32)


def learnt(module: nn.Module) -> list[torch.Tensor]:
    """Those of an update: trainable parameters, and a program's tensors that layers write in training."""
    return [*trainable(module), *getattr(module, "moving", {}).values()]


def trainable(module: nn.Module) -> list[nn.Parameter]:
    return [one for one in module.parameters() if one.requires_grad]
