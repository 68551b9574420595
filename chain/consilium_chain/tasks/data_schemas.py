"""The schema of a hospital's and a voter's examples: rows of a table, texts, images or series with labels, or
texts alone.

Everything here is public, so ranges and sizes may not come from anybody's data. A new kind is a class here, in
`DataSchema`, and a folder in `consilium_client.data`, in its `KINDS`.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from consilium_chain.tasks.features import CategoryFeature, EncodedColumn, Feature
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.questions import NextToken, Question
from consilium_chain.tasks.schema_base import Labelled, Schema
from consilium_chain.tasks.series_schema import SeriesSchema

MOST_SUBGROUPS = 16  # columns


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


def _table_unless_said(schema: object) -> object:
    return {"kind": "table", **schema} if isinstance(schema, dict) else schema


DataSchema = Annotated[
    TableSchema | TextSchema | CorpusSchema | ImageSchema | SeriesSchema,
    Field(discriminator="kind"),
    BeforeValidator(_table_unless_said),
]
