"""A grid as a picture, as one HTML page, as JSON, and in words."""

from __future__ import annotations

import html
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from consilium_chain.tasks.chain_terms import ChainTerms
from consilium_chain.tasks.questions import TITLES
from consilium_core.units import ether

from consilium_lab.pages import (
    AXES_SHARE,
    BLUE,
    LABEL_INCHES,
    MUTED,
    figure_of,
    label_ends,
    percent,
    spread,
    svg,
    table_of,
    tiles_of,
    write_document,
)
from consilium_lab.simulation.grid import GWEI, NEAR, Grid, GridRow
from consilium_lab.simulation.results import figured, reference_tiles, references_as_json

SUFFIXES = {"hospitals": " hospitals", "dropouts": " absent", "epochs": " epochs", "bits": " bits"}
SITES_IN_WORDS = (
    "With fewer hospitals, those take part that are evenly spaced among all in the order of their rows, the largest"
    " first. The rows of the others are not used, and the task admits no more hospitals."
)
DROPOUTS_IN_WORDS = (
    "Absent: in each round, each hospital misses the commits with this chance, and earns nothing in it. A cohort with"
    " too few commits has no sum. A round without a sum is void, and those that missed it sit out the next. Forms"
    " are compared at equal absences; the proposal is made at the most."
)


def picture(grid: Grid) -> Any:
    """A matplotlib figure: the metric by bytes a round, the frontier as a line, and the references as level lines. Bars
    are standard errors.
    """
    from matplotlib.ticker import LogLocator, NullLocator

    metric, (figure, axes) = grid.metric, figure_of(9, 4.6)
    for dropouts in sorted({row.dropouts for row in grid.rows}):
        line = [row for row in grid.rows if row.is_frontier and row.dropouts == dropouts]
        line.sort(key=lambda row: row.bytes_a_round)
        axes.plot([row.bytes_a_round for row in line], [row.metrics[metric] for row in line], color=BLUE, linewidth=1.5)
    for row in grid.rows:
        point, colour = (row.bytes_a_round, row.metrics[metric]), BLUE if row.is_frontier else MUTED
        axes.errorbar(*point, yerr=row.errors.get(metric), fmt="o", color=colour, markersize=6, capsize=3)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("bytes of a hospital's update in a round, in lanes", color=MUTED)
    axes.set_ylabel(f"{metric} on held-out rows", color=MUTED)
    lines = [one for one in grid.references.lines(metric) if math.isfinite(one[0])]
    for value, _, colour, dashes in lines:
        axes.axhline(value, color=colour, linestyle=dashes, linewidth=1.4)
    _label_points(axes, grid.rows, metric)
    label_ends(axes, [(value, f"{name} {percent(value)}", colour) for value, name, colour, _ in lines])
    return figure


