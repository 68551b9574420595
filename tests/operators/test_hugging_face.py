"""A model in the Hub's layout: its card says licence and metrics, and other libraries compute the same from it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import consilium
import numpy as np
import pytest
import torch
import yaml
from consilium_cli.main import app
from consilium_client.data.text.reader import TextSet
from consilium_client.models import model_of
from consilium_client.models.lora import encoder_folder
from consilium_operators.errors import OperatorError
from consilium_operators.hugging_face import HUB, export_hugging_face
from consilium_operators.measuring import Measured, Quality
from consilium_operators.model_folder import INDEX, read_model
from model_driver import TABLE, written
from raised_faults import raises_fault
from safetensors.numpy import load_file
from typer.testing import CliRunner

TEXTS = ("a text", "another one")  # those of the card
OF_TEXTS = """
name = "texts"
[data]
kind = "text"
label = "genre"
classes = [{classes}]
[model]
name = "{family}"
max_tokens = 12
"""
LOWRANK = '[update.codec]\nname = "lowrank"\nrank = 2\n'


def parts(folder: Path) -> tuple[dict[str, Any], str]:
    """README.md's front matter, and its text."""
    _, front, text = (folder / "README.md").read_text().split("---\n", 2)
    return yaml.safe_load(front), text


# peft 0.21 asks transformers 5.23 by an older name.
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
@pytest.mark.parametrize("classes", ['"news", "mail"', '"news", "mail", "law"'], ids=["two classes", "three"])
@pytest.mark.parametrize("family", ["lora", "encoder"])
def test_peft_and_transformers_compute_the_same_logits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str, classes: str
) -> None:
    """By the program that the card shows, in the folder."""
    text = OF_TEXTS.format(family=family, classes=classes) + (LOWRANK if family == "encoder" else "")
    folder, output = written(tmp_path, text), tmp_path / "hub"
    consilium.export_hugging_face(folder, output, licence="mit")
    front, card = parts(output)
    assert front["license"] == "mit"
    assert front["base_model"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert front["library_name"] == {"lora": "peft", "encoder": "transformers"}[family]
    (program,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    saved = read_model(folder)
    model = model_of(saved.spec)
    examples = TextSet(TEXTS, np.zeros(2, np.int64))
    with torch.no_grad():
        tokens = torch.from_numpy(model.inputs(examples, saved.sums))
        expected = model.module(saved.parameters).eval()(tokens)
    (here,) = HUB
    monkeypatch.chdir(output)
    known: dict[str, Any] = {}
    exec(program.replace(HUB[here], os.fspath(encoder_folder(here))), known)  # noqa: S102 (that program)
    np.testing.assert_allclose(known["logits"], expected, rtol=0, atol=1e-5)


def test_a_model_of_a_table_stays_one_for_this_command(tmp_path: Path) -> None:
    folder, output = written(tmp_path, TABLE), tmp_path / "hub"
    consilium.export_onnx(folder)
    export_hugging_face(folder, output)
    front, card = parts(output)
    assert front == {
        "license": "unknown", "tags": ["consilium", "federated-learning", "mlp"],
        "pipeline_tag": "tabular-classification", "library_name": "safetensors",
    }  # fmt: skip
    assert "# a card" in card
    assert "model.onnx needs onnxruntime alone" in card
    assert json.loads((output / "config.json").read_text())["id2label"] == {"0": "no", "1": "maybe", "2": "yes"}
    assert read_model(output).index == read_model(folder).index
    assert load_file(output / "model.safetensors").keys() == {"0.weight", "0.bias", "2.weight", "2.bias"}


def test_measured_metrics_are_the_hubs(tmp_path: Path) -> None:
    folder, output = written(tmp_path, TABLE), tmp_path / "hub"
    qualities = [Quality(round=at, accuracy=0.5 + at / 4, auc=None, macro_f1=0.7, log_loss=0.6) for at in (0, 1)]
    measured = Measured(rows=90, sources=1, rounds=tuple(qualities))
    index = read_model(folder).index.model_copy(update={"measured": measured})
    (folder / INDEX).write_bytes(index.written)
    export_hugging_face(folder, output)
    ((model,),) = [parts(output)[0]["model-index"]]
    assert model["results"][0]["metrics"] == [
        {"type": "accuracy", "value": 0.75}, {"type": "f1", "value": 0.7}, {"type": "log_loss", "value": 0.6},
    ]  # fmt: skip


def test_the_commands_write_both_forms(tmp_path: Path) -> None:
    folder, output = written(tmp_path, TABLE), tmp_path / "hub"
    for command in (["export-onnx"], ["export-hugging-face", "--output", str(output), "--license", "mit"]):
        ran = CliRunner().invoke(app, ["operator", command[0], str(folder), *command[1:]])
        assert ran.exit_code == 0, ran.output
    assert (output / "model.onnx").read_bytes() == (folder / "model.onnx").read_bytes()
    assert parts(output)[0]["license"] == "mit"


def test_a_folder_is_never_written_over(tmp_path: Path) -> None:
    folder = written(tmp_path, TABLE)
    with raises_fault(OperatorError, "OutputTaken"):
        export_hugging_face(folder, folder)
