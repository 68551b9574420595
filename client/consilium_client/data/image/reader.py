"""Reads images with labels from a folder of PNG, JPEG, BMP or TIFF files (`folders`), or from a NumPy archive.

Each image is brought to the schema's channels and size by `files`, one at a time.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from consilium_chain.tasks.data_schemas import ImageSchema
from consilium_chain.tasks.plugin_specs import ReaderPlugin
from numpy.lib import format as npy
from numpy.typing import NDArray

from consilium_client.data.examples import MOST_ROWS, Examples, Labels, Source, reading
from consilium_client.data.folders import labelled_files, unlabelled_files
from consilium_client.data.foreign import Foreign, opened
from consilium_client.data.image import MOST_PIXELS
from consilium_client.data.use import Use, Used, without_column
from consilium_client.errors import DataError, ExampleError

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff")
MOST_BYTES = 1 << 32  # of all images together, in memory
ZIP = b"PK\x03\x04"
IMAGES, LABELS = "images", "labels"
WHITE = 255.0


@dataclass(frozen=True)
class ImageSet(Examples):
    """Pixels uint8 (n, channels, height, width) as the schema has them; labels int64 (n,), a class's number each."""

    pixels: NDArray[np.uint8] = field(repr=False)
    labels: Labels = field(repr=False)

    def row_bytes(self) -> Iterator[bytes]:
        """After the label channels, height and width, little-endian in 4 bytes each, then pixels by channel, row by
        row."""
        shape = b"".join(side.to_bytes(4, "little") for side in self.pixels.shape[1:])
        for label, image in zip(self.label_bytes, self.pixels, strict=True):
            yield label + shape + image.tobytes()

    def contents(self) -> Iterator[bytes]:
        return (image.tobytes() for image in self.pixels)

    def sums(self) -> NDArray[np.float64]:
        """The images of each channel, then all sums of their mean u, then of their mean u², float64 (3 · channels,)."""
        channels = self.pixels.shape[1]
        totals, squares = np.zeros(channels), np.zeros(channels)
        for image in self.pixels:  # one at a time, for memory
            shades = image / WHITE
            totals += shades.mean(axis=(1, 2))
            squares += (shades**2).mean(axis=(1, 2))
        return np.concatenate([np.full(channels, float(self.rows)), totals, squares])


@dataclass(frozen=True)
class RawImages:
    """`sizes`: int64 (n, 2), height and width of each image before it was brought to the task's size."""

    source: Source
    images: ImageSet
    sizes: NDArray[np.int64] = field(repr=False)


def read_raw_images(path: Path, schema: ImageSchema, plugin: ReaderPlugin | None = None) -> RawImages:
    """Images of a folder or archive, or by a plug-in. Raises a DataError that names the file, and as `Foreign.rows`."""
    with reading(path):
        if plugin is None and path.is_dir():
            return _folder(path, schema)
    with opened(path, plugin, schema) as file:
        if not isinstance(file, Foreign):
            return _archive(file, path, schema)
        images, labels = file.images(lambda name, shape, kind: _require_shape(path, name, shape, kind, schema))
        return _of_arrays(images, labels, Source(path, "plug-in", reader=file.in_words), schema)


def read_images_in_use(path: Path, schema: ImageSchema, use: Use) -> Used:
    """Images for a finished model: of a folder, which needs no labels, or of an archive. Raises DataError."""
    if use.own is not None:
        raise without_column(path, use.own)
    if use.labelled or not path.is_dir() or use.columns.reader is not None:
        raw = read_raw_images(path, schema, use.columns.reader)
        return Used(raw.source, raw.images)
    from consilium_client.data.image.files import decoded, fitted

    with reading(path):
        files = unlabelled_files(path, ENDINGS, most_images(schema))
        pixels, _ = room(len(files), schema)
        for at, (name, file) in enumerate(files):
            with file.open("rb") as opened:
                pixels[at] = fitted(decoded(opened, path, name), schema)
    images = ImageSet(pixels, np.zeros(len(files), np.int64))
    return Used(Source(path, "folder"), images, names=tuple(name for name, _ in files))


