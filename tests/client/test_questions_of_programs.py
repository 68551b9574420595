"""Programs that answer other questions than a class: by the process that computes them, in private tasks, and as ONNX.

The loss is the task's: a program gives outputs alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.errors import ModelError
from consilium_client.models import model_of
from consilium_client.models.training import train
from consilium_client.privacy.dp_sgd import Mechanism, learn_privately
from program_driver import PRIVATE, both, offered, stored
from raised_faults import raises_fault
from task_files import asking
from torch import nn

QUESTIONS = {
    "amount": ('{ kind = "regression", label = "y", min = -50, max = 50, mean = 0, deviation = 10 }', 1, "r2"),
    "time": ('{ kind = "survival", time = "t", event = "e", bounds = [10, 20, 40] }', 3, "c_index"),
    "labels": ('{ kind = "multilabel", labels = ["a", "b"] }', 2, "auc"),
}
INPUTS = np.random.default_rng(2).normal(size=(60, 2)).astype(np.float32)
LABELS = {
    "amount": 10.0 * INPUTS[:, :1],
    "time": np.stack([20 * np.exp(INPUTS[:, 0]), (INPUTS[:, 1] > -1) * 1.0], axis=1).astype(np.float64),
    "labels": (INPUTS > 0) * 1.0,
}


def module(outputs: int) -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, outputs))


def spec_of(name: str, folder: Path, outputs: int | None = None, more: str = "") -> TaskSpec:
    question, own, metric = QUESTIONS[name]
    outputs = outputs or own
    section = stored(folder, f"{outputs}", lambda: module(outputs), 2)
    columns = "".join(f'[[data.features]]\nname = "x{k}"\nmin = -5\nmax = 5\n' for k in range(2))
    text = asking(question, section.removeprefix("[model]\n"), columns, metric)
    return offered(folder, f"{text}[training]\nepochs = 20\nbatch_size = 16\nlearning_rate = 0.1\n{more}")


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_process_learns_the_answer_and_has_the_same_bits(name: str, folder: Path) -> None:
    spec = spec_of(name, folder)

    def learnt() -> Any:
        model = model_of(spec)
        trained = train(spec, model.initial(0), INPUTS, LABELS[name], 1)
        worths = [
            model.objective.measures[QUESTIONS[name][2]].worth(LABELS[name], model.evaluate(one, INPUTS).predictions)  # type: ignore[index]
            for one in (model.initial(0), trained)
        ]
        return trained, worths

    (found, worths), (expected, own) = both(learnt)
    assert found.tobytes() == expected.tobytes()
    assert worths == own
    assert worths[1] > max(worths[0], 0.75)


@pytest.mark.parametrize("name", QUESTIONS)
def test_training_is_plain_torchs(name: str, folder: Path) -> None:
    """One whole batch: a step of SGD on the objective's loss, by the module itself."""
    spec = spec_of(name, folder)
    spec = spec.model_copy(update={"training": spec.training.model_copy(update={"epochs": 1, "batch_size": 60})})
    model, eager = model_of(spec), module(QUESTIONS[name][1])
    found = train(spec, model.initial(0), INPUTS, LABELS[name], 1)
    rows, targets = torch.from_numpy(INPUTS), torch.from_numpy(model.objective.targets(LABELS[name]))
    outputs = eager(rows)
    if name == "amount":
        loss = nn.functional.mse_loss(outputs, targets)
    elif name == "labels":
        loss = nn.functional.binary_cross_entropy_with_logits(outputs, targets.float())
    else:
        hazards = outputs.sigmoid()
        through, inside = targets.chunk(2, dim=1)
        loss = -(through * (1 - hazards).log() + inside * hazards.log()).sum(dim=1).mean()
    gradients = torch.autograd.grad(loss, list(eager.parameters()))
    rate = spec.training.learning_rate
    stepped = [one.detach() - rate * own for one, own in zip(eager.parameters(), gradients, strict=True)]
    np.testing.assert_allclose(found, torch.cat([one.reshape(-1) for one in stepped]).numpy(), rtol=0, atol=2e-6)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_private_task_trains_row_by_row(name: str, folder: Path) -> None:
    spec = spec_of(name, folder, more=PRIVATE)
    assert spec.privacy is not None
    base, privacy = model_of(spec).initial(0), spec.privacy

    def learnt() -> Any:
        return learn_privately(
            spec, privacy, Mechanism(0.0, 1.0, 3), spec.basis(b"\x07" * 32), base, INPUTS, LABELS[name]
        )

    found, expected = both(learnt)
    assert found.tobytes() == expected.tobytes()
    assert np.abs(found).max() > 1e-4


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_program_with_other_outputs_is_refused(name: str, folder: Path) -> None:
    spec = spec_of(name, folder, outputs=4)
    with raises_fault(ModelError, "ShapeMismatch"):
        model_of(spec)
