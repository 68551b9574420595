"""The commands of `consilium server`, parsed before anything heavy is imported."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from consilium_server.database.tables import JobRow

app = typer.Typer(
    help="The aggregator, the sponsor of hospitals' gas, the index, the HTTP API, and jobs for all of them.",
    no_args_is_help=True,
)
ConfigOption = Annotated[Path, typer.Option("--config", help="the node's configuration, a TOML file")]


@app.command("run")
def run_aggregator(config: ConfigOption) -> None:
    """Starts a SuperLink, and runs the rounds of the configured task until the task ends."""
    from consilium_chain.settings import read_settings
    from consilium_server.aggregator.node import Aggregator
    from consilium_server.config import AggregatorSettings

    Aggregator(read_settings(config, AggregatorSettings)).run()


@app.command("sponsor")
def run_sponsor(config: ConfigOption) -> None:
    """Pays the gas of the configured task's hospitals, which then need no ether. Runs until it is stopped."""
    from consilium_chain.settings import read_settings
    from consilium_server.config import SponsorSettings
    from consilium_server.sponsor.service import run

    run(read_settings(config, SponsorSettings))


@app.command("index")
def run_index(config: ConfigOption) -> None:
    """Copies the chain's events into the database. Runs until it is stopped."""
    from consilium_chain.settings import read_settings
    from consilium_server.config import IndexerSettings
    from consilium_server.index.indexer import index

    index(read_settings(config, IndexerSettings))


@app.command("reindex")
def reindex(
    config: ConfigOption,
    replace: Annotated[bool, typer.Option("--replace", help="replace all rows by the rebuilt ones")] = False,
) -> None:
    """Builds the database's tables again from the chain and the artifacts, and compares them row by row.

    The configuration may be an indexer's or a worker's.
    """
    from consilium_chain.settings import read_settings
    from consilium_server.config import WorkerSettings
    from consilium_server.index.rebuilding import compare

    compare(read_settings(config, WorkerSettings).indexer, replace)


@app.command("worker")
def run_worker(config: ConfigOption) -> None:
    """Indexes, ends overdue phases, runs the account's aggregators and copies artifacts. Runs until it is stopped."""
    from consilium_chain.settings import read_settings
    from consilium_server.config import WorkerSettings
    from consilium_server.jobs.worker import work

    work(read_settings(config, WorkerSettings))


@app.command("jobs")
def show_jobs(
    config: Annotated[Path, typer.Option("--config", help="the worker's configuration, a TOML file")],
    everything: Annotated[bool, typer.Option("--all", help="show also the rounds whose artifacts were copied")] = False,
) -> None:
    """Shows each job's last run, and its error if it failed: a table on a terminal, otherwise JSON lines."""
    from consilium_chain.settings import read_settings
    from consilium_server.config import WorkerSettings
    from consilium_server.database.engine import open_database
    from consilium_server.jobs.store import all_jobs, as_line
    from rich.console import Console

    database = open_database(read_settings(config, WorkerSettings).url)
    rows, now, console = all_jobs(database), time.time(), Console(highlight=False)
    database.dispose()
    shown = [row for row in rows if everything or not (row.job == "pin" and row.outcome == "done")]
    if not console.is_terminal:
        for row in shown:
            typer.echo(json.dumps(as_line(row, now)))
        return
    console.print(_table(shown, now) if shown else "no job has started yet: check that a worker runs")
    if hidden := len(rows) - len(shown):
        console.print(f"hidden, because all their artifacts are copied: {hidden} rounds (--all shows them)")


def _table(rows: list[JobRow], now: float) -> object:
    from consilium_core.visible_text import shown
    from consilium_server.jobs.store import state_of
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for name in ("job", "subject", "state", "last start", "last success", "failures", "next try", "error"):
        table.add_column(name, overflow="fold")
    for row in rows:
        state = state_of(row, now)
        colour = {"failed": "red", "lost": "red", "done": "green"}.get(state, "yellow")
        table.add_row(
            row.job, row.subject or "–", f"[{colour}]{state}[/{colour}]", _ago(row.begun_at, now),
            _ago(row.succeeded_at, now), str(row.failures) if row.failures else "–",
            f"in {row.not_before - now:.0f} s" if row.not_before > now else "–",
            escape(shown(f"{row.error}: {row.why}")) if row.error else "",
        )  # fmt: skip
    return table


def _ago(at: float | None, now: float) -> str:
    return "never" if at is None else f"{max(0.0, now - at):.0f} s ago"


@app.command("api")
def run_api(config: ConfigOption) -> None:
    """Serves the index over HTTP, and stores task files of signed-in operators. Runs until it is stopped."""
    from consilium_chain.settings import read_settings
    from consilium_server.api.app import run
    from consilium_server.config import ApiSettings

    run(read_settings(config, ApiSettings))


@app.command("openapi")
def print_openapi() -> None:
    """Prints the API's description (OpenAPI 3.1), from which clients can be generated."""
    from consilium_server.api.app import document

    typer.echo(json.dumps(document()))
