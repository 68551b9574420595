"""A contact sheet: a few images as a model gets them, for their owner's eyes."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
from consilium_core.private_files import write_private_file
from numpy.typing import NDArray
from PIL import Image

from consilium_client.data.image.kind import ImageProfile

GAP, BACKGROUND = 4, (40, 60, 120)  # pixels; blue, which no grey image has
# Of a mask's classes after the background, by turns (Okabe and Ito, 2008), and how much of a pixel they cover.
MARKS, COVER = np.array([(230, 159, 0), (86, 180, 233), (0, 158, 115), (204, 121, 167), (213, 94, 0)]), 0.45


def write_sheet(path: Path, profile: ImageProfile) -> None:
    """A PNG of the profile's pictures, readable by its owner alone. It shows the first channel if there are neither one
    nor three, and colours the pixels that a mask marks. Raises OSError.
    """
    pictures, white = profile.pictures, profile.schema.white
    across = math.ceil(math.sqrt(len(pictures)))
    height, width = pictures.shape[2] + GAP, pictures.shape[3] + GAP
    sheet = Image.new("RGB", (across * width + GAP, -(-len(pictures) // across) * height + GAP), BACKGROUND)
    for at, picture in enumerate(pictures):
        shown = np.rint(picture * (255 / white)).astype(np.uint8)
        one = Image.fromarray(shown.transpose(1, 2, 0)) if len(shown) == 3 else Image.fromarray(shown[0])
        if profile.masks is not None:
            one = _marked(one, profile.masks[at])
        sheet.paste(one, (at % across * width + GAP, at // across * height + GAP))
    sheet.save(stream := io.BytesIO(), "PNG")
    write_private_file(path, stream.getvalue())


def _marked(image: Image.Image, mask: NDArray[np.uint8]) -> Image.Image:
    pixels = np.array(image.convert("RGB"))
    colours, is_marked = MARKS[(mask.astype(np.int64) - 1) % len(MARKS)], mask > 0
    pixels[is_marked] = np.rint(pixels * (1 - COVER) + colours * COVER)[is_marked]
    return Image.fromarray(pixels)
