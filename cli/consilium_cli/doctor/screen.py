"""The screen of findings."""

from __future__ import annotations

from collections.abc import Sequence

from consilium.machine import Finding, Level
from rich.console import Console
from rich.table import Table
from rich.text import Text

COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.FAULT: "bold red"}


def show_findings(findings: Sequence[Finding]) -> None:
    """A table: level, check, and below each finding its remedy."""
    table = Table.grid(padding=(0, 2))
    for one in findings:
        says = Text(one.says, overflow="fold")
        if one.remedy:
            says.append(f"\n→ {one.remedy}", style=COLOURS[one.level])
        table.add_row(Text(one.level, COLOURS[one.level]), one.check, says)
    Console(highlight=False).print(table)
