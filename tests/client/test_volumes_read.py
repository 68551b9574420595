"""Volumes with masks: slices by nibabel's own axes, hostile files refused by name, and no header value anywhere."""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import tracemalloc
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
from consilium_chain.tasks.image_schemas import ImageSchema, WindowSpec
from consilium_chain.tasks.questions import Segmentation
from consilium_client.data.image import nifti as reader
from consilium_client.data.image.kind import KIND
from consilium_client.data.image.reader import RawImages, read_raw_images
from consilium_client.errors import DataError, ExampleError
from consilium_client.hospital.training import held_out
from hypothesis import given, settings
from hypothesis import strategies as st
from nibabel.orientations import axcodes2ornt
from nifti_files import AFFINE, PATIENT, nifti, packed, write_cases
from numpy.typing import NDArray
from PIL import Image
from raised_faults import raises_fault

WINDOW = WindowSpec(center=100, width=200)
ASKED = Segmentation(kind="segmentation", classes=["background", "oedema", "tumour"])
SCHEMA = ImageSchema(kind="images", height=8, width=10, window=WINDOW, question=ASKED)
RANDOM = np.random.default_rng(5)
VALUES = RANDOM.integers(-50, 250, (10, 8, 5), dtype=np.int16)
MASK = (RANDOM.random(VALUES.shape) * 3).astype(np.uint8)


def case(values: bytes = nifti(VALUES), mask: bytes = nifti(MASK)) -> dict[str, bytes]:
    return {"imagesTr/a_0000.nii": values, "labelsTr/a.nii": mask}


def read(tmp_path: Path, files: dict[str, bytes], schema: ImageSchema = SCHEMA) -> RawImages:
    return read_raw_images(write_cases(tmp_path, files), schema)


def in_window(values: NDArray[Any]) -> NDArray[Any]:
    return np.rint(np.clip(values.astype(float) / 200, 0, 1) * 255)


def test_slices_have_the_front_above_and_the_left_of_the_patient_on_the_left(tmp_path: Path) -> None:
    found = read(tmp_path, case())
    assert found.images.pixels.shape == (5, 1, 8, 10)
    for at in range(5):
        np.testing.assert_allclose(found.images.pixels[at, 0], in_window(VALUES[:, ::-1, at].T), atol=1)
        np.testing.assert_array_equal(found.images.labels[at], MASK[:, ::-1, at].T)
    assert found.sizes.tolist() == [[8, 10]] * 5


ORIENTATIONS = ["".join(one) for axes in itertools.permutations(("RL", "AP", "SI")) for one in itertools.product(*axes)]


def test_a_volume_gives_equal_examples_in_each_of_48_orientations(tmp_path: Path) -> None:
    expected = list(read(tmp_path / "RAS", case()).images.row_bytes())
    for number, axes in enumerate(ORIENTATIONS):
        files = case(nifti(VALUES, turned=axcodes2ornt(axes), version=1 + number % 2))
        assert list(read(tmp_path / f"{number}", files).images.row_bytes()) == expected, axes


@pytest.mark.parametrize(
    ("values", "fields", "expected"),
    [
        (VALUES.astype(np.float32), {}, VALUES),
        (VALUES.astype(">i4"), {}, VALUES),
        (np.abs(VALUES).astype(np.uint8), {"scl_slope": 2, "scl_inter": -5}, 2.0 * np.abs(VALUES).astype(np.uint8) - 5),
        (VALUES, {"scl_slope": 0, "scl_inter": 9}, VALUES),  # no scaling, says NIfTI
        (VALUES, {"scl_slope": float("nan"), "scl_inter": float("nan")}, VALUES),
        (VALUES.astype(np.float64), {"scl_slope": 0.5, "scl_inter": 1}, 0.5 * VALUES + 1),
    ],
)
def test_values_have_the_units_that_the_header_says(
    values: NDArray[Any], fields: dict[str, float], expected: NDArray[Any], tmp_path: Path
) -> None:
    found = read(tmp_path, case(packed(nifti(values, fields=fields))))
    np.testing.assert_allclose(found.images.pixels[2, 0], in_window(expected[:, ::-1, 2].T), atol=1)


def test_percents_are_of_the_whole_volume(tmp_path: Path) -> None:
    schema = SCHEMA.model_copy(update={"window": WindowSpec(low=5, high=95), "bits": 16})
    low, high = np.percentile(VALUES, [5, 95], method="inverted_cdf")
    found = read(tmp_path, case(), schema).images.pixels[:, 0] / 65_535
    expected = np.clip((VALUES - low) / (high - low), 0, 1).transpose(2, 1, 0)[:, ::-1]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_masks_are_scaled_to_the_nearest_pixel_and_images_smoothly(tmp_path: Path) -> None:
    schema = SCHEMA.model_copy(update={"height": 16, "width": 20})
    found = read(tmp_path, case(), schema).images
    for at in range(5):
        np.testing.assert_array_equal(found.labels[at], MASK[:, ::-1, at].T.repeat(2, axis=0).repeat(2, axis=1))
    assert len(np.unique(found.pixels)) > len(np.unique(in_window(VALUES)))


