"""Images with masks, in the layout of nnU-Net and the Medical Segmentation Decathlon.

```
imagesTr/CASE_0000.nii.gz, CASE_0001.nii.gz, …   one file for each channel; with one channel also CASE.nii.gz
labelsTr/CASE.nii.gz                             whole numbers, the task's classes
```

A case is one NIfTI volume, whose slices are the examples, or one image file. Other entries beside the two folders are
ignored. Slices of a single shade without a mark are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.questions import Segmentation
from consilium_core.kinds import of_kind
from numpy.typing import NDArray
from PIL import Image

from consilium_client.data.examples import Source, reading
from consilium_client.data.folders import named_paths, require_example, require_inside
from consilium_client.data.image import files, nifti
from consilium_client.data.image.headers import Headers
from consilium_client.data.image.reader import ENDINGS, ImageSet, RawImages, most_images
from consilium_client.data.image.shades import of_channels
from consilium_client.errors import DataError, ExampleError, FolderError

IMAGES, MASKS = "imagesTr", "labelsTr"
DIGITS = 4  # of a channel's number


@dataclass(frozen=True)
class Case:
    """`channels`: each one's file, by its name in the folder; `mask` as well, None for a finished model."""

    name: str
    channels: tuple[tuple[str, Path], ...]
    mask: tuple[str, Path] | None

    @property
    def is_volume(self) -> bool:
        return (self.mask or self.channels[0])[0].lower().endswith(nifti.ENDINGS)


Part = tuple[NDArray[Any], NDArray[np.uint8], NDArray[np.int64]]
"""A case's pixels (n, channels, height, width), masks (n, height, width) and sizes before (n, 2)."""


def read_cases(folder: Path, schema: ImageSchema) -> RawImages:
    """Raises DataError that names the file."""
    headers, parts, cases = Headers(), list[Part](), list[str]()
    with reading(folder):
        for case in listed(folder, schema):
            parts.append(_read(folder, case, schema, headers))
            cases += [case.name] * len(parts[-1][0])
            if len(cases) > (most := most_images(schema)):
                raise DataError("TooManyRows", rows=len(cases), at_most=most)
    if not cases:
        raise DataError("DataFileEmpty", path=folder)
    pixels, masks, sizes = (np.concatenate(each) for each in zip(*parts, strict=True))
    source = Source(folder, "folder", identifying=dict(headers.identifying))
    return RawImages(source, ImageSet(pixels, masks, tuple(cases)), sizes, headers.burned_in)


def listed(folder: Path, schema: ImageSchema) -> list[Case]:
    """By name. Raises FolderError, ExampleError (ChannelMissing, MaskMissing), DataFileMissing; and OSError."""
    images, masks = (_files(folder, inside) for inside in (IMAGES, MASKS))
    cases = [Case(stem, tuple(_channels(folder, IMAGES, stem, images, schema)), masks[stem]) for stem in sorted(masks)]
    used = {name for case in cases for name, _ in case.channels}
    for name, _ in images.values():
        if name not in used:
            raise ExampleError("MaskMissing", path=folder, at=name)
    return cases


@dataclass(frozen=True)
class Unmarked:
    """`pixels` (n, channels, height, width) of the task's size. `blank` (n,): of a single shade. `size`: height and
    width before. `volume`: the first channel's, whose slices these are.
    """

    pixels: NDArray[Any]
    blank: NDArray[np.bool_]
    size: tuple[int, int]
    volume: nifti.Volume | None


def unmarked(images: Path, schema: ImageSchema) -> list[Case]:
    """The cases of a folder of images alone, by name. Raises as `listed` does."""
    images = images.absolute()
    if not images.is_dir():
        raise DataError("DataFileMissing", path=images, why="masks are predicted for a folder of images")
    found = _files(images.parent, images.name)
    if not found:
        raise DataError("DataFileEmpty", path=images)
    names = sorted({_case_of(stem, schema.channels) for stem in found})
    cases = [Case(name, tuple(_channels(images.parent, images.name, name, found, schema)), None) for name in names]
    used = {name for case in cases for name, _ in case.channels}
    for name, _ in found.values():
        if name not in used:
            raise FolderError("NamesAlike", file=images.parent / name)
    return cases


def _case_of(stem: str, channels: int) -> str:
    case, _, number = stem.rpartition("_")
    is_channel = case and len(number) == DIGITS and number.isdecimal() and int(number) < channels
    return case if is_channel else stem


def read_unmarked(folder: Path, case: Case, schema: ImageSchema) -> Unmarked:
    """Raises DataError that names the file. `folder`: with the one of the images."""
    with reading(folder):
        images, volumes, size = _images(folder, case, schema, Headers())
        count = volumes[0].shape[0] if volumes else 1
        if count > (most := most_images(schema)):
            raise DataError("TooManyRows", rows=count, at_most=most)
        pixels = np.stack([of_channels(own, schema) for own in zip(*images, strict=True)])
    blank = (pixels == pixels[:, :, :1, :1]).all(axis=(1, 2, 3))
    return Unmarked(pixels, blank, size, volumes[0] if volumes else None)


