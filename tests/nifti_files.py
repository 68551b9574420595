"""NIfTI files of a patient, and folders of cases in nnU-Net's layout."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
from numpy.typing import NDArray

AFFINE = np.array([[1, 0, 0, -10], [0, 1.5, 0, 5], [0, 0, 3, 7], [0, 0, 0, 1.0]])
PATIENT = {"descrip": "Erika Mustermann", "aux_file": "MRN-571844", "db_name": "St. Mary", "intent_name": "*1961-04-12"}
# A NIfTI-1 header's fields: place and type.
FIELDS = {
    "dim[0]": (40, "<h"), "dim[1]": (42, "<h"), "dim[2]": (44, "<h"), "datatype": (70, "<h"),
    "vox_offset": (108, "<f"), "scl_slope": (112, "<f"), "scl_inter": (116, "<f"), "srow_x[0]": (280, "<f"),
    "magic": (344, "<i"),
}  # fmt: skip


def nifti(
    values: NDArray[Any], affine: NDArray[Any] = AFFINE, turned: NDArray[Any] | None = None, version: int = 1,
    texts: Mapping[str, str] | None = None, fields: Mapping[str, float] | None = None, extension: bytes = b"",
) -> bytes:  # fmt: skip
    """A file of values (right, front, up). `turned`: another order and direction of axes, as nibabel has them."""
    kind = nibabel.Nifti1Image if version == 1 else nibabel.Nifti2Image
    image = kind(values, affine, dtype=values.dtype)
    if turned is not None:
        image = image.as_reoriented(turned)
    for name, text in (texts or {}).items():
        image.header[name] = text.encode()
    if extension:
        image.header.extensions.append(nibabel.nifti1.Nifti1Extension(6, extension))
    raw = bytearray(image.to_bytes())
    for name, value in (fields or {}).items():
        place, form = FIELDS[name]
        struct.pack_into(form, raw, place, int(value) if form != "<f" else value)
    return bytes(raw)


def packed(raw: bytes) -> bytes:
    return gzip.compress(raw, 1, mtime=0)


def write_cases(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Files by their name in the folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder
