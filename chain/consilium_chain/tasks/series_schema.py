"""The schema of time series: measurements of a stay at irregular times, in steps of one length from its begin."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from pydantic import Field, model_validator

from consilium_chain.tasks.features import EncodedColumn, NumericFeature
from consilium_chain.tasks.questions import ColumnName
from consilium_chain.tasks.schema_base import Labelled

MOST_STEPS = 1_024
MOST_VARIABLES = 256


class SeriesSchema(Labelled):
    """Stays with measurements. A variable's value in a step is its last one there, carried forward until the next; a
    model also sees in which steps it was measured.
    """

    things = "stays"
    summed = "for each variable the number of stays that have it, and sums of their means and squared means"

    kind: Literal["series"]
    stay: ColumnName = Field(default="stay", description="the column that names the stay, in both files")
    time: ColumnName = Field(default="time", description="the column of a measurement's time since the stay's begin")
    steps: Annotated[int, Field(ge=2, le=MOST_STEPS)] = Field(description="that a model sees; later times are ignored")
    step: Annotated[float, Field(gt=0)] = Field(default=1.0, description="length of a step, in the unit of time")
    unit: Annotated[str, Field(max_length=30)] = Field(default="hours", description="of time, as screens show it")
    features: Annotated[list[NumericFeature], Field(min_length=1, max_length=MOST_VARIABLES)] = Field(
        description="variables, one [[data.features]] each"
    )

    @model_validator(mode="after")
    def _distinct(self) -> SeriesSchema:
        if twice := sorted(name for name, count in Counter(self.used).items() if count > 1):
            raise ValueError(f"columns named twice: {', '.join(twice)}")
        if said := [one.name for one in self.features if one.missing]:
            raise ValueError(f"feature {said[0]}: a model of a series always sees where it is missing: remove missing")
        if self.reader is not None:
            raise ValueError("a plug-in reads tables and images so far: remove reader")
        return self

    @property
    def inputs(self) -> list[str]:
        return [feature.name for feature in self.features]

    @property
    def used(self) -> list[str]:
        return [self.stay, self.time, *self.inputs, *self.asked.columns]

    @property
    def channels(self) -> int:
        """A model's inputs: each variable's value, then for each 1 where it was measured."""
        return 2 * len(self.features)

    @property
    def columns(self) -> int:
        """All inputs of a stay."""
        return self.channels * self.steps

    @property
    def encoded(self) -> list[EncodedColumn]:
        """A variable's value is its mean over the steps in which a stay has it."""
        return [column for feature in self.features for column in feature.encoded]

    @property
    def row_encoding(self) -> bytes:
        rows = [one.model_dump_json(exclude={"mean", "deviation"}, exclude_none=True) for one in self.features]
        return "\n".join([f"series {self.steps} × {self.step!r}", *rows]).encode()

    @property
    def in_words(self) -> str:
        return f"a series of {', '.join(self.inputs)} in {self.steps_in_words}; {self.asked.in_words}"

    @property
    def steps_in_words(self) -> str:
        return f"{self.steps} steps of {self.step:g} {self.unit}".rstrip()

    @property
    def reads(self) -> str:
        return f"series in {self.steps_in_words}, variables {', '.join(map(str, self.features))}"
