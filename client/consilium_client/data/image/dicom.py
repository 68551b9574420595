"""One DICOM file to an image, by pydicom. It keeps pixels, and of the header only names of fields that are there.

Limits hold before pixels are decoded. Values become the modality's units by slope and intercept, then shades by the
task's window. The file's own windows, overlays and pixel spacing are not used.
"""

from __future__ import annotations

import io
import logging
import math
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from consilium_chain.tasks.image_schemas import ImageSchema
from numpy.typing import NDArray
from PIL import Image
from pydicom import config, uid
from pydicom.dataset import FileDataset
from pydicom.encaps import get_frame
from pydicom.filereader import data_element_generator, dcmread
from pydicom.pixels.decoders.base import get_decoder
from pydicom.tag import Tag

from consilium_client.data.image import MOST_PIXELS
from consilium_client.data.image.headers import IDENTIFYING, Headers
from consilium_client.data.image.shades import shades
from consilium_client.errors import ExampleError

MOST_HEADER: Final = 1 << 20  # bytes that are read of a header; longer values that nobody asks for are skipped
MOST_RLE: Final = 1 << 22  # pixels: each two bytes of RLE can become 128
PADDING: Final = 1 << 16  # bytes that pixel data may have beyond their pixels
MOST_SIDE: Final = 65_535

NATIVE = (uid.ImplicitVRLittleEndian, uid.ExplicitVRLittleEndian, uid.ExplicitVRBigEndian)
PIXEL_DATA: Final = 0x7FE00010
JPEG = (uid.JPEGBaseline8Bit, uid.JPEG2000Lossless, uid.JPEG2000)
GREY, INVERTED = "MONOCHROME2", "MONOCHROME1"
COLOURS = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT")
_IMAGE = (
    "BitsAllocated", "BitsStored", "BurnedInAnnotation", "Columns", "HighBit", "Modality", "ModalityLUTSequence",
    "NumberOfFrames", "PhotometricInterpretation", "PixelRepresentation", "PlanarConfiguration", "RescaleIntercept",
    "RescaleSlope", "Rows", "SamplesPerPixel",
)  # fmt: skip
# By field: a readable value, for messages.
_NEEDED = {
    "BitsAllocated": "8 or 16",
    "BitsStored": "1 to BitsAllocated",
    "HighBit": "BitsStored less one",
    "ModalityLUTSequence": "none: units by RescaleSlope and RescaleIntercept",
    "NumberOfFrames": "1, or none",
    "PixelData": "as many bytes as the other fields say",
    "PixelRepresentation": "0 or 1",
    "TransferSyntaxUID": "the code of a transfer syntax",
}
_TAGS = {name: Tag(name) for name in (*_IMAGE, *IDENTIFYING)}

config.settings.reading_validation_mode = config.IGNORE
logging.getLogger("pydicom").disabled = True  # its warnings quote values


def decoded(file: BinaryIO, folder: Path, name: str, schema: ImageSchema, headers: Headers) -> Image.Image:
    """In mode L or RGB of 8 bits, or F of u if the task has a window or 16 bits.

    Raises ExampleError about `name`, and any error of pydicom's, whose message may quote the file.
    """
    return _File(file, folder, name, schema).image(headers)


class _TooLong(Exception):
    pass


class _Deflated(Exception):
    pass


class _Bounded:
    """A file of which pydicom reads at most `left` bytes. It asks for all the rest only to inflate a deflated data set,
    whose size nothing bounds.
    """

    def __init__(self, file: BinaryIO, left: int) -> None:
        self._file, self.left = file, left
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            raise _Deflated
        if size > self.left:
            raise _TooLong
        self.left -= size
        return self._file.read(size)


