"""Uses once all that libraries load late to compute a program: afterwards no file can be opened."""

from __future__ import annotations

import os
from contextlib import suppress

import numpy as np
import torch
from torch import nn

from consilium_client.errors import ModelError
from consilium_client.programs.interpreter import Interpreter
from consilium_client.programs.measuring import measured
from consilium_client.programs.program import Call, Input, Program, Tensor
from consilium_client.programs.row_gradients import require_apart, take_row_gradients
from consilium_client.programs.tokenizing import require_library

SHAPES = {"w": (1, 2), "b": (1,)}
PROGRAM = Program(
    (2,), "float32", 1, SHAPES, {}, {}, (Call("linear.default", (Input(), Tensor("w"), Tensor("b")), {}),)
)  # fmt: skip


def rehearse(device: str, private: bool) -> None:
    """Measures, trains and evaluates a program of this file, with all threads. `private`: also row by row."""
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 0)) or os.cpu_count() or 1)
    measured(PROGRAM, 4)
    module = Interpreter(PROGRAM, {name: torch.ones(shape) for name, shape in SHAPES.items()}).to(device)
    rows = torch.ones(4, 2, device=device)
    _learn(nn.functional.binary_cross_entropy_with_logits(module(rows).squeeze(1), torch.ones(4, device=device)))
    nn.functional.cross_entropy(rows, torch.zeros(4, dtype=torch.int64, device=device))
    torch.optim.AdamW(module.parameters(), lr=0.1).step()
    _layers(device)
    if private:
        from consilium_client.privacy import dp_sgd

        dp_sgd.rehearse()
        take_row_gradients(module, lambda logits, _: logits.sum(), rows, torch.zeros(4, device=device))
    require_apart(module.cpu())
    with suppress(ModelError):  # needed by programs of texts alone
        require_library()
    np.random.default_rng(0).permutation(3)
    torch.set_num_threads(1)


def _layers(device: str) -> None:
    """Those whose libraries look at the machine as they first run."""
    for images, channels in ((torch.ones(2, 3, 8, 8), 3), (torch.ones(64, 3, 32, 32), 3)):
        for real in (torch.float32, torch.float64):
            layer = nn.Conv2d(channels, 4, 3).to(device, real)
            _learn(layer(images.to(device, real)))
    big = torch.ones(256, 256, device=device, requires_grad=True)
    _learn(big @ big)
    _learn(nn.LSTM(4, 4).to(device)(torch.ones(3, 2, 4, device=device))[0])
    nn.functional.scaled_dot_product_attention(*(torch.ones(2, 2, 4, 8, device=device, requires_grad=True),) * 3)


def _learn(found: torch.Tensor) -> None:
    found.sum().backward()  # type: ignore[no-untyped-call]
