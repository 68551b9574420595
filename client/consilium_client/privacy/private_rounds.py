"""A hospital's part in a private task: the privacy accountant charges each round, and only then is it trained."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import ArtifactCorrupt, ArtifactMissing, SpecInvalid, StoreMissing, name_of
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND
from consilium_chain.tasks.task_spec import PrivacySpec, TaskSpec, parse_task_spec
from consilium_core.logs import emit
from numpy.typing import NDArray

from consilium_client.errors import BudgetError, PrivacyError
from consilium_client.models import Inputs, Vector
from consilium_client.models.training import Progress
from consilium_client.privacy.accountant import Budget, Charge, PrivacyAccountant
from consilium_client.privacy.dp_sgd import plan, train_privately


class PrivateRounds:
    """One hospital in one task, which `place` names (`Ledger.place`)."""

    def __init__(
        self, privacy_file: Path, own: Budget | None, place: str, spec: TaskSpec, privacy: PrivacySpec, rows: int
    ) -> None:
        """`own` bounds all tasks together. Raises EpsilonUnreachable. Takes seconds: it searches for the noise."""
        self._place, self._spec, self._privacy, self._rows = place, spec, privacy, rows
        self._accountant = PrivacyAccountant(privacy_file)
        self._own = own
        self._mechanism = plan(spec, privacy, rows)
        self.spent = False  # once a round was refused; what is spent never comes back

    def make_up(self, ledger: Ledger, store: ArtifactStore) -> None:
        """Charges what the ledger's account committed to under its contracts and was never charged here: this file was
        restored from an older copy, or is gone.

        A round costs what others of its task were charged; where none was, what it would cost as many rows as there
        are. Raises ChargesUnknown where a task's file cannot be read, if all tasks together have a bound.
        """
        charged = self._accountant.charges()
        known = {charge.key for charge in charged}
        lacking: dict[int, list[int]] = defaultdict(list)
        for task, round_ in ledger.record.rounds_committed(ledger.address):
            if round_ != STATISTICS_ROUND and (ledger.folder_name(task), round_) not in known:
                lacking[task].append(round_)
        for task, rounds in lacking.items():
            place = ledger.folder_name(task)
            try:
                spec = parse_task_spec(store.get_file(ledger.tasks.params(task).spec_hash))
            except (ArtifactMissing, ArtifactCorrupt, StoreMissing, SpecInvalid) as error:
                if self._own is not None:
                    raise PrivacyError(
                        "ChargesUnknown", place=place, rounds=", ".join(map(str, rounds)), why=name_of(error)
                    ) from error
                emit("not-charged", place=place, rounds=rounds, error=name_of(error))
                continue
            if spec.privacy is None:
                continue
            like = next((charge.mechanism for charge in charged if charge.task == place), None)
            mechanism = like or plan(spec, spec.privacy, self._rows)
            spent = [Charge.of(place, round_, mechanism, spec.privacy.delta) for round_ in rounds]
            emit("charged-late", place=place, rounds=[one.round for one in self._accountant.make_up(spent)])

    def require_affordable(self) -> None:
        """Raises BudgetExceeded where not all rounds of the task can be paid for: then it is not for this hospital."""
        rounds = range(1, self._spec.rounds.rounds + 1)
        self._accountant.require_affordable([self._charge(one) for one in rounds], self._privacy.epsilon, self._own)

    def train(
        self,
        round_: int,
        base: Vector,
        inputs: Inputs,
        labels: NDArray[np.int64],
        progress: Progress,
        device: str,
    ) -> Vector:
        """Trained parameters float32 (p,). Raises as `PrivacyAccountant.charge` does; then nothing was trained."""
        try:
            cost = self._accountant.charge(self._charge(round_), self._privacy.epsilon, self._own)
        except BudgetError as error:
            self.spent = True
            emit("over-budget", round=round_, **{one: error.values[one] for one in ("spent", "would_be", "allowed")})
            raise
        emit("privacy", round=round_, epsilon=cost, of=self._privacy.epsilon)
        return train_privately(self._spec, self._privacy, self._mechanism, base, inputs, labels, progress, device)

    def _charge(self, round_: int) -> Charge:
        return Charge.of(self._place, round_, self._mechanism, self._privacy.delta)
