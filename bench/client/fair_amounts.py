"""Late scores of honest cohorts that answer with amounts and times, and the share that chance rejects, by metric.

Three of six differing sites make a cohort, 500 rows each; three voters judge. `short`: the steps that `consilium task
new` drafts. `floor`, `harmful`: thresholds that `consilium operator check` proposes for the defaults, null for losses
whose default ones it lets pass. `voter`, `common`: deviations of one voter's scores and of a cohort's mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from consilium_chain.tasks.fairness import fair_thresholds
from consilium_chain.tasks.judging_spec import JudgingSpec
from consilium_chain.tasks.questions import Metric
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.models import model_of, start_of
from consilium_client.models.objectives import objective_of
from consilium_lab.adversaries.nodes import SIGN_FLIP_FACTOR
from consilium_operators.task_text import AMOUNT_LEARNING, LEARNING
from numpy.typing import NDArray

from bench.client.judged_cohorts import SITE_ROWS, SITES, updates
from bench.results_store import COLOURS, figure, say, write_figure

Reals = NDArray[np.float64]
COLUMNS, ROUNDS, FIRST_JUDGED, VOTERS, SEATS = 12, 5, 2, 15, 3
SIZES, TASKS = (50, 200, 1_000), 3
MEANS_VARY, COEFFICIENTS_VARY = 0.2, 0.1  # between sites
USUAL = JudgingSpec()


@dataclass(frozen=True)
class Asked:
    """`answers`: labels from true scores (n,), by a draw. `terms`: sections of training, by name."""

    question: Mapping[str, Any]
    metrics: tuple[Metric, ...]
    answers: Callable[[np.random.Generator, Reals], Reals]
    terms: Mapping[str, Mapping[str, Any]]


def _amounts(random: np.random.Generator, scores: Reals) -> Reals:
    return np.clip(scores + random.standard_normal(len(scores)), -8, 8)[:, None]


def _times(random: np.random.Generator, scores: Reals) -> Reals:
    times, last = random.exponential(60 * np.exp(-scores)), random.uniform(10, 150, len(scores))
    return np.stack([np.minimum(times, last), times <= last], axis=1)


def _terms(learning: Mapping[str, Any]) -> dict[str, Any]:
    return {name: learning[name] for name in ("training", "update")}


ASKED = {
    "amount": Asked(
        {"kind": "regression", "label": "y", "min": -8, "max": 8, "mean": 0, "deviation": 1.4},
        ("squared_error", "absolute_error", "r2"), _amounts, {"defaults": {}, "short": _terms(AMOUNT_LEARNING)},
    ),
    "time": Asked(
        {"kind": "survival", "time": "t", "event": "e", "bounds": [30, 60, 90, 120]}, ("log_loss", "brier", "c_index"),
        _times, {"defaults": {}, "drafted": _terms(LEARNING)},
    ),
}  # fmt: skip


def spec_of(asked: Asked, sections: Mapping[str, Any]) -> TaskSpec:
    columns = [{"name": f"x{k}", "min": -6, "max": 6, "mean": 0, "deviation": 1} for k in range(COLUMNS)]
    return TaskSpec.model_validate(
        {
            "name": "amounts", "data": {"question": asked.question, "features": columns}, "model": {"name": "logistic"},
            "judging": {"metric": asked.metrics[0]}, **sections,
        }
    )  # fmt: skip


def played(asked: Asked, sections: Mapping[str, Any], seed: int) -> Iterator[tuple[int, bool, Reals]]:
    """Rows of a voter, honesty, and scores (voters, metrics) of each judged cohort of one task."""
    spec, random = spec_of(asked, sections), np.random.default_rng(seed)
    model, measures = model_of(spec), objective_of(spec.data).measures
    direction = random.standard_normal(COLUMNS)
    truth = direction / np.linalg.norm(direction)

    def drawn(rows: int) -> tuple[NDArray[np.float32], Reals]:
        own = truth + random.normal(0, COEFFICIENTS_VARY, COLUMNS)
        columns = random.normal(random.normal(0, MEANS_VARY, COLUMNS), 1, (rows, COLUMNS)).astype(np.float32)
        return columns, asked.answers(random, columns @ own)

    def worths(parameters: Reals, rows: tuple[NDArray[np.float32], Reals]) -> list[float]:
        answers = model.evaluate(parameters.astype(np.float32), rows[0]).predictions
        return [measures[metric].worth(rows[1], answers) for metric in asked.metrics]

    sites = [drawn(SITE_ROWS) for _ in range(SITES)]
    voters = {rows: [drawn(rows) for _ in range(VOTERS)] for rows in SIZES}
    base = start_of(spec, seed).astype(np.float64)
    for number in range(1, ROUNDS + 1):
        sent = updates(spec, base.astype(np.float32), sites, 1_000 * seed + 10 * number)  # type: ignore[arg-type]
        order = random.permutation(SITES)
        cohorts = [(True, sent[order[: SITES // 2]].mean(axis=0)), (True, sent[order[SITES // 2 :]].mean(axis=0))]
        cohorts.append((False, SIGN_FLIP_FACTOR * cohorts[0][1]))
        for rows, those in voters.items() if number >= FIRST_JUDGED else ():
            before = np.array([worths(base, own) for own in those])
            for is_honest, step in cohorts:
                yield rows, is_honest, np.array([worths(base + step, own) for own in those]) - before
        base = base + sent.mean(axis=0)


def measure(quick: bool) -> dict[str, Any]:
    tasks, rows = 1 if quick else TASKS, []
    for name, asked in ASKED.items():
        for terms, sections in asked.terms.items():
            say(f"{name}, {terms}")
            scored = [one for seed in range(tasks) for one in played(asked, sections, seed)]
            rows += [_row(name, terms, asked, scored, size, index) for index in range(3) for size in SIZES]
    return {"what": __doc__, "tasks": tasks, "rounds": ROUNDS, "rows": rows}


def _row(
    name: str, terms: str, asked: Asked, scored: list[tuple[int, bool, Reals]], size: int, index: int
) -> dict[str, Any]:
    honest, flipped = (
        np.stack([scores[:, index] for rows, is_honest, scores in scored if (rows, is_honest) == (size, truth)])
        for truth in (True, False)
    )
    metric = asked.metrics[index]
    judging = USUAL.model_copy(
        update={"metric": metric, "least_rows": size, "least_of_class": size // 3, "seats": SEATS, "max_voters": SEATS}
    )
    fair = fair_thresholds(judging) or (None, None)
    by_default, slashed = (_share(honest, limit) for limit in (USUAL.accept_floor, USUAL.harmful_below))
    return {
        "question": name, "terms": terms, "metric": metric, "rows": size, "voter": _rounded(honest.std(axis=1).mean()),
        "common": _rounded(honest.mean(axis=1).std()), "mean": _rounded(honest.mean()), "rejected": by_default,
        "slashed": slashed, "floor": fair[0], "harmful": fair[1], "rejected_proposed": _share(honest, fair[0]),
        "slashed_proposed": _share(honest, fair[1]), "sign": _share(flipped, USUAL.accept_floor),
        "sign_proposed": _share(flipped, fair[0]),
    }  # fmt: skip


def _share(scores: Reals, below: float | None) -> float | None:
    """Of cohorts whose median of a committee is below; each five voters in turn make one."""
    if below is None:
        return None
    medians = np.median(scores.reshape(len(scores), -1, SEATS), axis=2)
    return _rounded(float(np.mean(medians < below)))


def _rounded(value: float) -> float:
    return round(float(value), 4)


def table(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = []
    for row in result["rows"]:
        text = (
            f"{row['rejected']:.0%} rejected, {row['slashed']:.0%} slashed by default; sign-flipped {row['sign']:.0%}"
        )
        if row["floor"] is not None:
            text += f"; by {row['floor']:g} and {row['harmful']:g} {row['rejected_proposed']:.0%},"
            text += f" {row['slashed_proposed']:.0%}; sign-flipped {row['sign_proposed']:.0%}"
        found.append((f"{row['question']}, {row['terms']}, {row['metric']}, {row['rows']} rows", text))
    return found


def plot(result: Mapping[str, Any], folder: Path) -> None:
    """Honest cohorts that the usual thresholds reject, and those that the check's do."""
    drawn, axes = figure(11, 3.2, columns=4, rows=1)
    names = [(name, terms) for name, asked in ASKED.items() for terms in asked.terms]
    for one, (name, terms) in zip(axes, names, strict=True):
        for metric, colour in zip(ASKED[name].metrics, ("scoring", "drawing", "committing"), strict=True):
            own = [r for r in result["rows"] if (r["question"], r["terms"], r["metric"]) == (name, terms, metric)]
            for field, line in (("rejected", "-"), ("rejected_proposed", ":")):
                shares = [np.nan if row[field] is None else 100 * row[field] for row in own]
                label = metric if line == "-" else None
                one.plot(SIZES, shares, line, marker="o", color=COLOURS[colour], label=label)
        one.set(xscale="log", xticks=SIZES, xticklabels=[f"{size:,}" for size in SIZES], ylim=(-4, 104))
        one.minorticks_off()
        one.set_title(f"{name}, {'default' if terms == 'defaults' else 'drafted'} training")
        one.set_xlabel("rows of a voter")
        one.legend(frameon=False, fontsize=8)
    axes[0].set_ylabel("honest cohorts rejected, %\n(dotted: as the check allows)")
    write_figure(folder, "fair_amounts", drawn)
