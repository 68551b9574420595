"""The text of a drafted task, as an operator would write it: TOML with a comment where a choice is the operator's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tomli_w
from consilium_chain.tasks.data_schemas import TableSchema, TextSchema
from consilium_chain.tasks.fairness import AMOUNTS, LOSSES, MANY_OF_CLASS, fair_thresholds
from consilium_chain.tasks.features import CategoryFeature, Feature
from consilium_chain.tasks.judging_spec import MIN_MASKED, JudgingSpec
from consilium_chain.tasks.money_spec import MoneySpec
from consilium_chain.tasks.questions import Question, Regression
from consilium_client.data.mapping import Mapping as ColumnMapping
from consilium_core.visible_text import shown

from consilium_operators.drafting import Draft

# For a logistic model of a table whose columns are near the schema's means and deviations. tests/lab/test_own_table.py
# holds them against training on pooled rows.
LEARNING: Mapping[str, Mapping[str, Any]] = {
    "training": {"epochs": 8, "batch_size": 32, "learning_rate": 0.2},
    "update": {"bits": 16, "value_range": 2.0, "clip_norm": 4.0},
    "judging": {"accept_floor": -0.05, "harmful_below": -0.15, "tolerance": 0.05, "tolerance_bps": 5_000},
}
# Few rounds, large batches, long steps (`bench/client/learning.py`). Noise moves scores, so thresholds are wide.
PRIVATE_LEARNING: Mapping[str, Mapping[str, Any]] = {
    "training": {"epochs": 3, "batch_size": 64, "learning_rate": 1.0},
    "update": {"bits": 16, "value_range": 2.0, "clip_norm": 6.0},
    "judging": {"accept_floor": -0.2, "harmful_below": -0.5, "tolerance": 0.2, "tolerance_bps": 5_000},
}
# Of texts, and of small adapters beside a frozen encoder The demo has them, too.
TEXT_LEARNING: Mapping[str, Mapping[str, Any]] = {
    "training": {"optimizer": "adamw", "epochs": 1, "batch_size": 16, "learning_rate": 0.005},
    "update": {"bits": 8, "value_range": 0.05, "clip_norm": 2.0},
    "judging": {"accept_floor": -0.3, "harmful_below": -1.0, "tolerance": 0.3, "tolerance_bps": 5_000},
}
# A squared error's gradient is far longer than a logarithmic loss's, so steps are short (bench fair_amounts).
AMOUNT_LEARNING: Mapping[str, Mapping[str, Any]] = {
    **LEARNING,
    "training": {"epochs": 8, "batch_size": 32, "learning_rate": 0.02},
}
RANK_DECAY = 8_500
RANK_FLOOR = 0.01  # of log loss: copies of the base with noise stayed below it
# Fewer and longer rounds: repeating a short step of the last round's best still improves the model, and is paid for it.
ARENA_ROUNDS, ALONE_EPOCHS = 3, 4
# Chance moves the update of one hospital further than a cohort's mean. In an arena a bad one earns nothing anyway.
ALONE_HARMS = 5
MOST_WEIGHT = 32
VOTERS_TO_DRAW_FROM = 4
ROUNDS = 5


WEIGHED = "A hospital's weight: its rows / rows_per_weight, at most max_weight."
ALONE = "Each trains alone, and its update is public (docs/arena.md)."
RANKED = " Each rank earns rank_decay_bps / 10,000 of the one before."
USED = "Below accept_floor a cohort is not used and not paid;\n# below"
BEST = "The best is the next base. Below rank_floor a cohort is not paid;\n# below"


@dataclass(frozen=True)
class Terms:
    """The parties that a drafted task expects. `rows`: of the largest hospital. `epsilon`: None without privacy.
    `metric`: None for the question's loss. `arena`: each hospital trains alone, and pay falls by rank.
    """

    name: str
    hospitals: int = 4
    voters: int = 5
    rows: int = 10 * MOST_WEIGHT
    epsilon: float | None = None
    source: str = "the table"
    metric: str | None = None
    arena: bool = False

    @property
    def masked(self) -> bool:
        return self.hospitals >= MIN_MASKED and not self.arena


def default_cohorts(hospitals: int, size: int) -> int:
    """Two, or one if the hospitals are few. `size`: hospitals of a cohort at least."""
    return max(1, min(2, hospitals // size))


def least_hospitals(hospitals: int, cohorts: int, size: int) -> int:
    return max(size * cohorts, min(2, hospitals))


def rows_per_weight(most_rows: int) -> int:
    """So that the largest hospital has the most weight, and no other one as much."""
    return max(1, math.ceil(most_rows / MOST_WEIGHT))


def default_seats(voters: int) -> int:
    """One less than the voters, so that chance decides. Few voters all get a seat: with two expected seats for three
    voters, one round of 27 has no seat and is void.
    """
    return voters - 1 if voters >= VOTERS_TO_DRAW_FROM else voters


def with_bond(money: MoneySpec, rounds: int) -> MoneySpec:
    """With the bond that the aggregator must have for so many rounds, if none is set."""
    if "aggregator_bond" in money.model_fields_set:
        return money
    bond = max(money.aggregator_bond, money.least_aggregator_bond(rounds))
    return money.model_copy(update={"aggregator_bond": bond})


Settings = Mapping[str, Any]


def for_arena(
    hospitals: int, rounds: Settings, training: Settings, judging: Settings
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The sections [rounds], [training] and [judging] with an arena's keys (docs/arena.md)."""
    alone = {"rounds": ARENA_ROUNDS, "cohorts": hospitals, "min_cohort_size": 1, "max_hospitals": hospitals}
    return (
        {**rounds, **alone, "min_hospitals": min(2, hospitals), "max_weight": 1},
        {**training, "epochs": ALONE_EPOCHS * training["epochs"]},
        {**judging, "rank_floor": RANK_FLOOR, "harmful_below": ALONE_HARMS * judging["harmful_below"]},
    )


