"""The outer optimisers of tasks, from a round's mean update to the next base model, with their arguments.

A new one is a class here, in `OuterSpec`, and one in `consilium_client.models.outer`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from consilium_core.typed_toml import Section
from pydantic import Field

Rate = Annotated[float, Field(gt=0, le=1_000)]
Decay = Annotated[float, Field(ge=0, lt=1)]


class MeanSpec(Section):
    """FedAvg: the base moves by the mean update."""

    name: Literal["mean"] = "mean"


class MomentumSpec(Section):
    """FedAvgM: earlier rounds' means still move the base."""

    name: Literal["momentum"]
    learning_rate: Rate = Field(default=1.0, description="η: how far the momentum moves the base")
    momentum: Decay = Field(default=0.5, description="β: the part of earlier rounds that remains")


class AdamSpec(Section):
    """FedAdam: each coordinate's step is scaled by its past variation."""

    name: Literal["adam"]
    learning_rate: Rate = Field(default=0.03, description="η: length of a coordinate's step")
    beta1: Decay = Field(default=0.9, description="the part of the earlier mean that remains")
    beta2: Decay = Field(default=0.99, description="the part of the earlier variation that remains")
    tau: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.001, description="how adaptive: the smaller, the more coordinates of small updates move"
    )


class NesterovSpec(Section):
    """DiLoCo's outer step: momentum that looks one step ahead, and that may fade over the rounds."""

    name: Literal["nesterov"]
    learning_rate: Rate = Field(default=0.7, description="η: how far the step moves the base")
    momentum: Decay = Field(default=0.9, description="μ: the part of earlier rounds that remains")
    fading: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.7, description="factor of μ after each settled round: at 1 decoys begin to resemble their sums"
    )


class SignSpec(Section):
    """Only the direction of each value's mean counts."""

    name: Literal["sign"]
    learning_rate: Rate = Field(default=0.001, description="η: how far each value moves in a round")


OuterSpec = Annotated[MeanSpec | MomentumSpec | AdamSpec | NesterovSpec | SignSpec, Field(discriminator="name")]
