"""The demo's task file: measured defaults for each data set, and the TOML that an operator would write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tomli_w
from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.judging_spec import MIN_MASKED
from consilium_chain.tasks.money_spec import MoneySpec
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_core.typed_toml import validation_faults
from consilium_operators.task_text import (
    LEARNING,
    MOST_WEIGHT,
    PRIVATE_LEARNING,
    RANK_DECAY,
    ROUNDS,
    TEXT_LEARNING,
    default_cohorts,
    default_seats,
    for_arena,
    least_hospitals,
    rows_per_weight,
    with_bond,
)
from pydantic import ValidationError

from consilium_lab.demo.datasets import DemoData
from consilium_lab.demo.options import least_cohort

# Measured with seeds 0 to 4, six hospitals (heart: four) and five voters; test_demo_references.py checks them.
# value_range and clip_norm are twice the largest coordinate and norm of an honest update. The worst median of an honest
# cohort (SGD noise after convergence) stayed above accept_floor. A lone hospital that flips its labels, or sends its
# update times -10, stayed below harmful_below in every round. An update times -1 or -3 in a late round costs less than
# the noise: no threshold can separate it, and it does no harm.
DEFAULTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "wdbc": {
        "model": {"name": "logistic"},
        "training": {"epochs": 12, "batch_size": 64, "learning_rate": 0.2},
        "update": {"bits": 16, "value_range": 1.1, "clip_norm": 2.5},
        "rounds": {"rounds": 5, "rows_per_weight": 10, "max_weight": 32},
        "judging": {"accept_floor": -0.02, "harmful_below": -0.04, "tolerance": 0.05, "tolerance_bps": 5_000},
    },
    "heart": {
        "model": {"name": "logistic"},
        "training": {"epochs": 1, "batch_size": 32, "learning_rate": 0.1},
        "update": {"bits": 16, "value_range": 0.7, "clip_norm": 0.8},
        "rounds": {"rounds": 6, "rows_per_weight": 10, "max_weight": 32},
        "judging": {"accept_floor": -0.02, "harmful_below": -0.04, "tolerance": 0.03, "tolerance_bps": 5_000},
    },
    "medquad": {
        "model": {"name": "lora", "max_tokens": 48},
        **TEXT_LEARNING,
        "rounds": {"rounds": 4, "rows_per_weight": 10, "max_weight": 32},
    },
    "medquad-texts": {
        "training": {"optimizer": "adamw", "epochs": 1, "batch_size": 16, "learning_rate": 0.003},
        "update": {"bits": 8, "value_range": 0.05, "clip_norm": 4.0},
        "rounds": {"rounds": 4, "rows_per_weight": 10, "max_weight": 32},
        "judging": {"accept_floor": -0.1, "harmful_below": -0.3, "tolerance": 0.15, "tolerance_bps": 5_000},
    },
    "pneumonia": {
        "model": {"name": "cnn"},
        "training": {"optimizer": "adamw", "epochs": 1, "batch_size": 16, "learning_rate": 0.001},
        "update": {"bits": 8, "value_range": 0.15, "clip_norm": 4.0},
        "rounds": {"rounds": 5, "rows_per_weight": 50, "max_weight": 32},
        "judging": {"accept_floor": -0.1, "harmful_below": -0.3, "tolerance": 0.15, "tolerance_bps": 5_000},
    },
    "recurrence": {
        "model": {"name": "logistic"},
        **LEARNING,
        "rounds": {"rounds": 5, "rows_per_weight": 10, "max_weight": 32},
    },
    "table": {"model": {"name": "logistic"}, **LEARNING, "rounds": {"rounds": ROUNDS, "max_weight": MOST_WEIGHT}},
}


@dataclass(frozen=True)
class TaskSettings:
    """The settings of the demo's user. None takes the data set's default. The data give the number of parties.

    Without `money`, the aggregator's bond grows with its fee, and so with fewer rounds.
    """

    rounds: int | None = None
    cohorts: int | None = None  # by default two, or one if the hospitals are few
    seats: int | None = None
    windows: Mapping[str, int] | None = None
    money: Mapping[str, int] | None = None
    digests: bool = False
    masked: bool = True
    epsilon: float | None = None
    codec: Mapping[str, Any] | None = None
    model: Mapping[str, Any] | None = None
    sale: Mapping[str, int] | None = None
    arena: bool = False  # each hospital is alone in its cohort, and pay falls by rank
    strangers: int = 0  # so many more join as hospitals, and as many as voters, and do no work


def task_spec(data: DemoData, settings: TaskSettings = TaskSettings()) -> TaskSpec:
    """The demo's task for `data`. Raises SpecInvalid if the settings do not fit together."""
    defaults = {**DEFAULTS[data.name], **(PRIVATE_LEARNING if settings.epsilon else {})}
    private = {"privacy": {"epsilon": settings.epsilon, "max_grad_norm": 1.0}} if settings.epsilon else {}
    hospitals, voters = len(data.hospitals), len(data.held_out)
    strangers, size = settings.strangers, MIN_MASKED if settings.masked else 1
    room = least_cohort(strangers) if settings.masked else 1
    cohorts = settings.cohorts or default_cohorts(hospitals + strangers, room)
    rounds: dict[str, Any] = {
        "rows_per_weight": rows_per_weight(max(map(len, data.hospitals))),
        **defaults["rounds"],
        "cohorts": cohorts,
        "min_cohort_size": size,
        "min_hospitals": least_hospitals(hospitals, cohorts, size),
        "max_hospitals": hospitals + strangers,
    }
    judging, training = defaults["judging"], defaults["training"]
    given: dict[str, Any] = dict(settings.money or {})
    if settings.arena:
        rounds, training, judging = for_arena(hospitals, rounds, training, judging)
        given = {"rank_decay_bps": RANK_DECAY, **given}
    if settings.rounds is not None:
        rounds["rounds"] = settings.rounds
    money = with_bond(MoneySpec(**given), rounds["rounds"])
    # With strangers all have a seat, so that strangers never get the majority by chance.
    usual = voters + strangers if strangers else default_seats(voters)
    seats = settings.seats if settings.seats is not None else usual
    codec = {"codec": dict(settings.codec)} if settings.codec else {}
    model = {"model": dict(settings.model)} if settings.model else {}
    publication = "digests" if settings.digests else "blobs"
    settled = {
        **defaults,
        **private,
        **model,
        "name": f"demo-{data.name}",
        "data": data.schema.model_dump(),
        "update": {**defaults["update"], "publication": publication, "masked": settings.masked, **codec},
        "rounds": rounds,
        "training": training,
        "judging": {**judging, "max_voters": voters + strangers, "seats": seats},
        "windows": dict(settings.windows or {}),
        "money": money.model_dump(),
        **({"sale": dict(settings.sale)} if settings.sale else {}),
    }
    try:
        return TaskSpec.model_validate(settled)
    except ValidationError as error:
        raise SpecInvalid(f"these options make no task: {validation_faults(error)}") from error


def task_toml(data: DemoData, settings: TaskSettings = TaskSettings()) -> str:
    """The task file's text; `parse_task_spec` of its UTF-8 bytes gives `task_spec(data, settings)` again."""
    return tomli_w.dumps(task_spec(data, settings).model_dump(mode="json", exclude_none=True))