class _File:
    """A file whose header is read, and whose pixels are not."""

    def __init__(self, file: BinaryIO, folder: Path, name: str, schema: ImageSchema) -> None:
        self._folder, self._name, self._schema = folder, name, schema
        self._bytes = _Bounded(file, MOST_HEADER)
        is_deflated = False
        try:
            self._header: FileDataset = dcmread(self._bytes, stop_before_pixels=True, specific_tags=[*_TAGS.values()])
            return
        except _TooLong:
            pass
        except _Deflated:
            is_deflated = True
        if is_deflated:
            raise self._fault("DicomCompressed", syntax=uid.DeflatedExplicitVRLittleEndian.name)
        raise self._fault("DicomHeaderTooLong", at_most=MOST_HEADER >> 20)

    def image(self, headers: Headers) -> Image.Image:
        if self._schema.modality and self._text("Modality") != self._schema.modality:
            raise self._fault("DicomModalityWrong", expected=self._schema.modality)
        burned_in = self._text("BurnedInAnnotation") == "YES"
        found = self._colour() if self._text("PhotometricInterpretation") in COLOURS else self._grey()
        present = self._header.keys()
        headers.note((one for one in IDENTIFYING if _TAGS[one] in present and self._has_value(one)), burned_in)
        return found

    def _colour(self) -> Image.Image:
        if self._schema.is_deep:
            raise self._fault("ImageNotGrey")
        return Image.fromarray(self._pixels(samples=3, most_bits=8))

    def _grey(self) -> Image.Image:
        photometric, schema = self._text("PhotometricInterpretation"), self._schema
        if not photometric:
            raise self._wrong("PhotometricInterpretation")
        if photometric not in (GREY, INVERTED):
            raise self._fault("ImageColoursWrong")
        slope, intercept = self._number("RescaleSlope", 1.0), self._number("RescaleIntercept", 0.0)
        if self._value("ModalityLUTSequence"):
            raise self._wrong("ModalityLUTSequence")
        is_plain = (self._whole("BitsStored", 1, 16), self._whole("PixelRepresentation", 0, 1)) == (8, 0)
        if schema.window is None and not (is_plain and (slope, intercept) == (1.0, 0.0)):
            raise self._fault("DicomWindowMissing")
        pixels = self._pixels(samples=1, most_bits=16)
        if not schema.is_deep:
            return Image.fromarray(255 - pixels if photometric == INVERTED else pixels)
        values = pixels.astype(np.float32)
        values *= np.float32(slope)
        values += np.float32(intercept)
        found = shades(values, schema, 255)
        return Image.fromarray(1 - found if photometric == INVERTED else found)

    def _pixels(self, samples: int, most_bits: int) -> NDArray[Any]:
        """(height, width), or with three channels last. Raises errors of pydicom's too."""
        rows, columns = self._whole("Rows", 1, MOST_SIDE), self._whole("Columns", 1, MOST_SIDE)
        if rows * columns > MOST_PIXELS:
            raise self._fault("ImageTooLarge")
        if self._whole("NumberOfFrames", 1, 1 << 31, 1) > 1:
            raise self._fault("ImageInParts")
        self._whole("SamplesPerPixel", samples, samples)
        allocated = self._whole("BitsAllocated", 8, most_bits)
        stored = self._whole("BitsStored", 1, allocated)
        self._whole("HighBit", stored - 1, stored - 1, stored - 1)
        if allocated % 8:
            raise self._wrong("BitsAllocated")
        syntax = self._syntax(rows * columns)
        value = self._pixel_data(rows * columns * samples * allocated // 8 + PADDING)
        if syntax in JPEG:
            frame = get_frame(value, 0, number_of_frames=1)
            with Image.open(io.BytesIO(frame), formats=("JPEG", "JPEG2000")) as coded:  # reads the header alone
                if coded.size != (columns, rows):
                    raise self._wrong("PixelData")
        plugin = "" if syntax in NATIVE else "pillow" if syntax in JPEG else "pydicom"
        return get_decoder(syntax).as_array(self._header, index=0, decoding_plugin=plugin)[0]

    def _pixel_data(self, at_most: int) -> bytes:
        self._bytes.left = at_most
        is_implicit, is_little_endian = self._header.original_encoding
        try:
            element = next(data_element_generator(self._bytes, bool(is_implicit), bool(is_little_endian)), None)  # type: ignore[arg-type]
            if element is not None and element.tag == PIXEL_DATA and isinstance(element.value, bytes):
                self._header[element.tag] = element
                return element.value
        except _TooLong:
            pass
        raise self._wrong("PixelData")

    def _syntax(self, pixels: int) -> uid.UID:
        found = self._header.file_meta.get("TransferSyntaxUID")
        if not isinstance(found, uid.UID):
            raise self._wrong("TransferSyntaxUID")
        if found in (*NATIVE, *JPEG) or (found == uid.RLELossless and pixels <= MOST_RLE):
            return found
        raise self._fault("DicomCompressed", syntax="unknown" if found.name == found else found.name)

    def _has_value(self, field: str) -> bool:
        """A field's value; the field is there."""
        value = self._header.get_item(_TAGS[field]).value
        return bool(value.strip(b" \0") if isinstance(value, bytes) else value)

    def _whole(self, field: str, low: int, high: int, default: int | None = None) -> int:
        found = self._value(field)
        found = default if found is None else found
        if not isinstance(found, int) or not low <= found <= high:
            raise self._wrong(field, str(low) if low == high else f"{low} to {high}")
        return int(found)

    def _number(self, field: str, default: float) -> float:
        """A single number; a slope is not zero."""
        found = self._value(field)
        number = default if found is None else float(found) if isinstance(found, float | int) else math.nan
        if not math.isfinite(number) or (field == "RescaleSlope" and number == 0):
            raise self._wrong(field, "a finite number")
        return number

    def _text(self, field: str) -> str:
        return str(self._value(field) or "").strip()

    def _value(self, field: str) -> Any:
        """None if the field is absent or empty."""
        try:
            found = self._header[_TAGS[field]].value if _TAGS[field] in self._header.keys() else None  # noqa: SIM118
            return None if found is None or found == "" else found
        except Exception:  # pydicom's converters raise any error, with the value in its message
            pass
        raise self._wrong(field)

    def _wrong(self, field: str, needed: str = "a single value") -> ExampleError:
        return self._fault("DicomFieldWrong", field=field, needed=_NEEDED.get(field, needed))

    def _fault(self, fault: str, **values: Any) -> ExampleError:
        return ExampleError(fault, path=self._folder, at=self._name, **values)
