"""Membership inference on a task's published sums: the nearest measured figures for a task.

`bench/client/membership.py` measured them. The nearest setting has at most the task's noise, rows and hospitals.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from consilium_chain.tasks.task_spec import TaskSpec

FILE = Path(__file__).with_name("membership.json")
ONE_STEP, MANY_STEPS = "one step a round", "many steps a round"
LEAST_MANY = 12  # steps of the fewest that were measured as many
EPSILONS = (3.0, 8.0)


def noised(epsilon: float) -> str:
    return f"epsilon {epsilon:g}"


@dataclass(frozen=True)
class Measured:
    """`rows` of each hospital, `hospitals` in the sum. `auc`: of the better of two attackers over all rounds, with its
    standard `error`. `found`: the share of members that it finds with at most 5 % false alarms."""

    model: str
    training: str
    rows: int
    hospitals: int
    auc: float
    error: float
    found: float


@cache
def measured() -> tuple[Measured, ...]:
    return tuple(Measured(**row) for row in json.loads(FILE.read_text(encoding="utf-8"))["rows"])


def nearest(spec: TaskSpec, rows: int, hospitals: int) -> Measured:
    """For a hospital with `rows` (≥ 1) rows, in a sum of `hospitals` (≥ 1)."""
    model = "logistic" if spec.model.name == "logistic" else "mlp"
    alike = [one for one in measured() if (one.model, one.training) == (model, training_of(spec, rows))]
    fewer = _at_most(rows, [one.rows for one in alike])
    of_rows = [one for one in alike if one.rows == fewer]
    in_sum = _at_most(hospitals, [one.hospitals for one in of_rows])
    return next(one for one in of_rows if one.hospitals == in_sum)


def training_of(spec: TaskSpec, rows: int) -> str:
    """Label of the smallest measured epsilon that is not below the task's; above all of them, a label without noise."""
    if spec.privacy is not None:
        for epsilon in EPSILONS:
            if spec.privacy.epsilon <= epsilon:
                return noised(epsilon)
    steps = spec.training.steps_on(rows)
    return MANY_STEPS if steps >= LEAST_MANY else ONE_STEP


def in_words(spec: TaskSpec, rows: int) -> str:
    """The nearest figures as sentences for a hospital with `rows` (≥ 1) rows."""
    together = nearest(spec, rows, spec.rounds.min_cohort_size if spec.update.masked else 1)
    alone = nearest(spec, rows, 1)
    things = spec.data.things
    sentences = [
        f"Of {rows:,} {things} like yours, an attacker who knows candidate {things} tells members from others with AUC"
        f" {together.auc:.2f} (0.5 is a guess, 1 is certain).",
        f"It finds {together.found:.0%} of them at 5% false alarms.",
    ]
    if together != alone:
        sentences.append(f"If the others of your cohort conspire: AUC {alone.auc:.2f}, {alone.found:.0%} found.")
    measured_on = f"{together.rows} rows each, a sum of {together.hospitals}, {together.model}, {together.training}"
    return " ".join([*sentences, _beyond(spec), f"Measured on {measured_on} (docs/privacy.md)."])


def _beyond(spec: TaskSpec) -> str:
    if spec.privacy is None:
        return "Without [privacy] nothing bounds better attackers."
    if spec.privacy.epsilon > EPSILONS[-1]:
        return f"No epsilon above {EPSILONS[-1]:g} was measured: these figures are without noise."
    return "Epsilon bounds all other attackers, too."


def _at_most(wanted: int, values: Sequence[int]) -> int:
    """The largest value up to `wanted`, or the smallest of all. Fewer rows or hospitals are less private."""
    return max((value for value in values if value <= wanted), default=min(values))
