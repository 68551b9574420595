"""Local training of dense models by NumPy, so that a small machine takes part without torch.

It takes the same steps as `torch_training` in single precision, and its updates differ by rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_chain.tasks.training_specs import TrainingSpec
from consilium_core.kinds import of_kind
from consilium_zk.basis import Basis
from numpy.typing import NDArray

from consilium_client.data.examples import Labels
from consilium_client.models import Inputs, Vector, model_of, require_finite
from consilium_client.models.dense import Dense
from consilium_client.models.descent import Learner, Progress, descend
from consilium_client.models.training import Guides, labelled, require_device

Step = Callable[[Vector], None]
# AdamW's decay rates and epsilon, as torch has them by default (Loshchilov and Hutter, ICLR 2019).
_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-8


def trained(
    spec: TaskSpec, within: Basis | None, base: Vector, inputs: Inputs, labels: Labels, seed: int,
    progress: Progress, device: str, guides: Guides,
) -> NDArray[Any]:  # fmt: skip
    """As `training.learn` within a basis, or as `training.train`. Raises TorchNeeded."""
    require_device(spec, device)
    learner = _Training(spec, within, base, inputs, labels, guides)
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow is refused below
        descend(learner, spec.training, len(labels), seed, progress)
    if within is None:
        require_finite("trained parameters", learner.moved)
        return learner.moved
    require_finite("trained coordinates", learner.moved)
    return learner.moved.astype(np.float64)


class _Training(Learner):
    """A round's training of one dense model on one hospital's rows. `moved`: all parameters float32 (p,), or their
    coordinates float32 (k,), which begin at zero.
    """

    def __init__(
        self, spec: TaskSpec, within: Basis | None, base: Vector, inputs: Inputs, labels: Labels, guides: Guides
    ) -> None:
        self._model = of_kind(Dense, model_of(spec))
        self._targets = labelled(self._model, base, inputs, labels)
        self._inputs, self._weights, self._within, self._base = inputs, guides.class_weights, within, base
        self._held_out: tuple[Inputs, NDArray[Any]] | None = None
        if (held_out := guides.for_patience(spec.training)) is not None:
            self._held_out = held_out[0], self._model.targets(*held_out)
        self.is_patient = self._held_out is not None
        self.moved: Vector = base.astype(np.float32) if within is None else np.zeros(within.size, np.float32)
        self._step = _stepper(self.moved, spec.training, guides.correction)

    def step(self, batch: NDArray[np.int64]) -> float:
        loss, gradient = self._model.gradient(
            self._parameters, self._inputs[batch], self._targets[batch], self._weights
        )
        self._step(gradient if self._within is None else self._within.gather(gradient))
        return loss

    @property
    def _parameters(self) -> Vector:
        if self._within is None:
            return self.moved
        spread = self._within.spread(self.moved.astype(np.float64), 0, self._within.parameters)
        return self._base + spread.astype(np.float32)

    def held_out_loss(self) -> float:
        if self._held_out is None:
            raise ValueError("no rows are held out")
        return self._model.gradient(self._parameters, *self._held_out, self._weights)[0]

    def now(self) -> NDArray[np.float32]:
        return self.moved.copy()

    def back(self, to: NDArray[np.float32]) -> None:
        self.moved[:] = to


def _stepper(moved: Vector, settings: TrainingSpec, correction: NDArray[np.float32] | None) -> Step:
    """A function that moves `moved` by one step of the task's optimiser from a gradient, which it may overwrite."""
    begun, by = moved.copy(), _adamw if settings.optimizer == "adamw" else _sgd
    descend_by = by(moved, settings)

    def step(gradient: Vector) -> None:
        if settings.proximal:  # FedProx's μ/2 · ‖w − base‖² (Li et al., 2020)
            gradient += np.float32(settings.proximal) * (moved - begun)
        if correction is not None:
            gradient += correction
        descend_by(gradient)

    return step


def _sgd(moved: Vector, settings: TrainingSpec) -> Step:
    rate, decay = np.float32(settings.learning_rate), np.float32(settings.weight_decay)

    def step(gradient: Vector) -> None:
        moved[:] -= rate * (gradient + decay * moved)

    return step


def _adamw(moved: Vector, settings: TrainingSpec) -> Step:
    mean, square, done = np.zeros_like(moved), np.zeros_like(moved), 0
    rate, kept = settings.learning_rate, np.float32(1 - settings.learning_rate * settings.weight_decay)

    def step(gradient: Vector) -> None:
        nonlocal done
        done += 1
        moved[:] *= kept
        mean[:] += np.float32(1 - _FIRST) * (gradient - mean)
        square[:] = np.float32(_SECOND) * square + np.float32(1 - _SECOND) * gradient * gradient
        size = np.sqrt(square) / np.float32((1 - _SECOND**done) ** 0.5) + np.float32(_EPSILON)
        moved[:] -= np.float32(rate / (1 - _FIRST**done)) * mean / size

    return step
