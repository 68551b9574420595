"""One NIfTI file (.nii, .nii.gz) to a volume, by nibabel's headers. It keeps voxels, and of the header only the names
of fields that have a text.

Size and type are checked before voxels are read or unpacked, and no more is unpacked than the header says. Values
become units by scl_slope and scl_inter. A volume is turned to the nearest RAS+ axes (to the right, to the front, up).
Its slices lie along the third axis, from below, each with the front above and the patient's left on the left.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from consilium_chain.tasks.image_schemas import ImageSchema
from nibabel.nifti1 import Nifti1Header
from nibabel.nifti2 import Nifti2Header
from nibabel.orientations import apply_orientation, inv_ornt_aff, io_orientation, ornt_transform
from numpy.typing import NDArray
from PIL import Image

from consilium_client.data.image.shades import shades
from consilium_client.errors import ExampleError

ENDINGS = (".nii", ".nii.gz")
MOST_VOXELS: Final = 1 << 28
MOST_BYTES: Final = 1 << 30  # of voxels
MOST_BEFORE: Final = 1 << 20  # bytes of header and extensions
GZIP = b"\x1f\x8b"
KINDS = {348: (Nifti1Header, slice(344, 348), b"n+1\0"), 540: (Nifti2Header, slice(4, 12), b"n+2\0\r\n\x1a\n")}
TEXTS = ("descrip", "aux_file", "db_name", "intent_name")  # header fields that may name a patient
GEOMETRY = (
    "dim", "pixdim", "xyzt_units", "qform_code", "sform_code", "quatern_b", "quatern_c", "quatern_d", "qoffset_x",
    "qoffset_y", "qoffset_z", "srow_x", "srow_y", "srow_z",
)  # fmt: skip
EXTENSIONS = "extensions"  # such as a DICOM header; they are skipped
MOST_APART: Final = 0.01  # of an affine's numbers in two files of the same region: millimetres
_DAMAGED = (gzip.BadGzipFile, zlib.error, EOFError)


class Volume:
    """A file whose header is read, and whose voxels are not. `shape`: slices, height, width. `affine`: of the turned
    volume, voxels to millimetres, (4, 4). `identifying`: names of header fields with a text.
    """

    def __init__(self, path: Path, folder: Path, name: str) -> None:
        """Raises ExampleError about `name` in `folder`, and OSError."""
        self._path, self._folder, self._name = path, folder, name
        with path.open("rb") as file:
            stream = _unpacked(file)
            start = self._read(stream, max(KINDS))
            self._header, size = self._parsed(start)
            self._offset = self._first_voxel(size + 4)
            before = start + self._read(stream, self._offset - len(start))
        self._stored = self._sizes()
        self._type = self._voxels()
        self._turn, self.affine = self._turned()
        wide, high, deep = (self._stored[axis] for axis in np.argsort(self._turn[:, 0]))
        self.shape = (deep, high, wide)
        known = [one for one in TEXTS if one in self._header.keys()]  # noqa: SIM118  # NIfTI-2 has no db_name
        texts = [one for one in known if self._header[one].tobytes().strip(b" \0")]
        self.identifying = [*texts, *[EXTENSIONS] * bool(before[size : self._offset].strip(b"\0"))]

    def images(self, schema: ImageSchema) -> Iterator[Image.Image]:
        """Each slice, in mode L of 8 bits, or F of u. A window by percent is of the whole volume."""
        values, (slope, inter) = self._values(), self._scale()
        is_plain = (slope, inter) == (1.0, 0.0) and self._type.kind == "u"
        if schema.window is None and not (is_plain and self._type.itemsize <= schema.bits // 8):
            raise self._fault("NiftiWindowMissing")
        if schema.is_deep:
            white = float(np.iinfo(self._type).max) if is_plain else 1.0
            values = shades(values.astype(np.float32) * np.float32(slope) + np.float32(inter), schema, white)
        return (Image.fromarray(np.ascontiguousarray(one)) for one in values)

    def marked(self, last: int) -> NDArray[np.uint8]:
        """Each voxel's class from 0 to `last`, (slices, height, width)."""
        slope, inter = self._scale()
        values = self._values()
        found = values if (slope, inter) == (1.0, 0.0) else values * slope + inter
        if found.min() < 0 or found.max() > last or (found != np.rint(found)).any():
            raise self._fault("MaskValueUnknown", last=last)
        return np.ascontiguousarray(found.astype(np.uint8))

    def with_marks(self, marks: NDArray[np.uint8]) -> bytes:
        """A file of these classes (slices, height, width), with this one's axes and affine, and nothing else of it."""
        header = type(self._header)(endianness=self._header.endianness)
        for name in GEOMETRY:
            header[name] = self._header[name]
        header.set_data_dtype(np.uint8)
        header.set_slope_inter(1, 0)
        header["vox_offset"] = header.sizeof_hdr + 4
        as_stored = ornt_transform(np.array([[0, 1], [1, 1], [2, 1]]), self._turn)
        stored = apply_orientation(marks[:, ::-1].transpose(2, 1, 0), as_stored)
        return bytes(header.binaryblock) + bytes(4) + bytes(stored.tobytes(order="F"))

    def require_beside(self, other: Volume) -> None:
        """Raises FilesApart, about this one."""
        if self.shape != other.shape or not np.allclose(self.affine, other.affine, rtol=0, atol=MOST_APART):
            raise self._fault("FilesApart")

    def _values(self) -> NDArray[Any]:
        """As stored, (slices, height, width)."""
        with self._path.open("rb") as file:
            stream = _unpacked(file)
            self._read(stream, self._offset)
            raw = self._read(stream, size := math.prod(self._stored) * self._type.itemsize)
            if len(raw) < size or self._read(stream, 1):
                raise self._fault("ImageUnreadable")
        stored = np.frombuffer(raw, self._type).reshape(self._stored, order="F")
        found = apply_orientation(stored, self._turn).transpose(2, 1, 0)[:, ::-1]
        if self._type.kind == "f" and not np.isfinite(found).all():
            raise self._fault("NiftiNotFinite")
        return np.asarray(found)

    def _read(self, stream: BinaryIO | gzip.GzipFile, size: int) -> bytes:
        """At most so many bytes, unpacked."""
        try:
            return stream.read(max(0, size))
        except _DAMAGED:
            pass
        raise self._fault("ImageUnreadable")

    def _parsed(self, start: bytes) -> tuple[Any, int]:
        """The header, and its length."""
        if not start:
            raise self._fault("ImageEmpty")
        for size, (kind, span, magic) in KINDS.items():
            if start[span] == magic and size in {int.from_bytes(start[:4], order) for order in ("little", "big")}:
                if len(start) < size:
                    raise self._fault("ImageUnreadable")
                return kind(start[:size], check=False), size
        raise self._fault("ImageKindWrong")

    def _sizes(self) -> tuple[int, int, int]:
        dim = self._header["dim"].tolist()
        if not 2 <= dim[0] <= 7 or min(dim[1 : dim[0] + 1]) < 1 or max(dim[4 : dim[0] + 1], default=1) > 1:
            raise self._wrong("dim", "three axes; give each time or channel as a file of its own")
        wide, high, deep = (*dim[1 : min(dim[0], 3) + 1], 1)[:3]
        if wide * high * deep > MOST_VOXELS:
            raise self._fault("NiftiTooLarge", at_most=MOST_VOXELS)
        return wide, high, deep

    def _voxels(self) -> np.dtype[Any]:
        found: np.dtype[Any] | None = None
        with suppress(Exception):  # nibabel raises its own for an unknown code
            found = self._header.get_data_dtype()
        if found is None or found.kind not in "iuf" or found.itemsize > 8:
            raise self._wrong("datatype", "whole or floating-point numbers of 8 to 64 bits")
        if math.prod(self._stored) * found.itemsize > MOST_BYTES:
            raise self._fault("NiftiTooLarge", at_most=MOST_VOXELS)
        return found

    def _turned(self) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """The way from stored axes to RAS+, and the affine then."""
        turn = affine = None
        with suppress(Exception):  # of nibabel, or of the decomposition of a matrix with NaN
            affine = self._header.get_best_affine()
            turn = io_orientation(affine)
        if turn is None or affine is None or not np.isfinite(affine).all() or not np.isfinite(turn).all():
            raise self._wrong("sform or qform", "three axes of different directions")
        return turn, affine @ inv_ornt_aff(turn, self._stored)

    def _scale(self) -> tuple[float, float]:
        """Slope and intercept; 1 and 0 if the slope is 0 or no number, as NIfTI says."""
        slope, inter = float(self._header["scl_slope"]), float(self._header["scl_inter"])
        if slope == 0 or not math.isfinite(slope):
            return 1.0, 0.0
        if not math.isfinite(inter):
            raise self._wrong("scl_inter", "a finite number")
        return slope, inter

    def _first_voxel(self, least: int) -> int:
        """The first voxel's offset in the file."""
        found = float(self._header["vox_offset"])
        if not least <= found <= MOST_BEFORE:
            raise self._wrong("vox_offset", f"{least} to {MOST_BEFORE:,}")
        return int(found)

    def _wrong(self, field: str, needed: str) -> ExampleError:
        return self._fault("NiftiFieldWrong", field=field, needed=needed)

    def _fault(self, fault: str, **values: Any) -> ExampleError:
        return ExampleError(fault, path=self._folder, at=self._name, **values)


def _unpacked(file: BinaryIO) -> BinaryIO | gzip.GzipFile:
    is_packed = file.read(len(GZIP)) == GZIP
    file.seek(0)
    return gzip.GzipFile(fileobj=file) if is_packed else file
