"""The fold of a task: from the state before a round and its verified integers to the state after it.

All parties run it on the same public record, so none has to believe another's model. `Fold` puts the task's codec and
outer step together: a mean of numbers becomes a mean update of the parameters, and that moves the model. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_zk.basis import Basis, Coordinates, CountSketch, Dense
from consilium_zk.quantise import Quantiser
from numpy.typing import NDArray

from consilium_client.models import Vector
from consilium_client.models.outer import MeanUpdate, Outer, State, outer_of


@dataclass(frozen=True)
class Folded:
    """`outer`: the model, and the outer step's moments. `rest`: of earlier rounds' sketches, not decoded yet, float64
    (k,). `mean`: of the latest settled round, number `round`, float64 (k,), in a task with control variates.
    """

    outer: State
    rest: Coordinates | None = None
    mean: Coordinates | None = None
    round: int = 0


class Fold:
    """`lanes`: a weighted sum of quantised updates, uint64 (at least k,). `weight`: the sum of their weights."""

    def __init__(self, spec: TaskSpec, spec_hash: bytes) -> None:
        self.basis: Basis = spec.basis(spec_hash)
        self._outer: Outer = outer_of(spec.outer)
        self._quantiser = Quantiser(spec.update.bits, spec.update.value_range)
        self._keeps_mean = spec.training.control_variates

    def begin(self, initial: Vector) -> Folded:
        return Folded(self._outer.begin(initial))

    def after(self, state: Folded, round_: int, lanes: NDArray[np.uint64], weight: int) -> Folded:
        """The state after a settled round, from the sum of its accepted cohorts."""
        rest, mean = None, self._mean(lanes, weight) if self._keeps_mean else None
        if isinstance(self.basis, CountSketch):
            sketch = self._mean(lanes, weight)
            values, rest = self.basis.decoded(sketch if state.rest is None else state.rest + sketch)
            update: MeanUpdate = values.__getitem__
        else:
            update = self._update(lanes, weight)
        return Folded(self._outer.after(state.outer, update), rest, mean, round_)

    def candidate(self, state: Folded, lanes: NDArray[np.uint64], weight: int) -> Vector:
        """A sum's candidate (`Outer.candidate`), float32 (p,): by this sum alone, without the rest of earlier ones."""
        return self._outer.candidate(state.outer, self._update(lanes, weight))

    def _update(self, lanes: NDArray[np.uint64], weight: int) -> MeanUpdate:
        if isinstance(self.basis, Dense):  # part by part, without a second copy of the model
            return lambda part: self._quantiser.dequantise_mean(lanes[part], weight)
        mean = self._mean(lanes, weight)
        if isinstance(self.basis, CountSketch):
            return self.basis.decoded(mean)[0].__getitem__
        return lambda part: self.basis.spread(mean, part.start, part.stop)

    def _mean(self, lanes: NDArray[np.uint64], weight: int) -> Coordinates:
        return self._quantiser.dequantise_mean(lanes[: self.basis.size], weight)
