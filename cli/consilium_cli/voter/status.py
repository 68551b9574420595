"""Screens of a voter: the tasks that it could judge, and the state of those that it judges."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import typer
from consilium_chain.ledger.structs import Phase, Role, RoundState, TaskState
from consilium_client.data.kinds import read_examples
from consilium_client.errors import DataError, ModelError
from consilium_client.home import OwnTable, VoterHome, is_running
from consilium_client.models import model_of
from consilium_client.task import JoinedTask
from consilium_client.voter.ballots import ballot_path
from consilium_core.units import tokens
from consilium_core.visible_text import shown
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from consilium_cli.nodes.answers import Result, show_answers, try_connections
from consilium_cli.nodes.status import UNREADABLE, HomeVisit, money_of, said, stand


@dataclass(frozen=True)
class Visit(HomeVisit[VoterHome]):
    @classmethod
    def of(cls, folder: Path) -> Self:
        """Raises HomeMissing, ConfigInvalid, DeploymentInvalid, ChainUnreachable."""
        return cls.to(VoterHome.open(folder))

    def objections(self, task: JoinedTask, operator: str) -> list[str]:
        """The node's reasons not to join a task, in words. Raises PolicyInvalid, ApprovalInvalid."""
        found = self.home.policy().objections(task.spec, operator)
        settings = self.home.node_settings(task.number, self.ledger.folder_name(task.number))
        try:
            model_of(task.spec).require_installed()
            read_examples(settings.data, task.spec.data, settings.mapping, allow_one_class=False)
        except (DataError, ModelError) as error:
            found.append(str(error))
        free = self.ledger.staking.stake_of(self.account, Role.VOTER).free
        if free < task.params.voter_bond:
            found.append(f"{tokens(free)} tokens of stake are free: `consilium voter register --stake` stakes more")
        return found


def show_tasks(visit: Visit, every: bool) -> None:
    console = Console(highlight=False)
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("task", "what", "stands in", "bond, pool", "this node"):
        table.add_column(column, overflow="fold")
    hidden = 0
    for number in range(visit.ledger.tasks.count(), 0, -1):
        state, voters = visit.ledger.tasks.state(number), visit.ledger.tasks.voters(number)
        is_in = visit.account in [voter.node for voter in voters]
        if not every and (state.phase is Phase.ENDED or not (is_in or state.phase is Phase.JOINING)):
            hidden += 1
            continue
        params = visit.ledger.tasks.params(number)
        joined = f"{stand(state)}\n{len(voters)} of {params.max_voters} voters"
        money = f"{tokens(params.voter_bond)}\n{tokens(params.pool)}"
        try:
            task = visit.task(number)
        except UNREADABLE as error:
            table.add_row(str(number), "?", joined, money, escape(shown(f"no: {error}")))
            continue
        what = f"{escape(task.spec.name)}\n{task.spec.model.name}, by {task.spec.judging.metric}"
        table.add_row(str(number), what, joined, money, _verdict(visit, task, state, is_in))
    if table.row_count:
        console.print(table)
    else:
        console.print("no task can be joined on this chain")
    if hidden:
        console.print(f"{hidden} more can be joined no more (--all shows them)")


def _verdict(visit: Visit, task: JoinedTask, state: TaskState, is_in: bool) -> str:
    """Markup."""
    if is_in:
        return "[green]judges it[/green]"
    if state.phase is not Phase.JOINING:
        return "too late"
    objections = visit.objections(task, state.operator)
    return escape(shown(f"no: {'; '.join(objections)}")) if objections else "[green]joins it[/green]"


def use_table(visit: Visit, number: int, data: Path, mapping: Path | None) -> None:
    """Raises as `load_task` and `read_examples` do: then nothing is changed."""
    rows = read_examples(data, visit.task(number).spec.data, mapping, allow_one_class=False).rows
    own = OwnTable(data=data.absolute(), mapping=mapping and mapping.absolute())
    visit.home.use_table(visit.ledger.folder_name(number), own)
    typer.echo(f"task {number} is judged on {data}, {rows} rows; a node that is in it already reads it once restarted")


def show_status(folder: Path) -> None:
    home = VoterHome.open(folder)
    console = Console(highlight=False)
    node = "node runs" if is_running(home.folder) else "node does not run"
    console.print(f"[bold]{home.folder}[/bold]  {node}{'  [yellow]paused[/yellow]' if home.paused else ''}")
    answers = try_connections(home)
    show_answers(answers)
    policy = home.policy()
    console.print(
        f"policy: operators {said(policy.operators)}; models {said(policy.models)}; metrics {said(policy.metrics)};"
        f" at most {policy.max_tasks} tasks at once"
    )
    if any(answer.result is Result.NO for answer in answers if answer.what in ("key file", "chain")):
        console.print("\nthe chain does not answer: the tasks' state is unknown")
        return
    visit = Visit.of(folder)
    tasks = visit.ledger.record.tasks_of_voter(visit.account)
    if tasks:
        _show_judged(console, visit, tasks)
    else:
        console.print("\nno task was joined yet: `consilium voter tasks` lists all tasks")
    _show_money(console, visit)


def _show_judged(console: Console, visit: Visit, tasks: list[int]) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("task", "stands in", "seat", "bond", "rewards", "slashed", "last round"):
        table.add_column(column)
    for number in reversed(tasks):
        state, voters = visit.ledger.tasks.state(number), visit.ledger.tasks.voters(number)
        index = [voter.node for voter in voters].index(visit.account)
        rewards, slashed, last = money_of(visit.ledger, visit.account, number, state)
        seat = "–"
        if state.phase in (Phase.SCORING, Phase.REVEALING):
            seat = _seat(visit, number, state, visit.ledger.tasks.round_state(number, state.round), index)
        bond = tokens(voters[index].bond)
        table.add_row(str(number), stand(state), seat, bond, tokens(rewards), tokens(slashed), last)
    console.print(table)


def _seat(visit: Visit, number: int, state: TaskState, round_state: RoundState, index: int) -> str:
    """Markup."""
    if round_state.stood_down >> index & 1:
        return "none drawn"
    if not round_state.seated >> index & 1:
        return "not yet known" if state.phase is Phase.SCORING else "none"
    if round_state.revealed >> index & 1:
        return "revealed"
    path = ballot_path(visit.home.folder, visit.ledger.folder_name(number), state.round, round_state.seat_seed)
    return "committed, to be revealed" if path.exists() else "[red]committed, and the ballot is not here[/red]"


def _show_money(console: Console, visit: Visit) -> None:
    ledger, account = visit.ledger, visit.account
    stake, claimable = (
        ledger.staking.stake_of(account, Role.VOTER),
        ledger.staking.claimable(account, account, Role.VOTER),
    )
    console.print(
        f"stake {tokens(stake.active)}, of which free {tokens(stake.free)}, unbonding {tokens(stake.unbonding)};"
        f" rewards to claim {tokens(claimable)}, not vested yet {tokens(ledger.staking.unvested(account, Role.VOTER))}"
    )
