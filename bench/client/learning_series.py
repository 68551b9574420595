"""Hospitals learn death from time series that are made up: like those of an intensive care unit, of no patient.

A stay has six variables with baselines of its own. It is measured at irregular times, the sicker the more often, and
each hospital measures at its own rate and has its own share of deaths. Who dies drifts away from the baseline in three
of them in the last third of two days, after a crisis in others that passes; so the order of values counts. As
`learning`: rounds are played in this process by the nodes' own code, on files that the nodes' reader reads. `classic`
is a logistic regression on each variable's last, mean, least and largest value, and number of measurements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.examples import joined
from consilium_client.data.kinds import read_examples
from consilium_client.data.series.stays import Stays
from consilium_client.data.standardise import sums_of
from consilium_client.models import model_of
from consilium_client.models.objectives import objective_of
from consilium_core.kinds import of_kind
from consilium_lab.demo.references import fedavg, mean_alone, trained_pooled
from consilium_lab.result_files import columns_of
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from bench.client.learning import table as table_of_learning
from bench.client.learning_questions import CLASSIC, ROWS_BY, UNTRAINED
from bench.client.learning_rounds import ALONE, FEDAVG, POOLED, ROUNDS, plainly, play
from bench.results_store import figure, say, write_figure

SEEDS, STAYS, HELD_OUT, STEPS = 3, 400, 3, 48
DATA = "stays of 48 h, made up"
# Baseline, deviation between stays, deviation between measurements, drift of a stay that ends with death, range.
VARIABLES = {
    "heart_rate": (85, 12, 6, 22, 20, 220), "map": (80, 9, 6, -16, 20, 160), "lactate": (1.8, 0.6, 0.4, 2.0, 0, 20),
    "spo2": (96, 1.5, 1.2, 0, 60, 100), "temperature": (37, 0.4, 0.2, 0, 30, 43), "creatinine": (90, 25, 9, 0, 10, 900),
}  # fmt: skip
HOSPITALS = {"urban": (1.0, 0.15), "rural": (0.5, 0.1), "teaching": (1.6, 0.25), "private": (0.8, 0.08)}
MODELS: Mapping[str, Mapping[str, Any]] = {
    "logistic": {"model": {"name": "logistic"}, "training": {"learning_rate": 0.01, "batch_size": 16}},
    "tcn": {
        "model": {"name": "tcn", "channels": [16, 16, 16]},
        "training": {"optimizer": "adamw", "learning_rate": 0.005, "epochs": 2, "batch_size": 32},
    },
}


def made_up(hospital: str, stays: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Measurements and outcomes."""
    rate, deaths = HOSPITALS[hospital]
    random = np.random.default_rng([seed, [*HOSPITALS].index(hospital)])
    died = random.random(stays) < deaths
    parts = []
    for stay in range(stays):
        hours = np.sort(random.uniform(0, STEPS, random.poisson((30 + 15 * died[stay]) * rate) + 4))
        crisis, size = random.uniform(4, 26), random.uniform(0, 1.2)
        passing = size * np.exp(-(((hours - crisis) / 5) ** 2))  # of the living and the dying alike
        late = died[stay] * np.clip((hours - 30) / 14, 0, 1) * random.uniform(0.4, 1.2)
        columns: dict[str, Any] = {"stay": stay, "time": hours.round(2)}
        for at, (name, (mean, between, within, drift, low, high)) in enumerate(VARIABLES.items()):
            values = mean + random.normal(0, between) + drift * (passing + late) + random.normal(0, within, len(hours))
            is_rare = at in (2, 5)  # laboratory values
            measured = random.random(len(hours)) < (0.15 if is_rare else 0.7)
            columns[name] = np.where(measured, np.clip(values, low, high).round(2), np.nan)
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts), pd.DataFrame({"stay": range(stays), "died": died.astype(int)})


def spec_of(model: str, rounds: int) -> TaskSpec:
    features = [
        {"name": name, "min": low, "max": high, "mean": mean, "deviation": float(np.hypot(between, within))}
        for name, (mean, between, within, _, low, high) in VARIABLES.items()
    ]
    sections = MODELS[model]
    return TaskSpec.model_validate({
        "name": "series", "model": sections["model"],
        "data": {
            "kind": "series", "label": "died", "classes": ["no", "yes"], "steps": STEPS, "features": features,
        },
        "training": {"epochs": 1, **sections["training"]},
        "update": {"bits": 16, "value_range": 2.0, "clip_norm": 8.0}, "judging": {"metric": "auc"},
        "money": {"pool": 1_000},
        "rounds": {"rounds": rounds, "max_hospitals": len(HOSPITALS), "rows_per_weight": 10},
    })  # fmt: skip


