"""The codecs of tasks, with their arguments: the numbers that hospitals train, mask and commit to.

The numbers follow from an update by a linear map with public coefficients (`consilium_zk.basis`): only then do masks
cancel, and is a sum of updates the update of the sum. A new codec is a class here, in `CodecSpec`, and one in
`consilium_zk.basis`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Annotated, Literal

from consilium_core.typed_toml import Section
from consilium_zk.basis import (
    CHUNKS,
    MAX_SIZE,
    Basis,
    Cosines,
    CountSketch,
    Dense,
    Hashed,
    LowRank,
    Shapes,
    low_rank_widths,
)
from consilium_zk.errors import ArgumentInvalid
from pydantic import Field

REFUSED = {
    "topk": "a hospital's own top-k is no codec: each hospital would send other coordinates, so masks would not cancel,"
    ' and the coordinates tell of its rows; set its name to "sketch", which finds the largest in the sum, or to "hash"',
}


class Codec(Section, ABC):
    """`shapes`: the model's tensors by name, in the order of its parameters."""

    @abstractmethod
    def size(self, shapes: Shapes) -> int:
        """The numbers that travel, k. Raises ValueError if the codec does not fit the model."""

    @abstractmethod
    def basis(self, shapes: Shapes, seed: bytes) -> Basis:
        """`seed`: the task file's hash, 32 bytes."""


class DenseCodec(Codec):
    """Every parameter travels."""

    name: Literal["dense"] = "dense"

    def size(self, shapes: Shapes) -> int:
        return parameters(shapes)

    def basis(self, shapes: Shapes, seed: bytes) -> Basis:
        return Dense(parameters(shapes))


class HashCodec(Codec):
    """Parameters share numbers: each moves with one of `buckets`, or against it, drawn from the task file's hash."""

    name: Literal["hash"]
    buckets: Annotated[int, Field(ge=1, le=MAX_SIZE)] = Field(description="numbers that travel, fewer than parameters")

    def size(self, shapes: Shapes) -> int:
        return _fewer(
            self.buckets, shapes,
            f"{self.buckets:,} buckets save nothing in a model of {parameters(shapes):,} parameters: lower buckets",
        )  # fmt: skip

    def basis(self, shapes: Shapes, seed: bytes) -> Basis:
        return Hashed(seed, parameters(shapes), self.size(shapes))


class LowRankCodec(Codec):
    """A matrix moves by B · P, where P is public and drawn from the task file's hash. B travels, of `rank` columns."""

    name: Literal["lowrank"]
    rank: Annotated[int, Field(ge=1, le=65_536)] = Field(description="numbers that travel of each row of a matrix")
    dense: list[str] = Field(default=[], description="names of tensors that travel whole")

    def size(self, shapes: Shapes) -> int:
        try:
            widths = low_rank_widths(shapes, self.rank, self.dense)
        except ArgumentInvalid as error:
            raise ValueError(str(error)) from None
        found = sum(shape[0] * widths[name] for name, shape in shapes.items())
        advice = f"rank {self.rank} saves nothing in this model: lower rank, name fewer tensors in dense"
        return _fewer(found, shapes, advice)

    def basis(self, shapes: Shapes, seed: bytes) -> Basis:
        return LowRank(seed, shapes, self.rank, self.dense)


class DctCodec(Codec):
    """A tensor moves by `kept` of the cosines (DCT) of each chunk of its values, drawn from the task file's hash."""

    name: Literal["dct"]
    chunk: Annotated[int, Field(ge=CHUNKS[0], le=CHUNKS[-1])] = Field(
        default=64, description="values of a tensor that count as a row: a power of two"
    )
    kept: Annotated[int, Field(ge=1, le=CHUNKS[-1])] = Field(description="numbers that travel of each chunk")

    def size(self, shapes: Shapes) -> int:
        if self.chunk not in CHUNKS:
            raise ValueError(f"a chunk of {self.chunk} values is no power of two: set chunk to 64, for example")
        if self.kept >= self.chunk:
            raise ValueError(
                f"{self.kept} numbers of each {self.chunk} values save nothing: lower kept, or raise chunk"
            )
        parts = [divmod(math.prod(shape), self.chunk) for shape in shapes.values()]
        found = sum(chunks * self.kept + rest for chunks, rest in parts)
        advice = f"no tensor of this model has {self.chunk} values, so chunks save nothing: lower chunk"
        return _fewer(found, shapes, advice)

    def basis(self, shapes: Shapes, seed: bytes) -> Basis:
        return Cosines(seed, shapes, self.chunk, self.kept)


class SketchCodec(Codec):
    """Hospitals train all parameters, and send a sketch of the change (count sketch). Each round moves the model by the
    `kept` largest changes that the sum shows, and the rest of the sum waits for the next one.
    """

    name: Literal["sketch"]
    columns: Annotated[int, Field(ge=1, le=MAX_SIZE)] = Field(description="numbers of a row that travel")
    rows: Annotated[int, Field(ge=1, le=15)] = Field(default=3, description="rows: an odd number")
    kept: Annotated[int, Field(ge=1, le=MAX_SIZE)] | None = Field(
        default=None, description="parameters that move in a round; without it, as many as a row has numbers"
    )

    def size(self, shapes: Shapes) -> int:
        if self.rows % 2 == 0:
            raise ValueError(f"{self.rows} rows have no median: set rows to {self.rows - 1} or {self.rows + 1}")
        found, whole = self.rows * self.columns, parameters(shapes)
        advice = f"{self.rows} rows of {self.columns:,} numbers save nothing in a model of {whole:,} parameters"
        _fewer(found, shapes, f"{advice}: lower columns")
        if self.kept is not None and self.kept > found:
            raise ValueError(
                f"a sketch of {found:,} numbers cannot show {self.kept:,} parameters: lower kept, or raise columns"
            )
        return found

    def basis(self, shapes: Shapes, seed: bytes) -> Basis:
        self.size(shapes)
        return CountSketch(seed, parameters(shapes), self.rows, self.columns, self.kept or self.columns)


CodecSpec = Annotated[DenseCodec | HashCodec | LowRankCodec | DctCodec | SketchCodec, Field(discriminator="name")]


def _fewer(size: int, shapes: Shapes, advice: str) -> int:
    """The size. Raises ValueError, with the advice, unless it is below the number of parameters."""
    if size >= parameters(shapes):
        raise ValueError(f'{advice}, or set the codec\'s name to "dense"')
    return size


def parameters(shapes: Shapes) -> int:
    """The values of all tensors."""
    return sum(math.prod(shape) for shape in shapes.values())
