"""A privacy accountant: the cost of a hospital's rows so far, on its own disk, across rounds, restarts and tasks.

Each round is charged, on disk, before it is trained. So a crash loses no charge. At worst, a charge stays for a round
that was never trained. An incomplete last line after a crash is not a charge.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import SpecInvalid, name_of
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_core.errors import ArtifactCorrupt, ArtifactMissing, StoreMissing
from consilium_core.logs import emit
from consilium_zk.basis import Basis, Coordinates
from pydantic import BaseModel, ConfigDict, Field

from consilium_client.append_only import AppendOnly
from consilium_client.data.examples import Labels
from consilium_client.errors import BudgetError, PrivacyError
from consilium_client.models import Inputs, Vector
from consilium_client.models.descent import Progress
from consilium_client.models.training import in_round
from consilium_client.privacy.dp_sgd import Mechanism, epsilon, learn_privately, of_summary, plan


class Charge(BaseModel):
    """One round of one task (`Ledger.folder_name`), at the task's delta."""

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
    """All methods raise OSError, and PrivacyError (EpsilonLedgerInvalid) if a line of the file is not a charge."""

    def __init__(self, path: Path) -> None:
        self._file = AppendOnly(path, Charge, PrivacyError, "EpsilonLedgerInvalid")

    def charges(self) -> list[Charge]:
        """In their order in the file."""
        with self._file.open() as opened:
            return list(self._by_round(opened.lines).values())

    def charge(self, new: Charge, task_epsilon: float, own: Budget | None = None) -> float:
        """Writes the charge to disk. Returns the task's cost, including `new`.

        The task's latest charge costs nothing again: its update is kept until the next round, so only one can leave.
        Raises BudgetError if the task would cost more than `task_epsilon` at the charge's delta, or all tasks together
        more than the hospital's `own` budget; ChargeChanged if the round was charged differently; RoundPassed if a
        later round was charged since. Then it writes nothing.
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
        """Charges rounds that have left already, without a budget check. Returns the charges that were missing.

        Existing charges stay as they are.
        """
        with self._file.open() as opened:
            charges = self._by_round(opened.lines)
            missing = [one for one in spent if one.key not in charges]
            for one in missing:
                opened.append(one)
            opened.sync()
            return missing

    def require_affordable(self, planned: list[Charge], task_epsilon: float, own: Budget | None = None) -> None:
        """Raises BudgetExceeded if existing and planned charges together would cost more than a budget."""
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
    """The epsilon at `delta` that one task has cost; None: all tasks together."""
    return epsilon([one.mechanism for one in charges.values() if task in (None, one.task)], delta)


def budget_of(spec: TaskSpec) -> Budget | None:
    """The bound on a row's cost in all rounds with noise of a task; None without any."""
    if spec.privacy is not None:
        return Budget(spec.privacy.epsilon, spec.privacy.delta)
    if spec.summary is None or spec.summary.epsilon is None:
        return None
    return Budget(spec.summary.epsilon, spec.summary.delta)


