"""A finished language model in use: its evaluation, its ONNX file, its folder for the Hub; and it predicts no class."""

from __future__ import annotations

import json
from pathlib import Path

import consilium
import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.evaluations.measures import Group
from consilium_chain.tasks.model_specs import ProgramSpec
from consilium_client.data.text.reader import TextSet
from consilium_client.models import model_of
from consilium_client.programs import library
from consilium_client.programs.confined import computing_here
from consilium_core.kinds import of_kind
from consilium_operators.errors import OperatorError
from consilium_operators.model_folder import PROGRAM_TOKENIZER, read_model
from model_driver import written
from raised_faults import raises_fault
from text_programs import CLASSES, CORPUS, LENGTH, exported_texts, letters, text_file, text_spec

TEXTS = [f"{'no ' * (at % 3)}fever on day {at}" for at in range(24)]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported_texts(tmp_path_factory.mktemp("texts"))


def finished(programs: Path, folder: Path, data: str = CORPUS) -> Path:
    spec = of_kind(ProgramSpec, text_spec(programs, data).model)
    files = library.files_of(ArtifactStore(programs / "artifacts"), spec)
    return written(folder, text_file(programs, data), program=files)


def test_its_evaluation_counts_tokens_and_draws_texts(programs: Path, tmp_path: Path) -> None:
    model = consilium.Model.read(finished(programs, tmp_path))
    pd.DataFrame({"text": TEXTS, "site": ["a", "b"] * 12}).to_csv(tmp_path / "texts.csv", index=False)
    with computing_here():
        report = model.evaluate(tmp_path / "texts.csv", site_column="site").report
        saved = read_model(tmp_path / "model")
        own = model_of(saved.spec)
        tokens = own.inputs(library_texts(), saved.sums)
        found = own.evaluate(saved.parameters, tokens)
    whole = of_kind(Group, report.all_rows)
    assert set(whole.measures) == {"log_loss", "accuracy", "perplexity"}
    loss = whole.measures["log_loss"]
    assert loss.value == pytest.approx(float(-np.log(found.predictions[:, 0]).mean()))
    bounds = [loss.low, loss.value, loss.high]
    assert None not in bounds
    assert bounds == sorted(bounds)  # type: ignore[type-var]
    assert (whole.rows, [one.rows for one in report.sites]) == (24, [12, 12])
    assert whole.classes == {"text": 24}
    assert report.calibration == ()


def library_texts() -> TextSet:
    return TextSet(tuple(TEXTS), np.zeros(len(TEXTS), np.int64))


def test_it_predicts_no_class(programs: Path, tmp_path: Path) -> None:
    model = consilium.Model.read(finished(programs, tmp_path))
    pd.DataFrame({"text": TEXTS}).to_csv(tmp_path / "texts.csv", index=False)
    with raises_fault(OperatorError, "ForetellsTokens", "language model"):
        model.predict(tmp_path / "texts.csv")
    with raises_fault(OperatorError, "ForetellsTokens"):
        model.serve(0)


@pytest.mark.parametrize("data", [CORPUS, CLASSES])
def test_its_onnx_file_computes_as_pytorch(programs: Path, tmp_path: Path, data: str) -> None:
    folder = finished(programs, tmp_path, data)
    with computing_here():
        assert consilium.export_onnx(folder) < 1e-5
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    tokens = np.array([letters().encode("a fever on").ids + [0] * (LENGTH - 10)])
    (found,) = session.run(None, {"tokens": tokens})
    saved = read_model(folder)
    with torch.no_grad():
        expected = torch.softmax(model_of(saved.spec).module(saved.parameters).eval()(torch.from_numpy(tokens)), -1)
    assert found.shape == ((1, LENGTH, 257) if data == CORPUS else (1, 3))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_its_folder_is_whole_and_goes_to_the_hub(programs: Path, tmp_path: Path) -> None:
    folder = finished(programs, tmp_path)
    assert PROGRAM_TOKENIZER in read_model(folder).index.files
    consilium.export_hugging_face(folder, tmp_path / "hub")
    assert "text-generation" in (tmp_path / "hub" / "README.md").read_text()
    assert json.loads((tmp_path / "hub" / PROGRAM_TOKENIZER).read_text())["padding"]["pad_id"] == 0
    (folder / PROGRAM_TOKENIZER).write_bytes(b"{}")
    with raises_fault(OperatorError, "ModelFolderInvalid"):
        read_model(folder)
