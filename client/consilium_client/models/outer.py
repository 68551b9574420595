"""The outer step: from the state before a round and its verified mean update to the state after it.

Pure, and elementwise float32 in a fixed order: no reductions, no fused operations. So the machines of hospitals, voters
and auditors all get the same bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from consilium_chain.tasks.outer_specs import AdamSpec, MeanSpec, MomentumSpec, NesterovSpec, SignSpec
from numpy.typing import NDArray

from consilium_client.models import Vector

# Mean update of the values in a slice, float64, from the verified integers of a sum.
MeanUpdate = Callable[[slice], NDArray[np.float64]]
_CHUNK = 1 << 15  # values at a time: they stay in cache, without a second copy of the model


@dataclass(frozen=True)
class State:
    """`model`: the base, float32 (p,). `moments`: the optimiser's own, each float32 (p,). All are read-only. `rounds`:
    those that have moved it.
    """

    model: Vector
    moments: tuple[Vector, ...] = ()
    rounds: int = 0


class Outer(ABC):
    def begin(self, initial: Vector) -> State:
        """The state before the first round, from the initial parameters float32 (p,)."""
        return State(initial)

    def after(self, state: State, update: MeanUpdate) -> State:
        """The state after a round whose accepted sums have this mean."""
        model, moments = state.model.copy(), tuple(moment.copy() for moment in state.moments)
        for start in range(0, model.size, _CHUNK):
            part = slice(start, min(start + _CHUNK, model.size))
            own = tuple(moment[part] for moment in moments)
            self._move(model[part], own, update(part).astype(np.float32), state.rounds)
        return State(model, moments, state.rounds + 1)

    def candidate(self, state: State, update: MeanUpdate) -> Vector:
        """A sum's candidate, which a voter scores: the base moved by its mean alone. float32 (p,).

        It is not the next base, whose move includes earlier rounds. A voter would score the sum for these, too, and
        could hardly tell it from its decoy, which goes back by earlier means (docs/models.md).
        """
        return Mean().after(State(state.model), update).model

    @abstractmethod
    def _move(self, model: Vector, moments: tuple[Vector, ...], update: Vector, rounds: int) -> None:
        """Writes the values after the round into `model` and `moments`; all of one length. `rounds`: before it."""


class Mean(Outer):
    """FedAvg (McMahan et al., 2017): x ← x + Δ."""

    def _move(self, model: Vector, moments: tuple[Vector, ...], update: Vector, rounds: int) -> None:
        model += update


class Momentum(Outer):
    """FedAvgM (Hsu et al., 2019): v ← β·v + Δ; x ← x + η·v."""

    def __init__(self, spec: MomentumSpec) -> None:
        self._rate, self._decay = np.float32(spec.learning_rate), np.float32(spec.momentum)

    def begin(self, initial: Vector) -> State:
        return State(initial, (np.zeros_like(initial),))

    def _move(self, model: Vector, moments: tuple[Vector, ...], update: Vector, rounds: int) -> None:
        (velocity,) = moments
        velocity *= self._decay
        velocity += update
        model += self._rate * velocity


class Adam(Outer):
    """FedAdam (Reddi et al., 2021, algorithm 2): m ← β₁·m + (1−β₁)·Δ; v ← β₂·v + (1−β₂)·Δ²; x ← x + η·m/(√v + τ).

    Without bias correction, as in the paper. v begins at τ², the smallest value that the paper allows.
    """

    def __init__(self, spec: AdamSpec) -> None:
        self._rate, self._tau = np.float32(spec.learning_rate), np.float32(spec.tau)
        self._first, self._second = np.float32(spec.beta1), np.float32(spec.beta2)
        self._first_rest, self._second_rest = np.float32(1 - spec.beta1), np.float32(1 - spec.beta2)

    def begin(self, initial: Vector) -> State:
        return State(initial, (np.zeros_like(initial), np.full_like(initial, self._tau * self._tau)))

    def _move(self, model: Vector, moments: tuple[Vector, ...], update: Vector, rounds: int) -> None:
        mean, square = moments
        mean *= self._first
        mean += self._first_rest * update
        square *= self._second
        square += self._second_rest * (update * update)
        model += self._rate * mean / (np.sqrt(square) + self._tau)


class Nesterov(Outer):
    """DiLoCo (Douillard et al., 2023), in torch's form of Nesterov's momentum: v ← μ·v + Δ; x ← x + η·(μ·v + Δ).

    After r rounds μ is the task's times fading, r times over: first learning is fast, and the last rounds settle. With
    μ = 0 and η = 1 it is `Mean`, bit for bit.
    """

    def __init__(self, spec: NesterovSpec) -> None:
        self._rate, self._momentum, self._fading = np.float32(spec.learning_rate), spec.momentum, spec.fading

    def begin(self, initial: Vector) -> State:
        return State(initial, (np.zeros_like(initial),))

    def _move(self, model: Vector, moments: tuple[Vector, ...], update: Vector, rounds: int) -> None:
        (velocity,), faded = moments, self._momentum
        for _ in range(rounds):  # not by a power, which libraries round differently
            faded *= self._fading
        decay = np.float32(faded)
        velocity *= decay
        velocity += update
        model += self._rate * (decay * velocity + update if decay else update)  # 0 + -0 is another zero


class Sign(Outer):
    """signSGD's server step (Bernstein et al., 2018): x ← x + η·sign(Δ)."""

    def __init__(self, spec: SignSpec) -> None:
        self._rate = np.float32(spec.learning_rate)

    def _move(self, model: Vector, moments: tuple[Vector, ...], update: Vector, rounds: int) -> None:
        model += self._rate * np.sign(update)


def outer_of(spec: MeanSpec | MomentumSpec | AdamSpec | NesterovSpec | SignSpec) -> Outer:
    match spec:
        case MeanSpec():
            return Mean()
        case MomentumSpec():
            return Momentum(spec)
        case AdamSpec():
            return Adam(spec)
        case NesterovSpec():
            return Nesterov(spec)
        case SignSpec():
            return Sign(spec)
