"""Screens of a hospital: all tasks, one task, and the state of its approved tasks."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer
from consilium_chain.ledger.structs import Hospital, Phase, TaskState
from consilium_chain.tasks.task_spec import MoneySpec, TaskSpec
from consilium_client.config import HospitalHomeSettings
from consilium_client.consent import Policy
from consilium_client.data.kinds import read_examples
from consilium_client.errors import DataError
from consilium_client.home import HospitalHome, is_running
from consilium_client.privacy.membership import in_words
from consilium_client.task import JoinedTask
from consilium_core.units import tokens
from consilium_core.visible_text import shown
from consilium_zk.constants import BYTES_PER_BLOB
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from consilium_cli.nodes.status import Visit, listed, no_because, show_home, show_own_tasks, stand

ASSUMED_ROWS = 30  # if the hospital's own rows cannot be counted


@dataclass(frozen=True)
class HospitalVisit(Visit[HospitalHome]):
    home_kind = HospitalHome
    column = "node"

    @property
    def settings(self) -> HospitalHomeSettings:
        return self.home.settings

    def members(self, number: int) -> Sequence[Hospital]:
        return self.ledger.tasks.hospitals(number)

    def is_listed(self, state: TaskState, is_in: bool) -> bool:
        return state.phase is not Phase.ENDED

    def summary(self, spec: TaskSpec) -> str:
        return f"{spec.model.name}, {spec.parameters:,} parameters"

    def verdict(self, task: JoinedTask, state: TaskState, is_in: bool) -> str:
        objections = self.home.policy().objections(task.spec, state.operator)
        return no_because("; ".join(objections)) if objections else "[green]allows it[/green]"

    def activity(self, number: int, state: TaskState, index: int | None) -> str:
        node = "runs" if is_running(self.home.runtime(number)) else "does not run"
        if number in self.home.left_tasks():
            node = "left"
        return node if index is not None else f"{node}, not joined"


def show_task(visit: HospitalVisit, number: int) -> None:
    """Raises as `load_task` does."""
    task, state = visit.task(number), visit.ledger.tasks.state(number)
    console = Console(highlight=False)
    print_task(console, task, state)
    _print_membership_here(console, visit.settings, task)
    print_verdict(console, visit.home.policy(), task.spec, state.operator)


def _print_membership_here(console: Console, settings: HospitalHomeSettings, task: JoinedTask) -> None:
    try:
        rows = read_examples(settings.data, task.spec.data, settings.mapping).rows
    except DataError:
        console.print(
            f"\n[yellow]This home's data do not fit the task: `consilium hospital check-data {task.number}` says why."
            f" These figures assume {ASSUMED_ROWS} rows:[/yellow]"
        )
        print_membership(console, task.spec, ASSUMED_ROWS)
        return
    print_membership(console, task.spec, kept_rows(settings, rows))


def kept_rows(settings: HospitalHomeSettings, rows: int) -> int:
    """The approximate number of training rows, at least one."""
    return max(1, rows - round(rows * settings.held_out))


def print_membership(console: Console, spec: TaskSpec, rows: int) -> None:
    """Prints the measured risk that an attacker recognises this hospital's rows in the sums."""
    console.print(f"\n[bold]Membership:[/bold] {escape(in_words(spec, rows))}")


def print_verdict(console: Console, policy: Policy, spec: TaskSpec, operator: str) -> None:
    objections = policy.objections(spec, operator)
    if not objections:
        console.print("\n[green]This hospital's policy allows it.[/green]")
        return
    console.print("\n[bold red]This hospital's policy does not allow it:[/bold red]")
    for objection in objections:
        console.print(f"  · {escape(shown(objection))}")


def print_task(console: Console, task: JoinedTask, state: TaskState) -> None:
    """Prints a task's program, columns, outgoing data, time, pay and costs."""
    spec = task.spec
    console.print(f"[bold]Task {task.number}: {escape(spec.name)}[/bold]  ({stand(state)})")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, words in _facts(task, state):
        grid.add_row(name, escape(shown(words)))
    console.print(grid)


def _facts(task: JoinedTask, state: TaskState) -> list[tuple[str, str]]:
    spec = task.spec
    return [
        ("operator", state.operator),
        ("aggregator", task.params.aggregator),
        ("task file", f"keccak256 {task.params.spec_hash.hex()}"),
        *_work(spec),
        *_leaving(spec),
        *_money(spec.money, task.params.pool),
    ]


def _work(spec: TaskSpec) -> list[tuple[str, str]]:
    rounds, training = spec.rounds, spec.training
    most = datetime.timedelta(seconds=spec.windows.longest(rounds.rounds))
    return [
        ("runs", f"{spec.model.name}, {spec.parameters:,} parameters, from this installation: the task brings no code"),
        ("on", spec.data.in_words),
        (
            "training",
            f"{rounds.rounds} rounds of {training.epochs} epoch(s) in batches of {training.batch_size}, learning rate"
            f" {training.learning_rate:g}",
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
    update, size = spec.update, spec.update_blobs * BYTES_PER_BLOB
    seen = "masked: only the cohort's sum becomes visible" if update.masked else "NOT masked: the aggregator sees it"
    once = f"the number of {things}, in public"
    if spec.statistics == "exact":
        once += (
            f"; exactly, without noise: {spec.data.summed}, {seen}. Together with another task's, of nearly the same"
            f" {things}, they can reveal single {things}"
        )
    return [
        ("leaves once", once),
        ("leaves each round", f"the update in {update.bits} bits a parameter, {size:,} bytes, {seen}"),
        ("privacy", privacy),
        ("stays here", f"{things}, labels, and the model that is trained here"),
    ]


def _money(money: MoneySpec, pool: int) -> list[tuple[str, str]]:
    harmful, withheld = (f"{bps / 100:g} %" for bps in (money.harmful_slash_bps, money.withheld_slash_bps))
    return [
        ("pays", f"{money.hospital_share_bps / 100:g} % of {tokens(pool)} tokens to hospitals, by their improvement"),
        (
            "costs",
            f"a bond of {money.hospital_bond:,} tokens, locked until the task ends. A round can slash {harmful} of it"
            f" for a harmful update, {withheld} for an update that was committed but not uploaded",
        ),
    ]


def show_hospital(folder: Path) -> None:
    home = HospitalHome.open(folder)
    policy = home.policy()
    lines = [
        f"policy: operators {listed(policy.operators)}; models {listed(policy.models)}; hours {policy.hours or 'any'}"
    ]
    if (spent := _spent(home, policy)) is not None:
        limit = policy.max_epsilon or "no limit"
        lines.append(f"privacy: rows have cost epsilon {spent:.3g} of {limit}, at delta {policy.delta:g}")
    is_readable = show_home(home, "", *lines)
    approved = sorted({*home.approved_tasks(), *home.left_tasks()})
    if not approved:
        typer.echo("\nno task is approved here: `consilium hospital tasks` lists all tasks")
    elif not is_readable:
        typer.echo(f"\napproved tasks: {', '.join(map(str, approved))}; the chain does not answer")
    else:
        show_own_tasks(HospitalVisit.of(folder), approved)


def _spent(home: HospitalHome, policy: Policy) -> float | None:
    """The epsilon that all private tasks have cost the rows. None without such a task: then Opacus is not loaded."""
    if not home.settings.privacy_file.exists():
        return None
    from consilium_client.privacy.accountant import PrivacyAccountant
    from consilium_client.privacy.dp_sgd import epsilon

    charges = PrivacyAccountant(home.settings.privacy_file).charges()
    return epsilon([charge.mechanism for charge in charges], policy.delta)
