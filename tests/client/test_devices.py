"""Training on a GPU and in mixed precision: the same model as on the CPU in float32, to rounding."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.models import Vector, model_of
from consilium_client.models.training import learn
from consilium_client.privacy.dp_sgd import Mechanism, learn_privately
from consilium_client.programs import library
from consilium_client.programs.row_gradients import take_row_gradients
from consilium_operators.exporting import export
from consilium_operators.weights import store_weights
from program_modules import MIXING, MODULES, interpreted, made
from torch import nn
from torch.nn.functional import cross_entropy

NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU that torch can use")
ON = ["cpu", pytest.param("cuda", marks=NO_GPU)]
SILENT = Mechanism(1e-12, 1.0, 1)  # all rows in one step, and a noise that leaves the clipped sum as it is
# Of a step, relative to its norm: other kernels; eight bits of a factor.
ROUNDING, CASTING = 1e-4, 0.05
SIDE = 12
TASK = f"""
name = "devices"
{{model}}
[data]
kind = "images"
label = "finding"
classes = ["absent", "present"]
width = {SIDE}
height = {SIDE}
channels = 1
[training]
steps = 1
batch_size = 64
learning_rate = 0.05
{{training}}
[update]
bits = 10
{{update}}
[money]
aggregator_bond = 10_000
"""


def program(folder: Path) -> str:
    torch.manual_seed(1)
    module = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Conv2d(4, 8, 3, 2), nn.SiLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.LayerNorm(8), nn.Linear(8, 1),
    )  # fmt: skip
    export(module, torch.randn(3, 1, SIDE, SIDE), folder / "program")
    return store_weights(ArtifactStore(folder / "artifacts"), folder / "program")


MODELS = {"cnn": lambda folder: '[model]\nname = "cnn"\n', "program": program}


def task(folder: Path, model: str, training: str = "", update: str = "", private: bool = False) -> TaskSpec:
    text = TASK.format(model=MODELS[model](folder), training=training, update=update)
    spec = parse_task_spec((text + ("[privacy]\nepsilon = 8.0\nmax_grad_norm = 1.0\n" if private else "")).encode())
    library.offer(ArtifactStore(folder / "artifacts"), spec)
    return spec


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Images with a bright corner or without."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 64)
    images = generator.normal(size=(64, 1, SIDE, SIDE)).astype(np.float32)
    images[labels == 1, :, :6, :6] += 1.5
    return images, labels


def update(spec: TaskSpec, device: str = "cpu") -> np.ndarray:
    base = model_of(spec).initial(0)
    basis = spec.basis(bytes(32))
    if spec.privacy is not None:
        return learn_privately(spec, spec.privacy, SILENT, basis, base, *rows(), device=device)
    return learn(spec, basis, base, *rows(), seed=1, device=device)


def apart(one: Vector, other: Vector) -> float:
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))


WAYS: Mapping[str, Mapping[str, Any]] = {
    "dense": {},
    "hash": {"update": 'codec = { name = "hash", buckets = 60 }'},
    "adamw": {"training": 'optimizer = "adamw"'},
    "private": {"private": True},
}


@NO_GPU
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("way", WAYS)
def test_a_gpu_makes_the_cpus_update(way: str, model: str, tmp_path: Path) -> None:
    spec = task(tmp_path, model, **WAYS[way])
    assert apart(update(spec, "cuda"), update(spec)) < ROUNDING


@pytest.mark.parametrize("device", ON)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("way", [way for way in WAYS if way != "adamw"])  # its first steps are gradients' signs
def test_mixed_precision_makes_nearly_the_same_update(way: str, model: str, device: str, tmp_path: Path) -> None:
    mixed = task(tmp_path / "mixed", model, **{**WAYS[way], "training": 'precision = "mixed"'})
    whole = task(tmp_path, model, **WAYS[way])
    assert 0 < apart(update(mixed, device), update(whole)) < CASTING


@pytest.mark.parametrize("device", ON)
@pytest.mark.parametrize("name", MODULES)
def test_every_program_trains_in_mixed_precision(name: str, device: str) -> None:
    _, found, example, _ = made(name)
    module, example = interpreted(found).to(device), example.to(device)
    with torch.autocast(device, torch.bfloat16):
        logits = module(example)
    logits.float().square().mean().backward()
    gradients = [one.grad for one in module.trained]
    assert all(one is not None and one.dtype is torch.float32 and bool(one.isfinite().all()) for one in gradients)
    with torch.no_grad():
        expected = module.eval()(example)
        with torch.autocast(device, torch.bfloat16):
            found_now = module(example).float()
    assert float((found_now - expected).norm() / expected.norm()) < CASTING


@pytest.mark.parametrize("device", ON)
@pytest.mark.parametrize("mixed", [False, True], ids=["float32", "mixed"])
@pytest.mark.parametrize("name", [name for name in MODULES if name not in MIXING])
def test_rows_gradients_are_whole_floats_on_every_device(name: str, mixed: bool, device: str) -> None:
    """So that clipping bounds them in single precision. None are left over when a step draws no row."""
    _, found, example, _ = made(name)
    module, example = interpreted(found).to(device), example.to(device)
    labels = torch.zeros(len(example), dtype=torch.int64, device=device)

    def loss(logits: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        return cross_entropy(logits.float(), own, reduction="sum")

    with torch.autocast(device, torch.bfloat16, enabled=mixed):
        for count in (len(example), 0):
            take_row_gradients(module, loss, example[:count], labels[:count])
            for one in module.trained:
                taken = one.grad_sample
                assert isinstance(taken, torch.Tensor)
                assert taken.dtype is torch.float32
                assert taken.shape == (count, *one.shape)
