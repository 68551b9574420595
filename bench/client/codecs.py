"""Costs and gains of each codec and outer step: bytes a round beside plain Flower's, and the metric at the end.

Rounds are played in this process by the nodes' own training, clipping, quantising, packing, masking and committing. The
sum is unmasked, checked by the commitments and read back, as a chain and its readers would. Nobody judges: all rounds
count. `bytes_per_round`: the lanes of a hospital's update; they travel in whole blobs. `ratio`: parameters for each
number that travels. Negative results stay in.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.examples import joined
from consilium_lab.demo.datasets import DemoData, deal_heart, deal_medquad, deal_pneumonia, deal_wdbc, examples_of
from consilium_lab.demo.task_file import TaskSettings, task_spec
from matplotlib.ticker import LogLocator, NullLocator
from threadpoolctl import threadpool_limits

from bench.client.folding import Played
from bench.client.learning_rounds import tested
from bench.results_store import Skipped, figure, say, write_figure

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
RATIOS = (1, 10, 50, 100, 500)
RANKS = (1, 4)
SEEDS = 4
FLOAT = 4  # bytes of a parameter as Flower sends it
DILOCO = {"name": "nesterov", "learning_rate": 0.7, "momentum": 0.9, "fading": 0.7}
UNFADING = DILOCO | {"fading": 1.0}
MLP = {"name": "mlp", "hidden": [32, 16]}
FEW = 1_000  # bytes in fp32
ROWS_BY = ("data", "codec", "outer", "numbers")
LINES = (
    ("hash", "mean", "#2f6f9f", "o"), ("lowrank", "mean", "#1f9e89", "s"), ("dense", "nesterov", "#8a8f98", "x"),
    ("hash", "nesterov", "#b1588c", "^"),
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """`sections`: of its task file. `nesterov_at`: the ratios at which that outer step is played, too; `unfading`: and
    without fading.
    """

    data: str
    model: str
    deal: Callable[[int], DemoData]
    rounds: int
    metric: str
    sections: Mapping[str, Any]
    ratios: Sequence[int] = RATIOS
    nesterov_at: Sequence[int] = (1, 50)
    unfading: Sequence[int] = ()


CASES = (
    Case("breast cancer", "logistic", lambda seed: deal_wdbc(6, 1, seed), 8, "auc", {}, (1, 2, 10), (1,)),
    Case(
        "heart", "mlp", lambda seed: deal_heart(SHARED / "heart", 1, seed), 15, "auc",
        {"model": MLP, "training": {"epochs": 1, "batch_size": 16, "learning_rate": 0.05},
         "update": {"bits": 8, "value_range": 0.5, "clip_norm": 8.0}},
        unfading=(1,),
    ),
    Case(
        "pneumonia", "cnn", lambda seed: deal_pneumonia(SHARED / "pneumoniamnist", 6, 1, seed), 8, "auc",
        {"update": {"bits": 4, "value_range": 0.05, "clip_norm": 4.0}},
    ),
    Case(
        "medquad", "lora", lambda seed: deal_medquad(SHARED / "medquad", 5, 1, seed, 208, 480), 6, "accuracy",
        {"update": {"bits": 8, "value_range": 0.1, "clip_norm": 8.0}}, (1, 10, 50), (1,),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """`case`: its number. `ratio`: parameters for each number that travels, as asked for."""

    case: int
    codec: Mapping[str, Any]
    outer: Mapping[str, Any]
    ratio: float
    seed: int


def runs(case: Case, seeds: int) -> Iterator[Run]:
    data, mean, number = case.deal(0), {"name": "mean"}, CASES.index(case)
    parameters = spec_of(case, data, {"name": "dense"}, mean).parameters
    for ratio in case.ratios:
        codec: dict[str, Any] = {"name": "hash", "buckets": -(-parameters // ratio)} if ratio > 1 else {"name": "dense"}
        outers: list[Mapping[str, Any]] = [
            mean,
            *([DILOCO] if ratio in case.nesterov_at else []),
            *([UNFADING] if ratio in case.unfading else []),
        ]
        for outer in outers:
            yield from (Run(number, codec, outer, ratio, seed) for seed in range(seeds))
    if case.model != "logistic":
        for rank in RANKS:
            codec = {"name": "lowrank", "rank": rank}
            own = parameters / spec_of(case, data, codec, mean).coordinates
            yield from (Run(number, codec, mean, own, seed) for seed in range(seeds))


def spec_of(case: Case, data: DemoData, codec: Mapping[str, Any], outer: Mapping[str, Any]) -> TaskSpec:
    usual = task_spec(data, TaskSettings(rounds=case.rounds, cohorts=1)).model_dump()
    of_case = {
        name: section if name == "model" else {**usual[name], **section} for name, section in case.sections.items()
    }
    chosen = {**usual, **of_case}
    return TaskSpec.model_validate({**chosen, "update": {**chosen["update"], "codec": codec}, "outer": outer})


def played(run: Run) -> dict[str, Any]:
    """One run's row, in a process of its own."""
    with threadpool_limits(1):
        case = CASES[run.case]
        data = case.deal(run.seed)
        spec = spec_of(case, data, run.codec, run.outer)
        parts, held_out = examples_of(data.hospitals, data.schema), joined(examples_of(data.held_out, data.schema))
        game, values = Played(spec, parts, run.seed), list[float]()
        for round_ in range(1, spec.rounds.rounds + 1):
            game.play(round_)
            values.append(tested(spec, game.model, game.sums, held_out)[case.metric])
    return {
        "data": case.data, "model": case.model, "codec": run.codec["name"], "outer": named(run.outer),
        "ratio": round(run.ratio, 1), "numbers": spec.coordinates, "rounds": spec.rounds.rounds,
        "bytes_per_round": -(-spec.coordinates * spec.update_layout.lane_bits // 8),
        "blob_bytes_per_round": spec.update_bytes, "fp32_bytes_per_round": FLOAT * spec.parameters,
        "metric": case.metric, "history": [round(value, 4) for value in values],
    }  # fmt: skip


def named(outer: Mapping[str, Any]) -> str:
    return f"{outer['name']}, unfading" if outer.get("fading") == 1 else str(outer["name"])


def measure(quick: bool) -> Iterator[dict[str, Any]]:
    """So far, after each data set: an hour and a half in all."""
    if not SHARED.exists():
        raise Skipped("the data sets are not beside this checkout")
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        for case in CASES[:1] if quick else CASES:
            found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
            for row in pool.map(played, runs(case, 1 if quick else SEEDS)):
                found.setdefault(tuple(row[name] for name in ROWS_BY), []).append(row)
                say(f"{row['data']}, {row['codec']} 1/{row['ratio']:g}, {row['outer']}: {row['history'][-1]}")
            rows += map(_together, found.values())
            yield {
                "what": "the model after all rounds, and bytes of a hospital's update beside its parameters in fp32",
                "rows": rows,
            }


def _together(same: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One row of all seeds. `history`: the mean after each round."""
    last = [row["history"][-1] for row in same]
    error = stdev(last) / len(last) ** 0.5 if len(last) > 1 else None
    history = [round(fmean(values), 4) for values in zip(*(row["history"] for row in same), strict=True)]
    return {
        **same[0], "value": history[-1], "standard_error": None if error is None else round(error, 4),
        "seeds": len(same), "history": history,
    }  # fmt: skip


def plot(result: dict[str, Any], folder: Path) -> None:
    """For each data set the metric by bytes, a line for each way."""
    names = list(dict.fromkeys(row["data"] for row in result["rows"]))
    drawn, axes = figure(3.2 * len(names), 3.2, len(names))
    for one, name in zip(axes, names, strict=True):
        rows = [row for row in result["rows"] if row["data"] == name]
        whole = rows[0]["fp32_bytes_per_round"]
        for codec, outer, colour, marker in LINES:
            own = sorted(
                (row for row in rows if row["outer"] == outer and row["codec"] in (codec, "dense")),
                key=lambda row: row["bytes_per_round"],
            )
            if any(row["codec"] == codec for row in own):
                one.errorbar(
                    [whole / row["bytes_per_round"] for row in own], [row["value"] for row in own],
                    [row["standard_error"] or 0 for row in own], color=colour, marker=marker, markersize=4, linewidth=1,
                    label=codec if outer == "mean" else f"{codec}, {outer}",
                )  # fmt: skip
        one.set_xscale("log")
        one.xaxis.set_major_locator(LogLocator(subs=(1,) if whole > FEW else (1, 2, 5)))
        one.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        one.xaxis.set_minor_locator(NullLocator())
        one.set_title(f"{name}, {rows[0]['rounds']} rounds", loc="left", fontsize=10)
        one.set_xlabel("times fewer bytes than fp32")
        one.set_ylabel(rows[0]["metric"].upper() if rows[0]["metric"] == "auc" else rows[0]["metric"])
    lines = {label: line for one in axes for line, label in zip(*one.get_legend_handles_labels(), strict=True)}
    axes[0].legend(lines.values(), lines, frameon=False, fontsize=8, loc="lower left")
    write_figure(folder, "codecs", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    found = []
    for row in result["rows"]:
        fewer = row["fp32_bytes_per_round"] / row["bytes_per_round"]
        error = "" if row["standard_error"] is None else f" ± {row['standard_error']:.3f}"
        way = f"{row['data']}, {row['codec']} of {row['numbers']:,}, {row['outer']}"
        found.append((way, f"{row['bytes_per_round']:,} bytes ({fewer:.0f} × fewer): {row['value']:.3f}{error}"))
    return found
