"""The fewest bytes at plain federated averaging's AUC: chest X-rays, with every lever at once.

Few numbers (`hash`), two bits each with error feedback, weights of at most four, three local epochs. Beside it all
parameters, at several learning rates and epochs, so that neither side lacks tuning. `bytes_per_round`: the lanes of a
hospital's update; they travel in whole blobs of 131,072 bytes. `fewer`: times fewer than the parameters in fp32.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.examples import joined
from consilium_lab.demo.datasets import DemoData, deal_pneumonia, examples_of
from consilium_lab.demo.task_file import TaskSettings, task_spec
from threadpoolctl import threadpool_limits

from bench.client.codecs import FLOAT, SHARED
from bench.client.folding import Played
from bench.client.learning_rounds import tested
from bench.results_store import COLOURS, Skipped, figure, say, write_figure

ROUNDS, SEEDS, HOSPITALS = 8, 4, 6
MOST_WEIGHT = 4
Way = Mapping[str, Mapping[str, Any]]
WHOLE = {"bits": 16, "value_range": 0.5, "clip_norm": 4.0}
FEW = {"bits": 2, "value_range": 0.05, "clip_norm": 4.0, "feedback": True}
WAYS: Mapping[str, Way] = {
    "all parameters": {"update": WHOLE, "training": {"learning_rate": 0.001}},
    "all parameters, rate 0.005": {"update": WHOLE, "training": {"learning_rate": 0.005}},
    "all parameters, 3 epochs": {"update": WHOLE, "training": {"learning_rate": 0.001, "epochs": 3}},
    **{
        f"{size} numbers of 2 bits, 3 epochs": {
            "update": {**FEW, "codec": {"name": "hash", "buckets": size}},
            "training": {"learning_rate": 0.002, "epochs": 3}, "rounds": {"max_weight": MOST_WEIGHT},
        }
        for size in (187, 149)
    },
}  # fmt: skip


def spec_of(data: DemoData, way: Way) -> TaskSpec:
    usual = task_spec(data, TaskSettings(rounds=ROUNDS, cohorts=1)).model_dump()
    chosen = usual | {name: usual[name] | dict(section) for name, section in way.items()}
    most = usual["rounds"]["rows_per_weight"] * usual["rounds"]["max_weight"]
    chosen["rounds"]["rows_per_weight"] = -(-most // chosen["rounds"]["max_weight"])  # the largest hospital's rows
    return TaskSpec.model_validate(chosen)


def played(run: tuple[str, int]) -> dict[str, Any]:
    """One run's row, by way and seed, in a process of its own."""
    way, seed = run
    with threadpool_limits(1):
        data = deal_pneumonia(SHARED / "pneumoniamnist", HOSPITALS, 1, seed)
        spec = spec_of(data, WAYS[way])
        parts, held_out = examples_of(data.hospitals, data.schema), joined(examples_of(data.held_out, data.schema))
        game, history = Played(spec, parts, seed), list[float]()
        for round_ in range(1, ROUNDS + 1):
            game.play(round_)
            history.append(tested(spec, game.model, game.sums, held_out)["auc"])
    size, whole = -(-spec.coordinates * spec.update_layout.lane_bits // 8), FLOAT * spec.parameters
    return {
        "data": "pneumonia", "way": way, "numbers": spec.coordinates, "bits": spec.update.bits,
        "bytes_per_round": size, "blobs_per_round": spec.update_blobs, "fp32_bytes_per_round": whole,
        "fewer": round(whole / size, 1), "rounds": ROUNDS, "metric": "auc", "last": round(history[-1], 4),
        "history": history,
    }  # fmt: skip


def measure(quick: bool) -> Iterator[dict[str, Any]]:
    """So far, after each way."""
    if not SHARED.exists():
        raise Skipped("the data sets are not beside this checkout")
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        for way in list(WAYS)[-1:] if quick else WAYS:
            same = list(pool.map(played, [(way, seed) for seed in range(1 if quick else SEEDS)]))
            last = [row.pop("last") for row in same]
            history = [round(fmean(values), 4) for values in zip(*(row["history"] for row in same), strict=True)]
            error = round(stdev(last) / len(last) ** 0.5, 4) if len(last) > 1 else None
            mean = {"value": round(fmean(last), 4), "standard_error": error, "seeds": last, "history": history}
            rows.append({**same[0], **mean})
            say(f"{way}: {rows[-1]['value']}")
            yield {"what": "AUC after all rounds, mean over seeds, and bytes of a hospital's update", "rows": rows}


def plot(result: dict[str, Any], folder: Path) -> None:
    """The AUC by round, a line for each way."""
    drawn, (axes,) = figure(7, 3.4)
    colours = [COLOURS[name] for name in ("plain", "joining", "forming", "committing", "scoring")]
    for row, colour in zip(result["rows"], colours, strict=False):
        label = f"{row['way']}: {row['bytes_per_round']:,} bytes"
        axes.plot(range(1, row["rounds"] + 1), row["history"], color=colour, marker="o", markersize=3, label=label)
        axes.errorbar(row["rounds"], row["value"], row["standard_error"] or 0, color=colour, capsize=3)
    axes.set_xlabel("rounds")
    axes.set_ylabel("AUC on held-out X-rays")
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    write_figure(folder, "fewest", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (
            row["way"],
            f"{row['bytes_per_round']:,} bytes a round, {row['fewer']:g} × fewer than fp32: {row['value']:.4f}"
            + ("" if row["standard_error"] is None else f" ± {row['standard_error']:.4f}"),
        )
        for row in result["rows"]
    ]
