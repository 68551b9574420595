"""The schema of a hospital's and a voter's examples: rows of a table, texts or images with labels, or texts alone.

Everything here is public, so ranges and sizes may not come from anybody's data. A new kind is a class here, in
`DataSchema`, and a folder in `consilium_client.data`, in its `KINDS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import Annotated, ClassVar, Literal

from consilium_core.typed_toml import Section
from pydantic import BeforeValidator, Field, model_validator

from consilium_chain.tasks.features import CategoryFeature, EncodedColumn, Feature
from consilium_chain.tasks.plugin_specs import ReaderPlugin
from consilium_chain.tasks.questions import (
    MAX_CLASSES,
    AskedQuestion,
    Classification,
    ClassName,
    NextToken,
    Question,
)

MAX_SIDE = 512  # of an image, in pixels
MOST_SUBGROUPS = 16  # columns
MAX_CHANNELS = 16  # of an image
CHANNELS = {1: ("grey",), 3: ("red", "green", "blue")}


class Schema(Section, ABC):
    """The common part of all kinds of examples. `things`: the examples in a word. `summed`: round 0's sums in words."""

    things: ClassVar[str]
    summed: ClassVar[str]

    reader: ReaderPlugin | None = None

    @property
    @abstractmethod
    def asked(self) -> Question:
        """The answer that a model gives for each example."""

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
    subgroups: Annotated[list[str], Field(max_length=MOST_SUBGROUPS)] = Field(
        default=[], description="columns of categories; evaluations show each of their values apart"
    )

    @model_validator(mode="after")
    def _known(self) -> TableSchema:
        categories = {feature.name for feature in self.features if isinstance(feature, CategoryFeature)}
        if foreign := [name for name in self.subgroups if name not in categories]:
            raise ValueError(f"subgroups has {foreign[0]}, which is no column of categories: name one, or remove it")
        return self

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
    label: str = Field(default="label", description="name of the label's column")
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
    def inputs(self) -> list[str]:
        return ["image"]

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
        asked = f"classes {' or '.join(self.classes)}" if self.classes else self.asked.in_words
        return f"images, {self.height} × {self.width} pixels{self._shades_in_words}; {asked}"

    @property
    def _shades_in_words(self) -> str:
        """All that differs from 8 bits of grey."""
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
