"""Families of convolutions: of images, of each of their pixels, and of series."""

from __future__ import annotations

import itertools
from typing import Annotated, Literal

from consilium_core.kinds import of_kind
from pydantic import Field

from consilium_chain.tasks.encoder_shapes import layer
from consilium_chain.tasks.family_spec import Data, Family
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.series_schema import SeriesSchema

KERNEL = 3  # a convolution's side, in pixels or steps


class CnnSpec(Family):
    """Blocks of a 3 × 3 convolution, ReLU and 2 × 2 maximum pooling; then each channel's mean, and one dense layer."""

    takes = "images"
    name: Literal["cnn"] = "cnn"
    channels: Annotated[list[Annotated[int, Field(ge=1, le=1_024)]], Field(min_length=1, max_length=6)] = Field(
        default=[16, 32, 64], description="channels that each block gives"
    )

    def tensors(self, data: Data) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        channels = [of_kind(ImageSchema, data).channels, *self.channels]
        for block, (a, b) in enumerate(itertools.pairwise(channels)):
            found |= {f"{3 * block}.weight": (b, a, KERNEL, KERNEL), f"{3 * block}.bias": (b,)}
        last = 3 * len(self.channels) + 2  # behind the channels' means, and the flattening of these
        return found | layer(str(last), self.channels[-1], data.outputs)

    def require_fits(self, data: Data) -> None:
        super().require_fits(data)
        size = of_kind(ImageSchema, data)
        if min(size.height, size.width) >> len(self.channels) < 1:
            raise ValueError(
                f"{len(self.channels)} blocks halve {size.height} × {size.width} pixels to nothing: use fewer"
            )


class TcnSpec(Family):
    """Convolutions of three steps and ReLU, each over twice the distance of the one before (Bai et al. 2018, TCN);
    then each channel's mean over time, and one dense layer.
    """

    takes = "series"
    name: Literal["tcn"] = "tcn"
    channels: Annotated[list[Annotated[int, Field(ge=1, le=1_024)]], Field(min_length=1, max_length=8)] = Field(
        default=[32, 32, 32], description="channels that each convolution gives"
    )

    def tensors(self, data: Data) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        channels = [of_kind(SeriesSchema, data).channels, *self.channels]
        for block, (a, b) in enumerate(itertools.pairwise(channels)):
            found |= {f"{2 * block}.weight": (b, a, KERNEL), f"{2 * block}.bias": (b,)}
        last = 2 * len(self.channels) + 2  # behind the channels' means, and the flattening of these
        return found | layer(str(last), self.channels[-1], data.outputs)

    def require_fits(self, data: Data) -> None:
        super().require_fits(data)
        steps = of_kind(SeriesSchema, data).steps
        if 2 ** (len(self.channels) - 1) >= steps:
            raise ValueError(f"{len(self.channels)} convolutions reach beyond {steps} steps: use fewer")


class UnetSpec(Family):
    """A U-Net (Ronneberger et al., 2015) without norms: each level has two 3 × 3 convolutions with ReLU. Maximum
    pooling halves the image from level to level; on the way back pixels are doubled, and joined with the level's own
    channels. A 1 × 1 convolution gives each pixel's logits.
    """

    takes = "images"
    marks_pixels = True
    name: Literal["unet"]
    widths: Annotated[list[Annotated[int, Field(ge=1, le=1_024)]], Field(min_length=2, max_length=6)] = Field(
        default=[8, 16, 32], description="channels of each level, from whole images down"
    )

    def convolutions(self, data: Data) -> list[tuple[str, int, int, int]]:
        """Each one's name, inputs, outputs and side, in order."""
        found, before, levels = list[tuple[str, int, int, int]](), of_kind(ImageSchema, data).channels, self.widths
        down, up = enumerate(levels), enumerate(reversed(levels[:-1]))
        for block, joined, wide in [
            *((f"down.{at}", 0, wide) for at, wide in down), *((f"up.{at}", wide, wide) for at, wide in up)
        ]:  # fmt: skip
            found += [(f"{block}.0", before + joined, wide, KERNEL), (f"{block}.2", wide, wide, KERNEL)]
            before = wide
        return [*found, ("last", before, data.outputs, 1)]

    def tensors(self, data: Data) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        for name, inputs, outputs, side in self.convolutions(data):
            found |= {f"{name}.weight": (outputs, inputs, side, side), f"{name}.bias": (outputs,)}
        return found

    def require_fits(self, data: Data) -> None:
        super().require_fits(data)
        size, part = of_kind(ImageSchema, data), 2 ** (len(self.widths) - 1)
        if size.height % part or size.width % part:
            raise ValueError(
                f"{len(self.widths)} levels need a height and a width that {part} divides, and the task has"
                f" {size.height} × {size.width} pixels: change them, or use fewer widths"
            )
