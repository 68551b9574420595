"""Finished models of masks: ONNX, metrics and a Hub's layout; tables and JSON of masks are refused by name."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import consilium
import nibabel
import numpy as np
import onnxruntime
import pytest
from consilium_cli.evaluation_screen import of_operator
from consilium_client.errors import ExampleError, FolderError
from consilium_operators.errors import OperatorError
from consilium_operators.hugging_face import export_hugging_face
from consilium_operators.model_folder import ONNX, read_model
from consilium_operators.model_server import serve
from consilium_operators.onnx_file import add_onnx
from model_driver import written
from nifti_files import PATIENT as TEXTS
from nifti_files import nifti, packed, write_cases
from numpy.typing import NDArray
from PIL import Image
from raised_faults import raises_fault
from rich.console import Console

MASKS = """
name = "masks"
[data]
kind = "images"
height = 16
width = 16
channels = 2
window = { low = 1, high = 99 }
question = { kind = "segmentation", classes = ["background", "oedema", "tumour"] }
[model]
name = "unet"
widths = [4, 8, 8]
[judging]
metric = "dice"
"""


def png(pixels: NDArray[np.uint8]) -> bytes:
    Image.fromarray(pixels).save(stream := io.BytesIO(), "PNG")
    return stream.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path, MASKS, scale=0.1)  # a network of many layers


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    random, files = np.random.default_rng(2), dict[str, bytes]()
    for at in range(3):
        shape = (20, 16, 5)
        files |= {f"imagesTr/{at}_000{c}.nii.gz": packed(nifti(random.normal(size=shape))) for c in range(2)}
        files |= {f"labelsTr/{at}.nii": nifti(random.integers(0, 3, shape).astype(np.uint8))}
    return write_cases(tmp_path / "cases", files)


def test_onnx_gives_each_pixels_probabilities_as_the_model_does(folder: Path) -> None:
    assert add_onnx(folder) < 1e-5
    session = onnxruntime.InferenceSession(folder / ONNX, providers=["CPUExecutionProvider"])
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["answers"]) == [f"probability_{name}" for name in ("background", "oedema", "tumour")]
    pixels = np.random.default_rng(0).integers(0, 256, (3, 2, 16, 16)).astype(np.uint8)
    (found,) = session.run(None, {"pixels": pixels})
    assert found.shape == (3, 3, 16, 16)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)


def test_an_evaluation_has_dice_with_intervals_over_images(folder: Path, cases: Path) -> None:
    report = consilium.Model.read(folder).evaluate(cases).report
    assert report.all_rows is not None
    assert report.all_rows.rows == 15
    assert set(report.all_rows.measures) == {"dice", "accuracy", "log_loss", "brier"}
    for measure in report.all_rows.measures.values():
        assert (measure.low or 0) < (measure.value or 0) < (measure.high or 0)
    assert (report.calibration, report.sites) == ((), ())
    console = Console(record=True, width=120, file=io.StringIO())
    for part in of_operator(report):
        console.print(part)
    assert "Dice" in console.export_text()


@pytest.mark.parametrize("turned", [None, [[2, -1], [0, 1], [1, -1]]], ids=["RAS", "turned"])
def test_predicted_masks_lie_where_the_images_lie(turned: list[list[int]] | None, tmp_path: Path) -> None:
    """Read as a voter's masks, the model's own are without a mistake. A blank slice has none."""
    folder = written(tmp_path, MASKS, scale=0.3)  # whose masks have every class
    random, files, model = np.random.default_rng(3), dict[str, bytes](), consilium.Model.read(folder)
    for case, version in (("a", 1), ("b", 2)):
        for channel in range(2):
            values = random.normal(size=(20, 16, 5))
            values[:, :, 2] = 7
            raw = nifti(
                values,
                turned=None if turned is None else np.array(turned),
                version=version,
                texts=TEXTS if version == 1 else {},
            )
            files[f"imagesTr/{case}_000{channel}.nii.gz"] = packed(raw)
    images = write_cases(tmp_path / "cases", files) / "imagesTr"
    found = model.predict(images, output=tmp_path / "cases" / "labelsTr")
    assert found["file"].to_list() == ["a.nii.gz", "b.nii.gz"]
    assert found[["background", "oedema", "tumour"]].sum(axis=1).to_list() == [20 * 16 * 5] * 2
    assert found["tumour"].min() > 0
    for case in "ab":
        image, mask = (nibabel.load(tmp_path / "cases" / name) for name in
                       (f"imagesTr/{case}_0000.nii.gz", f"labelsTr/{case}.nii.gz"))  # fmt: skip
        assert type(image) is type(mask)
        assert (image.shape, mask.get_data_dtype()) == (mask.shape, np.uint8)
        np.testing.assert_array_equal(image.affine, mask.affine)
        upright = np.asarray(nibabel.as_closest_canonical(mask).dataobj)
        assert (upright[:, :, 2].max(), upright[:, :, 1].max() > 0) == (0, True)
        raw_mask = gzip.decompress((tmp_path / "cases" / "labelsTr" / f"{case}.nii.gz").read_bytes())
        assert all(text.encode() not in raw_mask for text in TEXTS.values())
    report = model.evaluate(tmp_path / "cases").report
    assert report.all_rows is not None
    assert (report.all_rows.rows, report.all_rows.measures["accuracy"].value) == (8, 1.0)


def test_a_picture_s_mask_is_a_png_and_a_fault_leaves_nothing(tmp_path: Path) -> None:
    grey = MASKS.replace("channels = 2\n", "").replace("window = { low = 1, high = 99 }\n", "")
    model = consilium.Model.read(written(tmp_path, grey, scale=0.1))
    shades = np.random.default_rng(1).integers(0, 256, (31, 24), dtype=np.uint8)
    images = write_cases(tmp_path / "in", {"left_0000.png": png(shades), "scan_2021.png": png(shades)})
    found = model.predict(images, output=tmp_path / "out")
    assert found["file"].to_list() == ["left.png", "scan_2021.png"]
    mask = np.asarray(Image.open(tmp_path / "out" / "left.png"))
    assert mask.shape == (31, 24)
    assert mask.dtype == np.uint8
    assert np.bincount(mask.ravel(), minlength=3).tolist() == found.iloc[0].to_list()[1:]
    with raises_fault(OperatorError, "OutputTaken"):
        model.predict(images, output=tmp_path / "out")
    (images / "z.png").write_bytes(b"no image")
    with raises_fault(ExampleError, "ImageKindWrong", "in/z.png"):
        model.predict(images, output=tmp_path / "again")
    (images / "left.png").write_bytes(png(shades))
    with raises_fault(FolderError, "NamesAlike"):
        model.predict(images, output=tmp_path / "again")
    assert {path.name for path in tmp_path.iterdir()} == {"in", "model", "out"}


def test_neither_a_table_nor_json_has_masks(folder: Path, cases: Path) -> None:
    model = consilium.Model.read(folder)
    for attempt in (
        lambda: model.predict(cases / "imagesTr"), lambda: model.predict(cases), lambda: serve(read_model(folder), 0),
    ):  # fmt: skip
        with raises_fault(OperatorError, "MarksPixels", "masks marks pixels"):
            attempt()


def test_the_hubs_layout_knows_masks(folder: Path, tmp_path: Path) -> None:
    export_hugging_face(folder, tmp_path / "hub")
    assert 'pipeline_tag: "image-segmentation"' in (tmp_path / "hub" / "README.md").read_text()
