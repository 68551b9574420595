"""Ways of learning on hospitals whose patients differ: rows are dealt by Dirichlet(0.1) labels (Hsu et al., 2019).

So most hospitals have nearly all their rows of one class. Each way trains the same steps, in the same rounds, from the
same start. Metric after all rounds on rows that no hospital has, and after a third of them. Negative results stay in.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.examples import Examples, joined
from consilium_lab.demo.datasets import DemoData, deal_heart, deal_pneumonia, deal_wdbc, examples_of
from consilium_lab.demo.task_file import TaskSettings, task_spec
from threadpoolctl import threadpool_limits

from bench.client.codecs import MLP, SHARED
from bench.client.folding import Played
from bench.client.learning_rounds import tested
from bench.results_store import Skipped, figure, say, write_figure

ALPHA = 0.1
HOSPITALS, LEAST_ROWS = 6, 4
SEEDS = 4
Sections = Mapping[str, Mapping[str, Any]]
METHODS: Mapping[str, Sections] = {
    "FedAvg": {},
    "FedProx, μ 0.1": {"training": {"proximal": 0.1}},
    "FedProx, μ 1": {"training": {"proximal": 1.0}},
    "SCAFFOLD": {"training": {"control_variates": True}},
    "cosine schedule": {"training": {"schedule": "cosine"}},
    "balanced classes": {"training": {"class_weights": "balanced"}, "top": {"statistics": "exact"}},
    "FedAvgM, β 0.5": {"outer": {"name": "momentum"}},
    "Nesterov, fading": {"outer": {"name": "nesterov"}},
    "FedAdam": {"outer": {"name": "adam"}},
    "sign": {"outer": {"name": "sign", "learning_rate": 0.01}},
}


@dataclass(frozen=True)
class Case:
    """`sections`: of its task file."""

    data: str
    rounds: int
    steps: int
    sections: Sections

    def deal(self, seed: int) -> DemoData:
        if self.data == "breast cancer":
            return deal_wdbc(HOSPITALS, 1, seed)
        if self.data == "heart":
            return deal_heart(SHARED / "heart", 1, seed)
        return deal_pneumonia(SHARED / "pneumoniamnist", HOSPITALS, 1, seed)


CASES = (
    Case("breast cancer", 15, 10, {"training": {"batch_size": 16, "learning_rate": 0.1}}),
    Case(
        "heart", 15, 20,
        {"model": MLP, "training": {"batch_size": 16, "learning_rate": 0.05},
         "update": {"bits": 16, "value_range": 2.0, "clip_norm": 8.0}},
    ),
    Case(
        "pneumonia", 9, 30,
        {"training": {"optimizer": "sgd", "batch_size": 32, "learning_rate": 0.05},
         "update": {"bits": 12, "value_range": 0.5, "clip_norm": 8.0}},
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """`case`: its number."""

    case: int
    method: str
    seed: int


def dealt(parts: Sequence[Examples], seed: int) -> list[Examples]:
    """The rows of all parts: those of each class in shares drawn from Dirichlet(ALPHA), until none has too few."""
    whole, random = joined(list(parts)), np.random.default_rng([seed, 1])
    while True:
        owner = np.empty(whole.rows, dtype=np.int64)
        for label in np.unique(whole.labels):
            own = random.permutation(np.flatnonzero(whole.labels == label))
            ends = np.floor(np.cumsum(random.dirichlet([ALPHA] * HOSPITALS)) * len(own)).astype(np.int64)
            owner[own] = np.searchsorted(ends, np.arange(len(own)), side="right").clip(max=HOSPITALS - 1)
        if np.bincount(owner, minlength=HOSPITALS).min() >= LEAST_ROWS:
            return [whole.chosen(owner == index) for index in range(HOSPITALS)]


def spec_of(case: Case, data: DemoData, method: str) -> TaskSpec:
    usual = task_spec(data, TaskSettings(rounds=case.rounds, cohorts=1)).model_dump()
    usual["rounds"] |= {"min_hospitals": 3, "max_hospitals": HOSPITALS}
    usual["training"] = {"optimizer": "sgd", "steps": case.steps}
    for sections in (case.sections, METHODS[method]):
        for name, section in sections.items():
            if name == "top":
                usual |= section
            else:
                usual[name] = dict(section) if name in ("model", "outer") else {**usual[name], **section}
    return TaskSpec.model_validate(usual)


def played(run: Run) -> dict[str, Any]:
    """One run's row, in a process of its own."""
    with threadpool_limits(1):
        case = CASES[run.case]
        data = case.deal(run.seed)
        parts = dealt(examples_of(data.hospitals, data.schema), run.seed)
        spec, held_out = spec_of(case, data, run.method), joined(examples_of(data.held_out, data.schema))
        game, history = Played(spec, parts, run.seed), list[float]()
        for round_ in range(1, case.rounds + 1):
            game.play(round_)
            history.append(tested(spec, game.model, game.sums, held_out)["auc"])
    return {
        "data": case.data, "method": run.method, "rounds": case.rounds, "steps": case.steps, "metric": "auc",
        "history": [round(value, 4) for value in history],
    }  # fmt: skip


