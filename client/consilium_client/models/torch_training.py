"""Local training by torch: the same seed gives the same bits on the same machine.

On a GPU, sums may be in another order, and differ in the last bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_chain.tasks.training_specs import TrainingSpec
from consilium_zk.basis import Basis
from numpy.typing import NDArray
from torch import nn

from consilium_client.data.examples import Labels
from consilium_client.models import Inputs, Model, Vector, model_of, require_finite
from consilium_client.models.descent import Learner, Progress, descend
from consilium_client.models.steps import stepper
from consilium_client.models.torch_parameters import flatten, load, trainable
from consilium_client.models.training import Guides, labelled
from consilium_client.models.within import Within

_MOST_SEED = (1 << 63) - 1  # of torch's generator


def trained(
    spec: TaskSpec, within: Basis | None, base: Vector, inputs: Inputs, labels: Labels, seed: int,
    progress: Progress, device: str, guides: Guides,
) -> NDArray[Any]:  # fmt: skip
    """As `training.learn` within a basis, or as `training.train`."""
    learner = _Training(spec, within, base, inputs, labels, device, guides)
    torch.manual_seed(seed & _MOST_SEED)  # a program's dropout draws from torch's own generator
    descend(learner, spec.training, len(labels), seed, progress)
    return learner.moved.found()


class _Whole:
    """Moves all of a module's parameters."""

    def __init__(self, module: nn.Module, step: Callable[[], None]) -> None:
        self._module, self.step = module, step

    def now(self) -> NDArray[np.float32]:
        return flatten(self._module)

    def back(self, to: NDArray[np.float32]) -> None:
        load(self._module, to)

    def found(self) -> Vector:
        """float32 (p,). Raises UpdateNotFinite."""
        trained = flatten(self._module)
        require_finite("trained parameters", trained)
        return trained


class _Training(Learner):
    """A round's training of one module on one hospital's rows."""

    def __init__(
        self, spec: TaskSpec, within: Basis | None, base: Vector, inputs: Inputs, labels: Labels, device: str,
        guides: Guides,
    ) -> None:  # fmt: skip
        self._model, self._module, self._rows, self._targets = prepare(spec, base, inputs, labels, device)
        self._settings = spec.training
        self._held_out: tuple[torch.Tensor, torch.Tensor] | None = None
        if (held_out := guides.for_patience(spec.training)) is not None:
            held, asked = held_out[0], self._model.targets(*held_out)
            self._held_out = torch.from_numpy(held).to(device), torch.from_numpy(asked).to(device)
        self.is_patient = self._held_out is not None
        self.least = 2 if getattr(self._module, "moving", None) else 1  # one row has no deviation to norm it by
        weights = guides.class_weights
        self._weights = None if weights is None else torch.from_numpy(weights).to(device)
        self.moved: _Whole | Within
        if within is None:
            step = stepper(trainable(self._module), spec.training, guides.correction)
            self.moved = _Whole(self._module, step)
        else:
            self.moved = Within(self._module, within, spec.training, guides.correction)

    def step(self, batch: NDArray[np.int64]) -> float:
        self._module.zero_grad()
        rows = torch.from_numpy(batch)
        with casting(self._settings, self._rows.device):
            loss = self._model.loss(self._module(self._rows[rows]), self._targets[rows], "mean", self._weights)
        loss.backward()  # type: ignore[no-untyped-call]
        self.moved.step()
        return float(loss.detach())

    def held_out_loss(self) -> float:
        if self._held_out is None:
            raise ValueError("no rows are held out")
        rows, targets = self._held_out
        self._module.eval()
        with torch.no_grad():
            loss = float(self._model.loss(self._module(rows), targets, "mean", self._weights))
        self._module.train()
        return loss

    def now(self) -> NDArray[np.float32]:
        return self.moved.now()

    def back(self, to: NDArray[np.float32]) -> None:
        self.moved.back(to)


def prepare(
    spec: TaskSpec, base: Vector, inputs: Inputs, labels: Labels, device: str = "cpu"
) -> tuple[Model, nn.Module, torch.Tensor, torch.Tensor]:
    """The task's model, a module that holds `base`, the inputs (n, …) and what is asked of them (n, …).

    Raises as `training.train` does.
    """
    model = model_of(spec)
    asked = labelled(model, base, inputs, labels)
    torch.set_num_threads(model.threads)
    rows, targets = (torch.from_numpy(one).to(device) for one in (inputs, asked))
    return model, model.module(base).to(device), rows, targets


def casting(settings: TrainingSpec, device: torch.device) -> torch.autocast:
    """Within it, layers multiply in bfloat16, if the task trains in mixed precision. Weights and gradients stay float32
    (Micikevicius et al., ICLR 2018). bfloat16 has float32's range, so no loss is scaled.
    """
    return torch.autocast(device.type, torch.bfloat16, enabled=settings.precision == "mixed")
