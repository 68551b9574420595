"""Finished models of masks: ONNX, metrics and a Hub's layout; tables and JSON of masks are refused by name."""

from __future__ import annotations

import io
import json
from pathlib import Path

import consilium
import numpy as np
import onnxruntime
import pytest
from consilium_cli.evaluation_screen import of_operator
from consilium_operators.errors import OperatorError
from consilium_operators.hugging_face import export_hugging_face
from consilium_operators.model_folder import ONNX, read_model
from consilium_operators.model_server import serve
from consilium_operators.onnx_file import add_onnx
from model_driver import written
from nifti_files import nifti, packed, write_cases
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
