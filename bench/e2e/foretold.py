"""A simulation beside the demo that it foretells: the same task file and rows, in one process and by real nodes.

`same`: each base has the same bits. Accuracies are after the last round, on all voters' rows; `spread` is their
standard deviation over simulations with other seeds. Gas: of all transactions on the demo's chain, beside the estimate.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import stdev
from typing import Any

from consilium_chain.tasks.estimate import estimate
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.data.examples import Examples
from consilium_lab.demo.datasets import (
    DemoData,
    deal_heart,
    deal_medquad,
    deal_pneumonia,
    deal_wdbc,
    examples_of,
)
from consilium_lab.simulation.run import simulate

from bench.children import Child
from bench.client.codecs import SHARED
from bench.results_store import COLOURS, Skipped, figure, say, write_figure

PATIENCE = 1_500.0
SEEDS = 3  # of simulations
FOLDERS = {"heart": "heart", "pneumonia": "pneumoniamnist", "medquad": "medquad"}


def dealt(data: str, seed: int) -> DemoData:
    """As the demo deals it by default."""
    if data == "wdbc":
        return deal_wdbc(6, 5, seed)
    folder = SHARED / FOLDERS[data]
    if data == "heart":
        return deal_heart(folder, 5, seed)
    if data == "medquad":
        return deal_medquad(folder, 3, 5, seed)
    return deal_pneumonia(folder, 6, 5, seed)


def named(parts: Sequence[Examples]) -> dict[str, Examples]:
    return {str(index): part for index, part in enumerate(parts)}


def one(data: str, rounds: int, seeds: int) -> dict[str, Any]:
    say(f"demo and simulations of {data}")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        home, started = Path(folder), time.monotonic()
        arguments = ["--data", data, "--rounds", str(rounds), "--output", str(home / "demo")]
        if data in FOLDERS:
            arguments += ["--data-dir", str(SHARED / FOLDERS[data])]
        with Child(["consilium_cli.main", "demo", *arguments], home / "demo.log") as child:
            child.wait(PATIENCE)
        wall = time.monotonic() - started
        report = json.loads((home / "demo" / "report.json").read_text())
        raw = (home / "demo" / "task.toml").read_bytes()
    told, seconds = [], list[float]()
    for seed in range(seeds):
        started, own = time.monotonic(), dealt(data, seed)
        hospitals, voters = examples_of(own.hospitals, own.schema), examples_of(own.held_out, own.schema)
        told.append(simulate(raw, named(hospitals), named(voters), seed, compared=False))
        seconds.append(time.monotonic() - started)
    accuracies = [found.rounds[-1].metrics["accuracy"] for found in told]
    return {
        "data": data, "rounds": rounds, "same": told[0].bases == report["bases"], "bases": len(report["bases"]),
        "demo": round(report["final_metric"], 4), "simulated": round(accuracies[0], 4),
        "spread": round(stdev(accuracies), 4) if seeds > 1 else None,
        "demo_s": round(wall, 1), "simulation_s": round(seconds[0], 1),
        "gas": report["all_gas"], "estimated_gas": estimate(parse_task_spec(raw)).all_gas,
    }  # fmt: skip


def measure(quick: bool) -> Iterator[dict[str, Any]]:
    """So far, after each data set."""
    if not SHARED.exists():
        raise Skipped("the data sets are not beside this checkout")
    rows: list[dict[str, Any]] = []
    for data in ("wdbc",) if quick else ("wdbc", "heart", "pneumonia", "medquad"):
        rows.append(one(data, 1 if quick else 3, 1 if quick else SEEDS))
        yield {"what": "what a simulation foretells, and what the demo of the same task gave", "rows": rows}


def plot(result: dict[str, Any], folder: Path) -> None:
    """Accuracies, and gas as a share of the estimate."""
    drawn, (left, right) = figure(8, 2.8, 2)
    names = [row["data"] for row in result["rows"]]
    for index, row in enumerate(result["rows"]):
        left.errorbar(
            index,
            row["simulated"],
            row["spread"] or 0,
            fmt="s",
            mfc="none",
            ms=10,
            color=COLOURS["committing"],
            capsize=4,
        )
        left.plot(index, row["demo"], "x", color=COLOURS["scoring"], markersize=6, zorder=3)
        right.bar(index, row["gas"] / row["estimated_gas"], color=COLOURS["committing"], width=0.5)
    for axes in (left, right):
        axes.set_xticks(range(len(names)), names)
    left.set_title("accuracy: demo ×, simulated □ with its spread", loc="left", fontsize=9)
    right.set_title("gas of the demo, as a share of the estimate", loc="left", fontsize=9)
    right.set_ylim(0, 1.1)
    write_figure(folder, "foretold", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (
            f"{row['data']}, {row['rounds']} rounds",
            f"{row['bases']} bases {'bit for bit' if row['same'] else 'DIFFER'}; accuracy {row['demo']:.3f}, foretold"
            f" {row['simulated']:.3f}; gas {row['gas'] / row['estimated_gas']:.2f} of the estimate;"
            f" {row['demo_s']:.0f} s, simulated in {row['simulation_s']:.0f} s",
        )
        for row in result["rows"]
    ]
