"""`consilium simulate … --grid`: a task in several forms. Loads nothing heavy at first."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import consilium
from consilium_core.units import WEI_PER_GWEI, ether

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Wanted:
    """A grid as a command line asks for it. `settings`: arguments of `consilium.simulate_grid`."""

    axes: list[str]
    settings: dict[str, Any]
    output: Path | None
    page: Path | None
    proposed: Path | None

    @classmethod
    def of(
        cls, grid: str | None, dropouts: float, settings: Mapping[str, float | None], output: Path | None,
        page: Path | None, proposed: Path | None,
    ) -> Wanted | None:  # fmt: skip
        """None without a grid. `settings`: by option; prices in gwei. Raises BadParameter."""
        given = {name: value for name, value in settings.items() if value is not None}
        if grid is None:
            if alone := [*given, *(["proposed"] if proposed is not None else [])]:
                raise click.BadParameter("belongs to --grid: add it", param_hint=f"--{alone[0].replace('_', '-')}")
            return None
        axes = [axis.strip() for axis in grid.split(",")]
        if dropouts and "dropouts" in axes:
            raise click.BadParameter("--grid varies it: leave out one of both", param_hint="--dropouts")
        for name, value in given.items():
            if name.endswith("gas_price") and math.isfinite(value):
                given[name] = round(value * WEI_PER_GWEI)
        return cls(axes, given, output, page, proposed)


def play_grid(console: Console, task: consilium.Task, where: dict[str, Any], wanted: Wanted) -> None:
    """Simulates the forms, and shows and writes what came of them."""
    done = 0
    with console.status("the first form") as status:

        def on_row(_: object, of: int) -> None:
            nonlocal done
            done += 1
            status.update(f"{done} of {of} forms" if done < of else "reference trainings")

        found = consilium.simulate_grid(task, wanted.axes, **where, **wanted.settings, on_row=on_row)
    _show(console, found)
    written = {
        wanted.output: json.dumps(found.as_json(), indent=1, allow_nan=False) + "\n",
        wanted.proposed: found.proposed.task_file,
    }
    for path, text in written.items():
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    if wanted.page is not None:
        wanted.page.parent.mkdir(parents=True, exist_ok=True)
        found.write_page(wanted.page)
    for path in (wanted.output, wanted.page, wanted.proposed):
        if path is not None:
            console.print(f"written: {path}", highlight=False, soft_wrap=True)


def _show(console: Console, found: consilium.GridResult) -> None:
    from consilium.metrics import TITLES
    from rich import box
    from rich.table import Table

    several = found.details.seeds > 1
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(", ".join(found.rows[0].form))
    for title in (
        *((found.metric, "±") if several else (TITLES[name] for name in found.details.shown[:2])),
        "bytes",
        "blobs",
        "gas",
        "ether",
        "min",
    ):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("")
    for row in found.rows:
        shown = [row.metrics[name] for name in found.details.shown[:2]]
        if several:
            shown = [row.metrics[found.metric], row.errors[found.metric]]
        marks = ["proposed"] if row is found.proposed else ["frontier"] if row.is_frontier else []
        marks += [] if row.accepted == 1 else [f"{row.accepted:.0%} accepted"]
        costs = (str(row.blobs_a_round), f"{row.gas / 1e6:,.1f} M", ether(row.wei), f"{row.seconds / 60:,.0f}")
        values = (*(f"{value:.3f}" for value in shown), f"{row.bytes_a_round:,}")
        table.add_row(", ".join(row.form.values()), *values, *costs, ", ".join(marks))
    console.print(table)
    beside = "; ".join(f"{name} {metrics[found.metric]:.3f}" for name, metrics in found.beside.items())
    console.print(f"beside, {found.metric}: {beside}", highlight=False)
    console.print(f"bytes and blobs: of a hospital in a round. Proposed: the fewest bytes near the best"
                  f" {found.metric}.", highlight=False)  # fmt: skip
    for words in found.notes:
        console.print(words, highlight=False)
