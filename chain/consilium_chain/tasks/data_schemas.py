"""What a hospital's and a voter's examples are, as a task says it: rows of a table, texts or images, with labels.

Everything here is public, so ranges and sizes may not come from anybody's data.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from consilium_core.typed_toml import Section
from pydantic import BeforeValidator, Field, model_validator

MAX_CLASSES = 256
MAX_SIDE = 512  # of an image, in pixels
LEAST_DEVIATION = 0.001  # of a feature's range

# A class is a folder's name, too, where examples are files; cells come without the blanks around them.
ClassName = Annotated[
    str, Field(min_length=1, max_length=100, pattern=r"^[^\s/\\\x00-\x1f]([^/\\\x00-\x1f]*[^\s/\\\x00-\x1f])?$")
]


class NumericFeature(Section):
    """A column of numbers, clamped to [min, max].

    Range, mean and deviation are public: they come from the literature, never from anybody's rows.
    """

    kind: Literal["numeric"] = "numeric"
    name: str
    min: float
    max: float
    mean: float | None = Field(default=None, description="typical value; without, the middle of the range")
    deviation: float | None = Field(
        default=None, description="typical standard deviation; without, a sixth of the range"
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


class CategoryFeature(Section):
    """A column of codes, one-hot encoded; the first value is the reference and gets no column of its own."""

    kind: Literal["category"]
    name: str
    values: Annotated[list[float], Field(min_length=2)]

    @model_validator(mode="after")
    def _distinct(self) -> CategoryFeature:
        if len(set(self.values)) < len(self.values):
            raise ValueError(f"feature {self.name}: a value stands twice")
        return self


def _numeric_unless_said(feature: object) -> object:
    """A discriminator knows no default: it wants the tag in the file."""
    return {"kind": "numeric", **feature} if isinstance(feature, dict) else feature


Feature = Annotated[
    NumericFeature | CategoryFeature, Field(discriminator="kind"), BeforeValidator(_numeric_unless_said)
]


class Labelled(Section):
    """What every kind of examples has."""

    label: str = Field(min_length=1, description="name of the label's column")
    classes: Annotated[list[ClassName], Field(min_length=2, max_length=MAX_CLASSES)] = Field(
        description="names of class 0, class 1 and so on"
    )

    @model_validator(mode="after")
    def _classes_distinct(self) -> Labelled:
        if len(set(self.classes)) < len(self.classes):
            raise ValueError("a class stands twice")
        return self

    @property
    def outputs(self) -> int:
        """How many logits a model has: of two classes one, of class 1; else one for each class."""
        return 1 if len(self.classes) == 2 else len(self.classes)


class TableSchema(Labelled):
    """Rows of a table. A label cell holds a class's number, from 0."""

    kind: Literal["table"] = "table"
    features: Annotated[list[Feature], Field(min_length=1)]

    @model_validator(mode="after")
    def _distinct(self) -> TableSchema:
        if twice := sorted(name for name, count in Counter(self.used).items() if count > 1):
            raise ValueError(f"columns named twice: {', '.join(twice)}")
        return self

    @property
    def used(self) -> list[str]:
        """Columns of the table that a node reads."""
        return [*(feature.name for feature in self.features), self.label]

    @property
    def columns(self) -> int:
        """Width of the encoded design matrix."""
        return sum(1 if f.kind == "numeric" else len(f.values) - 1 for f in self.features)

    @property
    def statistics_values(self) -> int:
        """Length of round 0's vector: count, sum and sum of squares per encoded column."""
        return 3 * self.columns


class TextSchema(Labelled):
    """Texts. In a table a label cell holds a class's name."""

    kind: Literal["text"]
    text: str = Field(default="text", min_length=1, description="name of the texts' column")

    @model_validator(mode="after")
    def _distinct(self) -> TextSchema:
        if self.text == self.label:
            raise ValueError(f"the texts' column and the label's are both {self.text}")
        return self

    @property
    def used(self) -> list[str]:
        return [self.text, self.label]

    @property
    def statistics_values(self) -> int:
        """Round 0 has nothing to scale: its vector is the number of rows."""
        return 1


class ImageSchema(Labelled):
    """Images, brought to one size and to one or three channels (grey; red, green, blue)."""

    kind: Literal["images"]
    label: str = Field(default="label", min_length=1, description="name of the label's column")
    height: Annotated[int, Field(ge=8, le=MAX_SIDE, description="pixels")]
    width: Annotated[int, Field(ge=8, le=MAX_SIDE, description="pixels")]
    channels: Literal[1, 3] = 1

    @property
    def used(self) -> list[str]:
        return ["image", self.label]

    @property
    def statistics_values(self) -> int:
        """Length of round 0's vector: images, sum of their means and of their mean squares, per channel."""
        return 3 * self.channels


def _table_unless_said(schema: object) -> object:
    return {"kind": "table", **schema} if isinstance(schema, dict) else schema


DataSchema = Annotated[
    TableSchema | TextSchema | ImageSchema, Field(discriminator="kind"), BeforeValidator(_table_unless_said)
]
