"""The columns of a table that a model reads. Ranges, means and values are public: they come from the literature."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Literal, NamedTuple

from consilium_core.typed_toml import Section
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from consilium_chain.tasks.questions import LEAST_DEVIATION, Bound

# Of u in [0, 1], where the schema states none; docs/decisions.md measures others.
TYPICAL_MEAN, TYPICAL_DEVIATION = 1 / 2, 1 / 6
UNKNOWN = "?"  # a cell without a value, beside the empty one

# A value of a column: a cell's text, in Unicode's composed form.
ValueName = Annotated[
    str,
    Field(strict=True, min_length=1, max_length=100, pattern=r"^[^\s\x00-\x1f]([^\x00-\x1f]*[^\s\x00-\x1f])?$"),
    AfterValidator(partial(unicodedata.normalize, "NFC")),
]


class EncodedColumn(NamedTuple):
    """One input column of a model, as u from 0 to 1. `mean`, `square`: the schema's means of u and u²."""

    name: str
    mean: float
    square: float


class NumericFeature(Section):
    """A column of numbers, clamped to [min, max].

    Range, mean and deviation are public: they come from the literature, never from anybody's rows.
    """

    kind: Literal["numeric"] = "numeric"
    name: str = Field(description="of the column")
    min: Bound = Field(description="least value; lower ones are clamped to it")
    max: Bound = Field(description="largest value; higher ones are clamped to it")
    mean: float | None = Field(default=None, description="typical value; without, the middle of the range")
    deviation: float | None = Field(
        default=None, description="typical standard deviation; without, a sixth of the range"
    )
    missing: Literal["indicator"] | None = Field(
        default=None,
        description='"indicator": the model also sees if the value is missing; without, a missing value is the mean',
    )

    @model_validator(mode="after")
    def _ordered(self) -> NumericFeature:
        if not self.min < self.max:
            raise ValueError(f"feature {self.name}: min must be below max")
        if self.mean is not None and not self.min <= self.mean <= self.max:
            raise ValueError(f"feature {self.name}: the mean {self.mean:g} must lie between min and max")
        width = self.max - self.min
        if self.deviation is not None and not LEAST_DEVIATION * width <= self.deviation <= width / 2:
            raise ValueError(
                f"feature {self.name}: the deviation {self.deviation:g} must lie between a thousandth and a half of the"
                f" range, {LEAST_DEVIATION * width:g} and {width / 2:g}"
            )
        return self

    @property
    def encoded(self) -> Iterator[EncodedColumn]:
        width = self.max - self.min
        mean = TYPICAL_MEAN if self.mean is None else (self.mean - self.min) / width
        deviation = TYPICAL_DEVIATION if self.deviation is None else self.deviation / width
        yield EncodedColumn(self.name, mean, mean**2 + deviation**2)
        if self.missing == "indicator":  # 0 or 1, equal to its square; both are equally likely
            yield EncodedColumn(f"{self.name} is missing", 1 / 2, 1 / 2)

    def __str__(self) -> str:
        return f"{self.name} ({self.min:g} to {self.max:g})"


class CategoryFeature(Section):
    """A column of codes or of named values, one-hot encoded; the first value is the reference and has no column of its
    own.
    """

    kind: Literal["category"]
    name: str = Field(description="of the column")
    values: Annotated[Sequence[float] | Sequence[ValueName], Field(union_mode="left_to_right")] = Field(
        description='all values: names such as ["female", "male"], and other texts are refused; or numbers as codes,'
        " and others count as missing. A mapping gives them to other texts (docs/data.md)"
    )

    @model_validator(mode="after")
    def _distinct(self) -> CategoryFeature:
        if len(self.values) < 2:
            raise ValueError(f"feature {self.name}: it needs at least two values")
        if len(set(self.values)) < len(self.values):
            raise ValueError(f"feature {self.name}: a value appears twice")
        for value in self.values:
            if isinstance(value, str) and (_is_number(value) or value == UNKNOWN):
                raise ValueError(f"feature {self.name}: {value} is a number or a missing value, not a name; rename it")
        return self

    @property
    def is_named(self) -> bool:
        return isinstance(self.values[0], str)

    @property
    def codes(self) -> list[float]:
        """The values as numbers: a named value's is its position, from 0."""
        values: list[float | str] = [*self.values]
        return [float(at if isinstance(value, str) else value) for at, value in enumerate(values)]

    @property
    def names(self) -> list[str]:
        """The values as texts."""
        return [value if isinstance(value, str) else f"{value:g}" for value in self.values]

    @property
    def encoded(self) -> Iterator[EncodedColumn]:
        """A column is 0 or 1, equal to its square, and all values are equally likely."""
        share = 1 / len(self.values)
        return (EncodedColumn(f"{self.name} = {value}", share, share) for value in self.names[1:])

    def __str__(self) -> str:
        return f"{self.name} ({'values' if self.is_named else 'codes'} {', '.join(self.names)})"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numeric_unless_said(feature: object) -> object:
    """A discriminator has no default: the tag must be present."""
    return {"kind": "numeric", **feature} if isinstance(feature, dict) else feature


Feature = Annotated[
    NumericFeature | CategoryFeature, Field(discriminator="kind"), BeforeValidator(_numeric_unless_said)
]
