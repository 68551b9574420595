"""Differentially private training (DP-SGD, Abadi et al. 2016) and its privacy cost, by Opacus. Pure except for noise.

Two data sets are neighbours if one has one row more. Each step draws every row independently with the same chance,
clips each drawn row's gradient, and adds Gaussian noise to their sum. Costs are counted as Rényi differential privacy,
which adds up exactly over all uses of the same rows.

The import takes seconds and some 120 MB, so only private tasks import this module.
"""

from __future__ import annotations

import math
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_chain.tasks.training_specs import PrivacySpec
from consilium_zk.basis import Basis, Coordinates, CountSketch, Dense
from numpy.typing import NDArray
from opacus import GradSampleModule
from opacus.accountants import RDPAccountant
from opacus.accountants.analysis.rdp import compute_rdp, get_privacy_spent
from opacus.accountants.utils import get_noise_multiplier
from opacus.optimizers import DPOptimizer
from scipy.special import ndtri
from torch import nn

from consilium_client.data.examples import Labels
from consilium_client.errors import BudgetError
from consilium_client.models import Inputs, Model, Vector, elsewhere, require_finite
from consilium_client.models.descent import Progress
from consilium_client.models.steps import proximal_term
from consilium_client.models.torch_parameters import flatten, trainable
from consilium_client.models.torch_training import casting, prepare
from consilium_client.models.training import no_progress
from consilium_client.models.within import Within
from consilium_client.programs.interpreter import Interpreter
from consilium_client.programs.row_gradients import Loss, take_row_gradients

_OPTIMIZERS = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}
_ORDERS = RDPAccountant.DEFAULT_ALPHAS
_MOST_NOISE = 1e6  # times the norm
_TOLERANCE = 0.01  # how far below a task's epsilon its last round may end, absolute or as a share: the smaller one


@dataclass(frozen=True)
class Mechanism:
    """`steps` of the Poisson-sampled Gaussian mechanism. Each row is drawn with chance `sample_rate`. The noise on the
    sum has a deviation of `noise_multiplier` times the norm to which a row's part is clipped.
    """

    noise_multiplier: float
    sample_rate: float
    steps: int


def plan(spec: TaskSpec, privacy: PrivacySpec, rows: int) -> Mechanism:
    """One round's training on `rows` (≥ 1) rows, with the noise that makes the task's last round end at its epsilon.

    It has as many steps as plain training. The summary's cost is a part of the epsilon. Raises EpsilonUnreachable.
    """
    sample_rate = min(1.0, spec.training.batch_size / rows)
    steps = spec.training.steps_on(rows)
    total, counted = steps * spec.rounds.rounds, of_summary(spec)
    if counted is None:
        noise = _noise_multiplier(privacy.epsilon, privacy.delta, sample_rate, total)
    else:
        noise = _noise_beside(counted, privacy.epsilon, privacy.delta, sample_rate, total)
    return Mechanism(noise, sample_rate, steps)


def of_summary(spec: TaskSpec) -> Mechanism | None:
    """The noise on a hospital's counts in round 0: as concentrated as a Gaussian of its variance (Canonne, Kamath and
    Steinke 2020, theorem 4), by the Euclidean norm of one row's part. None without noise.
    """
    if spec.summary_variance == 0:
        return None
    return Mechanism(math.sqrt(spec.summary_variance / spec.summary_changed), 1.0, 1)


@cache
def _noise_beside(other: Mechanism, bound: float, delta: float, sample_rate: float, steps: int) -> float:
    """The least noise multiplier whose steps cost a row at most `bound` together with another mechanism."""

    def cost(noise: float) -> float:
        return epsilon([other, Mechanism(noise, sample_rate, steps)], delta)

    low, high = 0.0, 1.0
    while cost(high) > bound:
        low, high = high, 2 * high
        if high > _MOST_NOISE:
            raise BudgetError("EpsilonUnreachable", epsilon=bound, delta=delta, steps=steps)
    while bound - cost(high) > min(1.0, bound) * _TOLERANCE:
        middle = (low + high) / 2
        low, high = (low, middle) if cost(middle) <= bound else (middle, high)
    return high


@cache
def _noise_multiplier(epsilon: float, delta: float, sample_rate: float, steps: int) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the best order is the last that it tries; bounds hold at any
        try:
            found: float = get_noise_multiplier(
                target_epsilon=epsilon, target_delta=delta, sample_rate=sample_rate, steps=steps, accountant="rdp",
                epsilon_tolerance=min(1.0, epsilon) * _TOLERANCE,
            )  # fmt: skip
        except ValueError:
            raise BudgetError("EpsilonUnreachable", epsilon=epsilon, delta=delta, steps=steps) from None
    return found


def epsilon(mechanisms: Iterable[Mechanism], delta: float) -> float:
    """The cost of all these mechanisms together to a row, at `delta`, by Opacus' RDPAccountant; 0 without any."""
    steps: Counter[tuple[float, float]] = Counter()
    for one in mechanisms:
        steps[one.noise_multiplier, one.sample_rate] += one.steps
    if not steps:
        return 0.0
    total = sum(count * _one_step(*mechanism) for mechanism, count in steps.items())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # as above
        found, _ = get_privacy_spent(orders=_ORDERS, rdp=total, delta=delta)
    return float(found)


@cache
def _one_step(noise_multiplier: float, sample_rate: float) -> NDArray[np.float64]:
    """Rényi divergence at each of `_ORDERS`; up to 0.4 s, once for each task that a hospital was in."""
    found: NDArray[np.float64] = compute_rdp(q=sample_rate, noise_multiplier=noise_multiplier, steps=1, orders=_ORDERS)
    return found


