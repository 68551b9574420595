"""What the four hospitals of UCI heart learn: together, alone, federated, over this platform's rounds, and privately.

Splits are FLamby's, and others drawn by seed; tested on all hospitals' test rows. Rounds are played in this process
with the nodes' own training, clipping, quantising and adding up. One set of arguments serves all private runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import numpy as np
import pandas as pd
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_chain.tasks.training_specs import PrivacySpec
from consilium_client.data.examples import Examples, joined
from consilium_client.data.standardise import public_sums, sums_of
from consilium_client.privacy.dp_sgd import Mechanism, epsilon
from consilium_core.kinds import of_kind
from consilium_lab.demo.datasets import HEART_HOSPITALS, HEART_SCHEMA, DemoData, Frame, deal_heart, examples_of
from consilium_lab.demo.references import local_only, pooled, simulate_fedavg
from consilium_lab.demo.task_file import TaskSettings, task_spec
from consilium_lab.result_files import columns_of, rows_again
from threadpoolctl import threadpool_limits

from bench.client import learning_kinds
from bench.client.learning_rounds import (
    ALONE,
    FEDAVG,
    POOLED,
    PRIVATE,
    ROUNDS,
    Reals,
    Train,
    plainly,
    plans,
    play,
    privately,
    tested,
)
from bench.decoys.rounds import HEART
from bench.results_store import Skipped, figure, say, write_figure

FLAMBY = Path(__file__).resolve().parents[3] / "shared" / "data" / "heart_flamby_split"
SEEDS = 4
EPSILONS = (8.0, 3.0)
METRICS = ("accuracy", "auc")
ROWS_BY = ("data", "model", "method", "epsilon", "metric")
NOISE_BY = ("data", "model", "allowed")
STATISTICS = Mechanism(5.0, 1.0, 1)  # of the way not taken: noise on round 0's sums
LEAST_VARIANCE = 0.005  # there: below, a column's variance is noise
UPDATE = {"bits": 16, "value_range": 2.0, "clip_norm": 8.0}
PLAIN = {"epochs": 1, "batch_size": 16, "learning_rate": 0.05}
PRIVATE_TRAINING = {"epochs": 1, "batch_size": 64, "learning_rate": 1.0}
PLAIN_ROUNDS, PRIVATE_ROUNDS = 30, 10
FLAMBYS, DRAWN = "heart, FLamby's split", "heart, random splits"


@dataclass(frozen=True)
class Model:
    name: str
    section: Mapping[str, Any]


MODELS = (
    Model("logistic", {"name": "logistic"}),
    Model("mlp", {"name": "mlp", "hidden": [32, 16]}),
)
RANGES, NOISED = "consilium, public ranges", "private, noised statistics"


def flamby() -> DemoData:
    """The split in the demo's schema, whose categories its files hold as columns."""
    train_part, test_part = (
        [_frame(FLAMBY / f"{name}.{part}.csv") for name in HEART_HOSPITALS] for part in ("train", "test")
    )
    return DemoData("heart", FLAMBYS, HEART_SCHEMA, [*HEART_HOSPITALS], train_part, test_part)


def _frame(path: Path) -> Frame:
    frame = pd.read_csv(path)
    frame["cp"] = 1 + frame["cp_2"] + 2 * frame["cp_3"] + 3 * frame["cp_4"]
    frame["restecg"] = frame["restecg_1"] + 2 * frame["restecg_2"]
    kept = [*(feature.name for feature in HEART_SCHEMA.features), HEART_SCHEMA.label]
    return frame.rename(columns={"y": HEART_SCHEMA.label})[kept]


def spec_of(data: DemoData, model: Model, rounds: int) -> TaskSpec:
    usual = task_spec(data, TaskSettings(rounds=rounds)).model_dump()
    return TaskSpec.model_validate({**usual, "model": model.section, "training": PLAIN, "update": UPDATE})


def private_spec(data: DemoData, model: Model, rounds: int, allowed: float) -> TaskSpec:
    changes = {"training": PRIVATE_TRAINING, "privacy": {"epsilon": allowed, "max_grad_norm": 1.0}}
    return TaskSpec.model_validate({**spec_of(data, model, rounds).model_dump(), **changes})


