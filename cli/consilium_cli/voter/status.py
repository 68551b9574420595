"""Screens of a voter: the tasks that it could judge, and the state of those that it judges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer
from consilium_chain.ledger.structs import Phase, Role, TaskState, Voter
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.kinds import read_examples
from consilium_client.errors import DataError, ModelError
from consilium_client.home import OwnTable, VoterHome, is_running
from consilium_client.models import model_of
from consilium_client.task import JoinedTask
from consilium_client.voter.ballots import ballot_path
from consilium_core.units import tokens

from consilium_cli.nodes.status import Visit, listed, no_because, show_home, show_own_tasks


@dataclass(frozen=True)
class VoterVisit(Visit[VoterHome]):
    home_kind = VoterHome
    column = "seat"

    def members(self, number: int) -> Sequence[Voter]:
        return self.ledger.tasks.voters(number)

    def is_listed(self, state: TaskState, is_in: bool) -> bool:
        return state.phase is Phase.JOINING or (is_in and state.phase is not Phase.ENDED)

    def summary(self, spec: TaskSpec) -> str:
        return f"{spec.model.name}, by {spec.judging.metric}"

    def verdict(self, task: JoinedTask, state: TaskState, is_in: bool) -> str:
        if is_in:
            return "[green]judges it[/green]"
        if state.phase is not Phase.JOINING:
            return "too late"
        objections = self.objections(task, state.operator)
        return no_because("; ".join(objections)) if objections else "[green]joins it[/green]"

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

    def activity(self, number: int, state: TaskState, index: int | None) -> str:
        """Its seat in the present round."""
        if index is None or state.phase not in (Phase.SCORING, Phase.REVEALING):
            return "–"
        round_state = self.ledger.tasks.round_state(number, state.round)
        if round_state.stood_down >> index & 1:
            return "not drawn"
        if not round_state.seated >> index & 1:
            return "not yet known" if state.phase is Phase.SCORING else "none"
        if round_state.revealed >> index & 1:
            return "revealed"
        path = ballot_path(self.home.folder, self.ledger.folder_name(number), state.round, round_state.seat_seed)
        return "committed, not revealed yet" if path.exists() else "[red]committed, but the ballot is gone[/red]"


def use_table(visit: VoterVisit, number: int, data: Path, mapping: Path | None) -> None:
    """Changes nothing if it raises, as `load_task` and `read_examples` do."""
    rows = read_examples(data, visit.task(number).spec.data, mapping, allow_one_class=False).rows
    own = OwnTable(data=data.absolute(), mapping=mapping and mapping.absolute())
    visit.home.use_table(visit.ledger.folder_name(number), own)
    typer.echo(f"task {number} is judged on the {rows} rows of {data}; restart a node that is in the task already")


def show_voter(folder: Path) -> None:
    home = VoterHome.open(folder)
    policy = home.policy()
    rules = (
        f"policy: operators {listed(policy.operators)}; models {listed(policy.models)}; metrics"
        f" {listed(policy.metrics)}; at most {policy.max_tasks} tasks at once"
    )
    node = "node runs" if is_running(home.folder) else "node does not run"
    if not show_home(home, f"  {node}", rules):
        typer.echo("\nthe chain does not answer, so the state of the tasks is unknown")
        return
    visit = VoterVisit.of(folder)
    tasks = visit.ledger.record.tasks_of_voter(visit.account)
    if not tasks:
        typer.echo("\nthis voter has not joined a task yet: `consilium voter tasks` lists all tasks")
    show_own_tasks(visit, tasks[::-1])
