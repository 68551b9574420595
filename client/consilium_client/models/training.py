"""Local training on a hospital's own examples: the same seed gives the same bits on the same machine.

On a GPU, sums may be in another order, and differ in the last bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_chain.tasks.training_specs import TrainingSpec
from consilium_zk.basis import Basis, Coordinates, Dense
from numpy.typing import NDArray
from torch import nn
from torch.optim.sgd import sgd

from consilium_client.errors import DataError, ModelError
from consilium_client.models import Inputs, Model, Vector, model_of, require_finite
from consilium_client.models.torch_parameters import flatten, load, trainable

# Arguments: steps done, all steps, and the mean loss of the last step's rows, in nats (NaN without rows).
Progress = Callable[[int, int, float], None]


def no_progress(done: int, steps: int, loss: float) -> None:
    pass


def learn(
    spec: TaskSpec,
    basis: Basis,
    base: Vector,
    inputs: Inputs,
    labels: NDArray[np.int64],
    seed: int,
    progress: Progress = no_progress,
    device: str = "cpu",
) -> Coordinates:
    """A hospital's update of `base`: float64 (k,), the coordinates in the task's basis. Trains as `train` does, but
    only moves the model within the basis. Raises as `train` does.
    """
    if isinstance(basis, Dense):
        return np.subtract(train(spec, base, inputs, labels, seed, progress, device), base, dtype=np.float64)
    model, module, rows, targets = prepare(spec, base, inputs, labels, device)
    within = Within(module, basis, spec.training)
    _descend_on(model, module, rows, targets, spec.training, within.step, seed, progress)
    return within.coordinates()


def train(
    spec: TaskSpec,
    base: Vector,
    inputs: Inputs,
    labels: NDArray[np.int64],
    seed: int,
    progress: Progress = no_progress,
    device: str = "cpu",
) -> Vector:
    """Trained parameters float32 (p,) from `base` (p,) on the model's inputs (n, …) and labels (n,), classes' numbers.

    Minimises cross-entropy, and the proximal term where the task has one, by the task's optimiser, epochs, batch size,
    learning rate and weight decay. Each epoch visits every row once, in an order drawn from `seed` (≥ 0).
    `in_round` applies a schedule. Raises ShapeMismatch, TooFewRows, or UpdateNotFinite when the base or the result is
    not finite (training ran away).
    """
    model, module, rows, targets = prepare(spec, base, inputs, labels, device)
    step = _stepper(trainable(module), spec.training)
    _descend_on(model, module, rows, targets, spec.training, step, seed, progress)
    trained = flatten(module)
    require_finite("trained parameters", trained)
    return trained


def _descend_on(
    model: Model, module: nn.Module, rows: torch.Tensor, targets: torch.Tensor, settings: TrainingSpec,
    step: Callable[[], None], seed: int, progress: Progress,
) -> None:  # fmt: skip
    """All steps of a round, each by `step` from the module's gradients."""
    generator = np.random.Generator(np.random.PCG64(seed))
    steps = settings.steps_on(len(rows))
    for done, batch in zip(range(1, steps + 1), _batches(len(rows), settings.batch_size, generator), strict=False):
        module.zero_grad()
        loss = model.loss(module(rows[batch]), targets[batch], "mean")
        loss.backward()  # type: ignore[no-untyped-call]
        step()
        progress(done, steps, float(loss.detach()))


def _batches(rows: int, size: int, generator: np.random.Generator) -> Iterator[torch.Tensor]:
    """Rows' numbers without end: each pass has every row once, in an order of its own."""
    while True:
        yield from torch.split(torch.from_numpy(generator.permutation(rows)), size)


def in_round(spec: TaskSpec, round_: int) -> TaskSpec:
    """The task with the learning rate of a training round, from 1 on."""
    rate = spec.training.rate_in(round_, spec.rounds.rounds)
    return spec.model_copy(update={"training": spec.training.model_copy(update={"learning_rate": rate})})


class Within:
    """Moves a module from where it is, within a basis, by the task's optimiser on the coordinates, which begin at zero.
    Weight decay and the proximal term both pull them back to it.
    """

    def __init__(self, module: nn.Module, basis: Basis, settings: TrainingSpec) -> None:
        self._module, self._basis, self._base = module, basis, flatten(module)
        self._moved = nn.Parameter(torch.zeros(basis.size))
        self._step = _stepper([self._moved], settings)

    def step(self) -> None:
        """One step from the gradients that the module's parameters have."""
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in trainable(self._module)]
        whole = np.concatenate([one.detach().reshape(-1).cpu().numpy() for one in gradients])
        self._moved.grad = torch.from_numpy(self._basis.gather(whole))
        self._step()
        added = self._basis.spread(self._moved.detach().double().numpy(), 0, self._basis.parameters)
        load(self._module, self._base + added.astype(np.float32))

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


def _stepper(parameters: list[nn.Parameter], settings: TrainingSpec) -> Callable[[], None]:
    """A function that makes one step of the optimiser. Its momenta begin again in each round."""
    pull = proximal_term(parameters, settings)
    whole = None
    if settings.optimizer == "adamw":
        whole = torch.optim.AdamW(parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay)

    def step() -> None:
        pull()
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