@cache
def noise_beside(least: Mechanism, rounds: int, allowed: float, delta: float) -> Mechanism:
    """A round's training where the statistics are charged, too: more noise than `least`, which is without them."""

    def with_noise(multiplier: float) -> Mechanism:
        return Mechanism(multiplier, least.sample_rate, least.steps)

    def cost(multiplier: float) -> float:
        return epsilon([STATISTICS, *[with_noise(multiplier)] * rounds], delta)

    low, high = least.noise_multiplier, 2 * least.noise_multiplier
    while cost(high) > allowed:
        low, high = high, 2 * high
    while high - low > 0.01 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if cost(middle) > allowed else (low, middle)
    return with_noise(high)


def noised_sums(rows: Sequence[Examples], seed: int) -> Reals:
    """A row's part is three values of a column, each at most one."""
    noise, columns = np.random.default_rng([seed, 2]), HEART_SCHEMA.columns
    deviation = STATISTICS.noise_multiplier * np.sqrt(3 * columns)
    exact = np.sum([sums_of(table, HEART_SCHEMA) for table in rows], axis=0)
    noised = exact + noise.normal(0, deviation * np.sqrt(len(rows)), len(exact))
    counts, totals, squares = np.split(noised, 3)
    counts = np.maximum(counts, 1.0)
    means = np.clip(totals / counts, 0.0, 1.0)
    return np.concatenate([counts, means * counts, np.maximum(squares, counts * (means**2 + LEAST_VARIANCE))])


class Case:
    """What one model's runs on one split have in common. `private` holds a task for each epsilon."""

    def __init__(self, label: str, data: DemoData, model: Model, plain_rounds: int, private_rounds: int) -> None:
        self.label, self.data, self.model = label, data, model
        self.hospitals = examples_of(data.hospitals, data.schema)
        self.held_out = joined(examples_of(data.held_out, data.schema))
        self.plain = spec_of(data, model, plain_rounds)
        self.private = [private_spec(data, model, private_rounds, allowed) for allowed in EPSILONS]

    def noise(self) -> list[dict[str, Any]]:
        """What each hospital's noise is, and what a row has cost in the end."""
        found = []
        for spec in self.private:
            privacy, charged = of_kind(PrivacySpec, spec.privacy), plans(spec, self.hospitals)
            for name, table, one in zip(self.data.hospital_names, self.hospitals, charged, strict=True):
                cost = epsilon([one] * spec.rounds.rounds, privacy.delta)
                found.append(
                    {
                        "data": self.label, "model": self.model.name, "allowed": privacy.epsilon, "hospital": name,
                        "rows": table.rows, "noise_multiplier": round(one.noise_multiplier, 4),
                        "sample_rate": round(one.sample_rate, 4), "steps": one.steps, "epsilon": round(cost, 4),
                    }
                )  # fmt: skip
        return found

    def run(self, seed: int) -> list[dict[str, Any]]:
        exact = np.sum([sums_of(one, HEART_SCHEMA) for one in self.hospitals], axis=0)
        public, noised = public_sums(HEART_SCHEMA), noised_sums(self.hospitals, seed)
        found: list[tuple[str, float | None, Mapping[str, float]]] = [
            (POOLED, None, pooled(self.data, self.plain, seed)),
            (ALONE, None, local_only(self.data, self.plain, seed)),
            (FEDAVG, None, simulate_fedavg(self.data, self.plain, seed, quantised=False).history[-1]),
        ]
        for method, sums in ((ROUNDS, exact), (RANGES, public)):
            found.append((method, None, self._played(self.plain, sums, seed, plainly(self.plain, seed))))
        for spec in self.private:
            privacy, charged = of_kind(PrivacySpec, spec.privacy), plans(spec, self.hospitals)
            terms = spec.rounds.rounds, privacy.epsilon, privacy.delta
            more = [noise_beside(one, *terms) for one in charged]
            for method, sums, mechanisms in ((PRIVATE, public, charged), (NOISED, noised, more)):
                ended = self._played(spec, sums, seed, privately(spec, mechanisms))
                found.append((method, privacy.epsilon, ended))
        return [
            {
                "data": self.label, "model": self.model.name, "method": method, "epsilon": allowed, "seed": seed,
                "metric": metric, "value": round(values[metric], 4),
            }
            for method, allowed, values in found for metric in METRICS
        ]  # fmt: skip

    def _played(self, spec: TaskSpec, sums: Reals, seed: int, trained: Train) -> dict[str, float]:
        return tested(spec, play(spec, self.hospitals, sums, seed, trained), sums, self.held_out)


