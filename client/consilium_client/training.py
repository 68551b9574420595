"""Local training: plain SGD on a hospital's own rows, the same bits for the same seed on the same machine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from consilium_chain.task_spec import ModelSpec, TaskSpec, TrainingSpec
from numpy.typing import NDArray
from torch import nn
from torch.optim.sgd import sgd

from consilium_client.errors import ShapeMismatch, TooFewRows
from consilium_client.models import layers_of, require_finite

# Steps done, of how many, and the mean loss of the last one's rows, in nats; NaN where it had none.
Progress = Callable[[int, int, float], None]


def unseen(done: int, steps: int, loss: float) -> None:
    pass


def train(
    spec: TaskSpec,
    base: NDArray[np.float32],
    features: NDArray[np.float32],
    labels: NDArray[np.int64],
    seed: int,
    progress: Progress = unseen,
) -> NDArray[np.float32]:
    """Trained parameters float32 (p,) from `base` (p,) on features (n, columns), labels (n,) of 0 and 1.

    Minimises binary cross-entropy by the task's epochs, batch size, learning rate and weight decay. Each epoch visits
    every row once, in an order drawn from `seed` (≥ 0). Raises ShapeMismatch, TooFewRows, or UpdateNotFinite when
    the base or the result is not finite (training ran away).
    """
    module, rows, targets = prepare(spec, base, features, labels)
    settings = spec.training
    parameters = list(module.parameters())
    loss_of = nn.BCEWithLogitsLoss()
    generator = np.random.Generator(np.random.PCG64(seed))
    done, steps = 0, settings.epochs * -(-len(features) // settings.batch_size)
    for _ in range(settings.epochs):
        order = torch.from_numpy(generator.permutation(len(features)))
        for batch in torch.split(order, settings.batch_size):
            module.zero_grad()
            loss = loss_of(module(rows[batch]), targets[batch])
            loss.backward()
            _step(parameters, settings)
            done += 1
            progress(done, steps, float(loss.detach()))
    trained = flatten(module)
    require_finite("trained parameters", trained)
    return trained


def prepare(
    spec: TaskSpec, base: NDArray[np.float32], features: NDArray[np.float32], labels: NDArray[np.int64]
) -> tuple[nn.Sequential, torch.Tensor, torch.Tensor]:
    """A module that holds `base`, the rows (n, columns) and the targets (n, 1), float32. Raises as `train` does."""
    columns = spec.data.columns
    if features.ndim != 2 or features.shape[1] != columns:
        raise ShapeMismatch("features", ("n", columns), features.shape)
    if labels.shape != (len(features),):
        raise ShapeMismatch("labels", (len(features),), labels.shape)
    if len(features) == 0:
        raise TooFewRows(0, 1)
    torch.set_num_threads(1)  # models this small only lose to threads, and one thread adds in one order
    rows = torch.from_numpy(features.astype(np.float32))
    targets = torch.from_numpy(labels.astype(np.float32)).unsqueeze(1)
    return load(spec.model, columns, base), rows, targets


def _step(parameters: list[nn.Parameter], settings: TrainingSpec) -> None:
    """One SGD step by torch's functional form: the optimiser class takes 1.5 s to load what only compilers need."""
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    with torch.no_grad():
        sgd(
            list(parameters), gradients, [None] * len(parameters), foreach=False,
            weight_decay=settings.weight_decay, momentum=0.0, lr=settings.learning_rate, dampening=0.0,
            nesterov=False, maximize=False,
        )  # fmt: skip


def load(spec: ModelSpec, columns: int, parameters: NDArray[np.float32]) -> nn.Sequential:
    """A module (n, columns) -> (n, 1) logits holding a copy of `parameters`. Raises ShapeMismatch, UpdateNotFinite."""
    modules: list[nn.Module] = []
    for weight, bias in layers_of(spec, columns, parameters):
        if modules:
            modules.append(nn.ReLU())
        linear = nn.Linear(weight.shape[1], weight.shape[0])
        linear.weight.data = torch.from_numpy(weight.astype(np.float32))
        linear.bias.data = torch.from_numpy(bias.astype(np.float32))
        modules.append(linear)
    return nn.Sequential(*modules)


def flatten(module: nn.Module) -> NDArray[np.float32]:
    """The module's parameters as float32 (p,), in the order of `models`."""
    pieces = [parameter.detach().reshape(-1).numpy() for parameter in module.parameters()]
    return np.concatenate(pieces).astype(np.float32)