def task_text(draft: Draft, terms: Terms) -> str:
    """A task file that `parse_task_spec` accepts."""
    asked, is_text = draft.schema.asked, isinstance(draft.schema, TextSchema)
    usual = TEXT_LEARNING if is_text else AMOUNT_LEARNING if isinstance(asked, Regression) else LEARNING
    learning = PRIVATE_LEARNING if terms.epsilon is not None else usual
    size = MIN_MASKED if terms.masked else 1
    cohorts, seats = default_cohorts(terms.hospitals, MIN_MASKED), default_seats(terms.voters)
    rounds = {
        "rounds": ROUNDS, "cohorts": cohorts, "min_cohort_size": size,
        "min_hospitals": least_hospitals(terms.hospitals, cohorts, size), "max_hospitals": terms.hospitals,
        "rows_per_weight": rows_per_weight(terms.rows), "max_weight": MOST_WEIGHT,
    }  # fmt: skip
    training = dict(learning["training"])
    judging = _judging(terms, asked, {"max_voters": terms.voters, "seats": seats, **learning["judging"]})
    if terms.arena:
        rounds, training, judging = for_arena(terms.hospitals, rounds, training, judging)
    bond = with_bond(MoneySpec(), rounds["rounds"]).aggregator_bond
    money = {"pool": MoneySpec().pool, "aggregator_bond": bond}
    parts = [
        "# Every key, with its unit and bounds: `consilium task reference`. Checked by `consilium operator check`.\n"
        + _lines({"name": terms.name}),
        "# The shape of all rows. It becomes public, so each range, mean and deviation must come from the literature.\n"
        f"# Those below are rounded from {shown(terms.source)}. Replace them before you propose the task.\n"
        + _section("data", _data(draft.schema)),
        *(_feature(one, draft.codes.get(one.name)) for one in getattr(draft.schema, "features", [])),
        '[model]\nname = "lora"\nmax_tokens = 48             # of each text\n'
        if is_text
        else '[model]\nname = "logistic"            # or "mlp" with hidden = [16]\n',
        _privacy(terms.epsilon),
        _section("training", training),
        "# An update is clipped to this norm, and each value to this range: both about twice an honest update's.\n"
        + _section("update", {**learning["update"], "masked": terms.masked}),
        f"# Hospitals join between these bounds. {ALONE if terms.arena else WEIGHED}\n" + _section("rounds", rounds),
        f"# Scores are gains by {judging.get('metric', 'log_loss')} on voters' rows."
        f" {BEST if terms.arena else USED} harmful_below it is slashed.\n" + _section("judging", judging),
        f"# Whole tokens.{RANKED if terms.arena else ''}\n"
        + _section("money", {**money, **({"rank_decay_bps": RANK_DECAY} if terms.arena else {})}),
        "# Seconds. A phase ends early when all have acted.\n"
        + _section(
            "windows", {"join": 86_400, "commit": 3_600, "upload": 900, "publish": 300, "score": 1_800, "reveal": 600}
        ),
    ]
    return "\n".join(parts)


