"""The question that a task asks of each example: a class, an amount, a time until an event, several yes or no, or
each pixel's class.

Everything here is public, so ranges and bounds may not come from anybody's data. A new question is a class here, in
`AskedQuestion`, and an objective in `consilium_client.models.objectives`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from consilium_core.typed_toml import Section
from pydantic import AfterValidator, Field, model_validator

Metric = Literal[
    "log_loss", "accuracy", "auc", "macro_f1", "pr_auc", "calibration_error", "squared_error", "absolute_error", "r2",
    "c_index", "brier", "perplexity", "dice",
]  # fmt: skip

TITLES: Mapping[Metric, str] = {
    "log_loss": "log loss", "accuracy": "accuracy", "auc": "AUC", "macro_f1": "macro F1", "pr_auc": "PR-AUC",
    "calibration_error": "calibration error", "squared_error": "squared error", "absolute_error": "absolute error",
    "r2": "R²", "c_index": "C-index", "brier": "Brier score", "perplexity": "perplexity", "dice": "Dice",
}  # fmt: skip
"""For people."""

MAX_CLASSES = 256
MOST_BOUNDS = 64
MOST_LABELS = 64
MOST_MARKED = 32  # classes of a mask
LEAST_DEVIATION = 0.001  # of a range
MOST_BOUND = 1e300  # so that sums of many values stay finite

# A class is also a folder's name if examples are files. Cells have no surrounding spaces.
ClassName = Annotated[
    str, Field(min_length=1, max_length=100, pattern=r"^[^\s/\\\x00-\x1f]([^/\\\x00-\x1f]*[^\s/\\\x00-\x1f])?$")
]


def _summable(bound: float) -> float:
    if abs(bound) > MOST_BOUND:
        raise ValueError(f"a bound is at most {MOST_BOUND:g}: change the unit")
    return bound


Bound = Annotated[float, AfterValidator(_summable)]
ColumnName = Annotated[str, Field(min_length=1, max_length=100)]


class Question(ABC):
    """`columns`: those with the answer, which a node reads beside the inputs. `outputs`: a model's for each example.
    `metrics`: those that have a meaning; the first is the loss. `shown`: those of a table; more of the first is better.
    """

    metrics: ClassVar[tuple[Metric, ...]]
    shown: ClassVar[tuple[Metric, ...]]

    @property
    @abstractmethod
    def columns(self) -> list[str]: ...

    @property
    @abstractmethod
    def outputs(self) -> int: ...

    def codes(self, column: str) -> list[float] | None:
        """The numbers that a cell of one of its columns may have; None if it is measured."""
        return None

    @property
    @abstractmethod
    def in_words(self) -> str:
        """For a hospital's owner."""


@dataclass(frozen=True)
class Classification(Question):
    """One of several named classes. `label`: the column with it."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        "log_loss",
        "accuracy",
        "auc",
        "macro_f1",
        "pr_auc",
        "calibration_error",
        "brier",
    )
    shown: ClassVar[tuple[Metric, ...]] = ("accuracy", "auc", "log_loss")

    label: str
    classes: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        return [self.label]

    @property
    def outputs(self) -> int:
        """One logit for two classes (of class 1), otherwise one for each class."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    def codes(self, column: str) -> list[float] | None:
        return [float(number) for number in range(len(self.classes))]

    @property
    def in_words(self) -> str:
        return f"label {self.label} ({' or '.join(self.classes)})"


@dataclass(frozen=True)
class NextToken(Question):
    """Each next token of a text. No column has the answer."""

    metrics: ClassVar[tuple[Metric, ...]] = ("log_loss", "accuracy", "perplexity")
    shown: ClassVar[tuple[Metric, ...]] = ("accuracy", "log_loss", "perplexity")

    @property
    def columns(self) -> list[str]:
        return []

    @property
    def outputs(self) -> int:
        """One for a row; a program has logits for each of its tokens instead."""
        return 1

    @property
    def in_words(self) -> str:
        return "each next token"


