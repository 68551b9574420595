"""Programs of small modules, and the processes that compute them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import psutil
import torch
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.programs import library
from consilium_client.programs.confined import computing_here
from consilium_operators.exporting import export
from consilium_operators.weights import store_weights
from torch import nn

PRIVATE = "[privacy]\nepsilon = 8.0\nmax_grad_norm = 1.0"
Found = TypeVar("Found")


def processes() -> list[psutil.Process]:
    return [one for one in psutil.Process().children() if "consilium_client.programs" in " ".join(one.cmdline())]


def both(work: Callable[[], Found]) -> tuple[Found, Found]:
    """By the process, and here."""
    found = work()
    with computing_here():
        return found, work()


def stored(folder: Path, name: str, make: Callable[[], nn.Module], *shape: int) -> str:
    """The section of a task file. `shape`: of an input."""
    if not (folder / name).exists():
        torch.manual_seed(1)
        export(make(), torch.zeros(2, *shape), folder / name)
    return store_weights(ArtifactStore(folder / "artifacts"), folder / name)


def offered(folder: Path, text: str) -> TaskSpec:
    """The task, whose program the library has."""
    spec = parse_task_spec(text.encode())
    library.offer(ArtifactStore(folder / "artifacts"), spec)
    return spec
