"""Hospitals learn questions other than classes, and a rare class, on real tables of installed libraries.

Recurrence of breast cancer (GBSG2), progress of diabetes, and death within a year of a kidney's transplant (9 % of the
rows whose year is known). Hospitals are quarters of the ages, so each has other patients; a third of each hospital's
rows is for testing. As `learning`: rounds are played in this process by the nodes' own code. `classic` is the field's
usual model on all training rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.examples import joined
from consilium_client.data.standardise import sums_of
from consilium_client.models import model_of
from consilium_client.models.objectives import objective_of
from consilium_client.models.objectives.base import Objective
from consilium_lab.demo.datasets import DemoData, Frame, examples_of
from consilium_lab.demo.references import local_only, pooled, simulate_fedavg
from consilium_lab.result_files import columns_of
from lifelines import CoxPHFitter
from lifelines.datasets import load_gbsg2, load_kidney_transplant
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression, LogisticRegression
from threadpoolctl import threadpool_limits

from bench.client.learning import groups, summary
from bench.client.learning import table as table_of_learning
from bench.client.learning_rounds import ALONE, FEDAVG, POOLED, ROUNDS, plainly, play
from bench.results_store import figure, say, write_figure

SEEDS, HOSPITALS, HELD_OUT = 5, 4, 3
UNTRAINED, CLASSIC = "untrained", "classic"
ROWS_BY = ("data", "model", "method", "epsilon", "metric")
Classic = Callable[[NDArray[np.float64], Any, NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True)
class Kind:
    """`frame`: all rows. `classic`: from training inputs and labels, and test inputs, to predictions."""

    name: str
    frame: Callable[[], pd.DataFrame]
    schema: Mapping[str, Any]
    metric: str
    sections: Mapping[str, Any]
    classic: Classic


def _numbers(**columns: tuple[float, float]) -> list[dict[str, Any]]:
    return [{"name": name, "min": low, "max": high} for name, (low, high) in columns.items()]


def _codes(**columns: list[float]) -> list[dict[str, Any]]:
    return [{"kind": "category", "name": name, "values": values} for name, values in columns.items()]


def gbsg2() -> pd.DataFrame:
    found = load_gbsg2()
    found = found.assign(
        horTh=(found["horTh"] == "yes") * 1, menostat=(found["menostat"] == "Post") * 1,
        tgrade=found["tgrade"].map(len).astype(int), days=found["time"], recurred=found["cens"],
    )  # fmt: skip
    return pd.DataFrame(found)


def diabetes() -> pd.DataFrame:
    return pd.DataFrame(load_diabetes(as_frame=True, scaled=False).frame)


def transplants() -> pd.DataFrame:
    found = load_kidney_transplant()
    found = found[(found["time"] > 365) | (found["death"] == 1)]
    return pd.DataFrame(found.assign(died=((found["death"] == 1) & (found["time"] <= 365)) * 1))


def of_times(bounds: list[float]) -> Classic:
    """Cox's model (1972), with Breslow's estimate of the hazard."""

    def fitted(inputs: Any, labels: Any, tested: Any) -> NDArray[np.float64]:
        frame = pd.DataFrame(inputs).assign(time=labels[:, 0], event=labels[:, 1])
        model = CoxPHFitter(penalizer=1e-4).fit(frame, "time", "event")
        return np.asarray(model.predict_survival_function(pd.DataFrame(tested), times=bounds)).T

    return fitted


def _linear(inputs: Any, labels: Any, tested: Any) -> NDArray[np.float64]:
    return np.asarray(LinearRegression().fit(inputs, labels).predict(tested))


def _logistic(inputs: Any, labels: Any, tested: Any) -> NDArray[np.float64]:
    return np.asarray(LogisticRegression(C=1e3, max_iter=1_000).fit(inputs, labels).predict_proba(tested))


YEARS = [365.0, 730.0, 1_095.0, 1_461.0, 1_826.0]
KINDS = (
    Kind(
        "GBSG2, time to recurrence", gbsg2,
        {
            "question": {"kind": "survival", "time": "days", "event": "recurred", "bounds": YEARS, "unit": "days"},
            "features": [
                *_numbers(age=(20, 90), estrec=(0, 1200), pnodes=(0, 55), progrec=(0, 2400), tsize=(0, 130)),
                *_codes(horTh=[0, 1], menostat=[0, 1], tgrade=[1, 2, 3]),
            ],
        },
        "c_index", {"training": {"epochs": 1, "batch_size": 16, "learning_rate": 0.1}}, of_times(YEARS),
    ),
    Kind(
        "diabetes, progress in a year", diabetes,
        {
            "question": {
                "kind": "regression", "label": "target", "min": 0, "max": 400, "mean": 150, "deviation": 80,
            },
            "features": [
                *_numbers(age=(18, 90), bmi=(15, 50), bp=(50, 150), s1=(80, 320), s2=(30, 260), s3=(15, 110),
                          s4=(1, 11), s5=(3, 7), s6=(50, 140)),
                *_codes(sex=[1, 2]),
            ],
        },
        "r2", {"training": {"epochs": 1, "batch_size": 16, "learning_rate": 0.01}}, _linear,
    ),
    Kind(
        "kidney transplants, death in a year", transplants,
        {
            "label": "died", "classes": ["no", "yes"],
            "features": [
                *_numbers(age=(0, 90)), *_codes(black_male=[0, 1], white_male=[0, 1], black_female=[0, 1]),
            ],
        },
        "auc", {"training": {"epochs": 1, "batch_size": 16, "learning_rate": 0.1}}, _logistic,
    ),
)  # fmt: skip


def deal(kind: Kind, seed: int) -> DemoData:
    schema, frame = TableSchema.model_validate(kind.schema), kind.frame()
    frame = frame.sample(frac=1, random_state=seed).sort_values("age", kind="stable")[schema.used]
    sites: list[Frame] = [frame.iloc[part] for part in np.array_split(np.arange(len(frame)), HOSPITALS)]
    drawn = [np.random.default_rng([seed, at]).permutation(len(site)) for at, site in enumerate(sites)]
    tests = [site.iloc[order[: len(order) // HELD_OUT]] for site, order in zip(sites, drawn, strict=True)]
    train = [site.iloc[order[len(order) // HELD_OUT :]] for site, order in zip(sites, drawn, strict=True)]
    names = ["youngest", "younger", "older", "oldest"]
    return DemoData(kind.name, kind.name, schema, names, train, [pd.concat(tests)])


def spec_of(kind: Kind, data: DemoData, rounds: int) -> TaskSpec:
    return TaskSpec.model_validate({
        "name": "questions", "statistics": "exact", "data": data.schema.model_dump(), "model": {"name": "logistic"},
        "update": {"bits": 16, "value_range": 2.0, "clip_norm": 8.0}, "judging": {"metric": kind.metric},
        "money": {"pool": 1_000},
        "rounds": {"rounds": rounds, "max_hospitals": HOSPITALS, "rows_per_weight": 10}, **kind.sections,
    })  # fmt: skip


def study(at: int, seed: int, rounds: int) -> list[dict[str, Any]]:
    kind = KINDS[at]
    with threadpool_limits(1):
        data = deal(kind, seed)
        spec = spec_of(kind, data, rounds)
        hospitals, held_out = examples_of(data.hospitals, data.schema), joined(examples_of(data.held_out, data.schema))
        sums = np.sum([sums_of(part, data.schema) for part in hospitals], axis=0)
        model, objective = model_of(spec), objective_of(data.schema)

        def tested(parameters: Any) -> Mapping[str, float | None]:
            found = model.evaluate(parameters.astype(np.float32), model.inputs(held_out, sums))
            return objective.measured(*found.answers(held_out.labels))

        everything = joined(hospitals)
        predictions = kind.classic(
            model.inputs(everything, sums).astype(float), everything.labels, model.inputs(held_out, sums).astype(float)
        )
        found: list[tuple[str, Mapping[str, float | None]]] = [
            (UNTRAINED, tested(model.initial(seed))),
            (CLASSIC, _of_classic(objective, held_out.labels, predictions)),
            (POOLED, pooled(data, spec, seed)),
            (ALONE, local_only(data, spec, seed)),
            (FEDAVG, simulate_fedavg(data, spec, seed, quantised=False).history[-1]),
            (ROUNDS, tested(play(spec, hospitals, sums, seed, plainly(spec, seed)))),
        ]
    return [
        {
            "data": kind.name, "model": "logistic" if data.schema.classes else "linear", "method": method,
            "epsilon": None, "seed": seed, "metric": metric, "value": round(values[metric] or 0.0, 4),
        }
        for method, values in found for metric in data.schema.asked.shown
    ]  # fmt: skip


def _of_classic(objective: Objective, labels: Any, predictions: NDArray[np.float64]) -> dict[str, float | None]:
    return objective.measured(labels, predictions)


def measure(quick: bool) -> Iterator[dict[str, Any]]:
    rounds, seeds = (3, 1) if quick else (30, SEEDS)
    rows = list[dict[str, Any]]()
    for at, kind in enumerate(KINDS):
        for seed in range(seeds):
            rows += study(at, seed, rounds)
        say(kind.name)
    what = "metrics on all hospitals' test rows; `alone` is the mean of four models, each tested on all"
    yield {"what": what, "rounds": rounds, "rows": columns_of(rows, ROWS_BY)}


def plot(result: dict[str, Any], folder: Any) -> None:
    """The metric that judges each question, by method: more is better."""
    kinds, judged = groups(result), {kind.name: kind.metric for kind in KINDS}
    drawn, axes = figure(8.5, 2.6 * len(kinds), rows=len(kinds))
    for axis, (model, data) in zip(axes, kinds, strict=True):
        methods, metric = summary(result, model, data)[::-1], judged[data]
        for index, (_, values) in enumerate(methods):
            found = values[metric]
            axis.plot([min(found), max(found)], [index, index], color="#2f6f9f", linewidth=1.2)
            axis.plot([fmean(found)], [index], "o", color="#2f6f9f")
        axis.set_yticks(range(len(methods)), [label for label, _ in methods])
        axis.set_title(data, loc="left")
        axis.set_xlabel(metric)
    write_figure(folder, "learning_questions", drawn)


table = partial(table_of_learning)