class Regression(Section, Question):
    """An amount, clamped to [min, max]. A model's output is (amount − mean) / deviation."""

    metrics: ClassVar[tuple[Metric, ...]] = ("squared_error", "absolute_error", "r2")
    shown: ClassVar[tuple[Metric, ...]] = ("r2", "absolute_error", "squared_error")

    kind: Literal["regression"]
    label: ColumnName = Field(description="the column with the amount")
    min: Bound = Field(description="least amount; lower ones are clamped to it")
    max: Bound = Field(description="largest amount; higher ones are clamped to it")
    mean: float = Field(description="typical amount, from the literature: a model starts near it")
    deviation: float = Field(description="typical standard deviation, from the literature: errors count in it")
    unit: Annotated[str, Field(max_length=30)] = Field(default="", description="of the amount, as screens show it")

    @model_validator(mode="after")
    def _ordered(self) -> Regression:
        if not self.min < self.max:
            raise ValueError(f"question {self.label}: min must be below max")
        if not self.min <= self.mean <= self.max:
            raise ValueError(f"question {self.label}: the mean {self.mean:g} must lie between min and max")
        width = self.max - self.min
        if not LEAST_DEVIATION * width <= self.deviation <= width / 2:
            raise ValueError(
                f"question {self.label}: the deviation {self.deviation:g} must lie between a thousandth and a half of"
                f" the range, {LEAST_DEVIATION * width:g} and {width / 2:g}"
            )
        return self

    @property
    def columns(self) -> list[str]:
        return [self.label]

    @property
    def outputs(self) -> int:
        return 1

    @property
    def in_words(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return f"the amount {self.label} ({self.min:g} to {self.max:g}{unit})"


class Survival(Section, Question):
    """The time until an event, of which some rows only say that it had not happened yet (censored).

    A model has a logit of the hazard in each interval between two bounds, the first from 0 on (Gensheimer and
    Narasimhan, 2019).
    """

    metrics: ClassVar[tuple[Metric, ...]] = ("log_loss", "c_index", "brier")
    shown: ClassVar[tuple[Metric, ...]] = ("c_index", "brier", "log_loss")

    kind: Literal["survival"]
    time: ColumnName = Field(description="the column with the time until the event or the last news, from 0 on")
    event: ColumnName = Field(description="the column that has 1 if the event happened then, and 0 if not")
    bounds: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1, max_length=MOST_BOUNDS)] = Field(
        description="ends of the intervals, ascending, in the unit of time; what happens later is not asked"
    )
    unit: Annotated[str, Field(max_length=30)] = Field(default="", description="of the time, as screens show it")

    @model_validator(mode="after")
    def _ordered(self) -> Survival:
        if any(one >= other for one, other in pairwise(self.bounds)):
            raise ValueError("question: bounds must ascend")
        if self.time == self.event:
            raise ValueError(f"question: time and event are both {self.time}; name two columns")
        return self

    @property
    def columns(self) -> list[str]:
        return [self.time, self.event]

    @property
    def outputs(self) -> int:
        return len(self.bounds)

    def codes(self, column: str) -> list[float] | None:
        return [0.0, 1.0] if column == self.event else None

    @property
    def in_words(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return f"the time {self.time} until {self.event}, up to {self.bounds[-1]:g}{unit}"


class Multilabel(Section, Question):
    """Several answers of yes (1) or no (0), which do not exclude each other. A model has a logit for each."""

    metrics: ClassVar[tuple[Metric, ...]] = ("log_loss", "accuracy", "auc", "pr_auc", "calibration_error", "brier")
    shown: ClassVar[tuple[Metric, ...]] = ("accuracy", "auc", "log_loss")

    kind: Literal["multilabel"]
    labels: Annotated[list[ColumnName], Field(min_length=2, max_length=MOST_LABELS)] = Field(
        description="columns that have 1 for yes and 0 for no"
    )

    @model_validator(mode="after")
    def _distinct(self) -> Multilabel:
        if len(set(self.labels)) < len(self.labels):
            raise ValueError("question: a label appears twice")
        return self

    @property
    def columns(self) -> list[str]:
        return [*self.labels]

    @property
    def outputs(self) -> int:
        return len(self.labels)

    def codes(self, column: str) -> list[float] | None:
        return [0.0, 1.0]

    @property
    def in_words(self) -> str:
        return f"yes or no for each of {', '.join(self.labels)}"


class Segmentation(Section, Question):
    """The class of each pixel. A model has a logit for each class and pixel, (classes, height, width)."""

    metrics: ClassVar[tuple[Metric, ...]] = ("log_loss", "dice", "accuracy", "brier")
    shown: ClassVar[tuple[Metric, ...]] = ("dice", "accuracy", "log_loss")

    kind: Literal["segmentation"]
    classes: Annotated[list[ClassName], Field(min_length=2, max_length=MOST_MARKED)] = Field(
        description="names of a mask's values 0, 1 and so on; the first is the background"
    )

    @model_validator(mode="after")
    def _distinct(self) -> Segmentation:
        if len(set(self.classes)) < len(self.classes):
            raise ValueError("question: a class appears twice")
        return self

    @property
    def columns(self) -> list[str]:
        return ["mask"]

    @property
    def outputs(self) -> int:
        """For each pixel."""
        return len(self.classes)

    @property
    def in_words(self) -> str:
        return f"each pixel's class ({' or '.join(self.classes)})"


AskedQuestion = Annotated[Regression | Survival | Multilabel | Segmentation, Field(discriminator="kind")]
