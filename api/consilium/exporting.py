"""Programs: PyTorch models that tasks bring as graphs of operators, without code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from consilium_client.programs.program import Program
    from tokenizers import Tokenizer
    from torch import nn


@dataclass(frozen=True)
class ExportedProgram:
    """`folder`: its two files. `details`: its graph. `parameters`: the numbers that are trained and sent."""

    folder: Path
    details: Program
    parameters: int


def export(
    module: nn.Module, example: torch.Tensor, path: str | Path, *, outputs: str | int | None = None,
    tokenizer: str | Path | Tokenizer | None = None, padding: int | None = None,
) -> ExportedProgram:  # fmt: skip
    """Writes a PyTorch module as a program into a new folder; `consilium artifacts put` stores it for a task.

    `example`: two or more rows of the model's input, float32 or int64. `outputs`: name or index of the logits (n,
    outputs) in the module's result, if that is no tensor. Two classes have one logit, more have one each.

    A model of texts takes tokens, int64 (n, tokens), and gives logits of the text (n, outputs), or as a language model
    of each next token (n, tokens, outputs). `tokenizer`: a `tokenizer.json`, or a fast tokenizer of `transformers` or
    `tokenizers`. `padding`: the token that fills short texts up; by default the tokenizer's own, or else 0.

    Raises ProgramError (NotExportable, TokenizerUnusable), OperatorError (OutputTaken), ModelError (ModelNotInstalled).
    """
    import math

    from consilium_operators.exporting import export

    makes_tokens = Path(tokenizer) if isinstance(tokenizer, str) else tokenizer
    found = export(module, example, Path(path), outputs, makes_tokens, padding).program
    return ExportedProgram(Path(path), found, sum(map(math.prod, found.learnt.values())))
