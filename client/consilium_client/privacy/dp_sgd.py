"""Differentially private training (DP-SGD, Abadi et al. 2016) and what it costs, by Opacus: pure but for its noise.

Two data sets are neighbours if one has one row more. Each step draws every row with the same chance, by itself, clips
each drawn row's gradient, and adds Gaussian noise to their sum. Costs are counted as Rényi differential privacy, which
adds up exactly, whatever else the same rows were used for.

Importing this takes seconds and some 120 MB, so whoever has no private task does without.
"""

from __future__ import annotations

import math
import os
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from consilium_chain.tasks.task_spec import PrivacySpec, TaskSpec
from numpy.typing import NDArray
from opacus import GradSampleModule
from opacus.accountants import RDPAccountant
from opacus.accountants.analysis.rdp import compute_rdp, get_privacy_spent
from opacus.accountants.utils import get_noise_multiplier
from opacus.optimizers import DPOptimizer
from scipy.special import ndtri

from consilium_client.errors import BudgetError
from consilium_client.models import Inputs, Vector, require_finite
from consilium_client.models.torch_parameters import flatten, trainable
from consilium_client.models.training import Progress, prepare, proximal_term, unseen

_OPTIMIZERS = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}
_ORDERS = RDPAccountant.DEFAULT_ALPHAS
_TOLERANCE = 0.01  # how far below a task's epsilon its last round may end, and as a share of it: of these the smaller


@dataclass(frozen=True)
class Mechanism:
    """`steps` of the Poisson-sampled Gaussian mechanism: each row is drawn with chance `sample_rate`; the noise on the
    sum deviates by `noise_multiplier` times the norm that a row's part is clipped to.
    """

    noise_multiplier: float
    sample_rate: float
    steps: int


def plan(spec: TaskSpec, privacy: PrivacySpec, rows: int) -> Mechanism:
    """One round's training on `rows` (≥ 1) rows, with the noise that lets the task's last round end at its epsilon.

    Steps are as many as plain training takes. Raises EpsilonUnreachable.
    """
    sample_rate = min(1.0, spec.training.batch_size / rows)
    steps = spec.training.epochs * math.ceil(rows / spec.training.batch_size)
    total = steps * spec.rounds.rounds
    return Mechanism(_noise_multiplier(privacy.epsilon, privacy.delta, sample_rate, total), sample_rate, steps)


@cache
def _noise_multiplier(epsilon: float, delta: float, sample_rate: float, steps: int) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the best order is the last it tries: bounds hold at any
        try:
            found: float = get_noise_multiplier(
                target_epsilon=epsilon, target_delta=delta, sample_rate=sample_rate, steps=steps, accountant="rdp",
                epsilon_tolerance=min(1.0, epsilon) * _TOLERANCE,
            )  # fmt: skip
        except ValueError:
            raise BudgetError("EpsilonUnreachable", epsilon=epsilon, delta=delta, steps=steps) from None
    return found


def epsilon(mechanisms: Iterable[Mechanism], delta: float) -> float:
    """The cost to a row of all of these together, on the same rows, at `delta`, as Opacus' RDPAccountant says; 0 for
    none."""
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


def train_privately(
    spec: TaskSpec,
    privacy: PrivacySpec,
    mechanism: Mechanism,
    base: Vector,
    inputs: Inputs,
    labels: NDArray[np.int64],
    progress: Progress = unseen,
    device: str = "cpu",
) -> Vector:
    """Trained parameters float32 (p,), as `training.train`, but never the same twice. Raises as that does.

    A step's sum is divided by the expected batch, for how many rows were drawn is nobody's to know. A step that draws
    none is noise alone.
    """
    model, module, rows, targets = prepare(spec, base, inputs, labels, device)
    settings = spec.training
    per_row = GradSampleModule(module, loss_reduction="sum")
    parameters = trainable(module)
    inner = _OPTIMIZERS[settings.optimizer](parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay)
    # After the noise: how far the parameters have come says nothing that the steps before did not.
    pull = proximal_term(parameters, settings)
    inner.register_step_pre_hook(lambda *_: pull())
    optimizer = _SecretNoise(
        inner,
        noise_multiplier=mechanism.noise_multiplier, max_grad_norm=privacy.max_grad_norm,
        expected_batch_size=min(settings.batch_size, len(rows)),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Full backward hook is firing", UserWarning)  # Opacus' hooks want just that
        for step in range(mechanism.steps):
            batch = torch.from_numpy(np.flatnonzero(_uniform(len(rows)) < mechanism.sample_rate))
            optimizer.zero_grad()
            loss = model.loss(per_row(rows[batch]), targets[batch], "sum")
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            progress(step + 1, mechanism.steps, float(loss.detach()) / len(batch) if len(batch) else math.nan)
    trained = flatten(module)
    require_finite("trained parameters", trained)
    return trained


class _SecretNoise(DPOptimizer):  # type: ignore[misc]
    """Opacus' optimiser with noise from the operating system's generator: torch's own on a CPU makes all its numbers of
    a seed of 32 bits (mt19937), which can be tried out."""

    def add_noise(self) -> None:
        deviation = self.noise_multiplier * self.max_grad_norm
        for parameter in self.params:
            summed = parameter.summed_grad
            noise = torch.from_numpy(deviation * ndtri(_uniform(summed.numel()))).view_as(summed).to(summed.device)
            parameter.grad = (summed.double() + noise).to(summed.dtype)  # rounded once, with the noise in it


def _uniform(count: int) -> NDArray[np.float64]:
    """In (0, 1), both ends left out, in 2^52 equal steps; from the operating system's generator."""
    drawn = np.frombuffer(os.urandom(8 * count), np.uint64) >> np.uint64(12)
    found: NDArray[np.float64] = (drawn + np.float64(0.5)) * np.float64(2.0**-52)
    return found
