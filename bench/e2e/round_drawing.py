"""The picture of a private round beside plain Flower and SecAgg+, from `bench/e2e/round.py`'s brief result."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from bench.results_store import figure, write_figure

SHADES = {
    "training": "#c9b458",
    "hospital's other work": "#2f6f9f",
    "server": "#8a8f98",
    "chain, cell proofs": "#d9d9d9",
}
SIDES = {"client": "hospital's other work", "server": "server"}  # and their shades
MOST_WIDE = 5  # sides of a size with texts in the usual letters
RATIOS = {"flower": "plain", "secaggplus": "SecAgg+"}


def plot(result: dict[str, Any], folder: Path) -> None:
    """From the brief result, a row of axes for each size: all sides, and what the quickest private side's seconds went
    into.
    """
    sizes = [
        list(rows) for _, rows in itertools.groupby(result["rows"], key=lambda row: (row["clients"], row["params"]))
    ]
    drawn, axes = figure(14, 4.6 * len(sizes), columns=2, rows=len(sizes))
    for index, rows in enumerate(sizes):
        plot_sides(axes[2 * index], rows)
        plot_parts(axes[2 * index + 1], min(rows[2:], key=lambda row: row["round_s"]))
    write_figure(folder, "round", drawn)


def plot_sides(axes: Axes, rows: Sequence[dict[str, Any]]) -> None:
    small = 9 if len(rows) <= MOST_WIDE else 7
    for index, row in enumerate(rows):
        helpers_s = sum(row.get("helpers_cpu_s", {}).values())
        shares = (row["train_cpu_s"], row["client_cpu_s"] - row["train_cpu_s"], row["server_cpu_s"], helpers_s)
        bottom = 0.0
        for (name, colour), seconds in zip(SHADES.items(), shares, strict=True):
            axes.bar(index, seconds, bottom=bottom, color=colour, width=0.6, label=None if index else name)
            bottom += seconds
        ratios = [f"{row[key]:.2g} × {of}" for other, of in RATIOS.items() if (key := f"cpu_ratio_to_{other}") in row]
        axes.text(
            index, bottom, "\n".join([f"{row['cpu_s']:.2g} s", *ratios]), ha="center", va="bottom", fontsize=small
        )
    axes.set_xticks(range(len(rows)), [label_of(row) for row in rows], fontsize=8)
    axes.set_ylim(0, 1.5 * max(row["cpu_s"] for row in rows))
    axes.set_ylabel("CPU seconds a round, each hospital on its own machine")
    axes.set_title(f"{rows[0]['clients']} hospitals, {rows[0]['params']:,} parameters", loc="left")
    axes.legend(loc="upper left", frameon=False, fontsize=9, ncols=2)


def plot_parts(axes: Axes, row: dict[str, Any]) -> None:
    parts = sorted((seconds, name, side) for side, told in row["longest_s"].items() for name, seconds in told.items())
    axes.barh(range(len(parts)), [seconds for seconds, *_ in parts], color=[SHADES[SIDES[side]] for *_, side in parts])
    axes.set_yticks(range(len(parts)), [name for _, name, _ in parts], fontsize=9)
    axes.set_xlabel("seconds: hospital's by CPU, server's by the clock")
    axes.set_title(f"{label_of(row)}: what takes longest".replace("\n", " "), loc="left")


def label_of(row: dict[str, Any]) -> str:
    if row["name"] != "private":
        return {"plain": "plain Flower", "secaggplus": "SecAgg+"}[row["name"]]
    codec = row.get("codec", "dense")
    blobs = "1 blob" if row["blobs"] == 1 else f"{row['blobs']} blobs"
    return f"{'private' if codec == 'dense' else codec}\nby {row['publication']}\n{row['bits']} bits\n{blobs}"