def _judging(terms: Terms, asked: Question, usual: Mapping[str, Any]) -> dict[str, Any]:
    """With thresholds that are fair for the metric, and the rows that it needs of voters."""
    metric = terms.metric or asked.metrics[0]
    judging = {**usual, "min_reveals": max(1, usual["seats"] // 2)}
    if metric != "log_loss":
        judging = {"metric": metric, **judging}
    if metric not in (*LOSSES, *AMOUNTS):
        judging |= {"least_rows": 10 * MANY_OF_CLASS, "least_of_class": MANY_OF_CLASS}
    if fair := fair_thresholds(JudgingSpec.model_validate(judging)):
        judging["accept_floor"], judging["harmful_below"] = fair
    return judging


def _data(schema: TableSchema | TextSchema) -> dict[str, Any]:
    own = {"kind": "text", "text": schema.text} if isinstance(schema, TextSchema) else {}
    if schema.question is None:
        return {**own, "label": schema.label, "classes": schema.classes}
    return {**own, "question": schema.question.model_dump(mode="json", exclude_defaults=True)}


def mapping_text(mapping: ColumnMapping, table: str) -> str:
    """The mapping that reads the sample's table, as TOML."""
    given: dict[str, Any] = mapping.model_dump(mode="json", exclude_defaults=True)
    head = f"# Reads {table}. A column without a line has the task's name; columns that the task lacks are not read.\n"
    return head + (tomli_w.dumps(given) if given else "")


def _section(name: str, values: Mapping[str, Any]) -> str:
    return f"[{name}]\n{_lines(values)}"


def _lines(values: Mapping[str, Any]) -> str:
    """Keys with values in one line each: whole numbers without a point, arrays in brackets."""
    return "".join(f"{name} = {_value(value)}\n" for name, value in values.items())


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{name} = {_value(one)}' for name, one in value.items())} }}"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return tomli_w.dumps({"it": value}).removeprefix("it = ").rstrip("\n")


def _privacy(epsilon: float | None) -> str:
    if epsilon is None:
        return (
            "# Without [privacy] nothing bounds how much the sums show of a row. `consilium task new --epsilon 8`\n"
            "# writes it, and a training section of few long steps that learns with its noise.\n"
        )
    return _section("privacy", {"epsilon": epsilon, "max_grad_norm": 1.0})


def _feature(feature: Feature, codes: list[str] | None) -> str:
    values = feature.model_dump(mode="json", exclude_none=True)
    if not isinstance(feature, CategoryFeature):
        del values["kind"]
    lines = ["[[data.features]]"]
    if codes is not None:
        lines.append("# " + ", ".join(f"{number}: {shown(text)}" for number, text in enumerate(codes)))
    return "\n".join(lines) + "\n" + _lines(values)
