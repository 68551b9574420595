"""The commands of `consilium server`, parsed before anything heavy is imported."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import consilium
import typer

if TYPE_CHECKING:
    from consilium_server.jobs.aggregators import AggregatorMachine
    from consilium_server.jobs.store import LastRun

app = typer.Typer(
    help="The aggregator, the sponsor of hospitals' gas, the index, the HTTP API, and jobs for all of them.",
    no_args_is_help=True,
)
ConfigOption = Annotated[Path, typer.Option("--config", help="the node's configuration, a TOML file")]


@app.command("run")
def run_aggregator(config: ConfigOption) -> None:
    """Starts a SuperLink, and runs the rounds of the configured task until the task ends."""
    consilium.run_server("aggregator", config)


@app.command("sponsor")
def run_sponsor(config: ConfigOption) -> None:
    """Pays the gas of the configured task's hospitals, which then need no ether. Runs until it is stopped."""
    consilium.run_server("sponsor", config)


@app.command("index")
def run_index(config: ConfigOption) -> None:
    """Copies the chain's events into the database. Runs until it is stopped."""
    consilium.run_server("index", config)


@app.command("reindex")
def reindex(
    config: ConfigOption,
    replace: Annotated[bool, typer.Option("--replace", help="replace all rows by the rebuilt ones")] = False,
) -> None:
    """Builds the database's tables again from the chain and the artifacts, and compares them row by row.

    The configuration may be an indexer's or a worker's.
    """
    consilium.reindex(config, replace=replace)


@app.command("worker")
def run_worker(config: ConfigOption) -> None:
    """Indexes, ends overdue phases, runs the account's aggregators and copies artifacts. Runs until it is stopped."""
    consilium.run_server("worker", config)


@app.command("jobs")
def show_jobs(
    config: Annotated[Path, typer.Option("--config", help="the worker's configuration, a TOML file")],
    everything: Annotated[bool, typer.Option("--all", help="show also the rounds whose artifacts were copied")] = False,
) -> None:
    """Shows each job's last run, and its error if it failed: a table on a terminal, otherwise JSON lines."""
    from rich.console import Console

    jobs, now, console = consilium.server_jobs(config), time.time(), Console(highlight=False)
    shown = [one for one in jobs if everything or not (one.job == "pin" and one.state == "done")]
    if not console.is_terminal:
        for one in shown:
            typer.echo(json.dumps(asdict(one)))
        return
    console.print(_table(shown, now) if shown else "no job has started yet: check that a worker runs")
    if hidden := len(jobs) - len(shown):
        console.print(f"hidden, because all their artifacts are copied: {hidden} rounds (--all shows them)")


def _table(jobs: list[LastRun], now: float) -> object:
    from consilium_core.visible_text import shown
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for name in ("job", "subject", "state", "last start", "last success", "failures", "next try", "error"):
        table.add_column(name, overflow="fold")
    for one in jobs:
        colour = {"failed": "red", "lost": "red", "done": "green"}.get(one.state, "yellow")
        table.add_row(
            one.job, one.subject or "–", f"[{colour}]{one.state}[/{colour}]", _ago(one.begun_at, now),
            _ago(one.succeeded_at, now), str(one.failures) if one.failures else "–",
            f"in {max(0.0, one.next_try_at - now):.0f} s" if one.next_try_at is not None else "–",
            escape(shown(f"{one.error}: {one.why}")) if one.error else "",
        )  # fmt: skip
    return table


def _ago(at: float | None, now: float) -> str:
    return "never" if at is None else f"{max(0.0, now - at):.0f} s ago"


@app.command("aggregators")
def show_aggregators(
    config: Annotated[Path, typer.Option("--config", help="the worker's configuration, a TOML file")],
) -> None:
    """Shows which machine runs the aggregator of each task: a table on a terminal, otherwise JSON lines."""
    from rich.console import Console

    found, console = consilium.server_aggregators(config), Console(highlight=False)
    if not console.is_terminal:
        for one in found:
            typer.echo(json.dumps(asdict(one)))
        return
    console.print(_machines(found) if found else "no task of this account has begun: check `consilium server jobs`")


def _machines(found: list[AggregatorMachine]) -> object:
    from consilium_core.visible_text import shown
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for name in ("task", "machine", "since", "SuperLink's port", "address behind the proxy"):
        table.add_column(name, overflow="fold")
    for one in found:
        machine = "[red]none[/red]" if one.machine is None else escape(shown(one.machine))
        since = "–" if one.seconds is None else f"{one.seconds:.0f} s ago"
        here = " (this one)" if one.is_here else ""
        port = str(one.superlink_port)
        table.add_row(str(one.task), f"{machine}{here}", since, port, f"SUPERLINK_NAME:443/{port}")
    return table


@app.command("api")
def run_api(config: ConfigOption) -> None:
    """Serves the index over HTTP, and stores task files of signed-in operators. Runs until it is stopped."""
    consilium.run_server("api", config)


@app.command("openapi")
def print_openapi() -> None:
    """Prints the API's description (OpenAPI 3.1), from which clients can be generated."""
    typer.echo(json.dumps(consilium.openapi()))
