"""The schema of a hospital's and a voter's examples: rows of a table, texts or images with labels, or texts alone.

Everything here is public, so ranges and sizes may not come from anybody's data. A new kind is a class here, in
`DataSchema`, and a folder in `consilium_client.data`, in its `KINDS`.
"""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, ClassVar, Literal, NamedTuple

from consilium_core.typed_toml import Section
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from consilium_chain.tasks.plugin_specs import ReaderPlugin
from consilium_chain.tasks.questions import (
    LEAST_DEVIATION,
    MAX_CLASSES,
    AskedQuestion,
    Classification,
    ClassName,
    NextToken,
    Question,
)

MAX_SIDE = 512  # of an image, in pixels
# Of u in [0, 1], where the schema states none; docs/decisions.md measures others.
TYPICAL_MEAN, TYPICAL_DEVIATION = 1 / 2, 1 / 6
CHANNELS = {1: ("grey",), 3: ("red", "green", "blue")}
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
    min: float = Field(description="least value; lower ones are clamped to it")
    max: float = Field(description="largest value; higher ones are clamped to it")
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


class Schema(Section, ABC):
    """The common part of all kinds of examples. `things`: the examples in a word. `summed`: round 0's sums in words."""

    things: ClassVar[str]
    summed: ClassVar[str]

    reader: ReaderPlugin | None = None

    @property
    @abstractmethod
    def asked(self) -> Question:
        """What a model is to answer for each example."""

    @property
    @abstractmethod
    def inputs(self) -> list[str]:
        """Columns that a model reads."""

    @property
    def used(self) -> list[str]:
        """Columns that a node reads, the answer's last."""
        return [*self.inputs, *self.asked.columns]

    @property
    def outputs(self) -> int:
        """A model's for each example."""
        return self.asked.outputs

    @property
    def encoded(self) -> list[EncodedColumn]:
        """Columns, or an image's channels, that round 0 sums, in order; empty for examples without scaling."""
        return []

    @property
    def statistics_values(self) -> int:
        """Length of round 0's vector: count, sum and sum of squares per encoded column; else the number of rows."""
        return 3 * len(self.encoded) or 1

    @property
    @abstractmethod
    def row_encoding(self) -> bytes:
        """The part of the schema that determines a row's numbers."""

    @property
    @abstractmethod
    def in_words(self) -> str:
        """Columns and classes, for a hospital's owner."""

    @property
    @abstractmethod
    def reads(self) -> str:
        """A model's inputs with ranges and codes, for its users."""


class Labelled(Schema, ABC):
    """Examples with answers: a label of named classes, or that of a `question`."""

    label: str = Field(default="", description="name of the label's column; for classes")
    classes: Annotated[list[ClassName], Field(max_length=MAX_CLASSES)] = Field(
        default=[], description="names of class 0, class 1 and so on"
    )
    question: AskedQuestion | None = Field(default=None, description="in place of label and classes")

    @model_validator(mode="after")
    def _asks_once(self) -> Labelled:
        if self.question is not None:
            if self.classes or self.label != type(self).model_fields["label"].default:
                raise ValueError("data has a question: leave out label and classes, which ask another one")
            return self
        if not self.label or len(self.classes) < 2:
            raise ValueError("data needs a label and at least two classes, or a question")
        if len(set(self.classes)) < len(self.classes):
            raise ValueError("a class appears twice")
        return self

    @property
    def asked(self) -> Question:
        return self.question or Classification(self.label, tuple(self.classes))


