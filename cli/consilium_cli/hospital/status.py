"""Screens of a hospital: all tasks, one task, and the state of its approved tasks."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from consilium_core.defaults import Role
from consilium_core.units import tokens
from consilium_core.visible_text import shown
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from consilium_cli.nodes.status import (
    Words,
    for_sale,
    listed,
    no_because,
    opened_client,
    show_home,
    show_own_tasks,
    stand,
)

if TYPE_CHECKING:
    from consilium.node_results import ListedTask, Membership, OwnTask
    from consilium_chain.ledger.structs import TaskState
    from consilium_chain.tasks.task_spec import TaskSpec
    from consilium_chain.tasks.training_specs import TrainingSpec
    from consilium_client.consent import Policy
    from consilium_client.task import JoinedTask


def _summary(spec: TaskSpec) -> str:
    return f"{spec.model.name}, {spec.in_words.size}{for_sale(spec)}"


def _verdict(one: ListedTask) -> str:
    return no_because(one.objections) if one.objections else "[green]allows it[/green]"


def _activity(one: OwnTask) -> str:
    return one.activity if one.is_in else f"{one.activity}, not joined"


HOSPITAL = Words(Role.HOSPITAL, "node", _summary, _verdict, _activity)


def show_task(folder: Path, number: int) -> None:
    """Raises as `Client.task` does."""
    client = opened_client(folder)
    task, state = client.task(number), client.state(number)
    console = Console(highlight=False)
    print_task(console, task, state, client.program(task), client.plugin(task))
    membership = client.membership(task)
    if membership.is_assumed:
        console.print(
            f"\n[yellow]This home's data do not fit the task: `consilium hospital check-data {task.number}` says why."
            f" These figures assume {membership.rows} rows:[/yellow]"
        )
    print_membership(console, membership)
    print_verdict(console, client.policy(), task.spec, state.operator)


def print_membership(console: Console, membership: Membership) -> None:
    """Prints the measured risk that an attacker recognises this hospital's rows in the sums."""
    console.print(f"\n[bold]Membership:[/bold] {escape(membership.in_words)}")


def print_verdict(console: Console, policy: Policy, spec: TaskSpec, operator: str) -> None:
    objections = policy.objections(spec, operator)
    if not objections:
        console.print("\n[green]This hospital's policy allows it.[/green]")
        return
    console.print("\n[bold red]This hospital's policy does not allow it:[/bold red]")
    for objection in objections:
        console.print(f"  · {escape(shown(objection))}")


def print_task(
    console: Console, task: JoinedTask, state: TaskState, program: Sequence[tuple[str, str]],
    plugins: Sequence[tuple[str, str]] = (),
) -> None:  # fmt: skip
    """Prints a task's model, columns, outgoing data, time, pay, costs and sale. `program`, `plugins`: in words."""
    spec = task.spec
    console.print(f"[bold]Task {task.number}: {escape(spec.name)}[/bold]  ({stand(state)})")
    _print_rows(console, _facts(task, state))
    if program:
        console.print("\n[bold]The program[/bold], a graph of operators, and no code:")
        of_program = Table.grid(padding=(0, 2))
        for name, words in program:
            of_program.add_row(name, escape(words))
        console.print(of_program)
    if plugins:
        console.print("\n[bold]Plug-ins[/bold], installed code:")
        _print_rows(console, plugins)


def _print_rows(console: Console, rows: Sequence[tuple[str, str]]) -> None:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, words in rows:
        grid.add_row(name, escape(shown(words)))
    console.print(grid)


def _facts(task: JoinedTask, state: TaskState) -> list[tuple[str, str]]:
    spec = task.spec
    return [
        ("operator", state.operator),
        ("aggregator", task.params.aggregator),
        ("task file", f"keccak256 {task.params.spec_hash.hex()}"),
        *_shards(task, state),
        *_work(spec),
        *_leaving(spec),
        *_money(spec, task.params.pool),
        *_sale(spec),
    ]


def _shards(task: JoinedTask, state: TaskState) -> list[tuple[str, str]]:
    if state.shard == 0:
        return []
    first, count = task.number + 1 - state.shard, task.params.shards
    return [("shard", f"{state.shard} of {count}: tasks {first} to {first + count - 1} train one model. Join one")]


