"""Reads images with labels from a folder of PNG, JPEG, BMP, TIFF or DICOM files, or from a NumPy archive; images with
masks by `cases`.

Each image is brought to the schema's channels and size by `files`, one at a time.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from consilium_chain.tasks.image_schemas import CHANNELS, ImageSchema
from consilium_chain.tasks.plugin_specs import ReaderPlugin
from consilium_chain.tasks.questions import Segmentation
from numpy.lib import format as npy
from numpy.typing import NDArray

from consilium_client.data.answers import answers_of
from consilium_client.data.examples import MOST_ROWS, Examples, Labels, Source, reading
from consilium_client.data.folders import labelled_files, unlabelled_files
from consilium_client.data.foreign import Foreign, opened
from consilium_client.data.image import MOST_PIXELS
from consilium_client.data.image.headers import Headers, is_dicom_file
from consilium_client.data.use import Use, Used, without_column
from consilium_client.errors import DataError, ExampleError

if TYPE_CHECKING:
    from PIL import Image

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".dcm", ".nii", ".nii.gz")
MOST_BYTES = 1 << 32  # of all images together, in memory
ZIP = b"PK\x03\x04"
IMAGES, LABELS = "images", "labels"
Pixels = NDArray[np.uint8] | NDArray[np.uint16]


@dataclass(frozen=True)
class ImageSet(Examples):
    """Pixels (n, channels, height, width) as the schema has them, uint8, or of 16 bits uint16. `cases`: each one's
    case, if several may be slices of one volume; they stay in memory.
    """

    pixels: Pixels = field(repr=False)
    labels: Labels = field(repr=False)
    cases: tuple[str, ...] = field(default=(), repr=False)

    @property
    def white(self) -> int:
        """The largest shade that a pixel can have."""
        return int(np.iinfo(self.pixels.dtype).max)

    def row_bytes(self) -> Iterator[bytes]:
        """After the label channels, height and width, little-endian in 4 bytes each, then pixels by channel, row by
        row, little-endian.
        """
        shape = b"".join(side.to_bytes(4, "little") for side in self.pixels.shape[1:])
        for label, content in zip(self.label_bytes, self.contents(), strict=True):
            yield label + shape + content

    def contents(self) -> Iterator[bytes]:
        return (image.astype(image.dtype.newbyteorder("<"), copy=False).tobytes() for image in self.pixels)

    def units(self) -> Iterable[bytes]:
        return map(str.encode, self.cases) if self.cases else self.contents()

    def sums(self) -> NDArray[np.float64]:
        """The images of each channel, then all sums of their mean u, then of their mean u², float64 (3 · channels,)."""
        channels = self.pixels.shape[1]
        totals, squares = np.zeros(channels), np.zeros(channels)
        for image in self.pixels:  # one at a time, for memory
            shades = image / self.white
            totals += shades.mean(axis=(1, 2))
            squares += (shades**2).mean(axis=(1, 2))
        return np.concatenate([np.full(channels, float(self.rows)), totals, squares])


@dataclass(frozen=True)
class RawImages:
    """`sizes`: int64 (n, 2), height and width of each image before it was brought to the task's size. `burned_in`: the
    number of files whose header says that text is burned in.
    """

    source: Source
    images: ImageSet
    sizes: NDArray[np.int64] = field(repr=False)
    burned_in: int = 0


def read_raw_images(path: Path, schema: ImageSchema, plugin: ReaderPlugin | None = None) -> RawImages:
    """Images of a folder or archive, or by a plug-in. Raises a DataError that names the file, and as `Foreign.rows`."""
    if isinstance(schema.asked, Segmentation):
        from consilium_client.data.image.cases import read_cases

        if plugin is not None:
            raise DataError("MappingInvalid", why="a plug-in reads no masks: remove [reader] of the mapping")
        return read_cases(path, schema)
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
    with reading(path):
        files = unlabelled_files(path, ENDINGS, MOST_ROWS, is_dicom_file)
        pixels, _, first = _of_files(path, files, schema, Headers())
    images = ImageSet(pixels, np.zeros(len(first), np.int64))
    return Used(Source(path, "folder"), images, names=tuple(files[at][0] for at in first))


def most_images(schema: ImageSchema) -> int:
    """The largest number that one hospital may bring."""
    return min(MOST_ROWS, MOST_BYTES // (schema.channels * schema.height * schema.width * schema.bits // 8))


def require_file_channels(path: Path, schema: ImageSchema) -> None:
    """Raises ArraysWrong if no image file has the task's channels."""
    if schema.channels not in CHANNELS:
        why = f"the task's images have {schema.channels} channels, which one image file cannot have"
        raise DataError("ArraysWrong", path=path, why=why)


def _folder(path: Path, schema: ImageSchema) -> RawImages:
    listing = labelled_files(path, schema, ENDINGS, MOST_ROWS, is_dicom_file, nested=True)
    files, headers = [(file.name, file.path) for file in listing.files], Headers()
    labels = listing.labels(schema)
    pixels, sizes, first = _of_files(path, files, schema, headers, labels)
    source = Source(path, "folder", left_aside=listing.left_aside, identifying=dict(headers.identifying))
    return RawImages(source, ImageSet(pixels, labels[first]), sizes, headers.burned_in)