def study(label: str, model: Model, quick: bool) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """One model on one split, or on one for each seed: results, and the noise of the first seed's private rounds."""
    rounds = (2, 2) if quick else (PLAIN_ROUNDS, PRIVATE_ROUNDS)
    rows: list[dict[str, Any]] = []
    noise: list[dict[str, Any]] = []
    with threadpool_limits(1):
        for seed in range(1 if quick else SEEDS):
            data = flamby() if label == FLAMBYS else deal_heart(HEART, 4, seed, complete_rows_only=True)
            case = Case(label, data, model, *rounds)
            noise = noise or case.noise()
            rows += case.run(seed)
    return rows, noise


def measure(quick: bool) -> dict[str, Any]:
    for folder in (FLAMBY, HEART):
        if not folder.is_dir():
            raise Skipped(f"there is no shared/data/{folder.name} beside this checkout")
    studies = [(label, model) for model in MODELS for label in (FLAMBYS, DRAWN)][: 1 if quick else None]
    say(f"{len(studies)} studies, each of {1 if quick else SEEDS} seed(s)")
    kinds = [kind for kind in learning_kinds.KINDS if not quick and (learning_kinds.SHARED / kind.folder).is_dir()]
    costs = [learning_kinds.cost(kind) for kind in kinds]  # before the machine is busy
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:  # OpenMP's threads do not outlast a fork
        others = [
            pool.submit(learning_kinds.study, learning_kinds.KINDS.index(kind), seed)
            for kind in kinds for seed in range(kind.seeds)
        ]  # fmt: skip
        found = list(pool.map(study, *zip(*studies, strict=True), [quick] * len(studies)))
        more = [row for other in others for row in other.result()]
    return {
        "what": "accuracy and AUC on all hospitals' test rows; `alone` is the mean of four models, each tested on all;"
        " epsilon is what a whole task may cost a row, at delta 1e-5, and null without privacy; `noise` is of the"
        " private rounds, with what a row has cost in the end; `costs`: a hospital's bytes a round, and seconds a step",
        "rows": columns_of([*(row for rows, _ in found for row in rows), *more], ROWS_BY),
        "costs": costs,
        "noise": columns_of([row for _, noise in found for row in noise], NOISE_BY),
    }


def groups(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Models and data, in the order measured."""
    return list(dict.fromkeys((one["model"], one["data"]) for one in result["rows"]))


def summary(result: Mapping[str, Any], model: str, data: str) -> list[tuple[str, dict[str, list[float]]]]:
    """By method and epsilon, in the order measured: each metric's values over the seeds."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows_again(result["rows"]):
        if (row["model"], row["data"]) == (model, data):
            label = row["method"] + ("" if row["epsilon"] is None else f", ε = {row['epsilon']:g}")
            found.setdefault(label, {}).setdefault(row["metric"], []).append(row["value"])
    return list(found.items())


def plot(result: dict[str, Any], folder: Path, name: str = "learning") -> None:
    """A panel for each model and data."""
    several = len(groups(result)) > 1
    drawn, axes = figure(*((12, 11.4, 3, 2) if several else (5.5, 3.2)))
    for axis, (model, data) in zip(axes, groups(result), strict=False):
        methods = summary(result, model, data)[::-1]
        for metric, colour, shift in (("accuracy", "#2f6f9f", -0.12), ("auc", "#1f9e89", 0.12)):
            for index, (_, values) in enumerate(methods):
                if metric not in values:
                    continue
                axis.plot([min(values[metric]), max(values[metric])], [index + shift] * 2, color=colour, linewidth=1.2)
            means = [fmean(values[metric]) for _, values in methods if metric in values]
            positions = [index + shift for index, (_, values) in enumerate(methods) if metric in values]
            axis.plot(means, positions, "o", color=colour, label="AUC" if metric == "auc" else metric)
        axis.set_yticks(range(len(methods)), [label for label, _ in methods])
        axis.set_xlim(0.15 if model == "lora" else 0.6, 1.0)
        axis.set_title(f"{model}: {data}", loc="left")
        axis.set_xlabel("on all hospitals' test rows; lines span the seeds")
    axes[0].legend(frameon=False, loc="lower right" if several else "upper right")
    write_figure(folder, name, drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    lines = []
    for model, data in groups(result):
        for label, values in summary(result, model, data):
            told = " / ".join(f"{fmean(values[metric]):.3f} ± {pstdev(values[metric]):.3f}" for metric in values)
            lines.append((f"{data}, {model}, {label}", told))
    return lines
