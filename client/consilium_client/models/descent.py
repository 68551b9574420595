"""The steps of a round's local training, the same for each learner: their rows, their order, and their end."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np
from consilium_chain.tasks.training_specs import TrainingSpec
from numpy.typing import NDArray

# Arguments: steps done, all steps, and the mean loss of the last step's rows, in nats (NaN without rows).
Progress = Callable[[int, int, float], None]


class Learner(ABC):
    """Moves one model on one hospital's rows. `least`: the fewest rows of a step that follows others of its pass.
    `is_patient`: it has held-out rows, and their loss ends training early.
    """

    least = 1
    is_patient = False

    @abstractmethod
    def step(self, batch: NDArray[np.int64]) -> float:
        """Moves the model by one step on these rows, by their numbers. Returns their mean loss before it, in nats."""

    @abstractmethod
    def held_out_loss(self) -> float:
        """The mean loss of the held-out rows, in nats."""

    @abstractmethod
    def now(self) -> NDArray[np.float32]:
        """All that training moves, as one vector, to go back to."""

    @abstractmethod
    def back(self, to: NDArray[np.float32]) -> None: ...


def descend(learner: Learner, settings: TrainingSpec, rows: int, seed: int, progress: Progress) -> None:
    """All steps of a round on so many rows. Ends at the best pass, if passes count. `seed`: of the rows' order, ≥ 0."""
    generator, patient = np.random.Generator(np.random.PCG64(seed)), _Patience(settings.patience, learner)
    steps, of_pass = settings.steps_on(rows), -(-rows // settings.batch_size)
    batches = _batches(rows, settings.batch_size, generator, learner.least)
    for done, batch in zip(range(1, steps + 1), batches, strict=False):
        progress(done, steps, learner.step(batch))
        if learner.is_patient and done % of_pass == 0 and patient.is_spent(learner.held_out_loss()):
            break
    patient.back_to_best()


class _Patience:
    """Remembers the pass with the least loss on held-out rows. `passes`: without a lower one, after which to stop."""

    def __init__(self, passes: int | None, learner: Learner) -> None:
        self._passes, self._learner = passes, learner
        self._least, self._since = math.inf, 0
        self._best: NDArray[np.float32] | None = None

    def is_spent(self, loss: float) -> bool:
        """`loss`: after a pass, in nats."""
        if loss < self._least:
            self._least, self._since, self._best = loss, 0, self._learner.now()
        else:
            self._since += 1
        return self._passes is not None and self._since >= self._passes

    def back_to_best(self) -> None:
        if self._best is not None and self._since:
            self._learner.back(self._best)


def _batches(rows: int, size: int, generator: np.random.Generator, least: int) -> Iterator[NDArray[np.int64]]:
    """Rows' numbers without end: each pass has every row once, in an order of its own, but for a last batch of fewer
    than `least`.
    """
    while True:
        order = generator.permutation(rows)
        found = [order[start : start + size] for start in range(0, rows, size)]
        yield from found if len(found) == 1 or len(found[-1]) >= least else found[:-1]