def most_images(schema: ImageSchema) -> int:
    """The largest number that one hospital may bring."""
    return min(MOST_ROWS, MOST_BYTES // (schema.channels * schema.height * schema.width))


def _folder(path: Path, schema: ImageSchema) -> RawImages:
    from consilium_client.data.image.files import decoded, fitted

    listing = labelled_files(path, schema.classes, ENDINGS, most_images(schema))
    pixels, sizes = room(len(listing.files), schema)
    for at, file in enumerate(listing.files):
        with file.path.open("rb") as opened:
            image = decoded(opened, path, file.name)
        sizes[at] = image.height, image.width
        pixels[at] = fitted(image, schema)
    labels = np.array([file.label for file in listing.files], dtype=np.int64)
    return RawImages(Source(path, "folder", left_aside=listing.left_aside), ImageSet(pixels, labels), sizes)


def room(count: int, schema: ImageSchema) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    pixels = np.empty((count, schema.channels, schema.height, schema.width), dtype=np.uint8)
    return pixels, np.empty((count, 2), dtype=np.int64)


# NumPy archives

# Errors of zipfile and NumPy about an archive's bytes. Their messages may quote the bytes.
_FAULTS = (zipfile.BadZipFile, zlib.error, OSError, ValueError, EOFError, NotImplementedError, RuntimeError)


def _archive(file: BinaryIO, path: Path, schema: ImageSchema) -> RawImages:
    if file.read(len(ZIP)) != ZIP:
        raise DataError("ArraysWrong", path=path, why="this is neither a folder nor a NumPy archive")
    try:
        with zipfile.ZipFile(file) as archive:
            if sorted(archive.namelist()) != [f"{IMAGES}.npy", f"{LABELS}.npy"]:
                raise DataError(
                    "ArraysWrong",
                    path=path,
                    why=f"the archive must contain the arrays {IMAGES} and {LABELS}, and no others",
                )
            images = _array(archive, path, IMAGES, schema)
            labels = _array(archive, path, LABELS, schema)
    except _FAULTS:
        pass
    else:
        return _of_arrays(images, labels, Source(path, "NumPy archive"), schema)
    raise DataError("ArraysWrong", path=path, why="the archive is damaged, cut off or encrypted")


def _of_arrays(
    images: NDArray[np.uint8], labels: NDArray[np.integer], source: Source, schema: ImageSchema
) -> RawImages:
    if len(images) != len(labels):
        why = f"there are {len(images)} images, but {len(labels)} labels"
        raise DataError("ArraysWrong", path=source.path, why=why)
    wrong = np.flatnonzero((labels < 0) | (labels >= len(schema.classes)))
    if len(wrong):
        raise source.cell_error("LabelOutOfSchema", int(wrong[0]) + 1, LABELS)
    from consilium_client.data.image.files import fitted, image_of

    pixels, sizes = room(len(images), schema)
    for at, image in enumerate(images):
        pixels[at] = fitted(image_of(image), schema)
    sizes[:] = images.shape[1:3]
    return RawImages(source, ImageSet(pixels, labels.astype(np.int64)), sizes)


def _array(archive: zipfile.ZipFile, path: Path, name: str, schema: ImageSchema) -> NDArray[Any]:
    """Checks the shape before it unpacks the array. Raises DataError, and _FAULTS."""
    with archive.open(f"{name}.npy") as member:
        read_header = npy.read_array_header_1_0 if npy.read_magic(member) == (1, 0) else npy.read_array_header_2_0
        shape, _, kind = read_header(member)
    _require_shape(path, name, shape, kind, schema)
    with archive.open(f"{name}.npy") as member:
        array: NDArray[Any] = npy.read_array(member, allow_pickle=False)
        if member.read(1):
            raise ValueError
    return array


def _require_shape(path: Path, name: str, shape: tuple[int, ...], kind: np.dtype[Any], schema: ImageSchema) -> None:
    """Raises DataError."""
    if name == LABELS:
        if len(shape) != 1 or kind.kind not in "iu":
            raise DataError("ArraysWrong", path=path, why=f"the array {name} has type {kind} and shape {shape}")
        at_most = MOST_ROWS
    else:
        if kind != np.uint8 or len(shape) not in (3, 4) or shape[3:] not in ((), (1,), (3,)) or 0 in shape[1:]:
            raise DataError("ArraysWrong", path=path, why=f"the array {name} has type {kind} and shape {shape}")
        if math.prod(shape[1:3]) > MOST_PIXELS:
            raise ExampleError("ImageTooLarge", path=path, at=name)
        at_most = min(most_images(schema), MOST_BYTES // math.prod(shape[1:]))
    if shape[0] == 0:
        raise DataError("DataFileEmpty", path=path)
    if shape[0] > at_most:
        raise DataError("TooManyRows", rows=shape[0], at_most=at_most)
