"""A model with weights of 8 bits: it does as well to a point, from a person's values to the same answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import consilium as api
import numpy as np
import onnx
import onnxruntime
import pytest
from command_line import CommandLine
from command_line import consilium as consilium
from consilium_client.data.image.reader import ImageSet, room
from consilium_client.data.series.stays import Stays, shares
from consilium_operators.errors import OperatorError
from consilium_operators.model_folder import ONNX, ONNX_INT8, read_model
from consilium_operators.onnx_int8 import graph_inputs, quantised
from consilium_operators.prediction import Predictor, examples_of
from model_driver import TABLE, written
from numpy.typing import NDArray
from raised_faults import raises_fault

WIDE = TABLE.replace("hidden = [4]", "hidden = [256, 256]")
IMAGES = """
name = "x-rays"
[data]
kind = "images"
classes = ["healthy", "ill"]
height = 16
width = 12
[model]
name = "cnn"
channels = [16, 32]
"""
SERIES = """
name = "stays"
[data]
kind = "series"
steps = 6
label = "died"
classes = ["alive", "died"]
[[data.features]]
name = "pulse"
min = 20
max = 220
[[data.features]]
name = "lactate"
min = 0
max = 20
[model]
name = "tcn"
"""


def labelled(folder: Path, wanted: float = 1.0) -> Path:
    """Drawn rows with the model's own answers as labels, but for a part of them."""
    random = np.random.default_rng(2)
    rows: list[dict[str, Any]] = [
        {"age": float(age), "sex": None if number % 9 == 0 else number % 3}
        for number, age in enumerate(random.uniform(0, 120, 400))
    ]
    saved = read_model(folder)
    answers = Predictor(saved).predictions(examples_of(rows, saved.spec.data)).argmax(axis=1)
    answers = np.where(random.random(400) < wanted, answers, (answers + 1) % 3)
    lines = [
        f"{row['age']},{'' if row['sex'] is None else row['sex']},{saved.spec.data.classes[answer]}"
        for row, answer in zip(rows, answers.tolist(), strict=True)
    ]
    path = folder.parent / "labelled.csv"
    path.write_text("\n".join(["age,sex,sick", *lines]) + "\n")
    return path


def computed(path: Path, values: NDArray[Any]) -> NDArray[np.float32]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    found: NDArray[np.float32] = session.run(None, {given.name: values})[0]
    return found


def test_a_small_file_is_written_that_does_as_well(tmp_path: Path, consilium: CommandLine) -> None:
    folder = written(tmp_path, WIDE, scale=0.1)
    rows = labelled(folder)
    code, said = consilium("operator", "export-onnx", str(folder), "--int8", str(rows))
    assert code == 0, said
    large, small = ((folder / name).read_bytes() for name in (ONNX, ONNX_INT8))
    assert f"{len(small):,} bytes, and {len(large):,} of model.onnx; on 400 rows" in said
    assert "accuracy" in said
    assert len(small) < len(large) / 3
    values = np.array([[61.5, 1], [np.nan, 0], [119, np.nan], [500, 9]])
    np.testing.assert_allclose(computed(folder / ONNX_INT8, values), computed(folder / ONNX, values), atol=0.03)
    read_model(folder)  # its digests are those of both files
    kept = [{one.key: one.value for one in onnx.load(folder / name).metadata_props} for name in (ONNX, ONNX_INT8)]
    assert kept[0].items() <= kept[1].items()
    types = {one.data_type for one in onnx.load(folder / ONNX_INT8).graph.initializer if len(one.dims) > 1}
    assert onnx.TensorProto.INT8 in types


def test_a_small_file_that_does_worse_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path, WIDE, scale=0.1)
    rows = labelled(folder)
    from consilium_operators import onnx_int8

    monkeypatch.setattr(onnx_int8, "MOST_WORSE", -1.0)
    with raises_fault(OperatorError, "Int8Worse", match="use model.onnx"):
        api.export_onnx_int8(folder, rows)
    assert (folder / ONNX).exists()
    assert not (folder / ONNX_INT8).exists()


def test_the_graphs_input_follows_from_examples(tmp_path: Path) -> None:
    saved = read_model(written(tmp_path, TABLE))
    rows: list[dict[str, Any]] = [{"age": 61.5, "sex": 1}, {"age": None, "sex": 0}, {"age": 7, "sex": None}]
    found = graph_inputs(examples_of(rows, saved.spec.data), saved.spec.data)
    np.testing.assert_allclose(found, [[61.5, 1], [np.nan, 0], [7, np.nan]], rtol=1e-12)


@pytest.mark.parametrize("text", [IMAGES, SERIES], ids=["images", "series"])
def test_images_and_series_have_small_files(tmp_path: Path, text: str) -> None:
    folder, random = written(tmp_path, text, scale=0.2), np.random.default_rng(3)
    saved = read_model(folder)
    labels = random.integers(0, 2, 40)
    if text is IMAGES:
        pixels, _ = room(40, saved.spec.data)  # type: ignore[arg-type]
        pixels[:] = random.integers(0, 256, pixels.shape)
        examples: Any = ImageSet(pixels, labels)
    else:
        low, high = np.array([[20.0], [0.0]]), np.array([[220.0], [20.0]])
        values = low + (high - low) * random.random((40, 2, 6))
        values[random.random(values.shape) < 0.3] = np.nan
        examples = Stays(shares(values, low, high), labels)
    api.export_onnx(folder)
    raw = (folder / ONNX).read_bytes()
    expected = Predictor(saved).predictions(examples)
    by_graph = computed(folder / ONNX, graph_inputs(examples, saved.spec.data))
    np.testing.assert_allclose(by_graph, expected, atol=1e-5)
    from consilium_operators import onnx_int8

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(onnx_int8, "MOST_WORSE", 1.0)  # labels are chance
        small, metrics = quantised(saved, raw, examples, 16)
    (folder / ONNX_INT8).write_bytes(small)
    now = computed(folder / ONNX_INT8, graph_inputs(examples, saved.spec.data))
    np.testing.assert_allclose(now, expected, atol=0.05)
    assert set(metrics) == set(saved.spec.data.asked.shown)
