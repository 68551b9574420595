"""All weights of a pretrained encoder, within few numbers of a low-rank codec, beside its adapters (LoRA).

MedQuAD's nine types of questions, five hospitals. Rounds are played as in `bench.client.codecs`: in this process, by
the nodes' own training, quantising, packing, masking and committing. Nobody judges. `blobs`: of a hospital's update.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.examples import joined
from consilium_lab.demo.datasets import DemoData, deal_medquad, examples_of
from consilium_lab.demo.task_file import TaskSettings, task_spec
from threadpoolctl import threadpool_limits

from bench.client.codecs import FLOAT, SHARED
from bench.client.folding import Played
from bench.client.learning_rounds import tested
from bench.results_store import COLOURS, Skipped, figure, say, write_figure

ROUNDS, SEEDS = 10, 2
TOKENS = 48  # of a text
LOW_RANK = {"name": "lowrank", "rank": 8, "dense": ["last.weight", "last.bias"]}
WAYS: dict[str, Mapping[str, Any]] = {
    "encoder": {
        "model": {"name": "encoder", "max_tokens": TOKENS},
        "training": {"epochs": 1, "batch_size": 16, "optimizer": "adamw", "learning_rate": 0.002, "schedule": "linear"},
        "rounds": {"max_weight": 12},  # else lanes of one bit more take a seventh blob
        "update": {"bits": 6, "value_range": 0.1, "clip_norm": 50.0, "codec": LOW_RANK},
    },
    "lora": {"update": {"bits": 8, "value_range": 0.1, "clip_norm": 8.0}},
}
LINES = {"encoder": ("committing", "all weights"), "lora": ("scoring", "adapters")}


@dataclass(frozen=True)
class Run:
    way: str
    rounds: int
    seed: int


def spec_of(data: DemoData, way: str, rounds: int) -> TaskSpec:
    usual = task_spec(data, TaskSettings(rounds=rounds, cohorts=1)).model_dump()
    chosen = {name: own if name == "model" else {**usual[name], **own} for name, own in WAYS[way].items()}
    return TaskSpec.model_validate({**usual, **chosen})


def played(run: Run) -> dict[str, Any]:
    """One run's row, in a process of its own."""
    with threadpool_limits(1):
        data = deal_medquad(SHARED / "medquad", 5, 1, run.seed, 208, 480)
        spec = spec_of(data, run.way, run.rounds)
        parts, held_out = examples_of(data.hospitals, data.schema), joined(examples_of(data.held_out, data.schema))
        game, values = Played(spec, parts, run.seed), list[float]()
        for round_ in range(1, run.rounds + 1):
            game.play(round_)
            values.append(tested(spec, game.model, game.sums, held_out)["accuracy"])
            say(f"{run.way}, seed {run.seed}, round {round_}: {values[-1]:.4f}")
    return {
        "model": run.way, "rounds": run.rounds, "parameters": spec.parameters, "numbers": spec.coordinates,
        "blobs": spec.update_blobs, "blob_bytes_per_round": spec.update_bytes,
        "fp32_bytes_per_round": FLOAT * spec.parameters, "history": [round(value, 4) for value in values],
    }  # fmt: skip


def measure(quick: bool) -> Iterator[dict[str, Any]]:
    """So far, after each way: an hour in all."""
    if not SHARED.exists():
        raise Skipped("the data sets are not beside this checkout")
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        for way in WAYS:
            found = list(pool.map(played, [Run(way, *of) for of in runs(quick)]))
            last = [row["history"][-1] for row in found]
            mean = [round(fmean(values), 4) for values in zip(*(row["history"] for row in found), strict=True)]
            error = round(stdev(last) / len(last) ** 0.5, 4) if len(last) > 1 else None
            rows.append({**found[0], "history": mean, "last": last, "value": mean[-1], "standard_error": error})
            yield {"what": "accuracy after each round, all weights of an encoder beside its adapters", "rows": rows}


def runs(quick: bool) -> list[tuple[int, int]]:
    """Rounds and seed of each."""
    return [(1, 0)] if quick else [(ROUNDS, seed) for seed in range(SEEDS)]


def plot(result: dict[str, Any], folder: Path) -> None:
    drawn, (axes,) = figure(5, 3.2, 1)
    for row in result["rows"]:
        colour, label = LINES[row["model"]]
        axes.plot(
            range(1, row["rounds"] + 1), row["history"], marker="o", markersize=3, color=COLOURS[colour],
            label=f"{label}: {row['numbers']:,} numbers, {row['blobs']} blobs",
        )  # fmt: skip
    axes.set_xlabel("round")
    axes.set_title("accuracy, nine types of questions", loc="left", fontsize=9)
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    write_figure(folder, "encoder", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    found = []
    for row in result["rows"]:
        error = "" if row["standard_error"] is None else f" ± {row['standard_error']:.3f}"
        ways = f"{row['parameters']:,} parameters, {row['numbers']:,} numbers, {row['blobs']} blobs"
        found.append((f"{row['model']}, {row['rounds']} rounds", f"{ways}: accuracy {row['value']:.3f}{error}"))
    return found