def _of_files(
    path: Path, files: Sequence[tuple[str, Path]], schema: ImageSchema, headers: Headers, labels: Labels | None = None
) -> tuple[Pixels, NDArray[np.int64], list[int]]:
    """Pixels, sizes, and the index of each example's first file, which alone it has unless it has other channels than
    1 or 3.
    """
    from consilium_client.data.image.cases import by_case
    from consilium_client.data.image.files import decoded
    from consilium_client.data.image.shades import of_channels

    names, several = [name for name, _ in files], schema.channels not in CHANNELS
    cases = by_case(path, names, schema.channels) if several else [[at] for at in range(len(files))]
    if len(cases) > (most := most_images(schema)):
        raise DataError("TooManyRows", rows=len(cases), at_most=most)
    pixels, sizes = room(len(cases), schema)
    for at, indices in enumerate(cases):
        images: list[Image.Image] = []
        for index in indices:
            name, file = files[index]
            if labels is not None and (labels[index] != labels[indices[0]]).any():
                raise ExampleError("ChannelsDiffer", path=path, at=name)
            with file.open("rb") as opened:
                images.append(decoded(opened, path, name, schema, headers))
            if images[-1].size != images[0].size:
                raise ExampleError("FilesApart", path=path, at=name)
        sizes[at] = images[0].height, images[0].width
        pixels[at] = of_channels(images, schema)
    return pixels, sizes, [indices[0] for indices in cases]


def room(count: int, schema: ImageSchema) -> tuple[Pixels, NDArray[np.int64]]:
    """Arrays for pixels and sizes, to be filled."""
    shape = (count, schema.channels, schema.height, schema.width)
    pixels: Pixels = np.empty(shape, dtype=np.uint8) if schema.bits == 8 else np.empty(shape, dtype=np.uint16)
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


def _of_arrays(images: NDArray[Any], labels: NDArray[Any], source: Source, schema: ImageSchema) -> RawImages:
    if len(images) != len(labels):
        why = f"there are {len(images)} images, but {len(labels)} labels"
        raise DataError("ArraysWrong", path=source.path, why=why)
    answers, asked = answers_of(schema), schema.asked.columns
    columns = dict(zip(asked, labels.reshape(len(labels), -1).T.astype(np.float64), strict=True))
    for name, values in columns.items():
        for value in np.unique(values):
            found = answers.accepted(name, float(value), float(value))
            if isinstance(found, str):
                wrong = np.isnan(values) if np.isnan(value) else values == value
                raise source.cell_error(found, int(np.flatnonzero(wrong)[0]) + 1, LABELS if schema.classes else name)
    from consilium_client.data.image.shades import of_array

    pixels, sizes = room(len(images), schema)
    for at, image in enumerate(images):
        pixels[at] = of_array(image, schema)
    sizes[:] = images.shape[1:3]
    return RawImages(source, ImageSet(pixels, answers.labels(columns)), sizes)


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
        if shape[1:] not in _label_shapes(schema) or len(shape) == 0 or kind.kind not in _label_kinds(schema):
            raise DataError("ArraysWrong", path=path, why=f"the array {name} has type {kind} and shape {shape}")
        at_most = MOST_ROWS
    else:
        is_readable = kind.newbyteorder("=") in _array_kinds(schema) and len(shape) in (3, 4) and 0 not in shape[1:]
        if not is_readable or shape[3:] not in _array_channels(schema):
            raise DataError("ArraysWrong", path=path, why=f"the array {name} has type {kind} and shape {shape}")
        if math.prod(shape[1:3]) > MOST_PIXELS:
            raise ExampleError("ImageTooLarge", path=path, at=name)
        at_most = min(most_images(schema), MOST_BYTES // (math.prod(shape[1:]) * kind.itemsize))
    if shape[0] == 0:
        raise DataError("DataFileEmpty", path=path)
    if shape[0] > at_most:
        raise DataError("TooManyRows", rows=shape[0], at_most=at_most)


def _label_shapes(schema: ImageSchema) -> tuple[tuple[int, ...], ...]:
    """Shapes that one image's label may have."""
    columns = len(schema.asked.columns)
    return ((),) if schema.classes else ((), (1,)) if columns == 1 else ((columns,),)


def _label_kinds(schema: ImageSchema) -> str:
    return "iu" if schema.classes else "iuf"


def _array_kinds(schema: ImageSchema) -> tuple[type[np.integer], ...]:
    """Hounsfield units are below zero too, and 8 bits have no unit."""
    if schema.window is not None and schema.window.center is not None:
        return np.uint16, np.int16
    return (np.uint8, np.uint16) if schema.is_deep else (np.uint8,)


def _array_channels(schema: ImageSchema) -> tuple[tuple[int, ...], ...]:
    """Grey becomes colour; colour becomes grey if it is of 8 bits."""
    own = ((), (1,)) if schema.channels == 1 else ((schema.channels,),)
    if schema.channels not in CHANNELS:
        return own
    return ((), (1,), (schema.channels,) if schema.is_deep else (3,))
