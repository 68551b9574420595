"""A hospital's part in a private task: each round is charged to the hospital's ledger, and only then trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from consilium_chain.journal import emit
from consilium_chain.task_spec import PrivacySpec, TaskSpec
from numpy.typing import NDArray

from consilium_client.epsilon_ledger import Budget, Charge, EpsilonLedger
from consilium_client.errors import BudgetExceeded
from consilium_client.home import LEDGER_FILE
from consilium_client.models import Inputs, Vector
from consilium_client.privacy import plan, train_privately
from consilium_client.training import Progress


class PrivateRounds:
    """One hospital in one task, which `place` names (`Ledger.place`)."""

    def __init__(
        self, home: Path, own: Budget | None, place: str, spec: TaskSpec, privacy: PrivacySpec, rows: int
    ) -> None:
        """`own` bounds all tasks together. Raises EpsilonUnreachable. Takes seconds: it searches for the noise."""
        self._place, self._spec, self._privacy = place, spec, privacy
        self._ledger = EpsilonLedger(home / LEDGER_FILE)
        self._own = own
        self._mechanism = plan(spec, privacy, rows)
        self.spent = False  # once a round was refused; what is spent never comes back

    def require_affordable(self) -> None:
        """Raises BudgetExceeded where not all rounds of the task can be paid for: then it is not for this hospital."""
        rounds = range(1, self._spec.rounds.rounds + 1)
        self._ledger.require_affordable([self._charge(one) for one in rounds], self._privacy.epsilon, self._own)

    def train(
        self,
        round_: int,
        base: Vector,
        inputs: Inputs,
        labels: NDArray[np.int64],
        progress: Progress,
        device: str,
    ) -> Vector:
        """Trained parameters float32 (p,). Raises, and then nothing was trained, what `EpsilonLedger.charge` does."""
        try:
            cost = self._ledger.charge(self._charge(round_), self._privacy.epsilon, self._own)
        except BudgetExceeded as error:
            self.spent = True
            emit("over-budget", round=round_, spent=error.spent, would_be=error.would_be, allowed=error.allowed)
            raise
        emit("privacy", round=round_, epsilon=cost, of=self._privacy.epsilon)
        return train_privately(self._spec, self._privacy, self._mechanism, base, inputs, labels, progress, device)

    def _charge(self, round_: int) -> Charge:
        return Charge.of(self._place, round_, self._mechanism, self._privacy.delta)
