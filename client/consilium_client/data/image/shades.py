"""Values of an image with more than 8 bits to shades: u from 0 (black) to 1 (white), and the task's pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from consilium_chain.tasks.image_schemas import CHANNELS, ImageSchema
from numpy.typing import NDArray
from PIL import Image


def shades(values: NDArray[Any], schema: ImageSchema, white: float) -> NDArray[np.float32]:
    """u of values (height, width). `white`: the value of u = 1 where the task has no window.

    A window is DICOM's LINEAR_EXACT (PS3.3, C.11.2.1.3.2). Percents are those of this image's own values, and bounds
    are values that it has. An image of one value is black then.
    """
    low, width, window = 0.0, white, schema.window
    if window is not None and window.center is not None and window.width is not None:
        low, width = window.center - window.width / 2, window.width
    elif window is not None:
        low, high = (float(one) for one in np.percentile(values, [window.low, window.high], method="inverted_cdf"))
        width = high - low
    found = values.astype(np.float32)
    if width == 0:
        return np.zeros_like(found)
    found -= np.float32(low)
    found /= np.float32(width)
    return np.clip(found, 0, 1, out=found)


def image_of(values: NDArray[np.uint8]) -> Image.Image:
    """An image of 8 bits from an array (height, width), or with 1 or 3 channels last."""
    return Image.fromarray(values[..., 0] if values.shape[2:] == (1,) else values)


def fitted(image: Image.Image, schema: ImageSchema) -> NDArray[Any]:
    """Pixels (channels, height, width) of the schema, uint8 or of 16 bits uint16.

    `image`: in mode L or RGB of 8 bits, or F of u. Another size is stretched by Pillow's BILINEAR.
    """
    if image.mode != "F":
        image = image.convert("L" if schema.channels == 1 else "RGB")
    if image.size != (schema.width, schema.height):
        image = image.resize((schema.width, schema.height), Image.Resampling.BILINEAR)
    pixels = np.asarray(image)
    if image.mode == "F":
        plane = np.rint(pixels * np.float32(schema.white)).astype(dtype(schema))
        return np.broadcast_to(plane, (schema.channels, *plane.shape))
    return pixels[None] if schema.channels == 1 else pixels.transpose(2, 0, 1)


def of_channels(images: Sequence[Image.Image], schema: ImageSchema) -> NDArray[Any]:
    """The same of one image, or of one for each channel."""
    if len(images) == 1:
        return fitted(images[0], schema)
    one = schema.model_copy(update={"channels": 1})
    return np.concatenate([fitted(image, one) for image in images])


def of_array(values: NDArray[Any], schema: ImageSchema) -> NDArray[Any]:
    """The same of an archive's image (height, width), or with channels last."""
    if not schema.is_deep and schema.channels in CHANNELS:
        return fitted(image_of(values), schema)
    planes = np.moveaxis(values, -1, 0) if values.ndim == 3 else values[None]
    one = schema.model_copy(update={"channels": 1})
    white = np.iinfo(values.dtype).max
    found = [fitted(Image.fromarray(shades(plane, schema, white)), one)[0] for plane in planes]
    return np.broadcast_to(np.stack(found), (schema.channels, schema.height, schema.width))


def dtype(schema: ImageSchema) -> np.dtype[Any]:
    return np.dtype(np.uint8 if schema.bits == 8 else np.uint16)