class PrivateRounds:
    """One hospital's part in one task with noise, `task_key`. Each round is charged before it is trained, and round 0
    before its counts get their noise.
    """

    def __init__(self, privacy_file: Path, own: Budget | None, task_key: str, spec: TaskSpec, rows: int) -> None:
        """`own` bounds all tasks together. The search for the noise takes seconds. Raises EpsilonUnreachable."""
        bound = budget_of(spec)
        if bound is None:
            raise ValueError("the task has no noise")
        self._task_key, self._spec, self._bound, self._rows = task_key, spec, bound, rows
        self._accountant = PrivacyAccountant(privacy_file)
        self._own = own
        self._counted = of_summary(spec)
        self._trained = None if spec.privacy is None else plan(spec, spec.privacy, rows)
        self.spent = False  # once a round was refused; a spent budget never comes back

    def make_up(self, ledger: Ledger, store: ArtifactStore) -> None:
        """Charges rounds that the ledger's account committed to, but that this file lacks: it was restored from an
        older copy, or was lost.

        A round costs the same as other charged rounds of its task; without these, the cost for the current rows. Round
        0 is in every copy that has a later round of its task. Raises ChargesUnknown if a task's file cannot be read,
        and all tasks together have a bound.
        """
        charged = self._accountant.charges()
        known = {charge.key for charge in charged} | {(charge.task, STATISTICS_ROUND) for charge in charged}
        lacking: dict[int, list[int]] = defaultdict(list)
        for task, round_ in ledger.record.rounds_committed(ledger.address):
            if (ledger.folder_name(task), round_) not in known:
                lacking[task].append(round_)
        for task, rounds in lacking.items():
            task_key = ledger.folder_name(task)
            try:
                spec = parse_task_spec(store.get_file(ledger.tasks.params(task).spec_hash))
            except (ArtifactMissing, ArtifactCorrupt, StoreMissing, SpecInvalid) as error:
                if self._own is not None:
                    raise PrivacyError(
                        "ChargesUnknown", task_key=task_key, rounds=", ".join(map(str, rounds)), why=name_of(error)
                    ) from error
                emit("not-charged", place=task_key, rounds=rounds, error=name_of(error))
                continue
            like = [one.mechanism for one in charged if one.task == task_key and one.round != STATISTICS_ROUND]
            if spent := self._unpaid(task_key, spec, rounds, like):
                emit("charged-late", place=task_key, rounds=[one.round for one in self._accountant.make_up(spent)])

    def _unpaid(self, task_key: str, spec: TaskSpec, rounds: Sequence[int], like: Sequence[Mechanism]) -> list[Charge]:
        """Charges of these rounds of a task, of those that have noise. `like`: of the task's other training rounds."""
        bound, counted, trained = budget_of(spec), of_summary(spec), None
        if bound is None:
            return []
        if spec.privacy is not None and any(rounds):
            trained = like[0] if like else plan(spec, spec.privacy, self._rows)
        costs = [(round_, trained if round_ else counted) for round_ in rounds]
        return [Charge.of(task_key, round_, cost, bound.delta) for round_, cost in costs if cost is not None]

    def so_far(self) -> tuple[float, float]:
        """The epsilon that the task has cost, and its bound."""
        own = [one.mechanism for one in self._accountant.charges() if one.task == self._task_key]
        return epsilon(own, self._bound.delta), self._bound.epsilon

    def require_affordable(self) -> None:
        """Raises BudgetExceeded if the budget is too small for all rounds of the task."""
        first = STATISTICS_ROUND if self._counted else 1
        last = self._spec.rounds.rounds if self._trained else STATISTICS_ROUND
        planned = [self._charge(round_) for round_ in range(first, last + 1)]
        self._accountant.require_affordable(planned, self._bound.epsilon, self._own)

    def learn(
        self,
        round_: int,
        basis: Basis,
        base: Vector,
        inputs: Inputs,
        labels: Labels,
        progress: Progress,
        device: str,
    ) -> Coordinates:
        """An update float64 (k,) of a private task, as coordinates in the basis. If `pay` raises, it trains nothing."""
        if self._spec.privacy is None or self._trained is None:
            raise ValueError("the task is not private")
        self.pay(round_)
        return learn_privately(
            in_round(self._spec, round_), self._spec.privacy, self._trained, basis, base, inputs, labels, progress,
            device,
        )  # fmt: skip

    def pay(self, round_: int) -> None:
        """Charges a round. Raises as `PrivacyAccountant.charge`."""
        try:
            cost = self._accountant.charge(self._charge(round_), self._bound.epsilon, self._own)
        except BudgetError as error:
            self.spent = True
            of = error.values
            emit("over-budget", round=round_, spent=of["spent"], would_be=of["would_be"], allowed=of["allowed"])
            raise
        emit("privacy", round=round_, epsilon=cost, of=self._bound.epsilon)

    def _charge(self, round_: int) -> Charge:
        mechanism = self._counted if round_ == STATISTICS_ROUND else self._trained
        if mechanism is None:
            raise ValueError(f"round {round_} has no noise")
        return Charge.of(self._task_key, round_, mechanism, self._bound.delta)