def _label_points(axes: Any, rows: Sequence[GridRow], metric: str) -> None:
    """Names each point, of those that would stand on one another only the first. A column's names are apart."""
    low, high = axes.get_ylim()
    gap = (high - low) * LABEL_INCHES / (AXES_SHARE * axes.figure.get_figheight())
    columns: dict[int, dict[float, list[GridRow]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if math.isfinite(row.metrics[metric]):
            columns[row.bytes_a_round][round(row.metrics[metric], 3)].append(row)
    middle = math.sqrt(math.prod(axes.get_xlim()))
    for size, column in columns.items():
        there = sorted(column.items())
        if len(there) * gap > high - low:
            there = [one for one in there if one[1][0].is_frontier]
        heights = spread([value for value, _ in there], gap, low + gap / 2, high - gap / 2)
        side, towards = ("right", -8) if size > middle else ("left", 8)
        for height, (_, same) in zip(heights, there, strict=True):
            more = f" and {len(same) - 1} more" if len(same) > 1 else ""
            axes.annotate(
                ", ".join(f"{name}{SUFFIXES.get(axis, '')}" for axis, name in same[0].form.items()) + more,
                (size, height), xytext=(towards, 0), textcoords="offset points", fontsize=8, ha=side, va="center",
                color=BLUE if same[0].is_frontier else MUTED,
            )  # fmt: skip


def write_page(path: Path, grid: Grid) -> None:
    """One HTML file that loads nothing."""
    chosen, metric, axes = grid.proposed, grid.metric, list(grid.rows[0].form)
    columns = (metric, "bytes", "blobs", "gas of all", "ether of all", "minutes", "epsilon", "cohorts accepted")
    head = "".join(f"<th>{axis}" for axis in axes) + "".join(f"<th class=n>{title}" for title in columns)
    rows = [_line(row, metric) for row in grid.rows]
    rows += [
        f"<td colspan={len(axes)}>{name}<td class=n>{value:.3f}<td colspan={len(columns)}>"
        for value, name, _, _ in grid.references.lines(metric)
    ]
    tiles = [
        (figured(metric, chosen.metrics[metric]), f"{TITLES[metric]}, proposed form"),
        *reference_tiles(grid.references, metric),
    ]
    parts = [
        "<h1>One task in several forms</h1>",
        "<p class=sub>Each was simulated on the same rows. Bytes and blobs are a hospital's in a round.</p>",
        tiles_of(tiles), svg(picture(grid)), table_of(f"{head}<th>frontier", rows),
        *(f"<p>{html.escape(words)}</p>" for words in notes(grid)),
        f"<h2>Proposed: {html.escape(in_words(chosen))}</h2>",
        f"<p class=note>The fewest bytes within {NEAR:g} of the best {metric}.</p>",
        f"<pre class=wrap>{html.escape(chosen.task_file)}</pre>",
    ]  # fmt: skip
    write_document(path, "Consilium: one task in several forms", parts)


def _line(row: GridRow, metric: str) -> str:
    """A row's cells."""
    cells = (
        _score(row, metric), f"{row.bytes_a_round:,}", str(row.blobs_a_round), f"{row.gas / 1e6:,.1f} M",
        ether(row.wei), f"{row.seconds / 60:,.0f}", "none" if row.epsilon is None else f"{row.epsilon:g}",
        f"{row.accepted:.0%}",
    )  # fmt: skip
    return (
        "".join(f"<td>{html.escape(name)}" for name in row.form.values())
        + "".join(f"<td class=n>{cell}" for cell in cells)
        + f"<td>{'yes' if row.is_frontier else ''}"
    )


def _score(row: GridRow, metric: str) -> str:
    """A metric, with its standard error if there is one."""
    error = row.errors.get(metric)
    return f"{row.metrics[metric]:.3f}" + ("" if error is None else f"\u00a0±\u00a0{error:.3f}")


def notes(grid: Grid) -> list[str]:
    """The meaning of the figures, in sentences."""
    said = [prices_in_words(grid.terms)]
    if grid.seeds > 1:
        said.append(
            f"Each form was played with {grid.seeds} seeds: of cohorts, training, decoys and absences, on the same"
            " split of the rows. A figure is their mean, and ± its standard error. Frontier and proposal go by means."
        )
    axes = grid.rows[0].form
    said += [SITES_IN_WORDS] if "hospitals" in axes else []
    said += [DROPOUTS_IN_WORDS] if any(row.dropouts for row in grid.rows) else []
    said.append("The references learn by the task as it is given, without noise, from the rows of all hospitals.")
    return said


def prices_in_words(terms: ChainTerms) -> str:
    return (
        f"Gas, ether and minutes: of all parties, for the whole task, at most about; at {terms.gas_price / GWEI:g} gwei"
        f" a gas, {terms.blob_gas_price / GWEI:g} gwei a blob gas, {terms.block_seconds:g} s a block, and"
        f" {terms.beacon_seconds:g} s to a random value. Minutes: joining takes its whole window; training, uploading"
        " and judging take half of theirs."
    )


def as_json(grid: Grid) -> dict[str, Any]:
    """Ready for JSON. `wei`, `gas_price`, `blob_gas_price` as text; null for a metric that is not known."""
    return {
        "metric": grid.metric,
        "seeds": grid.seeds,
        "prices": {
            "gas_price": str(grid.terms.gas_price), "blob_gas_price": str(grid.terms.blob_gas_price),
            "block_seconds": grid.terms.block_seconds, "beacon_seconds": grid.terms.beacon_seconds,
        },
        "references": references_as_json(grid.references),
        "rows": [
            {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
            for row in ({**record(one, grid), "wei": str(one.wei)} for one in grid.rows)
        ],
    }  # fmt: skip


def record(row: GridRow, grid: Grid) -> dict[str, Any]:
    """A row, flat. `eth` in ether, `minutes`. With several seeds each metric has its standard error beside it."""
    shown = dict.fromkeys((*grid.shown, grid.metric))
    errors = {f"{name}_error": row.errors[name] for name in shown if name in row.errors}
    return {
        **row.form, **{name: row.metrics[name] for name in shown}, **errors, "bytes": row.bytes_a_round,
        "blobs": row.blobs_a_round, "chain_blobs": row.chain_blobs, "gas": row.gas, "eth": row.wei / 10**18,
        "minutes": row.seconds / 60, "epsilon": row.epsilon, "accepted": row.accepted, "frontier": row.is_frontier,
    }  # fmt: skip


def in_words(row: GridRow) -> str:
    return ", ".join(f"{axis} {name}" for axis, name in row.form.items())
