"""How often chance rejects or slashes honest cohorts, by metric, prevalence and rows, and the harm that fails.

Each row is one metric on voters of so many rows, over all rounds of all tasks. `check`: the verdict of `consilium
operator check` on the usual thresholds. `floor`, `harmful`: the thresholds that it lets pass, null if none are any use.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from consilium_chain.tasks.fairness import MOST_REJECTED, MOST_SLASHED, fair_thresholds, unfairness
from consilium_chain.tasks.judging_spec import JudgingSpec
from consilium_chain.tasks.questions import Metric
from consilium_lab.result_files import columns_of, rows_again
from consilium_operators.task_text import LEARNING
from numpy.typing import NDArray

from bench.client.judged_cohorts import (
    HONEST,
    LABELS,
    LABELS_TEN,
    METRICS,
    NOISE,
    ONE_SIGN,
    ROUNDS,
    SCALED,
    SIGN,
    SITE_ROWS,
    SITES,
    VOTERS,
    Scored,
    asked_of_class,
    calibration,
    played,
    task_of,
)
from bench.results_store import COLOURS, figure, say, write_figure

TASKS, COMMITTEES = 3, 60
DRAWN: tuple[Metric, ...] = ("log_loss", "accuracy", "auc", "macro_f1")
FIRST_SEED = 100  # the check's constants were fitted to tasks 0 to 7
PREVALENCES, SIZES = (0.01, 0.05, 0.1, 0.5), (50, 200, 1_000)
ROUNDS_CALIBRATED = 4
HARMS = {
    SIGN: "sign", LABELS: "labels", ONE_SIGN: "one_sign", LABELS_TEN: "labels_ten", NOISE: "noise", SCALED: "scaled",
}  # fmt: skip
BY = ("terms", "metric")
COLOUR = dict(zip(PREVALENCES, ("scoring", "drawing", "committing", "publishing"), strict=True))


@dataclass(frozen=True)
class Terms:
    """`sections`: of training. `judging`: the thresholds that go with it."""

    name: str
    sections: Mapping[str, Any]
    judging: JudgingSpec


DEFAULTS = Terms("defaults", {}, JudgingSpec())
DRAFTED = Terms(
    "drafted", {name: LEARNING[name] for name in ("training", "update")},
    JudgingSpec(**LEARNING["judging"], min_reveals=2),
)  # fmt: skip


def measure(quick: bool) -> dict[str, Any]:
    tasks, prevalences, sizes = (1, PREVALENCES[2:], SIZES[:2]) if quick else (TASKS, PREVALENCES, SIZES)
    rows, calibrated, seeds = [], [], range(FIRST_SEED, FIRST_SEED + tasks)
    for terms in (DEFAULTS, DRAFTED):
        for prevalence in prevalences:
            say(f"{terms.name}, prevalence {prevalence:g}")
            spec = task_of(terms.sections)
            scored = [one for seed in seeds for one in played(spec, prevalence, seed, sizes)]
            rows += judged(terms, prevalence, sizes, scored)
            calibrated.append(_calibrated(terms, prevalence, seeds))
    return {
        "what": __doc__, "sites": SITES, "rows_a_site": SITE_ROWS, "rounds": ROUNDS, "tasks": tasks,
        "voters": f"{DEFAULTS.judging.max_voters} of {VOTERS}, {DEFAULTS.judging.seats} seats",
        "limits": {"rejected": MOST_REJECTED, "slashed": MOST_SLASHED},
        "calibration": calibrated, "rows": columns_of(rows, BY),
    }  # fmt: skip


def judged(terms: Terms, prevalence: float, sizes: Sequence[int], scored: Iterable[Scored]) -> list[dict[str, Any]]:
    """A row for each metric and number of rows."""
    by: dict[tuple[int, str], list[NDArray[np.float64]]] = defaultdict(list)
    for one in scored:
        by[one.rows, one.conduct].append(one.scores)
    found = []
    for index, metric in enumerate(METRICS):
        for rows in sizes:
            of_class = asked_of_class(prevalence, rows)
            judging = terms.judging.model_copy(
                update={"metric": metric, "least_rows": rows, "least_of_class": of_class}
            )
            usual = (judging.accept_floor, judging.harmful_below)
            is_fair, proposed = _checked(terms, judging)
            medians = {
                conduct: _medians(np.stack(by[rows, conduct])[..., index], judging) for conduct in (HONEST, *HARMS)
            }
            row = {
                "terms": terms.name, "metric": metric, "prevalence": prevalence, "rows": rows, "of_class": of_class,
                "check": "fair" if is_fair else "refused", "floor": proposed[0], "harmful": proposed[1],
            }  # fmt: skip
            for when, (floor, harmful) in (("", usual), ("_proposed", proposed)):
                row[f"rejected{when}"] = _share(medians[HONEST], floor)
                row[f"slashed{when}"] = _share(medians[HONEST], harmful)
                row |= {f"{name}{when}": _share(medians[conduct], floor) for conduct, name in HARMS.items()}
            found.append(row)
    return found


def _checked(terms: Terms, judging: JudgingSpec) -> tuple[bool, tuple[float, float] | tuple[None, None]]:
    """The check's verdict, and the thresholds that it lets pass."""
    spec = task_of(terms.sections)
    if not unfairness(spec.model_copy(update={"judging": judging})):
        return True, (judging.accept_floor, judging.harmful_below)
    found = fair_thresholds(judging)
    if found is None:
        return False, (None, None)
    other = judging.model_copy(update={"accept_floor": found[0], "harmful_below": found[1]})
    return False, (None, None) if unfairness(spec.model_copy(update={"judging": other})) else found


