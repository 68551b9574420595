"""Writes a PyTorch module as a program: a folder of its graph and weights, on its author's machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from consilium_client.programs.errors import ProgramError
from consilium_client.programs.exporting import Exported, exported
from consilium_client.programs.interpreter import Interpreter
from consilium_client.programs.tokenizing import require_library, tokens_of
from safetensors.numpy import save_file
from torch import nn

from consilium_operators.errors import OperatorError
from consilium_operators.weights import FROZEN, PROGRAM, TOKENIZER, WEIGHTS


def export(
    module: nn.Module, example: torch.Tensor, folder: Path, outputs: str | int | None = None,
    tokenizer: Any = None, padding: int | None = None,
) -> Exported:  # fmt: skip
    """Frozen tensors have a file of their own: programs on one base share it. `tokenizer`, `padding`: as
    `consilium.export` has them.

    Raises OperatorError (OutputTaken) for a folder that exists, ProgramError (NotExportable, TokenizerUnusable),
    ModelError (ModelNotInstalled).
    """
    if folder.exists():
        raise OperatorError("OutputTaken", path=folder)
    found = exported(module, example, outputs)
    makes_tokens = None if tokenizer is None else _tokenizer(tokenizer, padding, found)
    folder.mkdir(parents=True)
    (folder / PROGRAM).write_bytes(found.raw)
    frozen = {name: found.tensors[name] for name in found.program.frozen}
    save_file({name: found.tensors[name] for name in found.program.learnt}, folder / WEIGHTS)
    if frozen:
        save_file(frozen, folder / FROZEN)
    if makes_tokens is not None:
        (folder / TOKENIZER).write_bytes(makes_tokens)
    return found


def _tokenizer(given: Any, padding: int | None, found: Exported) -> bytes:
    """Its file: it cuts texts to the program's length, fills them up, and gives no token that the model lacks."""
    library, program = require_library(), found.program
    if program.type_ != "int64" or len(program.shape) != 1:
        raise _not("the example is not rows of tokens, int64 (n, tokens), and a tokenizer is given")
    text = given.read_text() if isinstance(given, Path) else getattr(given, "backend_tokenizer", given).to_str()
    tokenizer = library.from_str(text)
    if padding is None:
        padding = getattr(given, "pad_token_id", None) or (tokenizer.padding or {}).get("pad_id", 0)
    tokenizer.enable_truncation(program.shape[0])
    tokenizer.enable_padding(length=program.shape[0], pad_id=padding)
    raw: bytes = tokenizer.to_str().encode()
    tokens_of(raw, ["a", "b c"], program.shape[0], padding)
    largest = max(padding, tokenizer.get_vocab_size() - 1)
    tensors = {name: torch.from_numpy(np.array(values)) for name, values in found.tensors.items()}
    try:
        with torch.no_grad():
            Interpreter(program, tensors).eval()(torch.full((1, *program.shape), largest))
    except ProgramError as error:
        raise _not(f"the tokenizer has {largest + 1:,} tokens, and the model cannot compute the last") from error
    return raw


def _not(why: str) -> ProgramError:
    return ProgramError("NotExportable", why=why)
