"""A model as ONNX: it takes a person's values, and gives what `consilium predict` gives."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

import consilium
import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.tasks.model_specs import ProgramSpec
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.data.image.reader import ImageSet, Pixels
from consilium_client.models.weights import named_tensors
from consilium_client.programs import library
from consilium_operators import onnx_file
from consilium_operators.errors import OperatorError
from consilium_operators.model_folder import INDEX, ONNX, read_model
from consilium_operators.onnx_file import add_onnx
from consilium_operators.prediction import Predictor, examples_of
from model_driver import TABLE, written
from numpy.typing import NDArray
from raised_faults import raises_fault
from safetensors.numpy import save
from task_files import OF_TEXTS
from torch import nn

GUIDE = Path(__file__).parents[2] / "docs" / "models.md"
MLP = 'name = "mlp"\nhidden = [4]\n'
LOGISTIC = TABLE.replace(MLP, 'name = "logistic"\n')
TWO = LOGISTIC.replace('"maybe", ', "")
NUMBERS = TWO[: TWO.index("[[data.features]]\nkind")] + TWO[TWO.index("[model]") :]
IMAGES = """
name = "x-rays"
[data]
kind = "images"
classes = ["healthy", "ill"]
channels = {channels}
height = 16
width = 12
[model]
name = "cnn"
channels = [4, 8]
"""
NAMED = LOGISTIC.replace("values = [0, 1, 2]", 'values = ["no", "früher", "yes"]').replace(
    "max = 120.0", 'max = 120.0\nmissing = "indicator"'
)
ROWS: list[dict[str, Any]] = [
    {"age": 61.5, "sex": 1},
    {"age": None, "sex": 0},
    {"age": 119, "sex": None},
    {"age": 0, "sex": 2},
]


def computed(folder: Path, values: NDArray[Any]) -> NDArray[np.float32]:
    """Probabilities float32 (n, classes), by onnxruntime from the file alone."""
    session = onnxruntime.InferenceSession(folder / ONNX, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    found: NDArray[np.float32] = session.run(["probabilities"], {given.name: values})[0]
    return found


def rows_of(text: str) -> tuple[list[dict[str, Any]], NDArray[np.float64]]:
    names = [one.name for one in parse_task_spec(text.encode()).data.features]  # type: ignore[union-attr]
    rows: list[dict[str, Any]] = [{name: row[name] for name in names} for row in ROWS]
    return rows, np.array([[np.nan if one is None else one for one in row.values()] for row in rows], np.float64)


@pytest.mark.parametrize("text", [TABLE, LOGISTIC, TWO, NUMBERS], ids=["mlp", "logistic", "two classes", "numbers"])
def test_rows_of_a_table_give_the_same_probabilities(tmp_path: Path, text: str) -> None:
    folder = written(tmp_path, text)
    assert add_onnx(folder) < 1e-6
    rows, values = rows_of(text)
    saved = read_model(folder)
    expected = Predictor(saved).predictions(examples_of(rows, saved.spec.data))
    np.testing.assert_allclose(computed(folder, values), expected, rtol=0, atol=1e-6)
    for at in range(len(rows)):
        np.testing.assert_allclose(computed(folder, values[[at]]), expected[[at]], rtol=0, atol=1e-6)


def test_named_values_and_gaps_are_inputs_of_the_graph(tmp_path: Path) -> None:
    folder, names = written(tmp_path, NAMED), ["no", "früher", "yes"]
    assert add_onnx(folder) < 1e-6
    rows = [{**row, "sex": None if row["sex"] is None else names[row["sex"]]} for row in ROWS]
    saved = read_model(folder)
    expected = Predictor(saved).predictions(examples_of(rows, saved.spec.data))
    np.testing.assert_allclose(computed(folder, rows_of(NAMED)[1]), expected, rtol=0, atol=1e-6)
    metadata = {one.key: one.value for one in onnx.load(folder / ONNX).metadata_props}
    assert json.loads(metadata["values"]) == {"sex": names}
    kinds = [
        sorted(set(one.model_dump(exclude_none=True)) - {"column", "subtract", "multiply"})
        for one in saved.index.inputs
    ]
    assert kinds == [["max", "min"], ["is_missing"], *[["code", "codes", "names"]] * 2]


def test_the_guides_lines_predict_from_the_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(tmp_path, TABLE)
    add_onnx(folder)
    folder.rename(tmp_path / "heart")
    monkeypatch.chdir(tmp_path)
    section = GUIDE.read_text().partition("### ONNX\n")[2].partition("\n### ")[0]
    (lines,) = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    exec(lines, {})  # noqa: S102  # the guide's own
    said = capsys.readouterr().out
    assert all(word in said for word in ("'task': 'table'", "maybe", "array([["))


def test_a_value_outside_its_range_counts_as_its_bound_and_a_foreign_code_as_missing(tmp_path: Path) -> None:
    folder = written(tmp_path, TABLE)
    add_onnx(folder)
    outside = computed(folder, np.array([[500.0, 9.0], [-3.0, 1.0]]))
    inside = computed(folder, np.array([[120.0, np.nan], [0.0, 1.0]]))
    np.testing.assert_array_equal(outside, inside)


@pytest.mark.parametrize(("channels", "bits"), [(1, 8), (3, 8), (1, 16), (5, 16)])
def test_images_give_the_same_probabilities(tmp_path: Path, channels: int, bits: Literal[8, 16]) -> None:
    folder = written(tmp_path, IMAGES.format(channels=f"{channels}\nbits = {bits}"))
    assert add_onnx(folder) < 1e-6
    generator, shape = np.random.default_rng(3), (5, channels, 16, 12)
    pixels: Pixels = generator.integers(0, 256, shape, dtype=np.uint8)
    if bits == 16:
        pixels = generator.integers(0, 65_536, shape, dtype=np.uint16)
    saved = read_model(folder)
    examples = ImageSet(pixels, np.zeros(5, np.int64))
    expected = Predictor(saved).predictions(examples)
    np.testing.assert_allclose(computed(folder, pixels), expected, rtol=0, atol=1e-6)


class Attention(nn.Module):
    """Reads the number of its rows, which the graph must not keep."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.last = nn.Linear(1, 8), nn.Linear(8, 3)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.last(self.layer(self.embed(rows.unsqueeze(2))).mean(dim=1))
        return logits


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.last = nn.GRU(1, 6, batch_first=True), nn.Linear(6, 3)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.last(self.layer(rows.unsqueeze(2))[0][:, -1])
        return logits


