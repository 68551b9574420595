"""A module's trainable parameters as one vector, in the module's own order."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from consilium_client.models import Vector


def load(module: nn.Module, parameters: Vector) -> None:
    """Copies `parameters`, of the right length, into the module."""
    position = 0
    for into in trainable(module):
        values = parameters[position : position + into.numel()].astype(np.float32)
        into.data = torch.from_numpy(values).view_as(into)
        position += into.numel()


def flatten(module: nn.Module) -> Vector:
    """float32 (p,)."""
    return np.concatenate([one.detach().reshape(-1).cpu().numpy() for one in trainable(module)]).astype(np.float32)


def trainable(module: nn.Module) -> list[nn.Parameter]:
    return [one for one in module.parameters() if one.requires_grad]