def test_each_channel_has_a_file_and_units_by_itself(tmp_path: Path) -> None:
    schema = SCHEMA.model_copy(update={"channels": 4})
    files = {f"imagesTr/a_000{at}.nii.gz": packed(nifti(VALUES + np.int16(20 * at))) for at in range(4)}
    found = read(tmp_path, files | {"labelsTr/a.nii.gz": packed(nifti(MASK))}, schema).images.pixels
    assert found.shape == (5, 4, 8, 10)
    for at in range(4):
        np.testing.assert_allclose(found[0, at], in_window(VALUES[:, ::-1, 0].T + 20 * at), atol=1)


def test_images_of_one_channel_may_have_the_masks_name_and_others_stay_aside(tmp_path: Path) -> None:
    files = {"imagesTr/lung_001.nii": nifti(VALUES), "labelsTr/lung_001.nii.gz": packed(nifti(MASK))}
    beside = {"imagesTs/lung_002.nii": b"x", "dataset.json": b"{}", "imagesTr/.DS_Store": b"x"}
    assert read(tmp_path, files | beside).images.rows == 5


def test_empty_slices_are_left_out_unless_they_have_a_mark(tmp_path: Path) -> None:
    values, mask = VALUES.copy(), MASK.copy()
    values[..., [1, 3]], mask[..., 1], mask[..., 2] = -50, 0, 0
    found = read(tmp_path, case(nifti(values), nifti(mask))).images
    assert found.rows == 4
    assert [bool(one.any()) for one in found.labels] == [True, False, True, True]


def test_slices_of_a_case_are_held_out_together(tmp_path: Path) -> None:
    files = dict[str, bytes]()
    for at in range(12):
        values = RANDOM.integers(0, 200, VALUES.shape, dtype=np.int16)
        files |= {f"imagesTr/{at}_0000.nii": nifti(values), f"labelsTr/{at}.nii": nifti(MASK)}
    found = read(tmp_path, files).images
    out = held_out(found, 0.4, b"salt" * 4).reshape(12, 5)
    assert (out == out[:, :1]).all()
    assert 0 < out[:, 0].sum() < 12
    assert len(set(found.chosen(out.ravel()).cases)) == out[:, 0].sum()


def png(pixels: NDArray[Any], kind: str = "PNG") -> bytes:
    Image.fromarray(pixels).save(stream := io.BytesIO(), kind)
    return stream.getvalue()


PICTURE = RANDOM.integers(0, 256, (8, 10), dtype=np.uint8)
MARKS = MASK[:, :, 0].T.copy()


def test_pictures_have_the_same_layout(tmp_path: Path) -> None:
    schema = ImageSchema(kind="images", height=8, width=10, channels=3, question=ASKED)
    coloured = np.stack([PICTURE, PICTURE + 1, PICTURE + 2], -1)
    files = {"imagesTr/a_0000.png": png(coloured), "labelsTr/a.png": png(MARKS)}
    files |= {f"imagesTr/b_000{at}.png": png(coloured[..., at]) for at in range(3)} | {
        "labelsTr/b.tif": png(MARKS, "TIFF")
    }
    found = read(tmp_path, files, schema).images
    np.testing.assert_array_equal(found.pixels[0], found.pixels[1])
    np.testing.assert_array_equal(found.pixels[0], coloured.transpose(2, 0, 1))
    np.testing.assert_array_equal(found.labels, [MARKS, MARKS])


# --- attacks ---------------------------------------------------------------------------------------------------------


def marked(value: float, kind: type = np.int16) -> dict[str, bytes]:
    wrong: NDArray[Any] = MASK.astype(kind)
    wrong[3, 3, 3] = value
    return case(mask=nifti(wrong))


