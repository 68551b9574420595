"""`consilium server jobs`: how the server's jobs are going."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from consilium_server.database.tables import JobRow


def jobs_command(
    config: Annotated[Path, typer.Option("--config", help="the worker's configuration, a TOML file")],
    everything: Annotated[bool, typer.Option("--all", help="also the rounds whose artifacts were copied")] = False,
) -> None:
    """Says how each job last went, and what keeps one from going on. A line of JSON each where nobody looks on."""
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
    console.print(_table(shown, now) if shown else "no job has been begun: see that a worker runs")
    if hidden := len(rows) - len(shown):
        console.print(f"of {hidden} rounds all artifacts were copied (--all shows them)")


def _table(rows: list[JobRow], now: float) -> object:
    from consilium_core.visible_text import shown
    from consilium_server.jobs.store import state_of
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for name in ("job", "of", "state", "last begun", "last done", "failures", "next try", "why"):
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
