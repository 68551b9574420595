"""The schema of images: their size, channels, depth and window."""

from __future__ import annotations

from typing import Annotated, Literal

from consilium_core.typed_toml import Section
from pydantic import Field, model_validator

from consilium_chain.tasks.features import EncodedColumn
from consilium_chain.tasks.schema_base import Labelled

MAX_SIDE = 512  # of an image, in pixels
MAX_CHANNELS = 16  # of an image
CHANNELS = {1: ("grey",), 3: ("red", "green", "blue")}


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
    other numbers from a file for each channel, or from NumPy archives.
    """

    things = "images"
    summed = "the number of images, and sums of their mean shades and mean squared shades for each channel"

    kind: Literal["images"]
    label: str = Field(default="label", description="name of the label's column")
    height: Annotated[int, Field(ge=8, le=MAX_SIDE, description="pixels")]
    width: Annotated[int, Field(ge=8, le=MAX_SIDE, description="pixels")]
    channels: Annotated[int, Field(ge=1, le=MAX_CHANNELS)] = Field(
        default=1,
        description="1 for grey, 3 for red, green and blue; others have a file for each, or NumPy archives",
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