NORMED = nn.Sequential(nn.Linear(3, 5), nn.GroupNorm(1, 5), nn.SiLU(), nn.Linear(5, 3))


@pytest.mark.parametrize("module", [NORMED, Attention(), Recurrent()], ids=["normed", "attention", "recurrent"])
def test_a_program_gives_the_same_probabilities(tmp_path: Path, module: nn.Module) -> None:
    exported = consilium.export(module, torch.zeros(2, 3), tmp_path / "program")
    section = consilium.store_weights(exported.folder, artifacts=[tmp_path / "artifacts"])
    text = TABLE.replace(f"[model]\n{MLP}", section)
    library.offer(ArtifactStore(tmp_path / "artifacts"), parse_task_spec(text.encode()))
    model = parse_task_spec(text.encode()).model
    assert isinstance(model, ProgramSpec)
    folder = written(tmp_path, text, program=library.files_of(ArtifactStore(tmp_path / "artifacts"), model))
    assert add_onnx(folder) < 1e-6
    rows, values = rows_of(text)
    saved = read_model(folder)
    expected = Predictor(saved).predictions(examples_of(rows, saved.spec.data))
    np.testing.assert_allclose(computed(folder, values), expected, rtol=0, atol=1e-6)


def test_the_file_says_its_model_and_nothing_of_the_machine(tmp_path: Path) -> None:
    folder = written(tmp_path, TABLE)
    add_onnx(folder)
    raw = (folder / ONNX).read_bytes()
    model = onnx.load(folder / ONNX)
    onnx.checker.check_model(model, full_check=True)
    index = read_model(folder).index
    assert {one.key: one.value for one in model.metadata_props} == {
        "task": "table", "sha256": index.sha256, "classes": '["no", "maybe", "yes"]', "columns": '["age", "sex"]',
        "answers": '["probability_no", "probability_maybe", "probability_yes"]',
    }  # fmt: skip
    assert b".py" not in raw
    assert str(Path.cwd()).encode() not in raw
    add_onnx(folder)
    assert (folder / ONNX).read_bytes() == raw


def test_the_file_is_a_part_of_the_folder_until_another_model_replaces_it(tmp_path: Path) -> None:
    folder = written(tmp_path, TABLE)
    add_onnx(folder)
    read_model(folder)
    before = (folder / ONNX).read_bytes()
    (folder / ONNX).write_bytes(before + b"\0")
    with raises_fault(OperatorError, "ModelFolderInvalid", "model.onnx: its SHA-256"):
        read_model(folder)
    written(tmp_path, TABLE)
    assert not (folder / ONNX).exists()
    assert ONNX not in json.loads((folder / INDEX).read_text())["files"]
    assert {one.name for one in folder.iterdir()} == {*read_model(folder).index.files, INDEX}


def test_another_result_than_pytorchs_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an exporter would that scales a column otherwise."""
    folder = written(tmp_path, TABLE)
    scaled = onnx_file._OfTable.forward
    monkeypatch.setattr(onnx_file._OfTable, "forward", lambda self, rows: scaled(self, rows) * 1.01)
    with raises_fault(OperatorError, "OnnxDiffers", r"differs by \d\.\de-0\d .* at most 1e-05"):
        add_onnx(folder)
    assert not (folder / ONNX).exists()
    read_model(folder)


def test_a_model_of_texts_has_no_such_form(tmp_path: Path) -> None:
    folder = written(tmp_path, OF_TEXTS)
    with raises_fault(OperatorError, "OnnxImpossible", "it reads texts"):
        consilium.export_onnx(folder)
    assert not (folder / ONNX).exists()


def test_without_its_packages_it_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_file, "PACKAGES", ("onnx", "no_such_package"))
    with raises_fault(OperatorError, "OnnxNotInstalled", r"lacks no_such_package: pip install 'consilium\[onnx\]'"):
        add_onnx(written(tmp_path, TABLE))


def test_a_hospitals_own_tensors_complete_the_model(tmp_path: Path) -> None:
    text, local = TABLE + '[training]\nlocal = ["2.weight", "2.bias"]\n', tmp_path / "local.safetensors"
    folder, spec = written(tmp_path, text), parse_task_spec(text.encode())
    with raises_fault(OperatorError, "LocalTensorsMissing"):
        add_onnx(folder)
    ones = named_tensors(spec, np.ones(spec.parameters, np.float32))
    local.write_bytes(save({name: ones[name] for name in spec.training.local}))
    assert consilium.export_onnx(folder, local=local) < 1e-6