def print_spec(console: Console, spec: TaskSpec) -> None:
    """The work that a task file asks for, the data that leave, and the terms by which the model may be sold."""
    _print_rows(console, [("name", spec.name), *_work(spec), *_leaving(spec), *_sale(spec)])


def _length(training: TrainingSpec) -> str:
    return f"{training.epochs} epoch(s)" if training.steps is None else f"{training.steps} step(s)"


def _origin(spec: TaskSpec) -> str:
    if spec.model.name == "program":
        return ": the task brings a graph of operators"
    if spec.model.name == "plugin":
        return ": an installed plug-in, of which the task brings its digest"
    return ", from this installation: the task brings its name"


def _work(spec: TaskSpec) -> list[tuple[str, str]]:
    rounds, training = spec.rounds, spec.training
    most = datetime.timedelta(seconds=spec.windows.longest(rounds.rounds))
    return [
        ("runs", f"{spec.model.name}, {spec.in_words.size}{_origin(spec)}, and no code"),
        ("starts from", spec.start.in_words),
        ("on", spec.data.in_words),
        (
            "training",
            f"{rounds.rounds} rounds of {_length(training)} in batches of {training.batch_size}, learning rate"
            f" {training.learning_rate:g} ({training.schedule})",
        ),
        (
            "with",
            f"{rounds.min_hospitals} to {rounds.max_hospitals} hospitals, in cohorts of at least"
            f" {rounds.min_cohort_size}",
        ),
        ("time", f"at most {most} with joining, mostly waiting; skipping a round costs nothing"),
    ]


def _leaving(spec: TaskSpec) -> list[tuple[str, str]]:
    privacy = "no noise: nothing bounds what a cohort's sum reveals about a row"
    if spec.privacy is not None:
        bound = f"epsilon {spec.privacy.epsilon:g} at delta {spec.privacy.delta:g}"
        privacy = f"all rounds together cost a row at most {bound}: this machine adds noise before anything leaves"
    things = spec.data.things
    update, size = spec.update, spec.update_bytes
    seen = spec.in_words.seen
    once = f"the number of {things}, in public"
    if spec.statistics == "exact":
        once += f"; exactly, without noise: {spec.data.summed}, {seen}"
    if spec.summary is not None:
        once += f"; {spec.in_words.summary}, {seen}"
    if spec.counts_exactly:
        once += f". Together with another task's, of nearly the same {things}, they can reveal single {things}"
    return [
        ("leaves once", once),
        ("leaves each round", f"the update in {update.bits} bits a parameter, {size:,} bytes, {seen}"),
        ("privacy", privacy),
        ("stays here", f"{things}, labels, and the model that is trained here"),
    ]


def _money(spec: TaskSpec, pool: int) -> list[tuple[str, str]]:
    money = spec.money
    harmful, withheld = (f"{bps / 100:g} %" for bps in (money.harmful_slash_bps, money.withheld_slash_bps))
    return [
        ("pays", f"{money.hospital_share_bps / 100:g} % of {tokens(pool)} tokens to hospitals, {spec.in_words.pay}"),
        (
            "costs",
            f"a bond of {money.hospital_bond:,} tokens, locked until the task ends. A round can slash {harmful} of it"
            f" for a harmful update, {withheld} for an update that was committed but not uploaded",
        ),
    ]


def _sale(spec: TaskSpec) -> list[tuple[str, str]]:
    return [("for sale", f"the finished model: {spec.in_words.sale}")] if spec.sale else []


def show_hospital(folder: Path) -> None:
    client = opened_client(folder)
    status = client.status()
    policy = status.policy
    lines = [
        f"policy: operators {listed(policy.operators)}; models {listed(policy.models)}; hours {policy.hours or 'any'}",
        f"        SHA-256 {policy.digest}",
    ]
    if policy.approval is not None:
        lines.append(f"second signature: {listed(policy.approval.by)}")
    if status.epsilon is not None:
        limit = policy.max_epsilon or "no limit"
        lines.append(f"privacy: rows have cost epsilon {status.epsilon:.3g} of {limit}, at delta {policy.delta:g}")
    show_home(status, "", *lines)
    if not status.approved:
        typer.echo("\nno task is approved here: `consilium hospital tasks` lists all tasks")
    elif not status.is_reachable:
        typer.echo(f"\napproved tasks: {', '.join(map(str, status.approved))}; the chain does not answer")
    else:
        show_own_tasks(client.standing(), HOSPITAL)
