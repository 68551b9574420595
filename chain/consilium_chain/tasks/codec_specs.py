"""The codecs of tasks, with their arguments: the numbers that hospitals train, mask and commit to.

A codec is a linear map with public coefficients (`consilium_zk.basis`): only then do masks cancel, and is a sum of
updates the update of the sum. A new one is a class here, in `CodecSpec`, and one in `consilium_zk.basis`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Annotated, Literal

from consilium_core.typed_toml import Section
from consilium_zk.basis import MAX_SIZE, Basis, Dense, Hashed, LowRank, Shapes, low_rank_widths
from consilium_zk.errors import ArgumentInvalid
from pydantic import Field

REFUSED = {
    "topk": "a hospital's own top-k is no codec: each hospital would send other places, so masks would not cancel, and"
    ' the places tell of its rows; set its name to "hash" or "lowrank"',
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
        if self.buckets >= parameters(shapes):
            raise ValueError(
                f"{self.buckets:,} buckets save nothing in a model of {parameters(shapes):,} parameters: lower buckets,"
                ' or set the codec\'s name to "dense"'
            )
        return self.buckets

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
        if found == parameters(shapes):
            raise ValueError(
                f"rank {self.rank} saves nothing in this model: lower rank, name fewer tensors in dense, or set the"
                ' codec\'s name to "dense"'
            )
        return found

    def basis(self, shapes: Shapes, seed: bytes) -> Basis:
        return LowRank(seed, shapes, self.rank, self.dense)


CodecSpec = Annotated[DenseCodec | HashCodec | LowRankCodec, Field(discriminator="name")]


def parameters(shapes: Shapes) -> int:
    """The values of all tensors."""
    return sum(math.prod(shape) for shape in shapes.values())
