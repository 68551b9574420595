"""DICOM files, made by pydicom: of synthetic pixels and invented patients."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydicom import uid
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.uid import UID

PATIENT = {
    "PatientName": "Mustermann^Erika", "PatientID": "5718-MUSTER", "PatientBirthDate": "19640812",
    "InstitutionName": "Klinikum Musterstadt", "StudyDate": "20260314", "AccessionNumber": "ACC5718",
}  # fmt: skip
EMPTY = b"\xfe\xff\x00\xe0\0\0\0\0"  # compressed pixels, of no frame


def dicom(pixels: NDArray[Any], syntax: UID = uid.ExplicitVRLittleEndian, **fields: Any) -> bytes:
    """A file of pixels (height, width) or (height, width, 3), uint8, uint16 or int16. `fields` come last; None leaves
    one out.
    """
    return saved(dataset(pixels, **fields), syntax)


def dataset(pixels: NDArray[Any], **fields: Any) -> FileDataset:
    is_colour, bits = pixels.ndim == 3, 8 * pixels.dtype.itemsize
    found = FileDataset("", {}, preamble=bytes(128), file_meta=FileMetaDataset())
    found.file_meta.MediaStorageSOPClassUID = found.SOPClassUID = uid.SecondaryCaptureImageStorage
    found.file_meta.MediaStorageSOPInstanceUID = found.SOPInstanceUID = UID("1.2.3.4.5718")
    found.StudyInstanceUID, found.Modality = "1.2.3.4", "CT"
    values = {
        **PATIENT, "Rows": pixels.shape[0], "Columns": pixels.shape[1], "SamplesPerPixel": 3 if is_colour else 1,
        "PhotometricInterpretation": "RGB" if is_colour else "MONOCHROME2", "BitsAllocated": bits, "BitsStored": bits,
        "HighBit": bits - 1, "PixelRepresentation": int(pixels.dtype.kind == "i"), "PixelData": pixels.tobytes(),
    } | ({"PlanarConfiguration": 0} if is_colour else {})  # fmt: skip
    for name, value in (values | fields).items():
        if value is not None:
            setattr(found, name, value)
        elif name in found:
            delattr(found, name)
    return found


def saved(found: FileDataset, syntax: UID = uid.ExplicitVRLittleEndian) -> bytes:
    found.file_meta.TransferSyntaxUID = syntax
    if found.get("PixelData") is not None:
        found["PixelData"].VR = "OB" if syntax.is_encapsulated or found.BitsAllocated == 8 else "OW"
    if syntax == uid.ExplicitVRBigEndian and found.BitsAllocated == 16:
        found.PixelData = np.frombuffer(found.PixelData, "<u2").astype(">u2").tobytes()
        meta = found.file_meta
        found = FileDataset("", found, bytes(128), meta, is_implicit_VR=False, is_little_endian=False)
    found.save_as(stream := io.BytesIO(), enforce_file_format=True, implicit_vr=syntax.is_implicit_VR,
                  little_endian=syntax.is_little_endian)  # fmt: skip
    return stream.getvalue()


def packed(pixels: NDArray[Any], syntax: UID, **fields: Any) -> bytes:
    """Compressed: RLE by pydicom, JPEG (quality 95) and JPEG 2000 (lossless) by Pillow."""
    if syntax == uid.RLELossless:
        found = dataset(pixels, **fields)
        found.file_meta.TransferSyntaxUID = uid.ExplicitVRLittleEndian
        found.compress(uid.RLELossless, encoding_plugin="pydicom")
        return saved(found, uid.RLELossless)
    is_jpeg = syntax == uid.JPEGBaseline8Bit
    options = {"quality": 95, "subsampling": 0} if is_jpeg else {}
    Image.fromarray(pixels).save(stream := io.BytesIO(), "JPEG" if is_jpeg else "JPEG2000", **options)
    colour = {"PhotometricInterpretation": "YBR_FULL_422" if is_jpeg else "YBR_RCT"}
    more = (colour if pixels.ndim == 3 else {}) | {"PixelData": encapsulate([stream.getvalue()])} | fields
    return dicom(pixels, syntax, **more)


def nested(depth: int) -> bytes:
    """A header of sequences within sequences, none of which says its length."""
    sequence = struct.pack("<HH2sHI", 0x0040, 0x0275, b"SQ", 0, 0xFFFFFFFF)
    return (sequence + struct.pack("<HHI", 0xFFFE, 0xE000, 0xFFFFFFFF)) * depth


def long_comment() -> bytes:
    """A comment on a patient that is five million letters long."""
    return struct.pack("<HH2sHI", 0x0010, 0x4000, b"UT", 0, 5_000_000) + b"Mustermann" * 500_000


def with_part(whole: bytes, part: bytes) -> bytes:
    """A file with these bytes at the start of its data set."""
    length = struct.unpack_from("<I", whole, 140)[0]  # of the file's meta information, behind its own group length
    at = 144 + length
    return whole[:at] + part + whole[at:]


def of_directory() -> bytes:
    """A DICOMDIR, which has no image."""
    found = FileDataset("", {}, preamble=bytes(128), file_meta=FileMetaDataset())
    found.file_meta.MediaStorageSOPClassUID = uid.MediaStorageDirectoryStorage
    found.file_meta.MediaStorageSOPInstanceUID = UID("1.2.3.4.1")
    item = Dataset()
    item.PatientName = PATIENT["PatientName"]
    found.DirectoryRecordSequence = [item]
    return saved(found)
