"""Images, as one of the kinds of examples. Their profile: how large and bright they are, and their possible faults."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import numpy as np
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.questions import Segmentation
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_core.kinds import of_kind
from numpy.typing import NDArray

from consilium_client.data.answers import answers_of
from consilium_client.data.examples import REQUEST, Labels, Refusal, Row, unlabelled
from consilium_client.data.foreign import named_reader
from consilium_client.data.image.reader import (
    ImageSet,
    Pixels,
    RawImages,
    read_images_in_use,
    read_raw_images,
    require_file_channels,
    room,
)
from consilium_client.data.kinds import Kind
from consilium_client.data.profile import INVERTED, ONE_CLASS, Profile, findings_of, inverted, repeats, statistics_of
from consilium_client.data.use import Use, Used

IMAGE = "image"  # the column of a request
PICTURES = 16  # on a contact sheet
STRETCHED = 1.25  # from which ratio between an image's proportions and the task's
DARK = 0.03  # mean shade, of white


class Concern(StrEnum):
    """Possible faults of readable images, with the check to make."""

    CONSTANT = "images with a single shade: check that they were exported with their content"
    DARK = "images that are almost black: check the display window in which they were exported"
    ENLARGED = "images smaller than the task's size, which are enlarged: check that these are not thumbnails"
    STRETCHED = "images with other proportions than the task's, which are stretched: check how they were cropped"
    DUPLICATES = "images that repeat an earlier one at the task's size: check that the export has each image once"
    CONTRADICTING = "images that repeat an earlier one under another label: check which label is right"
    BURNED_IN = "images whose DICOM header says that text is burned in: check that it names no patient"
    INVERTED = INVERTED
    ONE_CLASS = ONE_CLASS


ASKING = {Concern.CONSTANT, Concern.DARK, Concern.DUPLICATES, Concern.CONTRADICTING, Concern.INVERTED}


@dataclass(frozen=True)
class ImageProfile(Profile):
    """`sizes`: (height, width) of the smallest, the median and the largest image by area, before they were brought to
    the task's size. `shades`: the mean shade of the darkest, the median and the brightest image, from 0 (black) to
    the schema's white. `pictures`: a few images as a model gets them (n, channels, height, width). `masks`: of these,
    uint8 (n, height, width), if there are any. `marked`: the least, the median and the largest share of pixels with a
    class, in images that have it, by the class's name.
    """

    sizes: tuple[tuple[int, int], ...] = field(repr=False)
    shades: tuple[float, ...] = field(repr=False)
    pictures: Pixels = field(repr=False)
    masks: NDArray[np.uint8] | None = field(default=None, repr=False)
    marked: Mapping[str, tuple[float, ...]] = field(default_factory=dict, repr=False)

    @property
    def schema(self) -> ImageSchema:
        return of_kind(ImageSchema, self.spec.data)


class ImageKind(Kind[RawImages, ImageSchema]):
    def read(self, path: Path, schema: ImageSchema, mapping: Path | None) -> RawImages:
        return read_raw_images(path, schema, named_reader(mapping, schema))

    def examples(self, raw: RawImages, schema: ImageSchema) -> ImageSet:
        return raw.images

    def profile(self, raw: RawImages, spec: TaskSpec) -> ImageProfile:
        schema, images = of_kind(ImageSchema, spec.data), raw.images
        answers = answers_of(schema)
        digests = (hashlib.blake2b(content, digest_size=16).digest() for content in images.contents())
        repeated, contradicting = repeats(digests, images.label_bytes)
        means = np.array([image.mean() for image in images.pixels])  # one at a time, for memory
        constant = np.array([(image == image[:, :1, :1]).all() for image in images.pixels])
        proportions = (raw.sizes[:, 0] * schema.width) / (raw.sizes[:, 1] * schema.height)
        counts: dict[StrEnum, int] = {
            Concern.CONSTANT: constant.sum(),
            Concern.DARK: ((_of_cases(means, images.cases) < DARK * schema.white) & ~constant).sum(),
            Concern.ENLARGED: (raw.sizes < [schema.height, schema.width]).any(axis=1).sum(),
            Concern.STRETCHED: (np.maximum(proportions, 1 / proportions) > STRETCHED).sum(),
            Concern.DUPLICATES: repeated,
            Concern.CONTRADICTING: 0 if answers.vary else contradicting,
            Concern.INVERTED: images.rows * inverted(answers.counts(images.labels), spec),
            Concern.ONE_CLASS: images.rows if answers.alike(images.labels) else 0,
            Concern.BURNED_IN: raw.burned_in,
        }
        by_area, by_shade = np.argsort(raw.sizes.prod(axis=1), kind="stable"), np.sort(means)
        picked, asked = [0, images.rows // 2, -1], schema.asked
        is_marked = isinstance(asked, Segmentation)
        drawn = _to_show(images, is_marked)
        return ImageProfile(
            raw.source, spec, images.rows, answers.counts(images.labels), repeated,
            findings_of(counts, images.rows, ASKING), statistics_of(images, spec),
            sizes=tuple((int(height), int(width)) for height, width in raw.sizes[by_area[picked]]),
            shades=tuple(map(float, by_shade[picked])),
            pictures=images.pixels[drawn],
            masks=images.labels[drawn] if is_marked else None,
            marked=_shares(images.labels, asked.classes) if isinstance(asked, Segmentation) else {},
        )  # fmt: skip

    def in_use(self, path: Path, schema: ImageSchema, use: Use) -> Used:
        return read_images_in_use(path, schema, use)

    def requested(self, rows: Sequence[Row], schema: ImageSchema, refusal: Refusal, clamp: bool = False) -> ImageSet:
        """A value is the base64 of a file. Shades have no other range, so `clamp` changes nothing."""
        from consilium_client.data.image.files import decoded
        from consilium_client.data.image.shades import fitted

        require_file_channels(REQUEST.path, schema)
        pixels, _ = room(len(rows), schema)
        for at, row in enumerate(rows, 1):
            where = REQUEST.where(at, IMAGE)
            try:
                raw = base64.b64decode(row[IMAGE], validate=True)
            except (TypeError, ValueError):
                raise refusal(f"{where}: the value is not the base64 of an image file") from None
            pixels[at - 1] = fitted(decoded(io.BytesIO(raw), REQUEST.path, where, schema), schema)
        return ImageSet(pixels, unlabelled(rows))


def _to_show(images: ImageSet, is_marked: bool) -> NDArray[np.int64]:
    """A few images' numbers, spread over all; of masks those with a mark, where some have one."""
    found = np.flatnonzero(images.labels.any(axis=(1, 2))) if is_marked else np.arange(images.rows)
    found = found if len(found) else np.arange(images.rows)
    return found[:: max(1, len(found) // PICTURES)][:PICTURES]


def _shares(masks: Labels, classes: Sequence[str]) -> dict[str, tuple[float, ...]]:
    found = {}
    for number, name in enumerate(classes):
        shares = (masks == number).mean(axis=(1, 2))
        if (shares := np.sort(shares[shares > 0])).size:
            found[name] = tuple(shares[[0, len(shares) // 2, -1]].tolist())
    return found


def _of_cases(means: NDArray[np.float64], cases: Sequence[str]) -> NDArray[np.float64]:
    """Each image's, or its volume's: a volume's outer slices are dark."""
    if not cases:
        return means
    _, inverse = np.unique(np.array(cases, dtype=object).astype(str), return_inverse=True)
    return np.asarray((np.bincount(inverse, means) / np.bincount(inverse))[inverse])


KIND = ImageKind()
