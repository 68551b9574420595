"""Screens of a hospital: all tasks, one task, and the state of its approved tasks."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from consilium_chain.ledger.structs import Hospital, Phase, Role, TaskState
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
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from consilium_cli.nodes.answers import Result, show_answers, try_connections
from consilium_cli.nodes.status import UNREADABLE, HomeVisit, money_of, said, stand

ASSUMED_ROWS = 30  # if the hospital's own rows cannot be counted


@dataclass(frozen=True)
class Visit(HomeVisit[HospitalHome]):
    @classmethod
    def of(cls, folder: Path) -> Self:
        """Raises HomeMissing, ConfigInvalid, DeploymentInvalid, ChainUnreachable."""
        return cls.to(HospitalHome.open(folder))

    @property
    def settings(self) -> HospitalHomeSettings:
        return self.home.settings

    def own(self, number: int) -> tuple[int, Hospital] | None:
        """This hospital's index in a task, and its entry on the chain; None if it has not joined."""
        for index, hospital in enumerate(self.ledger.tasks.hospitals(number)):
            if hospital.node == self.account:
                return index, hospital
        return None


def show_tasks(visit: Visit, every: bool) -> None:
    policy, console = visit.home.policy(), Console(highlight=False)
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("task", "what", "stands in", "bond, pool", "policy"):
        table.add_column(column, overflow="fold")
    hidden = 0
    for number in range(visit.ledger.tasks.count(), 0, -1):
        state = visit.ledger.tasks.state(number)
        if state.phase is Phase.ENDED and not every:
            hidden += 1
            continue
        params = visit.ledger.tasks.params(number)
        joined = f"{stand(state)}\n{len(visit.ledger.tasks.hospitals(number))} of {params.max_hospitals} hospitals"
        money = f"{tokens(params.hospital_bond)}\n{tokens(params.pool)}"
        try:
            spec = visit.task(number).spec
        except UNREADABLE as error:
            table.add_row(str(number), "?", joined, money, escape(shown(f"no: {error}")))
            continue
        objections = policy.objections(spec, state.operator)
        verdict = escape(shown(f"no: {'; '.join(objections)}")) if objections else "[green]allows it[/green]"
        what = f"{escape(spec.name)}\n{spec.model.name}, {spec.parameters:,}"
        table.add_row(str(number), what, joined, money, verdict)
    if table.row_count:
        console.print(table)
    else:
        console.print("no task is open on this chain")
    if hidden:
        console.print(f"{hidden} more have ended (--all shows them)")


def show_task(visit: Visit, number: int) -> None:
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
            f" These figures are for {ASSUMED_ROWS} rows:[/yellow]"
        )
        print_membership(console, task.spec, ASSUMED_ROWS)
        return
    print_membership(console, task.spec, kept_rows(settings, rows))


def kept_rows(settings: HospitalHomeSettings, rows: int) -> int:
    """About the number of rows that are trained on, at least one."""
    return max(1, rows - round(rows * settings.held_out))


def print_membership(console: Console, spec: TaskSpec, rows: int) -> None:
    """The measured risk that an attacker finds this hospital's rows in the sums."""
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
        (
            "what runs",
            f"{spec.model.name}, {spec.parameters:,} parameters, of this installation: no code comes with it",
        ),
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
        (
            "takes",
            f"at most {most}, joining included, most of it waiting; to sit a round out costs nothing",
        ),
    ]


def _leaving(spec: TaskSpec) -> list[tuple[str, str]]:
    privacy = "no noise: what a sum over a cohort says of a row is not bounded"
    if spec.privacy is not None:
        bound = f"epsilon {spec.privacy.epsilon:g} at delta {spec.privacy.delta:g}"
        privacy = f"all rounds together cost a row {bound} at most: noise is added here, before anything leaves"
    things = spec.data.things
    update, size = spec.update, spec.update_blobs * BYTES_PER_BLOB
    seen = (
        "masked, so that only the sum over a cohort is seen" if update.masked else "NOT masked: the aggregator sees it"
    )
    once = f"the number of {things}, in public"
    if spec.statistics == "exact":
        once += (
            f"; and exactly, without noise: {spec.data.summed}, {seen}. Beside another task's, on nearly the same"
            f" {things}, they can give single {things} away"
        )
    return [
        ("leaves once", once),
        ("leaves each round", f"the update in {update.bits} bits a parameter, {size:,} bytes, {seen}"),
        ("privacy", privacy),
        ("stays here", f"{things}, labels, and the model as trained here"),
    ]


def _money(money: MoneySpec, pool: int) -> list[tuple[str, str]]:
    harmful, withheld = (f"{bps / 100:g} %" for bps in (money.harmful_slash_bps, money.withheld_slash_bps))
    return [
        ("pays", f"{money.hospital_share_bps / 100:g} % of {tokens(pool)} tokens to hospitals, by what they improve"),
        (
            "costs",
            f"a bond of {money.hospital_bond:,} tokens until the task ends. A round can take of it: {harmful} for a"
            f" harmful update, {withheld} for one committed to and not handed over",
        ),
    ]


def show_status(folder: Path) -> None:
    home = HospitalHome.open(folder)
    console = Console(highlight=False)
    console.print(f"[bold]{home.folder}[/bold]{'  [yellow]paused[/yellow]' if home.paused else ''}")
    answers = try_connections(home)
    show_answers(answers)
    policy = home.policy()
    console.print(
        f"policy: operators {said(policy.operators)}; models {said(policy.models)}; hours {policy.hours or 'any'}"
    )
    if (spent := _spent(home, policy)) is not None:
        limit = policy.max_epsilon or "no limit"
        console.print(f"privacy: rows have cost epsilon {spent:.3g} of {limit}, at delta {policy.delta:g}")
    approved = sorted({*home.approved_tasks(), *home.left_tasks()})
    if not approved:
        console.print("\nno task is approved here: `consilium hospital tasks` lists all tasks")
    elif any(answer.result is Result.NO for answer in answers if answer.what == "chain"):
        console.print(f"\napproved tasks: {', '.join(map(str, approved))}; the chain does not answer")
    else:
        _show_approved(console, Visit.of(folder), approved)


def _spent(home: HospitalHome, policy: Policy) -> float | None:
    """The epsilon that rows have cost in all private tasks; None without one, so that Opacus need not be loaded."""
    if not home.settings.privacy_file.exists():
        return None
    from consilium_client.privacy.accountant import PrivacyAccountant
    from consilium_client.privacy.dp_sgd import epsilon

    charges = PrivacyAccountant(home.settings.privacy_file).charges()
    return epsilon([charge.mechanism for charge in charges], policy.delta)


def _show_approved(console: Console, visit: Visit, approved: list[int]) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("task", "stands in", "node", "bond", "rewards", "slashed", "last round"):
        table.add_column(column)
    for number in approved:
        own, state = visit.own(number), visit.ledger.tasks.state(number)
        node = "runs" if is_running(visit.home.runtime(number)) else "does not run"
        if number in visit.home.left_tasks():
            node = "left"
        if own is None:
            table.add_row(str(number), stand(state), f"{node}, not joined", "–", "–", "–", "–")
            continue
        rewards, slashed, last = money_of(visit.ledger, visit.account, number, state)
        table.add_row(str(number), stand(state), node, tokens(own[1].bond), tokens(rewards), tokens(slashed), last)
    console.print(table)
    stake = visit.ledger.staking.stake_of(visit.account, Role.HOSPITAL)
    console.print(
        f"stake {tokens(stake.active)}, of which free {tokens(stake.free)}, unbonding {tokens(stake.unbonding)}"
    )
