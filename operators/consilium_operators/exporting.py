"""Writes a PyTorch module as a program: a folder of its graph and weights, on its author's machine."""

from __future__ import annotations

from pathlib import Path

import torch
from consilium_client.programs.exporting import Exported, exported
from safetensors.numpy import save_file
from torch import nn

from consilium_operators.errors import OperatorError
from consilium_operators.weights import PROGRAM, WEIGHTS


def export(module: nn.Module, example: torch.Tensor, folder: Path, outputs: str | int | None = None) -> Exported:
    """Raises OperatorError (OutputTaken) for a folder that exists, ProgramError (NotExportable)."""
    if folder.exists():
        raise OperatorError("OutputTaken", path=folder)
    found = exported(module, example, outputs)
    folder.mkdir(parents=True)
    (folder / PROGRAM).write_bytes(found.raw)
    save_file(dict(found.tensors), folder / WEIGHTS)
    return found
