"""The part of a model family that all share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

from consilium_core.typed_toml import Section

from consilium_chain.tasks.data_schemas import CorpusSchema, TableSchema, TextSchema
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.questions import Segmentation
from consilium_chain.tasks.series_schema import SeriesSchema

Data = TableSchema | TextSchema | CorpusSchema | ImageSchema | SeriesSchema
OR = " or "  # between kinds of examples


class Family(Section, ABC):
    """A model family. `takes`: its kinds of examples. `learns_privately`: it has a form with noise (DP-SGD).
    `ends_with_bias`: its last values are the logits' biases, (outputs,). `marks_pixels`: it answers for each pixel, and
    not for an image.
    """

    takes: ClassVar[str]
    learns_privately: ClassVar[bool] = True
    ends_with_bias: ClassVar[bool] = True
    marks_pixels: ClassVar[bool] = False

    def parameters(self, data: Data) -> int:
        """The number of values of an update, for matching `data`."""
        return sum(math.prod(shape) for shape in self.tensors(data).values())

    @abstractmethod
    def tensors(self, data: Data) -> dict[str, tuple[int, ...]]:
        """The same values as named tensors in order, row by row: trainable parameters of the client's torch module."""

    def require_alongside(self, codec: str, control_variates: bool, private: bool) -> None:  # most go with all
        """Raises ValueError."""

    def require_start(self, start: str) -> None:  # a family draws its own
        """`start`: the name of the task's section. Raises ValueError."""

    def require_fits(self, data: Data) -> None:
        """Raises ValueError."""
        if data.kind not in self.takes.split(OR):
            raise ValueError(
                f"this model takes data of kind {self.takes}, and the task has kind {data.kind}: change one of them"
            )
        if self.marks_pixels != isinstance(data.asked, Segmentation):
            raise ValueError(
                "the model unet answers for each pixel, and others once: a segmentation needs unet (or a program), and"
                " any other question another model"
            )