ATTACKS: list[tuple[str, dict[str, bytes], str, str]] = [
    ("nothing", {"imagesTr/a_0000.nii": b"", "labelsTr/a.nii": nifti(MASK)}, "ImageEmpty", "imagesTr/a_0000.nii"),
    ("no NIfTI", case(b"x" * 2_000), "ImageKindWrong", "imagesTr/a_0000.nii"),
    ("a pair's header", case(nifti(VALUES, fields={"magic": 0x0031696E})), "ImageKindWrong", "imagesTr/a_0000.nii"),
    ("cut off", case(nifti(VALUES)[:-1]), "ImageUnreadable", "imagesTr/a_0000.nii"),
    ("more than it says", case(nifti(VALUES) + b"x"), "ImageUnreadable", "imagesTr/a_0000.nii"),
    ("cut off in its header", case(nifti(VALUES, version=2)[:500]), "ImageUnreadable", "imagesTr/a_0000.nii"),
    ("cut off within gzip", case(packed(nifti(VALUES))[:-9]), "ImageUnreadable", "imagesTr/a_0000.nii"),
    ("a checksum of others", case(packed(nifti(VALUES))[:-5] + b"abcde"), "ImageUnreadable", "imagesTr/a_0000.nii"),
    ("no gzip after its start", case(b"\x1f\x8b" + b"x" * 99), "ImageUnreadable", "imagesTr/a_0000.nii"),
    ("two times", case(nifti(np.stack([VALUES] * 2, -1))), "NiftiFieldWrong", "field dim "),
    ("a negative side", case(nifti(VALUES, fields={"dim[1]": -10})), "NiftiFieldWrong", "field dim "),
    ("eight axes", case(nifti(VALUES, fields={"dim[0]": 8})), "", "imagesTr/a_0000.nii"),
    ("complex numbers", case(nifti(VALUES.astype(np.complex64))), "NiftiFieldWrong", "field datatype "),
    ("an unknown type", case(nifti(VALUES, fields={"datatype": 999})), "NiftiFieldWrong", "field datatype "),
    ("voxels in the header", case(nifti(VALUES, fields={"vox_offset": 8})), "NiftiFieldWrong", "field vox_offset "),
    ("voxels nowhere", case(nifti(VALUES, fields={"vox_offset": np.nan})), "NiftiFieldWrong", "field vox_offset "),
    ("voxels far away", case(nifti(VALUES, fields={"vox_offset": 1e9})), "NiftiFieldWrong", "field vox_offset "),
    ("no intercept", case(nifti(VALUES, fields={"scl_slope": 1, "scl_inter": np.inf})), "NiftiFieldWrong", "scl_inter"),
    ("no place", case(nifti(VALUES, fields={"srow_x[0]": np.nan})), "NiftiFieldWrong", "field sform or qform "),
    ("a flat place", case(nifti(VALUES, fields={"srow_x[0]": 0})), "NiftiFieldWrong", "field sform or qform "),
    ("not a number", case(nifti(np.full(VALUES.shape, np.nan, np.float32))), "NiftiNotFinite", "imagesTr/a_0000.nii"),
    ("a mask of others", case(mask=nifti(MASK, AFFINE + np.eye(4, k=3))), "FilesApart", "imagesTr/a_0000.nii"),
    ("another spacing", case(mask=nifti(MASK, AFFINE * [[1.1], [1], [1], [1]])), "FilesApart", "imagesTr/a_0000.nii"),
    ("a smaller mask", case(mask=nifti(MASK[:-1])), "FilesApart", "imagesTr/a_0000.nii"),
    ("an unknown class", marked(3), "MaskValueUnknown", "labelsTr/a.nii"),
    ("a class below 0", marked(-1), "MaskValueUnknown", "labelsTr/a.nii"),
    ("half a class", marked(0.5, np.float32), "MaskValueUnknown", "labelsTr/a.nii"),
    ("a class of 256", marked(256), "MaskValueUnknown", "labelsTr/a.nii"),
    ("a mask of no numbers", marked(np.nan, np.float32), "NiftiNotFinite", "labelsTr/a.nii"),
    ("no mask", case() | {"imagesTr/b_0000.nii": nifti(VALUES)}, "MaskMissing", "imagesTr/b_0000.nii"),
    ("one channel too many", case() | {"imagesTr/a_0001.nii": nifti(VALUES)}, "MaskMissing", "imagesTr/a_0001.nii"),
    ("no image", case() | {"labelsTr/b.nii": nifti(MASK)}, "ChannelMissing", "imagesTr/b_0000"),
    ("two files of a case", case() | {"labelsTr/a.nii.gz": packed(nifti(MASK))}, "NamesAlike", "labelsTr/a.nii"),
    ("another file", case() | {"labelsTr/Thumbs.db": b"x"}, "FileUnexpected", "labelsTr/Thumbs.db"),
    ("a picture's mask", {"imagesTr/a_0000.png": png(PICTURE), "labelsTr/a.nii": nifti(MASK)}, "FilesApart", "a_0000"),
    ("a mask in colour", {"imagesTr/a_0000.dcm": png(PICTURE), "labelsTr/a.png": png(np.stack([MARKS] * 3, -1))},
     "MaskValueUnknown", "labelsTr/a.png"),
    ("a lossy mask", {"imagesTr/a_0000.png": png(PICTURE), "labelsTr/a.jpg": png(MARKS, "JPEG")},
     "ImageKindWrong", "labelsTr/a.jpg"),
    ("no folder of masks", {"imagesTr/a_0000.nii": nifti(VALUES)}, "DataFileMissing", "labelsTr"),
    ("no case", {"imagesTr/.a": b"", "labelsTr/.a": b""}, "DataFileEmpty", "no rows"),
    ("nothing to see", case(nifti(VALUES * 0), nifti(MASK * 0)), "DataFileEmpty", "no rows"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "fault", "place"), [one[1:] for one in ATTACKS], ids=[one[0] for one in ATTACKS])
