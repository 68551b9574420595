"""Volumes and masks with a fault, as somebody gives them to `consilium`."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
from bad_input_world import NAME, World
from nifti_files import AFFINE, nifti, packed, write_cases
from PIL import Image

VALUES = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
MASK = (VALUES % 2).astype(np.uint8)
TEXTS = {"descrip": NAME}


def cases(
    values: Any = VALUES, mask: Any = MASK, more: dict[str, bytes] | None = None,
    fields: dict[str, float] | None = None, affine: Any = AFFINE, cut: int | None = None,
) -> Callable[[World], list[str]]:  # fmt: skip
    """A case `a` whose files have a name in their headers. `affine`: of the mask. `cut`: where the image ends."""
    image = nifti(values, texts=TEXTS, fields=fields)[:cut]
    files = {"imagesTr/a_0000.nii": image, "labelsTr/a.nii.gz": packed(nifti(mask, affine, texts=TEXTS))}

    def break_(world: World) -> list[str]:
        write_cases(world.folder / "cases", files | (more or {}))
        return world.check("masks", "cases")

    return break_


def no_masks(world: World) -> list[str]:
    write_cases(world.folder / "cases", {"imagesTr/a_0000.nii": nifti(VALUES)})
    return world.check("masks", "cases")


def two_labels(world: World) -> list[str]:
    pixels = io.BytesIO()
    Image.fromarray(np.zeros((8, 10), np.uint8)).save(pixels, "PNG")
    listed = "file,label\nno/a_0000.png,normal\nno/a_0001.png,ill\n"
    files = {f"no/a_000{at}.png": pixels.getvalue() for at in range(2)} | {"labels.csv": listed.encode()}
    write_cases(world.folder / "channels", files)
    return world.check("channels", "channels")


HUGE: dict[str, float] = {"dim[1]": 30_000, "dim[2]": 30_000}
VOLUMES: list[tuple[str, Callable[[World], list[str]], str]] = [
    (
        "there is no folder of masks",
        no_masks,
        "cannot read …/cases/labelsTr: a segmentation needs a folder with imagesTr and labelsTr",
    ),
    (
        "an image has no mask",
        cases(more={"imagesTr/b_0000.nii": nifti(VALUES)}),
        "imagesTr/b_0000.nii: this image has no mask",
    ),
    (
        "a case has no image",
        cases(more={"labelsTr/b.nii": nifti(MASK)}),
        "imagesTr/b_0000: this file of a channel is missing",
    ),
    (
        "mask and image cover different regions",
        cases(affine=AFFINE + np.eye(4, k=3)),
        "imagesTr/a_0000.nii: the file does not cover the same region as another one of its case",
    ),
    (
        "a mask has a value that is no class",
        cases(mask=MASK + np.uint8(1)),
        "labelsTr/a.nii.gz: the mask has a value that is not a class's number (0 to 1)",
    ),
    (
        "two channels of a case have two labels",
        two_labels,
        "no/a_0001.png: this file of a channel has another label than the first of its case",
    ),
    ("a volume is cut off", cases(cut=-1), "imagesTr/a_0000.nii: the image is damaged or cut off"),
    (
        "a volume has four axes",
        cases(values=np.stack([VALUES] * 2, -1)),
        "the NIfTI field dim has a value that is not read (three axes; …)",
    ),
    (
        "a header says 30,000 × 30,000 × 3 voxels",
        cases(fields=HUGE),
        "more than 268,435,456 voxels, or more than a GiB of them",
    ),
    (
        "values need a window, and the task has none",
        cases(values=VALUES.astype(np.int16)),
        "the values of the volume are not 8 bits of shade",
    ),
    (
        "values are not numbers",
        cases(values=np.full(VALUES.shape, np.nan, np.float32)),
        "the volume has values that are not finite numbers",
    ),
]
