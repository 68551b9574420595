"""Screens that hospitals and voters share: the list of all tasks, and the state of a home and of its tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from consilium_chain.artifacts.store import CACHE, ArtifactStore
from consilium_chain.errors import SpecInvalid, SpecMismatch
from consilium_chain.keystore import address_of
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND, Hospital, Phase, TaskState, Voter
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.home import Home
from consilium_client.task import JoinedTask, load_task
from consilium_core.errors import ArtifactCorrupt, ArtifactMissing
from consilium_core.live import log_to_stderr
from consilium_core.units import tokens
from consilium_core.visible_text import shown
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from consilium_cli.doctor.checks import show_findings
from consilium_cli.doctor.findings import Level
from consilium_cli.nodes.connections import check_connections

UNREADABLE = (ArtifactMissing, ArtifactCorrupt, SpecInvalid, SpecMismatch)
HomeType = TypeVar("HomeType", bound=Home[Any, Any])


@dataclass(frozen=True)
class Visit(ABC, Generic[HomeType]):
    """A home with its chain and store, to read only: the password is not read."""

    home_kind: ClassVar[type[Home[Any, Any]]]
    column: ClassVar[str]  # title of `activity`

    home: HomeType
    ledger: Ledger
    store: ArtifactStore

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Raises HomeMissing, ConfigInvalid, DeploymentInvalid, ChainUnreachable, MirrorUnsupported."""
        home: Any = cls.home_kind.open(folder)
        log_to_stderr()
        return cls(home, home.settings.reader(), ArtifactStore(home.settings.artifacts, passing=home.folder / CACHE))

    @property
    def account(self) -> str:
        return address_of(self.home.settings.keystore)

    def task(self, number: int) -> JoinedTask:
        return load_task(self.ledger, self.store, number)

    def own(self, number: int) -> tuple[int, Hospital | Voter] | None:
        """This node's index in a task, and its entry on the chain; None if it has not joined."""
        for index, one in enumerate(self.members(number)):
            if one.node == self.account:
                return index, one
        return None

    @abstractmethod
    def members(self, number: int) -> Sequence[Hospital | Voter]:
        """The nodes of this role in a task."""

    @abstractmethod
    def is_listed(self, state: TaskState, is_in: bool) -> bool:
        """True if the list of tasks has the task without --all."""

    @abstractmethod
    def summary(self, spec: TaskSpec) -> str:
        """A line about a task's model."""

    @abstractmethod
    def verdict(self, task: JoinedTask, state: TaskState, is_in: bool) -> str:
        """This node's decision on a task, in markup."""

    @abstractmethod
    def activity(self, number: int, state: TaskState, index: int | None) -> str:
        """This node's part in a task, in markup. `index`: None if it has not joined."""


def no_because(reasons: str) -> str:
    return escape(shown(f"no: {reasons}"))


def show_tasks(visit: Visit[Any], every: bool) -> None:
    role = visit.home.role.name.lower()
    console, table = Console(highlight=False), Table(box=box.SIMPLE_HEAD)
    for column in ("task", "name, model", "state", "bond, pool", f"this {role}"):
        table.add_column(column, overflow="fold")
    hidden = 0
    for number in range(visit.ledger.tasks.count(), 0, -1):
        state, members = visit.ledger.tasks.state(number), visit.members(number)
        is_in = visit.account in [one.node for one in members]
        if not every and not visit.is_listed(state, is_in):
            hidden += 1
            continue
        params = visit.ledger.tasks.params(number)
        most, bond = getattr(params, f"max_{role}s"), getattr(params, f"{role}_bond")
        joined = f"{stand(state)}\n{len(members)} of {most} {role}s"
        money = f"{tokens(bond)}\n{tokens(params.pool)}"
        try:
            task = visit.task(number)
        except UNREADABLE as error:
            table.add_row(str(number), "?", joined, money, no_because(str(error)))
            continue
        name = f"{escape(task.spec.name)}\n{visit.summary(task.spec)}"
        table.add_row(str(number), name, joined, money, visit.verdict(task, state, is_in))
    console.print(table if table.row_count else "There is no open task on this chain.")
    if hidden:
        console.print(f"{hidden} more tasks are over or can no longer be joined (--all shows them)")


def show_home(home: Home[Any, Any], facts: str, *lines: str) -> bool:
    """Prints folder, connections and policy. Returns True if the account's tasks can be read from the chain."""
    console = Console(highlight=False)
    console.print(f"[bold]{home.folder}[/bold]{facts}{'  [yellow]paused[/yellow]' if home.paused else ''}")
    found = check_connections(home)
    show_findings(found)
    for line in lines:
        console.print(line)
    return not any(one.level is Level.FAULT for one in found if one.check in ("key file", "chain"))


def show_own_tasks(visit: Visit[Any], numbers: Sequence[int]) -> None:
    """The account's tasks, and its stake."""
    console, table = Console(highlight=False), Table(box=box.SIMPLE_HEAD)
    for column in ("task", "state", visit.column, "bond", "rewards", "slashed", "last round"):
        table.add_column(column)
    for number in numbers:
        state, own = visit.ledger.tasks.state(number), visit.own(number)
        activity = visit.activity(number, state, None if own is None else own[0])
        money = ["–"] * 4
        if own is not None:
            over = state.round + (state.phase is Phase.ENDED)
            rounds = range(STATISTICS_ROUND, over)
            payouts = [visit.ledger.tasks.explain(number, round_, visit.account) for round_ in rounds]
            amounts = own[1].bond, sum(one.reward for one in payouts), sum(one.slash for one in payouts)
            last = payouts[-1].reason.name.lower().replace("_", " ") if payouts else "–"
            money = [*map(tokens, amounts), last]
        table.add_row(str(number), stand(state), activity, *money)
    if table.row_count:
        console.print(table)
    staking, role = visit.ledger.staking, visit.home.role
    stake, claimable = staking.stake_of(visit.account, role), staking.claimable(visit.account, visit.account, role)
    console.print(
        f"stake {tokens(stake.active)}, of which free {tokens(stake.free)}, unbonding {tokens(stake.unbonding)};"
        f" rewards to claim {tokens(claimable)}, not vested yet {tokens(staking.unvested(visit.account, role))}"
    )


def stand(state: TaskState) -> str:
    if state.phase in (Phase.JOINING, Phase.ENDED):
        return state.phase.name.lower()
    return f"round {state.round}, {state.phase.name.lower()}"


def listed(names: Sequence[str] | str) -> str:
    return names if isinstance(names, str) else ", ".join(names)