def measure(quick: bool) -> Iterator[dict[str, Any]]:
    """So far, after each data set."""
    if not SHARED.exists():
        raise Skipped("the data sets are not beside this checkout")
    cases, seeds, rows = (CASES[:1], 1, []) if quick else (CASES, SEEDS, list[dict[str, Any]]())
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        for number, case in enumerate(cases):
            runs = [Run(number, method, seed) for method in METHODS for seed in range(seeds)]
            found: dict[str, list[dict[str, Any]]] = {}
            for row in pool.map(played, runs):
                found.setdefault(row["method"], []).append(row)
                say(f"{case.data}, {row['method']}: {row['history'][-1]}")
            rows += map(_together, found.values())
            yield {
                "what": f"AUC on held-out rows, {HOSPITALS} hospitals with labels by Dirichlet({ALPHA:g})", "rows": rows
            }  # fmt: skip


def _together(same: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One row of all seeds. `history`: the mean after each round; `early`: after a third of them."""
    last = [row["history"][-1] for row in same]
    history = [round(fmean(values), 4) for values in zip(*(row["history"] for row in same), strict=True)]
    error = round(stdev(last) / len(last) ** 0.5, 4) if len(last) > 1 else None
    early = history[len(history) // 3 - 1]
    return {**same[0], "value": history[-1], "standard_error": error, "early": early, "seeds": len(same),
            "history": history}  # fmt: skip


def plot(result: dict[str, Any], folder: Path) -> None:
    """For each data set a line for each way, round by round."""
    names = list(dict.fromkeys(row["data"] for row in result["rows"]))
    drawn, axes = figure(3.6 * len(names), 3.6, len(names))
    for one, name in zip(axes, names, strict=True):
        for row in (row for row in result["rows"] if row["data"] == name):
            plain = row["method"] == "FedAvg"
            style: dict[str, Any] = {"color": "black", "linewidth": 2} if plain else {"linewidth": 1.2}
            one.plot(range(1, len(row["history"]) + 1), row["history"], label=row["method"], **style)
        one.set_title(name, loc="left", fontsize=10)
        one.set_xlabel("rounds")
        one.set_ylabel("AUC")
    axes[min(1, len(axes) - 1)].legend(frameon=False, fontsize=7, loc="lower right")
    write_figure(folder, "methods", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    found = []
    for row in result["rows"]:
        error = "" if row["standard_error"] is None else f" ± {row['standard_error']:.3f}"
        found.append(
            (f"{row['data']}, {row['method']}", f"{row['value']:.3f}{error} ({row['early']:.3f} after a third)")
        )
    return found
