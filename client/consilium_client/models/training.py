"""Local training on a hospital's own examples: the same seed gives the same bits on the same machine.

On a GPU, sums may be in another order, and differ in the last bits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from consilium_chain.tasks.task_spec import TaskSpec, TrainingSpec
from numpy.typing import NDArray
from torch import nn
from torch.optim.sgd import sgd

from consilium_client.errors import DataError, ModelError
from consilium_client.models import Inputs, Model, Vector, model_of, require_finite
from consilium_client.models.torch_parameters import flatten, trainable

# Arguments: steps done, all steps, and the mean loss of the last step's rows, in nats (NaN without rows).
Progress = Callable[[int, int, float], None]


def no_progress(done: int, steps: int, loss: float) -> None:
    pass


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
    learning rate and weight decay. Each epoch visits every row once, in an order drawn from `seed` (≥ 0). Raises
    ShapeMismatch, TooFewRows, or UpdateNotFinite when the base or the result is not finite (training ran away).
    """
    model, module, rows, targets = prepare(spec, base, inputs, labels, device)
    settings = spec.training
    parameters = trainable(module)
    step, pull = _stepper(parameters, settings), proximal_term(parameters, settings)
    generator = np.random.Generator(np.random.PCG64(seed))
    done, steps = 0, settings.epochs * -(-len(inputs) // settings.batch_size)
    for _ in range(settings.epochs):
        order = torch.from_numpy(generator.permutation(len(inputs)))
        for batch in torch.split(order, settings.batch_size):
            module.zero_grad()
            loss = model.loss(module(rows[batch]), targets[batch], "mean")
            loss.backward()  # type: ignore[no-untyped-call]
            pull()
            step()
            done += 1
            progress(done, steps, float(loss.detach()))
    trained = flatten(module)
    require_finite("trained parameters", trained)
    return trained


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
    if settings.optimizer == "adamw":
        whole = torch.optim.AdamW(parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay)
        return lambda: whole.step()
    return lambda: _descend(parameters, settings)


def _descend(parameters: list[nn.Parameter], settings: TrainingSpec) -> None:
    """One SGD step by torch's functional form: the optimiser class takes 1.5 s to load code for compilers."""
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    with torch.no_grad():
        sgd(
            list(parameters), gradients, [None] * len(parameters), foreach=False,
            weight_decay=settings.weight_decay, momentum=0.0, lr=settings.learning_rate, dampening=0.0,
            nesterov=False, maximize=False,
        )  # fmt: skip