def by_case(folder: Path, names: Sequence[str], channels: int) -> list[list[int]]:
    """The indices of each case's files, by channel, in the order of the first ones; of files outside this layout.

    Raises ChannelMissing, FileUnexpected, NamesAlike.
    """
    found: dict[str, dict[int, int]] = {}
    for index, name in enumerate(names):
        path = PurePosixPath(name)
        case, _, number = path.stem.rpartition("_")
        if not (case and len(number) == DIGITS and number.isdecimal() and int(number) < channels):
            raise FolderError("FileUnexpected", file=folder / name)
        if found.setdefault(str(path.with_name(case)), {}).setdefault(int(number), index) != index:
            raise FolderError("NamesAlike", file=folder / name)
    for case, indices in found.items():
        if missing := sorted(set(range(channels)) - set(indices)):
            raise ExampleError("ChannelMissing", path=folder, at=f"{case}_{missing[0]:0{DIGITS}}")
    return [[indices[number] for number in range(channels)] for indices in found.values()]


def _channels(
    folder: Path, inside: str, stem: str, images: Mapping[str, tuple[str, Path]], schema: ImageSchema
) -> Iterator[tuple[str, Path]]:
    is_alone = f"{stem}_0001" not in images
    if is_alone and schema.channels == 1 and stem in images and f"{stem}_0000" not in images:
        yield images[stem]
        return
    first = images.get(f"{stem}_0000")
    in_colour = is_alone and schema.channels == 3 and first is not None and not first[0].lower().endswith(nifti.ENDINGS)
    for number in range(1 if in_colour else schema.channels):
        name = f"{stem}_{number:04}"
        if name not in images:
            raise ExampleError("ChannelMissing", path=folder, at=f"{inside}/{name}")
        yield images[name]


def _files(folder: Path, inside: str) -> dict[str, tuple[str, Path]]:
    """Names and paths by the name without its ending."""
    if not (folder / inside).is_dir():
        why = f"a segmentation needs a folder with {IMAGES} and {MASKS}"
        raise DataError("DataFileMissing", path=folder / inside, why=why)
    require_inside(folder, inside, folder / inside)
    found: dict[str, tuple[str, Path]] = {}
    for name, path in named_paths(folder / inside, folder, f"{inside}/").items():
        require_example(folder, name, path, ENDINGS)
        ending = next(one for one in ENDINGS if name.lower().endswith(one))
        stem = name[len(inside) + 1 : -len(ending)]
        if stem in found:
            raise FolderError("NamesAlike", file=folder / name)
        found[stem] = (name, path)
    return found


def _read(folder: Path, case: Case, schema: ImageSchema, headers: Headers) -> Part:
    last = len(of_kind(Segmentation, schema.asked).classes) - 1
    if case.mask is None:
        raise ExampleError("MaskMissing", path=folder, at=case.channels[0][0])
    images, volumes, size = _images(folder, case, schema, headers)
    if volumes:
        mask = nifti.Volume(case.mask[1], folder, case.mask[0])
        for volume in volumes:
            volume.require_beside(mask)
        masks = mask.marked(last)
        headers.note(mask.identifying, burned_in=False)
    else:
        masks = _picture_mask(folder, *case.mask, last)[None]
        if masks.shape[1:] != size:
            raise ExampleError("FilesApart", path=folder, at=case.channels[0][0])
    found = list[tuple[NDArray[Any], NDArray[np.uint8]]]()
    for own, marked in zip(zip(*images, strict=True), masks, strict=True):
        pixels = of_channels(own, schema)
        if marked.any() or (pixels != pixels[:, :1, :1]).any():
            found.append((pixels, _scaled(marked, schema)))
    shape = (len(found), schema.channels, schema.height, schema.width)
    kept = np.array([one for one, _ in found]).reshape(shape)
    marks = np.array([one for _, one in found], np.uint8).reshape(len(found), *shape[2:])
    return kept, marks, np.tile(np.array(masks.shape[1:]), (len(found), 1))


def _images(
    folder: Path, case: Case, schema: ImageSchema, headers: Headers
) -> tuple[list[Iterable[Image.Image]], list[nifti.Volume], tuple[int, int]]:
    """Each channel's slices, its volume if it is one, and their height and width. Raises FilesApart."""
    for name, _ in case.channels:
        if name.lower().endswith(nifti.ENDINGS) != case.is_volume:
            raise ExampleError("FilesApart", path=folder, at=name)
    if not case.is_volume:
        found = [_picture(folder, *channel, schema, headers) for channel in case.channels]
        for one, (name, _) in zip(found, case.channels, strict=True):
            if one.size != found[0].size:
                raise ExampleError("FilesApart", path=folder, at=name)
        return [[one] for one in found], [], (found[0].height, found[0].width)
    volumes = [nifti.Volume(path, folder, name) for name, path in case.channels]
    for volume in volumes:
        volume.require_beside(volumes[0])
        headers.note(volume.identifying, burned_in=False)
    return [volume.images(schema) for volume in volumes], volumes, volumes[0].shape[1:]


def _scaled(marked: NDArray[np.uint8], schema: ImageSchema) -> NDArray[np.uint8]:
    """To the task's size, by the nearest pixel."""
    image = Image.fromarray(marked)
    return np.asarray(image.resize((schema.width, schema.height), Image.Resampling.NEAREST))


def _picture(folder: Path, name: str, path: Path, schema: ImageSchema, headers: Headers) -> Image.Image:
    with path.open("rb") as opened:
        return files.decoded(opened, folder, name, schema, headers)


def _picture_mask(folder: Path, name: str, path: Path, last: int) -> NDArray[np.uint8]:
    with path.open("rb") as opened:
        found = np.asarray(files.decoded_mask(opened, folder, name))
    if found.ndim != 2 or found.max() > last:
        raise ExampleError("MaskValueUnknown", path=folder, at=name, last=last)
    return found.astype(np.uint8)
