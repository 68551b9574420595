"""One image file to pixels, by Pillow or pydicom. Imported only once a task's data are images.

A file's content decides its format, not its name. The stored orientation (EXIF) and palettes are applied, an opaque
alpha channel is dropped, and colour profiles are ignored. Colour becomes grey by ITU-R 601-2 (L = 0.299 R + 0.587 G +
0.114 B), and grey becomes colour by three equal channels. An image of another size is stretched to the task's by
Pillow's BILINEAR, which averages over all pixels under a pixel of the result.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import BinaryIO

import numpy as np
from consilium_chain.tasks.image_schemas import ImageSchema
from PIL import Image, ImageOps, UnidentifiedImageError
from PIL.TiffImagePlugin import BITSPERSAMPLE, TiffImageFile

from consilium_client.data.image import MOST_PIXELS
from consilium_client.data.image.headers import DICOM_START, Headers, is_dicom
from consilium_client.data.image.shades import shades
from consilium_client.errors import ExampleError

FORMATS = ("PNG", "JPEG", "BMP", "TIFF")  # Pillow tries these decoders, and no other
_PNG = b"\x89PNG\r\n\x1a\n"
_STARTS = (_PNG, b"\xff\xd8\xff", b"BM", b"II*\0", b"MM\0*")
_VOLUMES = (b"\x1f\x8b", b"\x5c\x01\0\0", b"\0\0\x01\x5c", b"\x1c\x02\0\0", b"\0\0\x02\x1c")  # NIfTI, perhaps packed
_PNG_DEPTH = 24  # where a PNG's header has its bits a channel
_GREY_16 = ("I;16", "I;16B", "I;16L", "I;16N")
_DEEP = ("I", "F", *_GREY_16)
_KNOWN = ("1", "L", "P", "RGB", "LA", "PA", "RGBA")


def decoded(
    file: BinaryIO, folder: Path, name: str, schema: ImageSchema, headers: Headers | None = None
) -> Image.Image:
    """An opened file's image, upright: in mode L or RGB of 8 bits, or in mode F of u from 0 to 1, if the task has a
    window or 16 bits. `headers` notes what a DICOM header has. Raises ExampleError about `name`.
    """
    start = file.read(DICOM_START)
    file.seek(0)
    if not start:
        raise ExampleError("ImageEmpty", path=folder, at=name)
    if start.startswith(_VOLUMES):
        raise ExampleError("ImageInParts", path=folder, at=name)
    fault = "ImageUnreadable"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about sizes beyond Pillow's own bound, and broken tags
            if is_dicom(start):
                from consilium_client.data.image import dicom

                return dicom.decoded(file, folder, name, schema, Headers() if headers is None else headers)
            image = _upright(file, start, folder, name, schema)
            return _of_shades(image, folder, name, schema) if schema.is_deep else image
    except ExampleError:
        raise
    except Image.DecompressionBombError:
        fault = "ImageTooLarge"
    except UnidentifiedImageError:
        fault = "ImageUnreadable" if start.startswith(_STARTS) else "ImageKindWrong"
    except Exception:  # decoders raise any error on foreign bytes, with the bytes in its message
        pass
    raise ExampleError(fault, path=folder, at=name)


def decoded_mask(file: BinaryIO, folder: Path, name: str) -> Image.Image:
    """The shades of grey, or the numbers of a palette, of 8 bits or less. Raises ExampleError about `name`."""
    fault = "ImageUnreadable"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(file, formats=("PNG", "BMP", "TIFF"))
            if image.width * image.height > MOST_PIXELS:
                fault = "ImageTooLarge"
            elif _has_second(image):
                fault = "ImageInParts"
            else:
                image.load()
                return image
    except UnidentifiedImageError:
        fault = "ImageKindWrong"
    except Exception:  # as above
        pass
    raise ExampleError(fault, path=folder, at=name)


def _upright(file: BinaryIO, start: bytes, folder: Path, name: str, schema: ImageSchema) -> Image.Image:
    with Image.open(file, formats=FORMATS) as image:  # reads the header alone
        if image.width * image.height > MOST_PIXELS:
            raise ExampleError("ImageTooLarge", path=folder, at=name)
        if _has_second(image):
            raise ExampleError("ImageInParts", path=folder, at=name)
        is_grey_16 = schema.is_deep and image.mode in _GREY_16 and _bits(image, start) == 16
        if not is_grey_16 and (image.mode in _DEEP or _bits(image, start) > 8):
            raise ExampleError("ImageTooDeep", path=folder, at=name)
        if not is_grey_16 and image.mode not in _KNOWN:
            raise ExampleError("ImageColoursWrong", path=folder, at=name)
        image.load()
        upright: Image.Image = image
        ImageOps.exif_transpose(upright, in_place=True)  # a copy of the largest image would need 256 MiB more
    if upright.has_transparency_data:
        if is_grey_16:
            raise ExampleError("ImageTransparent", path=folder, at=name)
        upright = upright.convert("RGBA")
        if upright.getchannel("A").getextrema() != (255, 255):
            raise ExampleError("ImageTransparent", path=folder, at=name)
    return upright if is_grey_16 else upright.convert("L" if upright.mode in ("1", "L") else "RGB")


def _of_shades(image: Image.Image, folder: Path, name: str, schema: ImageSchema) -> Image.Image:
    """In mode F. Values of 16 bits have the window's units, those of 8 bits none."""
    values = np.asarray(image)
    if image.mode in _GREY_16:
        return Image.fromarray(shades(values, schema, 65_535))
    if schema.window is not None and schema.window.center is not None:
        raise ExampleError("ImageTooShallow", path=folder, at=name)
    if values.ndim == 3:
        if (values != values[..., :1]).any():
            raise ExampleError("ImageNotGrey", path=folder, at=name)
        values = values[..., 0]
    return Image.fromarray(shades(values, schema, 255))


def _has_second(image: Image.Image) -> bool:
    """True if a second image follows. Pillow's `n_frames` would count all of them: a TIFF may have a million."""
    try:
        image.seek(1)
    except EOFError:
        return False
    return True


def _bits(image: Image.Image, start: bytes) -> int:
    """The file's bits per channel. Pillow silently reduces 16 bits in some formats."""
    if start.startswith(_PNG):
        return start[_PNG_DEPTH]
    return max(image.tag_v2.get(BITSPERSAMPLE, (8,))) if isinstance(image, TiffImageFile) else 8
