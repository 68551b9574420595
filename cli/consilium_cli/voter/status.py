"""Screens of a voter: the tasks that it could judge, and the state of those that it judges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from consilium.node_results import Activity, Phase
from consilium_core.defaults import Role

from consilium_cli.nodes.status import Words, for_sale, listed, no_because, opened_voter, show_home, show_own_tasks

if TYPE_CHECKING:
    from consilium.node_results import ListedTask, OwnTask
    from consilium_chain.tasks.task_spec import TaskSpec


def _summary(spec: TaskSpec) -> str:
    return f"{spec.model.name}, by {spec.judging.in_words}{for_sale(spec)}"


def _verdict(one: ListedTask) -> str:
    if one.is_in:
        return "[green]judges it[/green]"
    if one.state.phase is not Phase.JOINING:
        return "too late"
    return no_because(one.objections) if one.objections else "[green]joins it[/green]"


def _activity(one: OwnTask) -> str:
    return f"[red]{one.activity}[/red]" if one.activity is Activity.BALLOT_LOST else one.activity


VOTER = Words(Role.VOTER, "seat", _summary, _verdict, _activity)


def use_table(folder: Path, number: int, data: Path, mapping: Path | None) -> None:
    rows = opened_voter(folder).use_table(number, data, mapping)
    typer.echo(f"task {number} is judged on the {rows} rows of {data}; restart a node that is in the task already")


def show_voter(folder: Path) -> None:
    voter = opened_voter(folder)
    status = voter.status()
    policy = status.policy
    rules = (
        f"policy: operators {listed(policy.operators)}; models {listed(policy.models)}; metrics"
        f" {listed(policy.metrics)}; at most {policy.max_tasks} tasks at once"
    )
    show_home(status, f"  node {'runs' if status.runs else 'does not run'}", rules)
    if not status.is_reachable:
        typer.echo("\nthe chain does not answer, so the state of the tasks is unknown")
        return
    standing = voter.standing()
    if not standing.tasks:
        typer.echo("\nthis voter has not joined a task yet: `consilium voter tasks` lists all tasks")
    show_own_tasks(standing, VOTER)
