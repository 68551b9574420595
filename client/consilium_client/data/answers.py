"""The columns that answer a task's question: how their cells become labels, and how many rows have which answer.

Labels of n rows are int64 (n,), classes' numbers, float64 (n, columns), or masks uint8 (n, height, width).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.questions import (
    Classification,
    Multilabel,
    NextToken,
    Question,
    Regression,
    Segmentation,
    Survival,
)
from numpy.typing import NDArray

from consilium_client.data.examples import Labels
from consilium_client.data.table.cells import Cell, composed

PARTS = 5  # of an amount's range, on screens


class Answers(ABC):
    """`vary`: equal examples usually have other answers, so these are no contradiction."""

    vary = False

    @abstractmethod
    def accepted(self, column: str, cell: Cell, found: float | str) -> float | str:
        """A cell's number, or the name of its error. `found`: the cell as its column's rule reads it."""

    def labels(self, values: Mapping[str, NDArray[np.float64]]) -> Labels:
        """From accepted numbers (n,) by column."""
        return np.stack(list(values.values()), axis=1)

    @abstractmethod
    def counts(self, labels: Labels) -> tuple[tuple[str, int], ...]:
        """Rows by kind of answer, for their owner's screen."""

    def alike(self, labels: Labels) -> bool:
        """True if all rows have one answer, where a model and a voter need several."""
        return len(labels) in dict(self.counts(labels)).values()

    def classes(self, labels: Labels) -> list[NDArray[np.int64]]:
        """Splits of the rows into classes (n,), for finding columns that give the answer away."""
        return [column.astype(np.int64) for column in labels.T]


class OfClasses(Answers):
    """A cell has a class's number, from 0, or its name; a number is never a name."""

    def __init__(self, asked: Classification) -> None:
        self._classes = asked.classes
        self._numbers = {float(number) for number in range(len(asked.classes))}
        self._by_name = {composed(name): float(number) for number, name in enumerate(asked.classes)}

    def accepted(self, column: str, cell: Cell, found: float | str) -> float | str:
        if found in self._numbers or found == "CodeUnknown":
            return found
        by_name = self._by_name.get(composed(cell)) if isinstance(found, str) and isinstance(cell, str) else None
        return "LabelOutOfSchema" if by_name is None else by_name

    def labels(self, values: Mapping[str, NDArray[np.float64]]) -> Labels:
        (found,) = values.values()
        return found.astype(np.int64)

    def counts(self, labels: Labels) -> tuple[tuple[str, int], ...]:
        found = np.bincount(labels.astype(np.int64), minlength=len(self._classes))
        return tuple(zip(self._classes, map(int, found), strict=True))

    def classes(self, labels: Labels) -> list[NDArray[np.int64]]:
        return [labels]


class OfTexts(Answers):
    """No column has an answer, and all labels are 0."""

    def accepted(self, column: str, cell: Cell, found: float | str) -> float | str:
        return found

    def counts(self, labels: Labels) -> tuple[tuple[str, int], ...]:
        return (("text", len(labels)),)

    def alike(self, labels: Labels) -> bool:
        return False

    def classes(self, labels: Labels) -> list[NDArray[np.int64]]:
        return []


class OfAmount(Answers):
    """An amount, clamped to the question's range."""

    vary = True

    def __init__(self, asked: Regression) -> None:
        self._asked = asked

    def accepted(self, column: str, cell: Cell, found: float | str) -> float | str:
        return "AnswerMissing" if isinstance(found, float) and math.isnan(found) else found

    def labels(self, values: Mapping[str, NDArray[np.float64]]) -> Labels:
        return np.clip(super().labels(values), self._asked.min, self._asked.max)

    def counts(self, labels: Labels) -> tuple[tuple[str, int], ...]:
        """In equal parts of the range."""
        edges = np.linspace(self._asked.min, self._asked.max, PARTS + 1)
        found = np.bincount(np.searchsorted(edges[1:-1], labels[:, 0], side="right"), minlength=PARTS)
        names = (f"{low:g} to {high:g}" for low, high in pairwise(edges))
        return tuple(zip(names, map(int, found), strict=True))

    def alike(self, labels: Labels) -> bool:
        return len(np.unique(labels)) == 1

    def classes(self, labels: Labels) -> list[NDArray[np.int64]]:
        return [above_median(labels[:, 0])]


class OfTime(Answers):
    """A time from 0 on, and whether the event happened then."""

    vary = True

    def __init__(self, asked: Survival) -> None:
        self._asked = asked

    def accepted(self, column: str, cell: Cell, found: float | str) -> float | str:
        if column == self._asked.event:
            return yes_or_no(found)
        if isinstance(found, float) and not found >= 0:
            return "AnswerMissing" if math.isnan(found) else "TimeNegative"
        return found

    def counts(self, labels: Labels) -> tuple[tuple[str, int], ...]:
        """Events within the bounds, and rows without one."""
        last = self._asked.bounds[-1]
        happened = int(np.count_nonzero((labels[:, 1] == 1) & (labels[:, 0] <= last)))
        name = f"{self._asked.event} by {last:g}"
        return (name, happened), (f"no {name}", len(labels) - happened)

    def classes(self, labels: Labels) -> list[NDArray[np.int64]]:
        return [above_median(labels[:, 0]), labels[:, 1].astype(np.int64)]


class OfEach(Answers):
    """Yes (1) or no (0) for each label."""

    def __init__(self, asked: Multilabel) -> None:
        self._asked = asked

    def accepted(self, column: str, cell: Cell, found: float | str) -> float | str:
        return yes_or_no(found)

    def counts(self, labels: Labels) -> tuple[tuple[str, int], ...]:
        """Rows with a yes, by label."""
        return tuple(zip(self._asked.labels, map(int, labels.sum(axis=0)), strict=True))

    def alike(self, labels: Labels) -> bool:
        return bool((labels == labels[0]).all())


class OfPixels(Answers):
    """Masks, whose pixels are classes' numbers. No column has them."""

    def __init__(self, asked: Segmentation) -> None:
        self._classes = asked.classes

    def accepted(self, column: str, cell: Cell, found: float | str) -> float | str:
        return found

    def counts(self, labels: Labels) -> tuple[tuple[str, int], ...]:
        """Images with at least one pixel of each class."""
        present = [int((labels == number).any(axis=(1, 2)).sum()) for number in range(len(self._classes))]
        return tuple(zip(self._classes, present, strict=True))

    def alike(self, labels: Labels) -> bool:
        """True if all pixels of all images have one class."""
        return bool((labels == labels.flat[0]).all())

    def classes(self, labels: Labels) -> list[NDArray[np.int64]]:
        return []


def above_median(amounts: NDArray[np.float64]) -> NDArray[np.int64]:
    return (amounts > np.median(amounts)).astype(np.int64)


def yes_or_no(found: float | str) -> float | str:
    if isinstance(found, str) or found in (0.0, 1.0):
        return found
    return "AnswerMissing" if math.isnan(found) else "AnswerNotYesOrNo"


ANSWERS: Mapping[type[Question], Callable[[Any], Answers]] = {
    Classification: OfClasses, Regression: OfAmount, Survival: OfTime, Multilabel: OfEach,
    NextToken: lambda _: OfTexts(), Segmentation: OfPixels,
}  # fmt: skip


def answers_of(schema: DataSchema) -> Answers:
    return ANSWERS[type(schema.asked)](schema.asked)
