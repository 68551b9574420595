"""Figures and table of bench/e2e/network.py and bench/e2e/thousand.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from bench.e2e.network_counting import ROUND
from bench.results_store import COLOURS, figure, write_figure

SHADES = {
    "homes and tokens": "#eeeeee",
    **COLOURS,
    "staking": "#c3c9d4",
    "delegating": "#b9c7a0",
    "disclosing": "#7a4b8c",
    "settling": "#4b5d8c",
    "leaving": "#a3a3a3",
    "claiming": "#6d8f4e",
    "proposing": "#8a8f98",
}
STAGES = {
    "homes, tokens and tasks": "homes and tokens",
    "staking": "staking",
    "hospitals join": "joining",
    "voters join": "joining",
    "delegating": "delegating",
    "leaving": "leaving",
    "claiming": "claiming",
}


def draw(result: dict[str, Any], folder: Path, name: str) -> None:
    """Above the tasks' phases by the clock, below gas by party."""
    drawn, (above, below) = figure(11, 7.5, rows=2)
    size = result["size"]
    tasks = sorted({span["task"] for span in result["phases"]})
    shown: dict[str, Any] = {}
    for stage in result["stages"]:
        if stage["name"] in STAGES:  # of all tasks at once
            _bar(above, stage, STAGES[stage["name"]], range(len(tasks)), shown)
    for span in result["phases"]:
        _bar(above, span, span["phase"], [tasks.index(span["task"])], shown)
    for round_, called in ((0, "statistics round"), (ROUND, "training round")):
        spans = [span for span in result["phases"] if span["round"] == round_ and span["task"] == tasks[0]]
        above.text(spans[0]["from_s"], -0.4, called, va="bottom", fontsize=9)
    above.set_yticks(range(len(tasks)), [f"task {task}" for task in tasks])
    above.invert_yaxis()
    above.set_xlabel("seconds; white: the engine starts, and ends")
    above.legend(shown.values(), shown, ncols=7, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    above.set_title(
        f"{size['hospitals']:,} hospitals, {size['voters']:,} voters, {size['delegators']:,} delegators in"
        f" {_counted(size['tasks'], 'task')} of {_counted(result['models'], 'model')}: one full round",
        loc="left",
        pad=14,
    )
    roles = [
        role for role in ("hospital", "voter", "delegator", "aggregator") if role in result["gas_by_role_and_phase"]
    ]
    legend: dict[str, Any] = {}
    for position, role in enumerate(roles):
        left = 0.0
        for kind, gas in result["gas_by_role_and_phase"][role].items():
            bar = below.barh(position, gas / 1e6, left=left, color=SHADES[kind], height=0.6)
            legend.setdefault(kind, bar)
            left += gas / 1e6
        below.text(left, position, f"  {result['gas_of_one'][role]:,} each", va="center", fontsize=9)
    below.set_yticks(range(len(roles)), [f"{role}s" for role in roles])
    below.invert_yaxis()
    below.margins(x=0.12)
    below.set_xlabel("million gas of all of a role")
    below.legend(legend.values(), legend, ncols=7, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    below.set_title(f"{result['transactions']:,} transactions, {result['gas_all'] / 1e6:,.0f} million gas", loc="left")
    write_figure(folder, name, drawn)


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' if number > 1 else ''}"


def _bar(axes: Axes, span: dict[str, Any], kind: str, rows: Sequence[int], legend: dict[str, Any]) -> None:
    width = span["to_s"] - span["from_s"]
    bars = axes.barh(rows, width, left=span["from_s"], color=SHADES[kind], height=0.6)
    legend.setdefault(kind, bars)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    size, largest = result["size"], result["largest_transaction"]
    name = f"{size['hospitals']:,} hospitals, {size['voters']:,} voters, {size['delegators']:,} delegators"
    return [
        (f"{name}: rounds", f"{result['seconds']['both rounds of all tasks']:,.0f} s"),
        (f"{name}: gas", f"{result['gas_all']:,} in {result['transactions']:,} transactions"),
        (f"{name}: largest transaction ({' + '.join(largest['calls'])})", f"{largest['gas']:,}"),
        (f"{name}: memory", f"{result['peak_pss_mib']['all']:,} MiB"),
    ]
