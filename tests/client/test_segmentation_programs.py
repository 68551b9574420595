"""A program that marks pixels: its logits are flattened. By the process that computes it, privately, and as ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.errors import ModelError
from consilium_client.models import model_of
from consilium_client.models.training import train
from consilium_client.privacy.dp_sgd import Mechanism, train_privately
from program_driver import both, offered, stored
from raised_faults import raises_fault
from torch import nn

RANDOM = np.random.default_rng(2)
MASKS = np.zeros((40, 8, 8), np.uint8)
for _mask, (_y, _x) in zip(MASKS, RANDOM.integers(0, 5, (40, 2)), strict=True):
    _mask[_y : _y + 4, _x : _x + 4] = 1
INPUTS = (RANDOM.normal(0, 0.3, (40, 1, 8, 8)) + 2 * MASKS[:, None]).astype(np.float32)


def spec_of(folder: Path, outputs: int = 2, more: str = "") -> TaskSpec:
    def net() -> nn.Module:
        return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, outputs, 1), nn.Flatten())

    section = stored(folder, f"{outputs}", net, 1, 8, 8)
    question = 'question = { kind = "segmentation", classes = ["background", "lesion"] }'
    text = f'name = "p"\n[data]\nkind = "images"\nheight = 8\nwidth = 8\n{question}\n{section}\n{more}'
    return offered(folder, f"{text}\n[training]\nepochs = 20\nbatch_size = 8\nlearning_rate = 0.5\n")


def test_the_process_learns_masks_and_has_the_same_bits(folder: Path) -> None:
    spec = spec_of(folder)

    def learnt() -> tuple[Any, float]:
        model = model_of(spec)
        trained = train(spec, model.initial(0), INPUTS, MASKS, 1)
        return trained, model.objective.measures["dice"].worth(*model.evaluate(trained, INPUTS).answers(MASKS))

    (found, dice), (expected, own) = both(learnt)
    assert found.tobytes() == expected.tobytes()
    assert dice == own
    assert dice > 0.9


def test_a_private_step_is_bounded(folder: Path) -> None:
    spec = spec_of(folder, more="[privacy]\nepsilon = 8.0\nmax_grad_norm = 0.5\n")
    assert spec.privacy is not None
    base = model_of(spec).initial(0)
    moved = train_privately(spec, spec.privacy, Mechanism(1e-9, 1.0, 1), base, 1_000 * INPUTS, MASKS)
    assert 0 < np.linalg.norm(moved - base) <= 0.5 * 0.5 * 40 / 8 + 1e-3


def test_other_numbers_of_logits_are_refused(folder: Path) -> None:
    with raises_fault(ModelError, "ShapeMismatch"):
        model_of(spec_of(folder, outputs=3))
