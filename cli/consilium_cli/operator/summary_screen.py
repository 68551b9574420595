"""`consilium operator statistics` on the screen: a table of columns, and the answers' counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from consilium_core.visible_text import shown
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from consilium_chain.tasks.summary_counts import SummaryColumn
    from consilium_operators.summary import TaskSummary

MOST_SHOWN = 8  # counts of a column's codes


def show(console: Console, found: TaskSummary) -> None:
    noise = "exact counts, without noise"
    if found.deviation:
        noise = f"each count has noise with a standard deviation of {found.deviation:.1f} rows"
    heading = f"{found.name}, round 0: {found.rows:,} rows of {found.hospitals} hospitals; {noise}. Its checks hold."
    console.print(Text(shown(heading)), highlight=False)
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("column", overflow="fold")
    for title in ("values", "missing", "mean", "quartiles"):
        table.add_column(title, justify="right")
    table.add_column("public range, or counts", overflow="fold")
    for column in found.columns:
        table.add_row(*_cells(column))
    console.print(table, highlight=False)
    noise = " Noise comes on top." if found.deviation else ""
    console.print(f"Mean and quartiles follow from the ranges: ± half a range, and ± a range (in brackets).{noise}")


def _cells(column: SummaryColumn) -> list[Text]:
    quartiles = "–" if column.quartiles is None else ", ".join(f"{one:.4g}" for one in column.quartiles)
    cells = [
        f"{column.name}{' (answer)' if column.is_answer else ''}",
        "–" if column.values is None else f"{column.values:,}",
        "–" if column.missing is None else f"{column.missing:,}",
        "–" if column.mean is None else f"{column.mean:.4g}",
        quartiles if column.quartiles is None else f"{quartiles} (±{column.width:.3g})",
        f"{column.edges[0]:g} to {column.edges[-1]:g}" if column.edges else _counts(column),
    ]
    return [Text(shown(cell)) for cell in cells]


def _counts(column: SummaryColumn) -> str:
    counts = [f"{name} {count:,}" for name, count in column.counts]
    return ", ".join(counts[:MOST_SHOWN]) + (f" and {len(counts) - MOST_SHOWN} more" if counts[MOST_SHOWN:] else "")