def _medians(scores: NDArray[np.float64], judging: JudgingSpec) -> NDArray[np.float64]:
    """Lower medians of committees, (cohorts, COMMITTEES). `scores`: (cohorts, VOTERS)."""
    random = np.random.default_rng(0)
    found = []
    for _ in range(COMMITTEES):
        seated = np.zeros(0, dtype=np.int64)
        while len(seated) < judging.min_reveals:
            joined = random.permutation(VOTERS)[: judging.max_voters]
            seated = joined[random.random(judging.max_voters) < judging.seats / judging.max_voters]
        found.append(np.sort(scores[:, seated], axis=1)[:, (len(seated) - 1) // 2])
    return np.stack(found, axis=1)


def _share(medians: NDArray[np.float64], below: float | None) -> float | None:
    return None if below is None else round(float(np.mean(np.rint(medians * 1e6) < round(below * 1e6))), 4)


def _calibrated(terms: Terms, prevalence: float, seeds: Sequence[int]) -> dict[str, Any]:
    """Mean probability after `ROUNDS_CALIBRATED`, started from even odds and from the stated prevalence."""
    starts = {"even": task_of(terms.sections), "stated": task_of(terms.sections, prevalence)}
    pairs = {
        start: [calibration(spec, prevalence, seed, ROUNDS_CALIBRATED) for seed in seeds]
        for start, spec in starts.items()
    }
    row: dict[str, Any] = {"terms": terms.name, "prevalence": prevalence, "rounds": ROUNDS_CALIBRATED}
    row["share"] = round(fmean(share for _, share in pairs["even"]), 4)
    return row | {start: round(fmean(mean for mean, _ in found), 4) for start, found in pairs.items()}


def _rows(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    return rows_again(result["rows"])


def _worst(rows: Sequence[Mapping[str, Any]], field: str) -> str:
    found = [float(row[field]) for row in rows if row[field] is not None]
    return f"{max(found):.1%}" if found else "none"


def table(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = []
    for terms in (DEFAULTS, DRAFTED):
        for metric in METRICS:
            rows = [row for row in _rows(result) if (row["terms"], row["metric"]) == (terms.name, metric)]
            let = [row for row in rows if row["check"] == "fair"]
            text = f"{_worst(rows, 'rejected')} rejected, {_worst(rows, 'slashed')} slashed at worst"
            text += f"; {len(rows) - len(let)} of {len(rows)} refused; with proposed thresholds"
            text += f" {_worst(rows, 'rejected_proposed')}, {_worst(rows, 'slashed_proposed')}"
            found.append((f"{terms.name}, {metric}", text))
    for row in result["calibration"]:
        found.append(
            (
                f"{row['terms']}, share {row['share']:.3f}",
                f"predicted {row['even']:.3f} from even odds, {row['stated']:.3f} from the stated prevalence",
            )
        )
    return found


def _percent(share: float | None) -> float:
    return math.nan if share is None else 100 * share


def plot(result: Mapping[str, Any], folder: Path) -> None:
    """Honest cohorts that the usual thresholds reject, and those that the check's do."""
    rows = _rows(result)
    drawn, axes = figure(11, 5.6, columns=len(DRAWN), rows=2)
    for line, (field, title) in enumerate(
        (("rejected", "thresholds by default"), ("rejected_proposed", "as the check allows"))
    ):
        for index, metric in enumerate(DRAWN):
            one = axes[line * len(DRAWN) + index]
            for prevalence in PREVALENCES:
                own = [
                    row for row in rows
                    if (row["terms"], row["metric"], row["prevalence"]) == (DEFAULTS.name, metric, prevalence)
                ]  # fmt: skip
                one.plot(
                    [row["rows"] for row in own], [_percent(row[field]) for row in own], marker="o",
                    color=COLOURS[COLOUR[prevalence]], label=f"{prevalence:.0%} in class 1",
                )  # fmt: skip
            one.axhline(100 * MOST_REJECTED, color=COLOURS["plain"], linestyle="--", linewidth=1)
            one.set(xscale="log", xticks=SIZES, xticklabels=[f"{size:,}" for size in SIZES], ylim=(-2, 62))
            one.minorticks_off()
            if line == 0:
                one.set_title(metric)
            else:
                one.set_xlabel("rows of a voter")
            if index == 0:
                one.set_ylabel(f"honest cohorts rejected, %\n{title}")
    axes[0].legend(frameon=False, fontsize=8)
    write_figure(folder, "fair_judging", drawn)
