"""Writes a PyTorch module as a program: a folder of its graph and weights, on its author's machine."""

from __future__ import annotations

from pathlib import Path

import torch
from consilium_client.programs.exporting import Exported, exported
from safetensors.numpy import save_file
from torch import nn

from consilium_operators.errors import OperatorError
from consilium_operators.weights import FROZEN, PROGRAM, WEIGHTS


def export(module: nn.Module, example: torch.Tensor, folder: Path, outputs: str | int | None = None) -> Exported:
    """Frozen tensors have a file of their own: programs on one base share it.

    Raises OperatorError (OutputTaken) for a folder that exists, ProgramError (NotExportable)."""
    if folder.exists():
        raise OperatorError("OutputTaken", path=folder)
    found = exported(module, example, outputs)
    folder.mkdir(parents=True)
    (folder / PROGRAM).write_bytes(found.raw)
    frozen = {name: found.tensors[name] for name in found.program.frozen}
    save_file({name: found.tensors[name] for name in found.program.learnt}, folder / WEIGHTS)
    if frozen:
        save_file(frozen, folder / FROZEN)
    return found
