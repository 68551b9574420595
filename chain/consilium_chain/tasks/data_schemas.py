"""The schema of a hospital's and a voter's examples: rows of a table, texts or images with labels, or texts alone.

Everything here is public, so ranges and sizes may not come from anybody's data. A new kind is a class here, in
`DataSchema`, and a folder in `consilium_client.data`, in its `KINDS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, NamedTuple

from consilium_core.typed_toml import Section
from pydantic import BeforeValidator, Field, model_validator

Metric = Literal["log_loss", "accuracy", "auc", "macro_f1"]

MAX_CLASSES = 256
MAX_SIDE = 512  # of an image, in pixels
MAX_CHANNELS = 16  # of an image
LEAST_DEVIATION = 0.001  # of a feature's range
# Of u in [0, 1], where the schema states none; docs/decisions.md measures others.
TYPICAL_MEAN, TYPICAL_DEVIATION = 1 / 2, 1 / 6
CHANNELS = {1: ("grey",), 3: ("red", "green", "blue")}

# A class is also a folder's name if examples are files. Cells have no surrounding spaces.
ClassName = Annotated[
    str, Field(min_length=1, max_length=100, pattern=r"^[^\s/\\\x00-\x1f]([^/\\\x00-\x1f]*[^\s/\\\x00-\x1f])?$")
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

    def __str__(self) -> str:
        return f"{self.name} ({self.min:g} to {self.max:g})"


class CategoryFeature(Section):
    """A column of codes, one-hot encoded; the first value is the reference and has no column of its own."""

    kind: Literal["category"]
    name: str = Field(description="of the column")
    values: Annotated[list[float], Field(min_length=2)] = Field(
        description="codes, as numbers; a mapping gives them to texts (docs/data.md). Others count as missing"
    )

    @model_validator(mode="after")
    def _distinct(self) -> CategoryFeature:
        if len(set(self.values)) < len(self.values):
            raise ValueError(f"feature {self.name}: a value appears twice")
        return self

    @property
    def encoded(self) -> Iterator[EncodedColumn]:
        """A column is 0 or 1, equal to its square, and all codes are equally likely."""
        share = 1 / len(self.values)
        return (EncodedColumn(f"{self.name} = {value:g}", share, share) for value in self.values[1:])

    def __str__(self) -> str:
        return f"{self.name} (codes {', '.join(f'{value:g}' for value in self.values)})"


def _numeric_unless_said(feature: object) -> object:
    """A discriminator has no default: the tag must be present."""
    return {"kind": "numeric", **feature} if isinstance(feature, dict) else feature


Feature = Annotated[
    NumericFeature | CategoryFeature, Field(discriminator="kind"), BeforeValidator(_numeric_unless_said)
]


class Schema(Section, ABC):
    """The common part of all kinds of examples. `things`: the examples in a word. `summed`: round 0's sums in words.
    `metrics`: those that have a meaning for them.
    """

    things: ClassVar[str]
    summed: ClassVar[str]
    metrics: ClassVar[tuple[Metric, ...]] = ("log_loss", "accuracy", "auc", "macro_f1")

    @property
    @abstractmethod
    def used(self) -> list[str]:
        """Columns that a node reads, the label's last."""

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
    """Examples of named classes."""

    label: str = Field(min_length=1, description="name of the label's column")
    classes: Annotated[list[ClassName], Field(min_length=2, max_length=MAX_CLASSES)] = Field(
        description="names of class 0, class 1 and so on"
    )

    @model_validator(mode="after")
    def _classes_distinct(self) -> Labelled:
        if len(set(self.classes)) < len(self.classes):
            raise ValueError("a class appears twice")
        return self

    @property
    def outputs(self) -> int:
        """A model's number of logits: one for two classes (of class 1), otherwise one for each class."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    @property
    def _label_in_words(self) -> str:
        return f"label {self.label} ({' or '.join(self.classes)})"


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
    def used(self) -> list[str]:
        return [*(feature.name for feature in self.features), self.label]

    @property
    def columns(self) -> int:
        """Width of the encoded design matrix."""
        return len(self.encoded)

    @property
    def encoded(self) -> list[EncodedColumn]:
        return [column for feature in self.features for column in feature.encoded]

    @property
    def row_encoding(self) -> bytes:
        return "\n".join(one.model_dump_json(exclude={"mean", "deviation"}) for one in self.features).encode()

    @property
    def in_words(self) -> str:
        return f"the columns {', '.join(feature.name for feature in self.features)}; {self._label_in_words}"

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
        if self.text == self.label:
            raise ValueError(f"the texts and the label have the same column {self.text}: rename one")
        return self

    @property
    def used(self) -> list[str]:
        return [self.text, self.label]

    @property
    def row_encoding(self) -> bytes:
        return b"text"

    @property
    def in_words(self) -> str:
        return f"texts in the column {self.text}; {self._label_in_words}"

    @property
    def reads(self) -> str:
        return f"texts (column {self.text})"


class CorpusSchema(Schema):
    """Texts without labels. A model of them foretells each next token of a text."""

    things = "texts"
    summed = "the number of texts"
    metrics = ("log_loss", "accuracy")
    label: ClassVar[str] = ""  # no column
    classes: ClassVar[list[str]] = ["text"]  # of all texts
    outputs: ClassVar[int] = 1  # of a row; a program has logits for each of its tokens instead

    kind: Literal["corpus"]
    text: str = Field(default="text", min_length=1, description="name of the texts' column")

    @property
    def used(self) -> list[str]:
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


class WindowSpec(Section):
    """Values that become black and white, with all beyond them. Either `center` and `width`, or `low` and `high`."""

    center: float | None = Field(
        default=None, description="value of middle grey, in the files' units: Hounsfield units for CT"
    )
    width: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="from black to white, in the same units"
    )
    low: Annotated[float, Field(ge=0, le=100)] | None = Field(
        default=None, description="percent of an image's pixels that become black, for values without a unit, as in MR"
    )
    high: Annotated[float, Field(ge=0, le=100)] | None = Field(
        default=None, description="percent of an image's pixels up to which they are not white"
    )

    @model_validator(mode="after")
    def _is_one(self) -> WindowSpec:
        by_units = [one is not None for one in (self.center, self.width)]
        by_percent = [one is not None for one in (self.low, self.high)]
        if not (all(by_units) and not any(by_percent)) and not (all(by_percent) and not any(by_units)):
            raise ValueError("a window has either center and width, or low and high")
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ValueError("low must be below high")
        return self

    def __str__(self) -> str:
        if self.low is not None:
            return f"window from {self.low:g} % to {self.high:g} % of an image's pixels"
        return f"window of center {self.center:g} and width {self.width:g}"


class ImageSchema(Labelled):
    """Images, scaled to one size. One or three channels (grey; red, green, blue) come from image files of any colour,
    other numbers from NumPy archives alone.
    """

    things = "images"
    summed = "the number of images, and sums of their mean shades and mean squared shades for each channel"

    kind: Literal["images"]
    label: str = Field(default="label", min_length=1, description="name of the label's column")
    height: Annotated[int, Field(ge=8, le=MAX_SIDE, description="pixels")]
    width: Annotated[int, Field(ge=8, le=MAX_SIDE, description="pixels")]
    channels: Annotated[int, Field(ge=1, le=MAX_CHANNELS)] = Field(
        default=1, description="1 for grey, 3 for red, green and blue; others for NumPy archives only"
    )
    bits: Literal[8, 16] = Field(
        default=8, description="of a shade, as a model gets it; 16 for grey files and archives"
    )
    window: WindowSpec | None = Field(
        default=None, description="values that become black and white, for DICOM files and 16 bits"
    )
    modality: Annotated[str, Field(pattern="^[A-Z]{2,16}$")] | None = Field(
        default=None, description="of DICOM files, by its code, such as CT or MR; files of others are refused"
    )

    @property
    def used(self) -> list[str]:
        return ["image", self.label]

    @property
    def white(self) -> int:
        """The largest shade."""
        return int(2**self.bits - 1)

    @property
    def is_deep(self) -> bool:
        """True if shades of more than 8 bits are read."""
        return self.bits > 8 or self.window is not None

    @property
    def encoded(self) -> list[EncodedColumn]:
        """A channel's value is an image's mean shade; all shades are equally likely."""
        names = CHANNELS.get(self.channels) or tuple(f"channel {at}" for at in range(1, self.channels + 1))
        return [EncodedColumn(name, 1 / 2, 1 / 3) for name in names]

    @property
    def row_encoding(self) -> bytes:
        new = {name for name, default in (("bits", 8), ("window", None)) if getattr(self, name) != default}
        return self.model_dump_json(include={"kind", "height", "width", "channels", *new}).encode()

    @property
    def in_words(self) -> str:
        return (
            f"images, {self.height} × {self.width} pixels{self._shades_in_words}; classes {' or '.join(self.classes)}"
        )

    @property
    def _shades_in_words(self) -> str:
        """What differs from 8 bits of grey."""
        colour = {1: "", 3: "in colour"}.get(self.channels, f"{self.channels} channels")
        depth = f"{self.bits} bits" if self.bits > 8 else ""
        found = (colour, depth, str(self.window or ""), self.modality or "")
        return "".join(f", {one}" for one in found if one)

    @property
    def reads(self) -> str:
        more = "" if self.channels in CHANNELS and not self.is_deep else self._shades_in_words
        return f"images of {self.height} × {self.width} pixels, {self.channels} channel(s){more}"


def _table_unless_said(schema: object) -> object:
    return {"kind": "table", **schema} if isinstance(schema, dict) else schema


DataSchema = Annotated[
    TableSchema | TextSchema | CorpusSchema | ImageSchema,
    Field(discriminator="kind"),
    BeforeValidator(_table_unless_said),
]