def learn_privately(
    spec: TaskSpec,
    privacy: PrivacySpec,
    mechanism: Mechanism,
    basis: Basis,
    base: Vector,
    inputs: Inputs,
    labels: Labels,
    progress: Progress = no_progress,
    device: str = "cpu",
) -> Coordinates:
    """A hospital's update float64 (k,), as by `training.learn`, but never the same twice. It raises the same errors.

    Noise is added to the gradient of all parameters. Its coordinates in the basis follow from it, and cost nothing.
    """
    if isinstance(basis, Dense | CountSketch):
        trained = train_privately(spec, privacy, mechanism, base, inputs, labels, progress, device)
        moved = np.subtract(trained, base, dtype=np.float64)
        return basis.sketched(moved) if isinstance(basis, CountSketch) else moved
    if elsewhere.is_trained_elsewhere(spec):
        return elsewhere.trained_privately(spec, mechanism, basis, base, inputs, labels, progress, device)
    model, module, rows, targets = prepare(spec, base, inputs, labels, device)
    within = Within(module, basis, spec.training)
    _descend_privately(model, module, rows, targets, spec, privacy, mechanism, _Calls(module, within.step), progress)
    return within.found()


def train_privately(
    spec: TaskSpec,
    privacy: PrivacySpec,
    mechanism: Mechanism,
    base: Vector,
    inputs: Inputs,
    labels: Labels,
    progress: Progress = no_progress,
    device: str = "cpu",
) -> Vector:
    """Trained parameters float32 (p,), as by `training.train`, but never the same twice. It raises the same errors.

    A step's sum is divided by the expected batch size, because the number of drawn rows is secret. A step without drawn
    rows is only noise.
    """
    if elsewhere.is_trained_elsewhere(spec):
        return elsewhere.trained_privately(spec, mechanism, None, base, inputs, labels, progress, device)
    model, module, rows, targets = prepare(spec, base, inputs, labels, device)
    settings = spec.training
    inner = _OPTIMIZERS[settings.optimizer](
        trainable(module), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    # After the noise: the parameters' distance adds no information to the earlier steps.
    pull = proximal_term(trainable(module), settings)
    inner.register_step_pre_hook(lambda *_: pull())
    _descend_privately(model, module, rows, targets, spec, privacy, mechanism, inner, progress)
    trained = flatten(module)
    require_finite("trained parameters", trained)
    return trained


def _descend_privately(
    model: Model, module: nn.Module, rows: torch.Tensor, targets: torch.Tensor, spec: TaskSpec, privacy: PrivacySpec,
    mechanism: Mechanism, inner: torch.optim.Optimizer, progress: Progress,
) -> None:  # fmt: skip
    settings = spec.training
    summed = partial(model.loss, reduction="sum")
    take = partial(take_row_gradients, module) if isinstance(module, Interpreter) else _by_hooks(module)
    optimizer = _SecretNoise(
        inner,
        noise_multiplier=mechanism.noise_multiplier, max_grad_norm=privacy.max_grad_norm,
        expected_batch_size=min(settings.batch_size, len(rows)),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Full backward hook is firing", UserWarning)  # as Opacus' hooks should
        for step in range(mechanism.steps):
            batch = torch.from_numpy(np.flatnonzero(_uniform(len(rows)) < mechanism.sample_rate))
            optimizer.zero_grad()
            with casting(settings, rows.device):
                loss = take(summed, rows[batch], targets[batch])
            optimizer.step()
            progress(step + 1, mechanism.steps, float(loss.detach()) / len(batch) if len(batch) else math.nan)


def _by_hooks(module: nn.Module) -> Callable[[Loss, torch.Tensor, torch.Tensor], torch.Tensor]:
    """Takes each row's gradient by Opacus' hooks, which know the layers of a family; as `take_row_gradients`."""
    per_row = GradSampleModule(module, loss_reduction="sum")

    def take(loss: Loss, rows: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        found = loss(per_row(rows), targets)
        found.backward()  # type: ignore[no-untyped-call]
        return found

    return take


class _Calls(torch.optim.Optimizer):
    """An optimiser of a module's parameters that only calls: the step reads their gradients itself."""

    def __init__(self, module: nn.Module, call: Callable[[], None]) -> None:
        super().__init__(trainable(module), {})
        self._call = call

    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # Opacus gives no closure
        self._call()


class _SecretNoise(DPOptimizer):  # type: ignore[misc]
    """Opacus' optimiser with noise from the operating system's generator. On a CPU, torch's own derives all numbers
    from a seed of 32 bits (mt19937), and all seeds can be tried.
    """

    def add_noise(self) -> None:
        deviation = self.noise_multiplier * self.max_grad_norm
        for parameter in self.params:
            summed = parameter.summed_grad
            noise = torch.from_numpy(deviation * ndtri(_uniform(summed.numel()))).view_as(summed).to(summed.device)
            parameter.grad = (summed.double() + noise).to(summed.dtype)  # rounded once, with the noise in it


def rehearse() -> None:
    """Loads what the first step would load, for a process that soon can open no file."""
    parameter: Any = nn.Parameter(torch.zeros(2))
    parameter.grad_sample = torch.ones(3, 2)
    for kind in _OPTIMIZERS.values():
        inner = kind([parameter], lr=0.1)
        _SecretNoise(inner, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=3).step()
        parameter.grad_sample = torch.ones(3, 2)


def _uniform(count: int) -> NDArray[np.float64]:
    """In (0, 1), without both ends, in 2^52 equal steps; from the operating system's generator."""
    drawn = np.frombuffer(os.urandom(8 * count), np.uint64) >> np.uint64(12)
    found: NDArray[np.float64] = (drawn + np.float64(0.5)) * np.float64(2.0**-52)
    return found
