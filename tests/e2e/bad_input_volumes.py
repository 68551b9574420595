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
VOLUMES: list[tuple[str, Callable[[World], list[str]]]] = [
    ("there is no folder of masks", no_masks),
    ("an image has no mask", cases(more={"imagesTr/b_0000.nii": nifti(VALUES)})),
    ("a case has no image", cases(more={"labelsTr/b.nii": nifti(MASK)})),
    ("a mask is of another place", cases(affine=AFFINE + np.eye(4, k=3))),
    ("a mask has a value that is no class", cases(mask=MASK + np.uint8(1))),
    ("two channels of a case have two labels", two_labels),
    ("a volume is cut off", cases(cut=-1)),
    ("a volume has four axes", cases(values=np.stack([VALUES] * 2, -1))),
    ("a header says 30,000 × 30,000 × 3 voxels", cases(fields=HUGE)),
    ("values need a window, and the task has none", cases(values=VALUES.astype(np.int16))),
    ("values are not numbers", cases(values=np.full(VALUES.shape, np.nan, np.float32))),
]