def test_a_hostile_or_broken_volume_is_refused_by_name(
    files: dict[str, bytes], fault: str, place: str, tmp_path: Path
) -> None:
    schema = SCHEMA if all(".nii" in name for name in files) else SCHEMA.model_copy(update={"window": None})
    with contextlib.ExitStack() as stack:
        stack.enter_context(raises_fault(DataError, fault, place) if fault else pytest.raises(DataError, match=place))
        read(tmp_path, files, schema)


@pytest.mark.parametrize(("dims", "fault"), [((20_000, 20_000, 2), "NiftiTooLarge"), ((10, 8, 5), "ImageUnreadable")])
def test_a_bomb_takes_no_memory(dims: tuple[int, int, int], fault: str, tmp_path: Path) -> None:
    """Packed zeros of a huge volume, or behind a small one."""
    head = nifti(np.zeros((2, 2, 2), np.int16))
    head = head[:42] + b"".join(one.to_bytes(2, "little") for one in dims) + head[48:352]
    stream = io.BytesIO()
    with gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=1) as file:
        file.write(head)
        for _ in range(64):
            file.write(bytes(1 << 20))
    affine = nibabel.Nifti1Header(head[:348]).get_best_affine()
    tracemalloc.start()
    with raises_fault(ExampleError, fault):
        read(tmp_path, case(stream.getvalue(), nifti(MASK, affine)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 23


@pytest.mark.parametrize(
    ("values", "window", "bits", "fault"),
    [
        (PICTURE[..., None], None, 8, None),
        (VALUES, None, 8, "NiftiWindowMissing"),
        (VALUES, None, 16, "NiftiWindowMissing"),
        (VALUES.astype(np.uint16), None, 16, None),
        (VALUES.astype(np.float32), WINDOW, 16, None),
    ],
)
def test_values_without_a_unit_need_a_window(
    values: NDArray[Any], window: WindowSpec | None, bits: int, fault: str | None, tmp_path: Path
) -> None:
    schema = SCHEMA.model_copy(update={"window": window, "bits": bits})
    files = case(nifti(values), nifti(np.ones(values.shape, np.uint8)))
    with raises_fault(ExampleError, fault) if fault else contextlib.nullcontext():
        found = read(tmp_path, files, schema).images
    if fault is None:
        assert found.pixels.dtype == (np.uint8 if bits == 8 else np.uint16)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 351), st.integers(0, 255)), min_size=1, max_size=6), st.booleans())
def test_a_damaged_header_is_read_or_refused_by_name(
    tmp_path_factory: pytest.TempPathFactory, damage: list[tuple[int, int]], is_packed: bool
) -> None:
    raw = bytearray(nifti(VALUES, texts=PATIENT))
    for place, value in damage:
        raw[place] = value
    folder = tmp_path_factory.mktemp("damaged")
    with contextlib.suppress(DataError):
        found = read(folder, case(packed(bytes(raw)) if is_packed else bytes(raw)))
        assert found.images.pixels.shape[1:] == (1, 8, 10)


def test_texts_of_headers_are_counted_by_field_and_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    secret = nifti(VALUES, texts=PATIENT, extension=b"Mustermann")
    files = case(packed(secret)) | {"imagesTr/b_0000.nii": nifti(VALUES + 1), "labelsTr/b.nii": nifti(MASK)}
    found = read(tmp_path, files)
    assert dict(found.source.identifying) == dict.fromkeys([*reader.TEXTS, reader.EXTENSIONS], 1)
    wrong = case(secret, nifti(MASK[:-1], texts=PATIENT, extension=b"Mustermann"))
    with raises_fault(ExampleError, "FilesApart") as caught:
        read(tmp_path / "wrong", wrong)
    said = capsys.readouterr()
    told = [str(caught.value), repr(found), said.out, said.err, *(one.getMessage() for one in caplog.records)]
    assert not any(value in one for value in [*PATIENT.values(), "Mustermann"] for one in told)


def test_a_volume_has_no_class_of_its_own(tmp_path: Path) -> None:
    schema = ImageSchema(kind="images", height=8, width=10, window=WINDOW, classes=["no", "yes"])
    for at, raw in enumerate((nifti(VALUES), packed(nifti(VALUES)), nifti(VALUES, version=2))):
        folder = write_cases(tmp_path / f"{at}", {f"no/a.nii{'.gz' * (at == 1)}": raw})
        with raises_fault(ExampleError, "ImageInParts", "slices of a volume"):
            KIND.read(folder, schema, None)
