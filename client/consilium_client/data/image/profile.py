"""Images' profile (`preview`): how large and how bright they are, and what may be wrong with them. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from consilium_chain.tasks.data_schemas import ImageSchema
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_core.kinds import of_kind

from consilium_client.data.image.reader import RawImages
from consilium_client.data.preview import ONE_CLASS, Finding, Profile, classes_of, preview_of, repeats

STRETCHED = 1.25  # from which ratio between an image's proportions and the task's
DARK = 0.03 * 255  # mean shade


class Concern(StrEnum):
    """Possible faults of images that can be read, in words that say what to look at."""

    CONSTANT = "images of one shade all over: check that they were exported with what is in them"
    DARK = "images that are almost black: check the window in which they were exported"
    ENLARGED = "images smaller than the task's size, which are enlarged: check that these are no thumbnails"
    STRETCHED = "images of other proportions than the task's, which are stretched to them: check how they are cut"
    DUPLICATES = "images that repeat an earlier one, as the task sees them: check that the export has each once"
    CONTRADICTING = "images that repeat an earlier one under another label: look at which label is right"
    ONE_CLASS = ONE_CLASS


@dataclass(frozen=True)
class ImageProfile(Profile):
    """`sizes`: (height, width) of the smallest, the median and the largest image by area, before they were brought to
    `size`. `shades`: of the darkest, the median and the brightest image the mean shade, from 0 (black) to 255."""

    channels: int
    size: tuple[int, int]
    sizes: tuple[tuple[int, int], ...] = field(repr=False)
    shades: tuple[float, ...] = field(repr=False)


def profile_images(raw: RawImages, spec: TaskSpec) -> ImageProfile:
    """The profile of images that were read with the task's schema."""
    schema, images = of_kind(ImageSchema, spec.data), raw.images
    classes = classes_of(images.labels, schema)
    digests = (hashlib.blake2b(image.tobytes(), digest_size=16).digest() for image in images.pixels)
    repeated, contradicting = repeats(digests, images.labels)
    means = np.array([image.mean() for image in images.pixels])  # one at a time, for memory
    constant = np.array([(image == image[:, :1, :1]).all() for image in images.pixels])
    proportions = (raw.sizes[:, 0] * schema.width) / (raw.sizes[:, 1] * schema.height)
    counts = {
        Concern.CONSTANT: constant.sum(),
        Concern.DARK: ((means < DARK) & ~constant).sum(),
        Concern.ENLARGED: (raw.sizes < [schema.height, schema.width]).any(axis=1).sum(),
        Concern.STRETCHED: (np.maximum(proportions, 1 / proportions) > STRETCHED).sum(),
        Concern.DUPLICATES: repeated,
        Concern.CONTRADICTING: contradicting,
        Concern.ONE_CLASS: images.rows if images.rows in dict(classes).values() else 0,
    }
    by_area, by_shade = np.argsort(raw.sizes.prod(axis=1), kind="stable"), np.sort(means)
    picked = [0, images.rows // 2, -1]
    return ImageProfile(
        path=raw.path,
        kind=raw.kind,
        things=schema.things,
        rows=images.rows,
        label=schema.label,
        label_source=None,
        classes=classes,
        left_aside=raw.left_aside,
        left_aside_names=(),
        repeated=repeated,
        findings=tuple(Finding(concern, None, int(count), images.rows) for concern, count in counts.items() if count),
        preview=preview_of(images, spec),
        channels=schema.channels,
        size=(schema.height, schema.width),
        sizes=tuple((int(height), int(width)) for height, width in raw.sizes[by_area[picked]]),
        shades=tuple(map(float, by_shade[picked])),
    )
