"""Local training on a hospital's own examples: the same seed gives the same bits on the same machine.

On a GPU, sums may be in another order, and differ in the last bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_chain.tasks.training_specs import TrainingSpec
from consilium_zk.basis import Basis, Coordinates, CountSketch, Dense
from numpy.typing import NDArray
from torch import nn

from consilium_client.data.examples import Labels
from consilium_client.errors import DataError, ModelError
from consilium_client.models import Inputs, Model, Vector, elsewhere, model_of, require_finite
from consilium_client.models.steps import stepper
from consilium_client.models.torch_parameters import flatten, load, trainable
from consilium_client.models.within import Within

# Arguments: steps done, all steps, and the mean loss of the last step's rows, in nats (NaN without rows).
Progress = Callable[[int, int, float], None]
_MOST_SEED = (1 << 63) - 1  # of torch's generator


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
    device: str = "cpu",
    guides: Guides = NO_GUIDES,
) -> Coordinates:
    """A hospital's update of `base`: float64 (k,), the coordinates in the task's basis. Trains as `train` does, but
    only moves the model within the basis. A sketch is made of the whole change. Raises as `train` does.
    """
    if isinstance(basis, Dense | CountSketch):
        moved = np.subtract(train(spec, base, inputs, labels, seed, progress, device, guides), base, dtype=np.float64)
        return basis.sketched(moved) if isinstance(basis, CountSketch) else moved
    if elsewhere.is_trained_elsewhere(spec):
        return elsewhere.trained(spec, basis, base, inputs, labels, seed, progress, device, guides)
    training = _Training(spec, base, inputs, labels, device, guides)
    within = Within(training.module, basis, spec.training, guides.correction)
    training.descend(within.step, within, seed, progress)
    return within.coordinates()


def train(
    spec: TaskSpec,
    base: Vector,
    inputs: Inputs,
    labels: Labels,
    seed: int,
    progress: Progress = no_progress,
    device: str = "cpu",
    guides: Guides = NO_GUIDES,
) -> Vector:
    """Trained parameters float32 (p,) from `base` (p,) on the model's inputs (n, …) and labels (n, …).

    Minimises the objective's loss, and the proximal term where the task has one, by the task's optimiser, epochs, batch
    size, learning rate and weight decay. Each epoch visits every row once, in an order drawn from `seed` (≥ 0).
    `in_round` applies a schedule. Raises ShapeMismatch, TooFewRows, or UpdateNotFinite when the base or the result is
    not finite (training ran away).
    """
    if elsewhere.is_trained_elsewhere(spec):
        return elsewhere.trained(spec, None, base, inputs, labels, seed, progress, device, guides)
    training = _Training(spec, base, inputs, labels, device, guides)
    step = stepper(trainable(training.module), spec.training, guides.correction)
    training.descend(step, _Whole(training.module), seed, progress)
    trained = flatten(training.module)
    require_finite("trained parameters", trained)
    return trained


class _Moved(Protocol):
    """All that training moves, as one vector, to go back to."""

    def now(self) -> NDArray[np.float32]: ...

    def back(self, to: NDArray[np.float32]) -> None: ...


@dataclass(frozen=True)
class _Whole:
    module: nn.Module

    def now(self) -> NDArray[np.float32]:
        return flatten(self.module)

    def back(self, to: NDArray[np.float32]) -> None:
        load(self.module, to)


class _Training:
    """A round's training of one module on one hospital's rows."""

    def __init__(
        self, spec: TaskSpec, base: Vector, inputs: Inputs, labels: Labels, device: str, guides: Guides
    ) -> None:
        self._model, self.module, self._rows, self._targets = prepare(spec, base, inputs, labels, device)
        self._settings, self._held_out = spec.training, None
        if guides.held_out is not None and spec.training.patience is not None and len(guides.held_out[1]):
            held, asked = guides.held_out
            self._held_out = tuple(torch.from_numpy(one).to(device) for one in (held, self._model.targets(held, asked)))
        self._least = 2 if getattr(self.module, "moving", None) else 1  # one row has no deviation to norm it by
        weights = guides.class_weights
        self._weights = None if weights is None else torch.from_numpy(weights).to(device)

    def descend(self, step: Callable[[], None], moved: _Moved, seed: int, progress: Progress) -> None:
        """All steps of a round, each by `step` from the module's gradients; ends at the best pass, if passes count."""
        settings, rows = self._settings, len(self._rows)
        generator, patient = np.random.Generator(np.random.PCG64(seed)), _Patience(settings.patience, moved)
        torch.manual_seed(seed & _MOST_SEED)  # a program's dropout draws from torch's own generator
        steps, of_pass = settings.steps_on(rows), -(-rows // settings.batch_size)
        batches = _batches(rows, settings.batch_size, generator, self._least)
        for done, batch in zip(range(1, steps + 1), batches, strict=False):
            self.module.zero_grad()
            loss = self._loss(batch)
            loss.backward()  # type: ignore[no-untyped-call]
            step()
            progress(done, steps, float(loss.detach()))
            if self._held_out is not None and done % of_pass == 0 and patient.is_spent(self._worth(*self._held_out)):
                break
        patient.back_to_best()

    def _loss(self, batch: torch.Tensor) -> torch.Tensor:
        with casting(self._settings, self._rows.device):
            return self._model.loss(self.module(self._rows[batch]), self._targets[batch], "mean", self._weights)

    def _worth(self, rows: torch.Tensor, targets: torch.Tensor) -> float:
        self.module.eval()
        with torch.no_grad():
            loss = float(self._model.loss(self.module(rows), targets, "mean", self._weights))
        self.module.train()
        return loss


class _Patience:
    """Remembers the pass with the least loss on held-out rows. `passes`: without a lower one, after which to stop."""

    def __init__(self, passes: int | None, moved: _Moved) -> None:
        self._passes, self._moved = passes, moved
        self._least, self._since = math.inf, 0
        self._best: NDArray[np.float32] | None = None

    def is_spent(self, loss: float) -> bool:
        """`loss`: after a pass, in nats."""
        if loss < self._least:
            self._least, self._since, self._best = loss, 0, self._moved.now()
        else:
            self._since += 1
        return self._passes is not None and self._since >= self._passes

    def back_to_best(self) -> None:
        if self._best is not None and self._since:
            self._moved.back(self._best)


def _batches(rows: int, size: int, generator: np.random.Generator, least: int) -> Iterator[torch.Tensor]:
    """Rows' numbers without end: each pass has every row once, in an order of its own, but for a last batch of fewer
    than `least`.
    """
    while True:
        found = torch.split(torch.from_numpy(generator.permutation(rows)), size)
        yield from found if len(found) == 1 or len(found[-1]) >= least else found[:-1]


def in_round(spec: TaskSpec, round_: int) -> TaskSpec:
    """The task with the learning rate of a training round, from 1 on."""
    rate = spec.training.rate_in(round_, spec.rounds.rounds)
    return spec.model_copy(update={"training": spec.training.model_copy(update={"learning_rate": rate})})


def prepare(
    spec: TaskSpec, base: Vector, inputs: Inputs, labels: Labels, device: str = "cpu"
) -> tuple[Model, nn.Module, torch.Tensor, torch.Tensor]:
    """The task's model, a module that holds `base`, the inputs (n, …) and what is asked of them (n, …).

    Raises as `train` does.
    """
    model = model_of(spec)
    if labels.shape != (expected := (len(inputs), *model.objective.label_shape)):
        raise ModelError("ShapeMismatch", what="labels", expected=expected, found=labels.shape)
    if len(inputs) == 0:
        raise DataError("TooFewRows", rows=0, at_least=1)
    model.require(base, inputs)
    torch.set_num_threads(model.threads)
    rows, targets = (torch.from_numpy(one).to(device) for one in (inputs, model.targets(inputs, labels)))
    return model, model.module(base).to(device), rows, targets


def casting(settings: TrainingSpec, device: torch.device) -> torch.autocast:
    """Within it, layers multiply in bfloat16, if the task trains in mixed precision. Weights and gradients stay float32
    (Micikevicius et al., ICLR 2018). bfloat16 has float32's range, so no loss is scaled.
    """
    return torch.autocast(device.type, torch.bfloat16, enabled=settings.precision == "mixed")


def require_device(device: str) -> None:
    """Raises DeviceMissing unless torch can compute there."""
    if device != "cpu" and not torch.cuda.is_available():
        raise ModelError("DeviceMissing", device=device)