class TableSchema(Labelled):
    """Rows of a table. A label cell has a class's number, from 0, or its name."""

    things = "rows"
    summed = "counts, sums and sums of squares of each column"

    kind: Literal["table"] = "table"
    features: Annotated[list[Feature], Field(min_length=1)] = Field(description="columns, one [[data.features]] each")

    @model_validator(mode="after")
    def _distinct(self) -> TableSchema:
        if twice := sorted(name for name, count in Counter(self.used).items() if count > 1):
            raise ValueError(f"columns named twice: {', '.join(twice)}")
        return self

    @property
    def inputs(self) -> list[str]:
        return [feature.name for feature in self.features]

    @property
    def columns(self) -> int:
        """Width of the encoded design matrix."""
        return len(self.encoded)

    @property
    def encoded(self) -> list[EncodedColumn]:
        return [column for feature in self.features for column in feature.encoded]

    @property
    def row_encoding(self) -> bytes:
        rows = (one.model_dump_json(exclude={"mean", "deviation"}, exclude_none=True) for one in self.features)
        return "\n".join(rows).encode()

    @property
    def in_words(self) -> str:
        return f"the columns {', '.join(self.inputs)}; {self.asked.in_words}"

    @property
    def reads(self) -> str:
        return f"columns {', '.join(map(str, self.features))}"


class TextSchema(Labelled):
    """Texts. In a table a label cell has a class's name."""

    things = "texts"
    summed = "the number of texts"

    kind: Literal["text"]
    text: str = Field(default="text", min_length=1, description="name of the texts' column")

    @model_validator(mode="after")
    def _distinct(self) -> TextSchema:
        if self.text in self.asked.columns:
            raise ValueError(f"the texts and the label have the same column {self.text}: rename one")
        return self

    @property
    def inputs(self) -> list[str]:
        return [self.text]

    @property
    def row_encoding(self) -> bytes:
        return b"text"

    @property
    def in_words(self) -> str:
        return f"texts in the column {self.text}; {self.asked.in_words}"

    @property
    def reads(self) -> str:
        return f"texts (column {self.text})"


class CorpusSchema(Schema):
    """Texts without labels. A model of them foretells each next token of a text."""

    things = "texts"
    summed = "the number of texts"
    label: ClassVar[str] = ""  # no column
    classes: ClassVar[list[str]] = []

    kind: Literal["corpus"]
    text: str = Field(default="text", min_length=1, description="name of the texts' column")

    @property
    def asked(self) -> Question:
        return NextToken()

    @property
    def inputs(self) -> list[str]:
        return [self.text]

    @property
    def row_encoding(self) -> bytes:
        return b"text"

    @property
    def in_words(self) -> str:
        return f"texts in the column {self.text}, without labels"

    @property
    def reads(self) -> str:
        return f"texts (column {self.text})"


class ImageSchema(Labelled):
    """Images, scaled to one size and to one or three channels (grey; red, green, blue)."""

    things = "images"
    summed = "the number of images, and sums of their mean shades and mean squared shades for each channel"

    kind: Literal["images"]
    label: str = Field(default="label", description="name of the label's column")
    height: Annotated[int, Field(ge=8, le=MAX_SIDE, description="pixels")]
    width: Annotated[int, Field(ge=8, le=MAX_SIDE, description="pixels")]
    channels: Literal[1, 3] = Field(default=1, description="1 for grey, 3 for red, green and blue")

    @property
    def inputs(self) -> list[str]:
        return ["image"]

    @property
    def encoded(self) -> list[EncodedColumn]:
        """A channel's value is an image's mean shade; all shades are equally likely."""
        return [EncodedColumn(name, 1 / 2, 1 / 3) for name in CHANNELS[self.channels]]

    @property
    def row_encoding(self) -> bytes:
        return self.model_dump_json(include={"kind", "height", "width", "channels"}).encode()

    @property
    def in_words(self) -> str:
        colour = ", in colour" if self.channels > 1 else ""
        asked = f"classes {' or '.join(self.classes)}" if self.classes else self.asked.in_words
        return f"images, {self.height} × {self.width} pixels{colour}; {asked}"

    @property
    def reads(self) -> str:
        return f"images of {self.height} × {self.width} pixels, {self.channels} channel(s)"


def _table_unless_said(schema: object) -> object:
    return {"kind": "table", **schema} if isinstance(schema, dict) else schema


DataSchema = Annotated[
    TableSchema | TextSchema | CorpusSchema | ImageSchema,
    Field(discriminator="kind"),
    BeforeValidator(_table_unless_said),
]
