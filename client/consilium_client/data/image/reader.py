"""Images with labels: the only door through which they enter.

From a folder of PNG, JPEG, BMP or TIFF files (`folders`), or from a NumPy archive of two arrays. Each is brought to the
schema's channels and size by `image_files`, one at a time.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from consilium_chain.tasks.data_schemas import ImageSchema
from numpy.lib import format as npy
from numpy.typing import NDArray

from consilium_client.data.examples import Examples, require_classes
from consilium_client.data.folders import labelled_files
from consilium_client.data.image import MOST_PIXELS
from consilium_client.data.table.reader import MOST_ROWS
from consilium_client.errors import CellError, DataError, ExampleError

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff")
MOST_BYTES = 1 << 32  # of all images together, as they are kept
ZIP = b"PK\x03\x04"
IMAGES, LABELS = "images", "labels"
WHITE = 255.0


@dataclass(frozen=True)
class ImageSet(Examples):
    """Pixels uint8 (n, channels, height, width) as the schema has them; labels int64 (n,), a class's number each."""

    pixels: NDArray[np.uint8] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)

    def row_bytes(self) -> Iterator[bytes]:
        """After the label channels, height and width, little-endian in 4 bytes each, then pixels by channel, row by
        row."""
        shape = b"".join(side.to_bytes(4, "little") for side in self.pixels.shape[1:])
        for label, image in zip(self.labels, self.pixels, strict=True):
            yield int(label).to_bytes(4, "little") + shape + image.tobytes()

    def contents(self) -> Iterator[bytes]:
        return (image.tobytes() for image in self.pixels)

    def chosen(self, which: NDArray[np.bool_]) -> ImageSet:
        return ImageSet(self.pixels[which], self.labels[which])

    def relabelled(self, labels: NDArray[np.int64]) -> ImageSet:
        return ImageSet(self.pixels, labels)

    def followed_by(self, others: Sequence[ImageSet]) -> ImageSet:
        parts = [self, *others]
        return ImageSet(
            np.concatenate([part.pixels for part in parts]), np.concatenate([part.labels for part in parts])
        )

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
    """A folder's or archive's content. `sizes`: int64 (n, 2), height and width of each before it was brought to size.

    `left_aside`: files of a folder that its list does not name.
    """

    path: Path
    kind: Literal["folder", "NumPy archive"]
    images: ImageSet
    sizes: NDArray[np.int64] = field(repr=False)
    left_aside: int


def read_images(path: Path, schema: ImageSchema, *, allow_one_class: bool = True) -> ImageSet:
    """Images of a folder or archive; held-out ones may not be of one class alone (`allow_one_class=False`).

    Raises a DataError that names the file.
    """
    images = read_raw_images(path, schema).images
    if not allow_one_class:
        require_classes(images, path, schema)
    return images


def read_raw_images(path: Path, schema: ImageSchema) -> RawImages:
    """Raises DataError."""
    path = Path(path)
    try:
        if path.is_dir():
            return _folder(path, schema)
        with path.open("rb") as file:
            return _archive(file, path, schema)
    except FileNotFoundError:
        why = "there is no such file"
    except OSError as error:
        why = error.strerror or type(error).__name__
        path = Path(error.filename) if isinstance(error.filename, str) else path
    raise DataError("DataFileMissing", path=path, why=why)


def most_images(schema: ImageSchema) -> int:
    """That one hospital may bring."""
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
    return RawImages(path, "folder", ImageSet(pixels, labels), sizes, listing.left_aside)


def room(count: int, schema: ImageSchema) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    pixels = np.empty((count, schema.channels, schema.height, schema.width), dtype=np.uint8)
    return pixels, np.empty((count, 2), dtype=np.int64)


# NumPy archives

# What zipfile and NumPy raise over an archive's bytes. Their messages may quote them.
_FAULTS = (zipfile.BadZipFile, zlib.error, OSError, ValueError, EOFError, NotImplementedError, RuntimeError)


def _archive(file: BinaryIO, path: Path, schema: ImageSchema) -> RawImages:
    if file.read(len(ZIP)) != ZIP:
        raise DataError("ArraysWrong", path=path, why="this is neither a folder nor a NumPy archive")
    try:
        with zipfile.ZipFile(file) as archive:
            if sorted(archive.namelist()) != [f"{IMAGES}.npy", f"{LABELS}.npy"]:
                raise DataError(
                    "ArraysWrong", path=path, why=f"its arrays are not {IMAGES} and {LABELS}, and nothing else"
                )
            images = _array(archive, path, IMAGES, schema)
            labels = _array(archive, path, LABELS, schema)
    except _FAULTS:
        pass
    else:
        return _of_arrays(images, labels, path, schema)
    raise DataError("ArraysWrong", path=path, why="it is damaged, cut off or encrypted")


def _of_arrays(images: NDArray[np.uint8], labels: NDArray[np.integer], path: Path, schema: ImageSchema) -> RawImages:
    if len(images) != len(labels):
        raise DataError("ArraysWrong", path=path, why=f"there are {len(images)} images and {len(labels)} labels")
    wrong = np.flatnonzero((labels < 0) | (labels >= len(schema.classes)))
    if len(wrong):
        raise CellError("LabelOutOfSchema", path=path, row=int(wrong[0]) + 1, column=LABELS, counted="row")
    from consilium_client.data.image.files import fitted, image_of

    pixels, sizes = room(len(images), schema)
    for at, image in enumerate(images):
        pixels[at] = fitted(image_of(image), schema)
    sizes[:] = images.shape[1:3]
    return RawImages(path, "NumPy archive", ImageSet(pixels, labels.astype(np.int64)), sizes, 0)


def _array(archive: zipfile.ZipFile, path: Path, name: str, schema: ImageSchema) -> NDArray[Any]:
    """Its shape is looked at before anything is unpacked. Raises DataError, and _FAULTS."""
    with archive.open(f"{name}.npy") as member:
        read_header = npy.read_array_header_1_0 if npy.read_magic(member) == (1, 0) else npy.read_array_header_2_0
        shape, _, kind = read_header(member)
    if name == LABELS:
        if len(shape) != 1 or kind.kind not in "iu":
            raise DataError("ArraysWrong", path=path, why=f"{name} is {kind} of shape {shape}")
        at_most = MOST_ROWS
    else:
        if kind != np.uint8 or len(shape) not in (3, 4) or shape[3:] not in ((), (1,), (3,)) or 0 in shape[1:]:
            raise DataError("ArraysWrong", path=path, why=f"{name} is {kind} of shape {shape}")
        if math.prod(shape[1:3]) > MOST_PIXELS:
            raise ExampleError("ImageTooLarge", path=path, at=name)
        at_most = min(most_images(schema), MOST_BYTES // math.prod(shape[1:]))
    if shape[0] == 0:
        raise DataError("DataFileEmpty", path=path)
    if shape[0] > at_most:
        raise DataError("TooManyRows", rows=shape[0], at_most=at_most)
    with archive.open(f"{name}.npy") as member:
        array: NDArray[Any] = npy.read_array(member, allow_pickle=False)
        if member.read(1):
            raise ValueError
    return array
