"""The part of a data schema that all kinds of examples share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar

from consilium_core.typed_toml import Section
from pydantic import Field, model_validator

from consilium_chain.tasks.features import EncodedColumn
from consilium_chain.tasks.plugin_specs import ReaderPlugin
from consilium_chain.tasks.questions import (
    MAX_CLASSES,
    AskedQuestion,
    Classification,
    ClassName,
    Question,
    Segmentation,
)


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
            if isinstance(self.question, Segmentation) and self.reader is not None:
                raise ValueError("a plug-in reads no masks: remove data.reader, or ask another question")
            if isinstance(self.question, Segmentation) and self.things != "images":
                raise ValueError(f'a segmentation asks of pixels, and {self.things} have none: set kind = "images"')
            return self
        if not self.label or len(self.classes) < 2:
            raise ValueError("data needs a label and at least two classes, or a question")
        if len(set(self.classes)) < len(self.classes):
            raise ValueError("a class appears twice")
        return self

    @property
    def asked(self) -> Question:
        return self.question or Classification(self.label, tuple(self.classes))
