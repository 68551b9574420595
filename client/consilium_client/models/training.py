"""Local training on a hospital's own examples, by torch, or by NumPy for models of tables.

Torch takes seconds to import and hundreds of megabytes, so only `torch_training` imports it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
from consilium_chain.tasks.model_specs import LogisticSpec, MlpSpec
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_chain.tasks.training_specs import TrainingSpec
from consilium_zk.basis import Basis, Coordinates, CountSketch, Dense
from numpy.typing import NDArray

from consilium_client.data.examples import Labels
from consilium_client.errors import DataError, ModelError
from consilium_client.models import Inputs, Model, Vector
from consilium_client.models.descent import Progress

NUMPY: Final = "numpy"  # the device of training without torch


def no_progress(done: int, steps: int, loss: float) -> None:
    pass


@dataclass(frozen=True)
class Guides:
    """They steer training, besides its rows. `held_out`: the inputs (n, …) and labels (n,) of rows kept out, for
    `patience`. `correction`: what a step adds to the gradient, float32 (k,). `class_weights`: of a row of each class,
    float32 (classes,).
    """

    held_out: tuple[Inputs, Labels] | None = None
    correction: NDArray[np.float32] | None = None
    class_weights: NDArray[np.float32] | None = None

    def for_patience(self, settings: TrainingSpec) -> tuple[Inputs, Labels] | None:
        """The held-out rows, if there are any and they may end training."""
        has_rows = self.held_out is not None and len(self.held_out[1]) > 0
        return self.held_out if has_rows and settings.patience is not None else None


NO_GUIDES = Guides()


def mean_gradient(settings: TrainingSpec, rounds: int, round_: int, update: Coordinates) -> Coordinates:
    """The mean gradient float64 (k,) of a round's steps, with what was added to it: K steps of length η have moved the
    coordinates by -K·η times that.
    """
    return update / -((settings.steps or 1) * settings.rate_in(round_, rounds))


def learn(
    spec: TaskSpec,
    basis: Basis,
    base: Vector,
    inputs: Inputs,
    labels: Labels,
    seed: int,
    progress: Progress = no_progress,
    device: str | None = None,
    guides: Guides = NO_GUIDES,
) -> Coordinates:
    """A hospital's update of `base`: float64 (k,), the coordinates in the task's basis. Trains as `train` does, but
    only moves the model within the basis. A sketch is made of the whole change. Raises as `train` does.
    """
    if isinstance(basis, Dense | CountSketch):
        moved = np.subtract(train(spec, base, inputs, labels, seed, progress, device, guides), base, dtype=np.float64)
        return basis.sketched(moved) if isinstance(basis, CountSketch) else moved
    return _trained(spec, basis, base, inputs, labels, seed, progress, device, guides)


def train(
    spec: TaskSpec,
    base: Vector,
    inputs: Inputs,
    labels: Labels,
    seed: int,
    progress: Progress = no_progress,
    device: str | None = None,
    guides: Guides = NO_GUIDES,
) -> Vector:
    """Trained parameters float32 (p,) from `base` (p,) on the model's inputs (n, …) and labels (n, …).

    Minimises the objective's loss, and the proximal term where the task has one, by the task's optimiser, epochs, batch
    size, learning rate and weight decay. Each epoch visits every row once, in an order drawn from `seed` (≥ 0).
    `in_round` applies a schedule. `device`: None for `usual_device`. Raises ShapeMismatch, TooFewRows, TorchNeeded, or
    UpdateNotFinite when the base or the result is not finite (training ran away).
    """
    return _trained(spec, None, base, inputs, labels, seed, progress, device, guides)


def _trained(
    spec: TaskSpec, within: Basis | None, base: Vector, inputs: Inputs, labels: Labels, seed: int, progress: Progress,
    device: str | None, guides: Guides,
) -> NDArray[Any]:  # fmt: skip
    device = device or usual_device()
    given = spec, within, base, inputs, labels, seed, progress, device, guides
    if device == NUMPY:
        from consilium_client.models import numpy_training

        return numpy_training.trained(*given)
    from consilium_client.models import elsewhere

    if elsewhere.is_trained_elsewhere(spec):
        return elsewhere.trained(*given)
    from consilium_client.models import torch_training

    return torch_training.trained(*given)


def in_round(spec: TaskSpec, round_: int) -> TaskSpec:
    """The task with the learning rate of a training round, from 1 on."""
    rate = spec.training.rate_in(round_, spec.rounds.rounds)
    return spec.model_copy(update={"training": spec.training.model_copy(update={"learning_rate": rate})})


def labelled(model: Model, base: Vector, inputs: Inputs, labels: Labels) -> NDArray[Any]:
    """The targets of the rows (n, …), once base, inputs and labels fit the model. Raises as `train` does."""
    if labels.shape != (expected := (len(inputs), *model.objective.label_shape)):
        raise ModelError("ShapeMismatch", what="labels", expected=expected, found=labels.shape)
    if len(inputs) == 0:
        raise DataError("TooFewRows", rows=0, at_least=1)
    model.require(base, inputs)
    return model.targets(inputs, labels)


def usual_device() -> str:
    """The CPU, by torch where it is installed, and else by NumPy."""
    return NUMPY if find_spec("torch") is None else "cpu"


def require_device(spec: TaskSpec, device: str | None) -> str:
    """The device that trains this task. None: `usual_device`. Raises TorchNeeded for a task that NumPy does not train
    here; DeviceMissing unless torch can compute on a GPU.
    """
    found = usable_device(device)
    if why := needs_torch(spec, found):
        raise ModelError("TorchNeeded", why=why)
    return found


def usable_device(device: str | None) -> str:
    """Raises TorchNeeded if torch is not installed; DeviceMissing unless torch can compute on a GPU."""
    found = device or usual_device()
    if found == NUMPY:
        return found
    if find_spec("torch") is None:
        raise ModelError("TorchNeeded", why=f'device = "{found}"')
    if found != "cpu":
        import torch

        if not torch.cuda.is_available():
            raise ModelError("DeviceMissing", device=found)
    return found


def needs_torch(spec: TaskSpec, device: str | None) -> str | None:
    """The part of a task that this device does not train, in words; None if it trains all."""
    if (device or usual_device()) != NUMPY:
        return None
    if not isinstance(spec.model, LogisticSpec | MlpSpec):
        return f"the model {spec.model.name}"
    if spec.privacy is not None or spec.summary_variance > 0:
        return "differential privacy"
    return "mixed precision" if spec.training.precision == "mixed" else None