def deal(schema: DataSchema, seed: int, stays: int) -> tuple[list[Stays], Stays]:
    """Each hospital's stays for training, and all for testing; through the files that nodes would read."""
    train, test = list[Stays](), list[Stays]()
    for name in HOSPITALS:
        with TemporaryDirectory() as folder:
            measurements, outcomes = made_up(name, stays, seed)
            measurements.to_csv(Path(folder) / "measurements.csv", index=False)
            outcomes.to_csv(Path(folder) / "outcomes.csv", index=False)
            own = of_kind(Stays, read_examples(Path(folder), schema))
        held_out = np.random.default_rng([seed, stays]).random(own.rows) < 1 / HELD_OUT
        train.append(own.chosen(~held_out))
        test.append(own.chosen(held_out))
    return train, joined(test)


def summaries(stays: Stays) -> NDArray[np.float64]:
    """(n, 5 · variables), 0 for a missing one."""
    values, steps = stays.values.astype(np.float64), stays.values.shape[2]
    known = ~np.isnan(values)
    last = np.take_along_axis(values, (steps - 1 - known[:, :, ::-1].argmax(axis=2))[:, :, None], axis=2)[:, :, 0]
    counts = known.sum(axis=2)
    mean = np.where(known, values, 0).sum(axis=2) / np.maximum(counts, 1)
    least, largest = np.where(known, values, 2).min(axis=2), np.where(known, values, -1).max(axis=2)
    found: NDArray[np.float64] = np.nan_to_num(np.concatenate([last, mean, least, largest, counts], axis=1))
    return found


def classic(train: Stays, test: Stays) -> NDArray[np.float64]:
    scale = StandardScaler().fit(summaries(train))
    model = LogisticRegression(max_iter=2_000).fit(scale.transform(summaries(train)), train.labels)
    return np.asarray(model.predict_proba(scale.transform(summaries(test))))


def study(name: str, seed: int, rounds: int, stays: int) -> list[dict[str, Any]]:
    with threadpool_limits(1):
        spec = spec_of(name, rounds)
        hospitals, test = deal(spec.data, seed, stays)
        sums = np.sum([sums_of(part, spec.data) for part in hospitals], axis=0)
        spec = spec.model_copy(update={"statistics": "exact"})
        model, objective = model_of(spec), objective_of(spec.data)

        def tested(parameters: Any) -> Mapping[str, float | None]:
            found = model.evaluate(parameters.astype(np.float32), model.inputs(test, sums))
            return objective.measured(*found.answers(test.labels))

        found: list[tuple[str, Mapping[str, float | None]]] = [
            (UNTRAINED, tested(model.initial(seed))),
            (CLASSIC, objective.measured(test.labels, classic(joined(hospitals), test))),
            (POOLED, trained_pooled(spec, hospitals, test, seed)),
            (ALONE, mean_alone(spec, hospitals, test, seed)),
            (FEDAVG, fedavg(spec, hospitals, test, seed, quantised=False).history[-1]),
            (ROUNDS, tested(play(spec, hospitals, sums, seed, plainly(spec, seed)))),
        ]
    return [
        {
            "data": DATA, "model": name, "method": method, "epsilon": None, "seed": seed, "metric": metric,
            "value": round(values[metric] or 0.0, 4),
        }
        for method, values in found for metric in spec.data.asked.shown
    ]  # fmt: skip


def measure(quick: bool) -> Iterator[dict[str, Any]]:
    rounds, seeds, stays = (2, 1, 60) if quick else (15, SEEDS, STAYS)
    rows = list[dict[str, Any]]()
    what = (
        "metrics on all hospitals' test stays; `alone` is the mean of four models, each tested on all."
        f" {stays} stays a hospital"
    )
    for name in MODELS:
        for seed in range(seeds):
            rows += study(name, seed, rounds, stays)
            yield {"what": what, "rounds": rounds, "rows": columns_of(rows, ROWS_BY)}
        say(name)


def plot(result: dict[str, Any], folder: Path) -> None:
    """AUC by method: the mean of the seeds, and from the least to the most."""
    from bench.client.learning import groups, summary

    kinds = groups(result)
    drawn, axes = figure(8.5, 2.6 * len(kinds), rows=len(kinds))
    for axis, (model, data) in zip(axes, kinds, strict=True):
        methods = summary(result, model, data)[::-1]
        for index, (_, values) in enumerate(methods):
            axis.plot([min(values["auc"]), max(values["auc"])], [index, index], color="#2f6f9f", linewidth=1.2)
            axis.plot([np.mean(values["auc"])], [index], "o", color="#2f6f9f")
        axis.set_yticks(range(len(methods)), [label for label, _ in methods])
        axis.set_title(f"{data}, {model}", loc="left")
        axis.set_xlabel("AUC")
    write_figure(folder, "learning_series", drawn)


table = table_of_learning
