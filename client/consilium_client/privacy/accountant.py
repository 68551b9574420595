"""A privacy accountant: the cost of a hospital's rows so far, on its own disk, across rounds, restarts and tasks.

A round is charged before it is trained, and on disk before that returns: what crashes forgets no charge, at worst it
keeps one whose round never came. What a crash left of a last line was never charged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from consilium_client.append_only import AppendOnly
from consilium_client.errors import BudgetError, PrivacyError
from consilium_client.privacy.dp_sgd import Mechanism, epsilon


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


class PrivacyAccountant:
    """All methods raise OSError, and PrivacyError (EpsilonLedgerInvalid) where a line of the file is no charge."""

    def __init__(self, path: Path) -> None:
        self._file = AppendOnly(path, Charge, PrivacyError, "EpsilonLedgerInvalid")

    def charges(self) -> list[Charge]:
        """In the order in which they were made."""
        with self._file.open() as opened:
            return list(self._by_round(opened.lines).values())

    def charge(self, new: Charge, task_epsilon: float, own: Budget | None = None) -> float:
        """The task's cost with `new` in it, which is on disk now.

        The same charge again costs nothing while it is the task's latest: a round's update is kept until the next
        one's, so that one at most leaves. Raises BudgetError where the task would cost more than `task_epsilon` at
        the charge's delta, or all tasks together more than the hospital's `own` budget; ChargeChanged where the round
        was charged otherwise; RoundPassed where a later one was charged since. Then nothing was written.
        """
        with self._file.open() as opened:
            charges = self._by_round(opened.lines)
            known = charges.get(new.key)
            if known is None:
                require_affordable(charges, [new], task_epsilon, own)
                opened.append(new)
            elif known != new:
                raise PrivacyError("ChargeChanged", task=new.task, round=new.round, charged=known.terms, now=new.terms)
            elif any(one.task == new.task and one.round > new.round for one in charges.values()):
                raise PrivacyError("RoundPassed", task=new.task, round=new.round)
            opened.sync()
            return _cost({**charges, new.key: new}, new.delta, new.task)

    def make_up(self, spent: Sequence[Charge]) -> list[Charge]:
        """Charges what has left already, whatever is allowed, and returns what of it was missing: it is on disk now.

        What was charged is left as it is.
        """
        with self._file.open() as opened:
            charges = self._by_round(opened.lines)
            missing = [one for one in spent if one.key not in charges]
            for one in missing:
                opened.append(one)
            opened.sync()
            return missing

    def require_affordable(self, planned: list[Charge], task_epsilon: float, own: Budget | None = None) -> None:
        """Raises BudgetExceeded where what is planned, beside what is charged, would cost more than is allowed."""
        with self._file.open() as opened:
            require_affordable(self._by_round(opened.lines), planned, task_epsilon, own)

    def _by_round(self, lines: Sequence[Charge]) -> dict[tuple[str, int], Charge]:
        charges: dict[tuple[str, int], Charge] = {}
        for number, charge in enumerate(lines, start=1):
            if charge.key in charges:
                raise self._file.malformed(number)
            charges[charge.key] = charge
        return charges


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
            raise BudgetError(
                "BudgetExceeded",
                whose=whose,
                spent=_cost(charges, budget.delta, of),
                would_be=would_be,
                allowed=budget.epsilon,
                delta=budget.delta,
            )


def _cost(charges: Charges, delta: float, task: str | None = None) -> float:
    """The epsilon at `delta` that one task has cost, or all."""
    return epsilon([one.mechanism for one in charges.values() if task in (None, one.task)], delta)
