"""What a hospital's rows have cost so far, on its own disk: across rounds, restarts and tasks.

One JSON object a line, appended and never changed. A round is charged before it is trained, and on disk before that
returns: what crashes forgets no charge, at worst it keeps one whose round never came. What a crash left of a last line
was never charged, and goes with the next one. Processes that share the file take turns.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from consilium_chain.keystore import sync_folder
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from consilium_client.errors import BudgetExceeded, ChargeChanged, EpsilonLedgerInvalid, RoundPassed
from consilium_client.privacy import Mechanism, epsilon


class Charge(BaseModel):
    """One round of one task (`Ledger.place`), at the task's delta."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    task: str
    round: Annotated[int, Field(ge=0)]
    noise_multiplier: Annotated[float, Field(gt=0)]
    sample_rate: Annotated[float, Field(gt=0, le=1)]
    steps: Annotated[int, Field(ge=1)]
    delta: Annotated[float, Field(gt=0, lt=1)]

    @classmethod
    def of(cls, task: str, round_: int, mechanism: Mechanism, delta: float) -> Charge:
        return cls(task=task, round=round_, **asdict(mechanism), delta=delta)

    @property
    def key(self) -> tuple[str, int]:
        return self.task, self.round

    @property
    def mechanism(self) -> Mechanism:
        return Mechanism(self.noise_multiplier, self.sample_rate, self.steps)

    @property
    def terms(self) -> str:
        return f"noise {self.noise_multiplier:g}, rate {self.sample_rate:g}, {self.steps} steps, delta {self.delta:g}"


@dataclass(frozen=True)
class Budget:
    """The most that rows may cost."""

    epsilon: float
    delta: float


Charges = Mapping[tuple[str, int], Charge]


class EpsilonLedger:
    """All methods raise OSError, and EpsilonLedgerInvalid where the file holds anything but charges."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)

    def charges(self) -> list[Charge]:
        """In the order in which they were made."""
        with self._locked() as file:
            return list(self._read(file)[0].values())

    def charge(self, new: Charge, task_epsilon: float, own: Budget | None = None) -> float:
        """What the task has cost with `new` in it, which is on disk now.

        The same charge again costs nothing while it is the task's latest: a round's update is kept until the next
        one's, so that one at most leaves. Raises BudgetExceeded where the task would cost more than `task_epsilon` at
        the charge's delta, or all tasks together more than the hospital's `own` budget; ChargeChanged where the round
        was charged otherwise; RoundPassed where a later one was charged since. Then nothing was written.
        """
        with self._locked() as file:
            charges, size = self._read(file)
            known = charges.get(new.key)
            if known is None:
                require_affordable(charges, [new], task_epsilon, own)
                os.ftruncate(file, size)
                self._append(file, new)
            elif known != new:
                raise ChargeChanged(new.task, new.round, known.terms, new.terms)
            elif any(one.task == new.task and one.round > new.round for one in charges.values()):
                raise RoundPassed(new.task, new.round)
            self._sync(file)
            return _cost({**charges, new.key: new}, new.delta, new.task)

    def make_up(self, spent: Sequence[Charge]) -> list[Charge]:
        """Charges what has left already, whatever is allowed, and returns what of it was missing: it is on disk now.

        What was charged is left as it is.
        """
        with self._locked() as file:
            charges, size = self._read(file)
            missing = [one for one in spent if one.key not in charges]
            os.ftruncate(file, size)
            for one in missing:
                self._append(file, one)
            self._sync(file)
            return missing

    def require_affordable(self, planned: list[Charge], task_epsilon: float, own: Budget | None = None) -> None:
        """Raises BudgetExceeded where what is planned, beside what is charged, would cost more than is allowed."""
        with self._locked() as file:
            require_affordable(self._read(file)[0], planned, task_epsilon, own)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed, or its process is gone
            yield file
        finally:
            os.close(file)

    def _append(self, file: int, charge: Charge) -> None:
        line = charge.model_dump_json().encode() + b"\n"
        if (written := os.write(file, line)) != len(line):
            raise OSError(errno.ENOSPC, f"it took {written} of {len(line)} bytes", str(self._path))

    def _sync(self, file: int) -> None:
        """Also what another process wrote and did not live to see on disk."""
        os.fsync(file)
        sync_folder(self._path.parent)

    def _read(self, file: int) -> tuple[dict[tuple[str, int], Charge], int]:
        """All charges, and the size in bytes of their lines."""
        raw = os.pread(file, os.fstat(file).st_size, 0)
        size = raw.rfind(b"\n") + 1
        charges: dict[tuple[str, int], Charge] = {}
        for number, line in enumerate(raw[:size].splitlines(), start=1):
            try:
                charge = Charge.model_validate_json(line)
            except ValidationError:  # unchained: it quotes the line
                raise EpsilonLedgerInvalid(self._path, number) from None
            if charge.key in charges:
                raise EpsilonLedgerInvalid(self._path, number)
            charges[charge.key] = charge
        return charges, size


def require_affordable(charges: Charges, planned: list[Charge], task_epsilon: float, own: Budget | None) -> None:
    """Raises BudgetExceeded unless `planned`, all of one task, may follow `charges`."""
    after = {**charges, **{charge.key: charge for charge in planned}}
    task, delta = planned[0].task, planned[0].delta
    budgets: list[tuple[str, str | None, Budget]] = [("the task", task, Budget(task_epsilon, delta))]
    if own is not None:
        budgets.append(("this hospital", None, own))
    for whose, of, budget in budgets:
        would_be = _cost(after, budget.delta, of)
        if would_be > budget.epsilon:
            raise BudgetExceeded(whose, _cost(charges, budget.delta, of), would_be, budget.epsilon, budget.delta)


def _cost(charges: Charges, delta: float, task: str | None = None) -> float:
    """Of one task, or of all."""
    return epsilon([one.mechanism for one in charges.values() if task in (None, one.task)], delta)
