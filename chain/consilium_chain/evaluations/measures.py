"""The parts of an evaluation: metrics with intervals, calibration curves, and the importance of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from consilium_chain.tasks.questions import Metric

RESAMPLES = 1_000  # draws of the bootstrap for an interval

Rows = Annotated[int, Field(ge=0, lt=1 << 40)]  # their number


class Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Measure(Plain):
    """A metric's value and interval. None: the rows give it no meaning, or are too few for an interval."""

    value: FiniteFloat | None
    low: FiniteFloat | None
    high: FiniteFloat | None


Measures = Mapping[Metric, Measure]


class Group(Plain):
    """`name`: a site; None for all rows. `classes`: the number of rows of each, or of each other kind of answer."""

    name: str | None
    rows: Rows
    classes: dict[str, Rows]
    measures: dict[Metric, Measure]


class Bin(Plain):
    """Rows whose probability is above `above`, or 0, and at most `up_to`. `predicted`: its mean. `observed`: the share
    of rows of the class, with Wilson's interval (1927).
    """

    above: FiniteFloat
    up_to: FiniteFloat
    rows: Rows
    predicted: FiniteFloat
    observed: FiniteFloat
    low: FiniteFloat
    high: FiniteFloat


class Calibration(Plain):
    """A class's curve, of the bins that have rows. `error`: mean distance of predicted and observed, by rows (Naeini et
    al. 2015).
    """

    class_name: str
    error: FiniteFloat
    bins: tuple[Bin, ...]


class Importance(Plain):
    """How much worse a metric is with a column's values dealt to other rows: the mean of ten deals, and the extremes
    (permutation importance, Breiman 2001).
    """

    column: str
    mean: FiniteFloat
    low: FiniteFloat
    high: FiniteFloat


class Evaluated(Plain):
    """A model on some rows. `importance_by`: the metric whose loss the importance is."""

    all_rows: Group
    calibration: tuple[Calibration, ...] = ()
    subgroups: tuple[Group, ...] = ()
    importance_by: Metric | None = None
    importance: tuple[Importance, ...] = ()
