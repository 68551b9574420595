"""Screens that hospitals and voters share: the list of all tasks, and the state of a home and of its tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from consilium.client import Client
from consilium.node_results import Phase
from consilium.voter import Voter
from consilium_core.defaults import Role
from consilium_core.live import log_to_stderr
from consilium_core.units import tokens
from consilium_core.visible_text import shown
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from consilium_cli.doctor.screen import show_findings
from consilium_cli.nodes.withdrawal import paid_to

if TYPE_CHECKING:
    from consilium.node_results import ClientStatus, ListedTask, OwnTask, Standing, TaskList, VoterStatus
    from consilium_chain.ledger.structs import TaskState
    from consilium_chain.tasks.task_spec import TaskSpec


@dataclass(frozen=True)
class Words:
    """One role's words. `column`: the title of `activity`, a node's part in a task. `verdict` and `activity` are in
    markup.
    """

    role: Role
    column: str
    summary: Callable[[TaskSpec], str]
    verdict: Callable[[ListedTask], str]
    activity: Callable[[OwnTask], str]


def opened_client(folder: Path) -> Client:
    """Log events go to standard error from now on. Raises HomeMissing, ConfigInvalid."""
    log_to_stderr()
    return Client(folder)


def opened_voter(folder: Path) -> Voter:
    """Log events go to standard error from now on. Raises HomeMissing, ConfigInvalid."""
    log_to_stderr()
    return Voter(folder)


def no_because(reasons: Sequence[str]) -> str:
    return escape(shown(f"no: {'; '.join(reasons)}"))


def show_tasks(found: TaskList, words: Words) -> None:
    console, table = Console(highlight=False), Table(box=box.SIMPLE_HEAD)
    for column in ("task", "name, model", "state", "bond, pool", f"this {words.role}"):
        table.add_column(column, overflow="fold")
    for one in found.tasks:
        joined = f"{stand(one.state)}\n{one.members} of {one.most} {words.role}s"
        money = f"{tokens(one.bond)}\n{tokens(one.pool)}"
        if one.spec is None:
            table.add_row(str(one.number), "?", joined, money, no_because(one.objections))
            continue
        name = f"{escape(one.spec.name)}\n{words.summary(one.spec)}"
        table.add_row(str(one.number), name, joined, money, words.verdict(one))
    console.print(table if table.row_count else "There is no open task on this chain.")
    if found.hidden:
        console.print(f"{found.hidden} more tasks are over or can no longer be joined (--all shows them)")


def show_home(status: ClientStatus | VoterStatus, facts: str, *lines: str) -> None:
    """Prints folder, connections and policy."""
    console = Console(highlight=False)
    console.print(f"[bold]{status.folder}[/bold]{facts}{'  [yellow]paused[/yellow]' if status.is_paused else ''}")
    show_findings(status.findings)
    for line in lines:
        console.print(line)


def show_own_tasks(found: Standing, words: Words) -> None:
    """The account's tasks, and its stake."""
    console, table = Console(highlight=False), Table(box=box.SIMPLE_HEAD)
    for column in ("task", "state", words.column, "bond", "rewards", "slashed", "last round"):
        table.add_column(column)
    for one in found.tasks:
        money = ["–"] * 4
        if one.is_in:
            last = "–" if one.last is None else one.last.name.lower().replace("_", " ")
            money = [*map(tokens, (one.bond, one.rewards, one.slashed)), last]
        table.add_row(str(one.number), stand(one.state), words.activity(one), *money)
    if table.row_count:
        console.print(table)
    stake = found.stake
    console.print(
        f"stake {tokens(stake.active)}, of which free {tokens(stake.free)}, unbonding {tokens(stake.unbonding)};"
        f" rewards to claim {tokens(found.claimable)}, not vested yet {tokens(found.unvested)}"
    )
    console.print(paid_to(found.withdrawal))


def for_sale(spec: TaskSpec) -> str:
    """The terms by which a task's model may be sold, on a line of their own; "" without."""
    return f"\nfor sale: {spec.in_words.sale}" if spec.sale else ""


def stand(state: TaskState) -> str:
    if state.phase in (Phase.JOINING, Phase.ENDED):
        return state.phase.name.lower()
    return f"round {state.round}, {state.phase.name.lower()}"


def listed(names: Sequence[str] | str) -> str:
    return names if isinstance(names, str) else ", ".join(names)
