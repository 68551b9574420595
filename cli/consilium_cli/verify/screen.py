"""A report on the screen: what fails first, then what holds, what was derived, and the two lists."""

from __future__ import annotations

from collections.abc import Iterable

from consilium_verify.report import Report, Result
from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDTH = 100
STYLES = {Result.HOLDS: "green", Result.FAILS: "bold red", Result.UNCHECKED: "yellow"}


def show(report: Report) -> None:
    console = Console(highlight=False, markup=False)
    console.width = min(console.width, WIDTH)
    subject = report.subject
    console.print(f"Task {subject.task}, round {subject.round} of {subject.rounds}: {subject.outcome}", style="bold")
    console.print(f"chain {subject.chain_id} at {subject.node}\ncontract {subject.contract}")
    table = Table.grid(padding=(0, 2), pad_edge=False)
    for check in report.failed_first:
        detail = Text(check.detail, overflow="fold")
        table.add_row("", Text(check.result, STYLES[check.result]), check.name, detail)
    console.print("\nChecks", style="bold")
    console.print(table)
    if report.derived:
        console.print("\nDerived, to compare with others: SHA-256 of the values' bytes, little-endian", style="bold")
        for one in report.derived:
            console.print(f"  {one.what}, {one.values} × {one.type}\n  {one.sha256}")
    _list(console, "Proven", report.proven)
    _list(console, "Not proven", report.not_proven)
    failed = [check.name for check in report.checks if check.result is Result.FAILS]
    if failed:
        console.print(f"\nFAILS: {', '.join(failed)}", style="bold red")
    else:
        console.print("\nEverything that was checked holds", style="bold green")


def _list(console: Console, title: str, lines: Iterable[str]) -> None:
    console.print(f"\n{title}", style="bold")
    grid = Table.grid(padding=(0, 1))
    for line in lines:
        grid.add_row("  ·", Text(line))
    console.print(grid)
