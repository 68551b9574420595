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
from torch.optim.sgd import sgd

from consilium_client.errors import DataError, ModelError
from consilium_client.models import Inputs, Model, Vector, elsewhere, model_of, require_finite
from consilium_client.models.torch_parameters import flatten, load, trainable

# Arguments: steps done, all steps, and the mean loss of the last step's rows, in nats (NaN without rows).
Progress = Callable[[int, int, float], None]
_MOST_SEED = (1 << 63) - 1  # of torch's generator
_CHUNK = 1 << 15  # parameters at a time: they stay in cache, without a second copy of the model


def no_progress(done: int, steps: int, loss: float) -> None:
    pass


@dataclass(frozen=True)
class Guides:
    """They steer training, besides its rows. `held_out`: the inputs (n, …) and labels (n,) of rows kept out, for
    `patience`. `correction`: what a step adds to the gradient, float32 (k,). `class_weights`: of a row of each class,
    float32 (classes,).
    """

    held_out: tuple[Inputs, NDArray[np.int64]] | None = None
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
    labels: NDArray[np.int64],
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
    labels: NDArray[np.int64],
    seed: int,
    progress: Progress = no_progress,
    device: str = "cpu",
    guides: Guides = NO_GUIDES,
) -> Vector:
    """Trained parameters float32 (p,) from `base` (p,) on the model's inputs (n, …) and labels (n,), classes' numbers.

    Minimises cross-entropy, and the proximal term where the task has one, by the task's optimiser, epochs, batch size,
    learning rate and weight decay. Each epoch visits every row once, in an order drawn from `seed` (≥ 0).
    `in_round` applies a schedule. Raises ShapeMismatch, TooFewRows, or UpdateNotFinite when the base or the result is
    not finite (training ran away).
    """
    if elsewhere.is_trained_elsewhere(spec):
        return elsewhere.trained(spec, None, base, inputs, labels, seed, progress, device, guides)
    training = _Training(spec, base, inputs, labels, device, guides)
    step = _stepper(trainable(training.module), spec.training, guides.correction)
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
        self, spec: TaskSpec, base: Vector, inputs: Inputs, labels: NDArray[np.int64], device: str, guides: Guides
    ) -> None:
        self._model, self.module, self._rows, self._targets = prepare(spec, base, inputs, labels, device)
        self._settings, self._held_out = spec.training, None
        if guides.held_out is not None and spec.training.patience is not None and len(guides.held_out[1]):
            self._held_out = tuple(torch.from_numpy(one).to(device) for one in guides.held_out)
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


class Within:
    """Moves a module from where it is, within a basis, by the task's optimiser on the coordinates, which begin at zero.
    Weight decay and the proximal term both pull them back to it.
    """

    def __init__(
        self, module: nn.Module, basis: Basis, settings: TrainingSpec, correction: NDArray[np.float32] | None = None
    ) -> None:
        self._module, self._basis, self._base = module, basis, flatten(module)
        self._moved = nn.Parameter(torch.zeros(basis.size))
        self._step = _stepper([self._moved], settings, correction)

    def step(self) -> None:
        """One step from the gradients that the module's parameters have."""
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in trainable(self._module)]
        whole = np.concatenate([one.detach().reshape(-1).cpu().numpy() for one in gradients])
        self._moved.grad = torch.from_numpy(self._basis.gather(whole))
        self._step()
        self._show()

    def _show(self) -> None:
        """Moves the module to the coordinates."""
        moved, first = self._moved.detach().double().numpy(), 0
        for into in trainable(self._module):
            values = into.detach().view(-1)
            for start in range(0, values.numel(), _CHUNK):
                stop = min(start + _CHUNK, values.numel())
                part = slice(first + start, first + stop)
                added = self._basis.spread(moved, part.start, part.stop).astype(np.float32)
                values[start:stop] = torch.from_numpy(self._base[part] + added)
            first += values.numel()

    def now(self) -> NDArray[np.float32]:
        """The coordinates float32 (k,), to go back to."""
        return self._moved.detach().numpy().copy()

    def back(self, to: NDArray[np.float32]) -> None:
        with torch.no_grad():
            self._moved.copy_(torch.from_numpy(to))
        self._show()

    def coordinates(self) -> Coordinates:
        """float64 (k,). Raises UpdateNotFinite."""
        found = self._moved.detach().double().numpy().copy()
        require_finite("trained coordinates", found)
        return found


def prepare(
    spec: TaskSpec, base: Vector, inputs: Inputs, labels: NDArray[np.int64], device: str = "cpu"
) -> tuple[Model, nn.Module, torch.Tensor, torch.Tensor]:
    """The task's model, a module that holds `base`, the inputs (n, …) and the labels (n,). Raises as `train` does."""
    if labels.shape != (len(inputs),):
        raise ModelError("ShapeMismatch", what="labels", expected=(len(inputs),), found=labels.shape)
    if len(inputs) == 0:
        raise DataError("TooFewRows", rows=0, at_least=1)
    model = model_of(spec)
    model.require(base, inputs)
    torch.set_num_threads(model.threads)
    rows, targets = torch.from_numpy(inputs).to(device), torch.from_numpy(labels).to(device)
    return model, model.module(base).to(device), rows, targets


def require_device(device: str) -> None:
    """Raises DeviceMissing unless torch can compute there."""
    if device != "cpu" and not torch.cuda.is_available():
        raise ModelError("DeviceMissing", device=device)


def proximal_term(parameters: list[nn.Parameter], settings: TrainingSpec) -> Callable[[], None]:
    """Adds the gradient of FedProx's μ/2 · ‖w − base‖² (Li et al., 2020) to the gradients.

    The base is the current parameters. Nothing is added if μ is 0.
    """
    if settings.proximal == 0:
        return lambda: None
    bases = [parameter.detach().clone() for parameter in parameters]

    def pull() -> None:
        for parameter, base in zip(parameters, bases, strict=True):
            if parameter.grad is not None:
                parameter.grad.add_(parameter.detach() - base, alpha=settings.proximal)

    return pull


def _correcting(parameters: list[nn.Parameter], correction: NDArray[np.float32] | None) -> Callable[[], None]:
    """Adds a vector (of all parameters' values) to the gradients."""
    if correction is None:
        return lambda: None
    parts = torch.split(torch.from_numpy(correction), [one.numel() for one in parameters])
    added = [part.view_as(one).to(one.device) for part, one in zip(parts, parameters, strict=True)]

    def add() -> None:
        for parameter, part in zip(parameters, added, strict=True):
            parameter.grad = part.clone() if parameter.grad is None else parameter.grad + part

    return add


def _stepper(
    parameters: list[nn.Parameter], settings: TrainingSpec, correction: NDArray[np.float32] | None = None
) -> Callable[[], None]:
    """A function that makes one step of the optimiser. Its momenta begin again in each round."""
    pull, correct = proximal_term(parameters, settings), _correcting(parameters, correction)
    whole = None
    if settings.optimizer == "adamw":
        whole = torch.optim.AdamW(parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay)

    def step() -> None:
        pull()
        correct()
        if whole is None:
            _descend(parameters, settings)
        else:
            whole.step()

    return step


def _descend(parameters: list[nn.Parameter], settings: TrainingSpec) -> None:
    """One SGD step by torch's functional form: the optimiser class takes 1.5 s to load code for compilers."""
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    with torch.no_grad():
        sgd(
            list(parameters), gradients, [None] * len(parameters), foreach=False,
            weight_decay=settings.weight_decay, momentum=0.0, lr=settings.learning_rate, dampening=0.0,
            nesterov=False, maximize=False,
        )  # fmt: skip
