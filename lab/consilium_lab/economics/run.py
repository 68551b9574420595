"""The simulation from measurement to files."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from consilium_lab.economics.bank import Bank
from consilium_lab.economics.findings import break_evens, captures, crossings, honest_below
from consilium_lab.economics.measure import TASKS, measure
from consilium_lab.economics.options import EconomicsOptions
from consilium_lab.economics.report import brief
from consilium_lab.economics.rules import RECOMMENDED, Unpaid
from consilium_lab.economics.scenarios import VOTERS_TERMS, OperatorRow, Row, Setting, rows_of
from consilium_lab.result_files import laid_out

SHOWN_SHARE = 0.2


def run_economics(options: EconomicsOptions) -> None:
    """Raises LabError."""
    started = time.monotonic()
    console = Console()
    columns = (TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    rows: list[Row] = []
    with Progress(*columns, console=console, transient=True) as progress:
        measuring = progress.add_task("measuring scores of real candidates", total=TASKS)
        bank = measure(options.seed, progress=lambda done: progress.update(measuring, completed=done))
        setting = Setting(bank, options.rounds, options.seed)
        playing = progress.add_task("playing", total=len(options.scenarios))
        for scenario in options.scenarios:
            progress.update(playing, description=f"playing {scenario}")
            rows.extend(rows_of(scenario, setting))
            progress.advance(playing)
    report = as_report(options, setting, rows)
    raw = options.output.parent / "raw" / options.output.name
    raw.parent.mkdir(parents=True, exist_ok=True)
    raw.write_text(as_text(report), encoding="utf-8")
    options.output.write_text(f"{laid_out(brief(report, rows))}\n", encoding="utf-8")
    written = [options.output, raw]
    if options.plots is not None:
        from consilium_lab.economics.plots import draw_plots  # loads matplotlib

        written += draw_plots(rows, report["crossings"], options.plots)
    console.print(table(rows))
    console.print(f"{time.monotonic() - started:.1f} s. {len(rows)} rows; wrote {', '.join(map(str, written))}")


def as_report(options: EconomicsOptions, setting: Setting, rows: Sequence[Row]) -> dict[str, Any]:
    """The whole result, ready for JSON: a function of rounds, seed and scenarios alone."""
    return {
        "what": "mean payoff per round of honest and dishonest players, in tokens; see docs/economics.md",
        "rounds": options.rounds,
        "seed": options.seed,
        "terms": {name: asdict(rules) for name, rules in VOTERS_TERMS.items()},
        "measured": measured(setting.bank),
        "crossings": crossings(rows, setting),
        "break_evens": break_evens(rows),
        "captures": captures(),
        "honest_below": honest_below(setting),
        "rows": [row.as_json() for row in rows],
    }


def as_text(report: dict[str, Any]) -> str:
    """JSON with one line per row, so that a change to one shows as one."""
    head = json.dumps({name: value for name, value in report.items() if name != "rows"}, indent=1)
    rows = ",\n".join(f"  {json.dumps(row)}" for row in report["rows"])
    return f'{head.removesuffix("}").rstrip()},\n "rows": [\n{rows}\n ]\n}}\n'


def measured(bank: Bank) -> dict[str, Any]:
    return {
        "what": "federated averaging on the Wisconsin breast cancer data, cohorts of four, scores in nats of log loss",
        "tasks": bank.tasks,
        "rows_per_voter": bank.rows_per_voter,
        "rounds": bank.summary(RECOMMENDED.cohort_size),
    }


def table(rows: Sequence[Row]) -> Table:
    """One line per scenario and terms: the usual cohorts, whole tasks, and a fifth of all deviating if it can be."""
    shown = Table("scenario", "terms", "honest", "deviant", "if honest", "gain", "per", box=None, pad_edge=False)
    usual: dict[tuple[str, str], Row] = {}
    for row in rows:
        if isinstance(row, OperatorRow) and row.money != Unpaid.BURNT:
            continue
        key = (row.scenario, row.terms)
        closer = key not in usual or abs(row.share - SHOWN_SHARE) < abs(usual[key].share - SHOWN_SHARE)
        if closer and row.terms in VOTERS_TERMS and row.cohort_size == RECOMMENDED.cohort_size and not row.late:
            usual[key] = row
    for row in usual.values():
        amounts = (row.honest_mean, row.deviant_mean, row.if_honest, row.gain)
        shown.add_row(row.scenario, row.terms, *(f"{amount:.2f}" for amount in amounts), row.unit)
    return shown
