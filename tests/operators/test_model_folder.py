"""A model's folder: tampered or half-written ones are refused, and a mapping travels as it was written."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.data.mapping import parse_mapping
from consilium_client.models.weights import named_tensors
from consilium_operators.errors import OperatorError
from consilium_operators.model_folder import CARD, INDEX, MODEL, PROOF, read_model
from consilium_operators.prediction import Predictor
from model_driver import TABLE, written
from raised_faults import raises_fault
from safetensors.numpy import save

SPEC = parse_task_spec(TABLE.encode())


def resealed(folder: Path, name: str, raw: bytes, **index: Any) -> None:
    """A file replaced by one who also corrects its hash."""
    (folder / name).write_bytes(raw)
    known = json.loads((folder / INDEX).read_text())
    known["files"][name] = hashlib.sha256(raw).hexdigest()
    (folder / INDEX).write_text(json.dumps(known | index))


def other_tensors(change: Callable[[dict[str, np.ndarray[Any, Any]]], object]) -> Callable[[Path], None]:
    def tamper(folder: Path) -> None:
        tensors = dict(read_model(folder).tensors)
        tensors = {name: one.copy() for name, one in tensors.items()}
        change(tensors)
        resealed(folder, MODEL, save(tensors))

    return tamper


def index_with(**changes: Any) -> Callable[[Path], None]:
    def tamper(folder: Path) -> None:
        (folder / INDEX).write_text(json.dumps(json.loads((folder / INDEX).read_text()) | changes))

    return tamper


def finite_to_nan(tensors: dict[str, Any]) -> None:
    tensors["0.bias"][0] = np.nan


def one_larger(tensors: dict[str, Any]) -> None:
    tensors["0.bias"][0] += 1


def wider_range(folder: Path) -> None:
    known = json.loads((folder / INDEX).read_text())
    known["inputs"][0]["max"] = 1_000.0
    (folder / INDEX).write_text(json.dumps(known))


TAMPERED: list[tuple[Callable[[Path], Any], str]] = [
    (lambda folder: resealed(folder, MODEL, pickle.dumps({"0.weight": 1})), "not a safetensors file"),
    (lambda folder: resealed(folder, MODEL, b""), "not a safetensors file"),
    (other_tensors(lambda tensors: tensors.pop("0.bias")), "names, shapes and types"),
    (other_tensors(lambda t: t.update({"0.bias": t["0.bias"].astype(np.float64)})), "names, shapes and types"),
    (other_tensors(lambda t: t.update({"0.weight": t["0.weight"].T.copy()})), "names, shapes and types"),
    (other_tensors(finite_to_nan), "not finite"),
    (other_tensors(one_larger), "digest"),
    (index_with(task_file=TABLE.replace("hidden = [4]", "hidden = [5]")), "spec_hash"),
    (index_with(statistics=[1.0]), "statistics"),
    (index_with(statistics="none"), "statistics"),
    (index_with(more=1), "more"),
    (index_with(classes=["no", "yes", "maybe"]), "do not follow"),
    (index_with(inputs=[]), "do not follow"),
    (wider_range, "do not follow"),
    (index_with(mapping={"columns": {"weight": "Gewicht"}}), "the task has no column weight"),
    (index_with(mapping={"columns": {"age": {"absent": True, "scale": 2.0}}}), "absent column"),
    (index_with(mapping={"query": {"sql": "SELECT * FROM person"}}), "only the owner of the data may write"),
    (index_with(format="consilium-model-2"), "format"),
    (index_with(files={}), "was changed"),
    (lambda folder: (folder / INDEX).write_text("{}"), "Field required"),
    (lambda folder: (folder / INDEX).write_bytes(b"\xff"), INDEX),
    (lambda folder: (folder / PROOF).unlink(), "cannot be read"),
    (lambda folder: (folder / CARD).write_text("# another card"), "was changed"),
]


@pytest.mark.parametrize(("tamper", "words"), TAMPERED, ids=range(len(TAMPERED)))
def test_a_folder_that_is_not_what_it_says_is_refused(
    tmp_path: Path, tamper: Callable[[Path], Any], words: str
) -> None:
    folder = written(tmp_path, TABLE)
    read_model(folder)
    tamper(folder)
    with raises_fault(OperatorError, "ModelFolderInvalid", words):
        read_model(folder)


def test_a_mapping_travels_with_the_model_as_it_was_written(tmp_path: Path) -> None:
    text = '[file]\nmissing = ["k.A."]\n[columns]\nage = "Alter"\nsex = { absent = true }\n'
    mapping = parse_mapping(text.encode(), SPEC.data)
    held = read_model(written(tmp_path, TABLE, mapping)).index.mapping
    assert held == mapping
    assert held is not None
    assert held.columns["sex"].model_fields_set == {"absent"}


def test_local_tensors_are_left_out_and_a_hospitals_own_complete_the_model(tmp_path: Path) -> None:
    text, local = TABLE + '[training]\nlocal = ["2.weight", "2.bias"]\n', tmp_path / "local.safetensors"
    saved, spec = read_model(written(tmp_path, text)), parse_task_spec(text.encode())
    assert list(saved.tensors) == ["0.weight", "0.bias"]
    with raises_fault(OperatorError, "LocalTensorsMissing", r"leaves out 2\.weight, 2\.bias, .*--local"):
        Predictor(saved)
    ones = named_tensors(spec, np.ones(spec.parameters, np.float32))
    own = {name: ones[name] for name in spec.training.local}
    local.write_bytes(save(own))
    whole = saved.with_local(local)
    shared = spec.coordinates
    assert (whole.parameters[shared:] == 1).all()
    assert whole.parameters[:shared].tobytes() == b"".join(one.tobytes() for one in saved.tensors.values())
    Predictor(whole)
    for wrong in ({"2.bias": own["2.bias"]}, {**own, "0.bias": saved.tensors["0.bias"]}, dict(saved.tensors)):
        local.write_bytes(save(wrong))
        with raises_fault(OperatorError, "ModelFolderInvalid", "names, shapes and types"):
            saved.with_local(local)


def test_half_a_folder_is_never_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full before the last file."""
    write = Path.write_bytes

    def failing(path: Path, raw: bytes) -> int:
        if path.name == INDEX:
            raise OSError(28, "No space left on device")
        return write(path, raw)

    monkeypatch.setattr(Path, "write_bytes", failing)
    with pytest.raises(OSError, match="No space"):
        written(tmp_path, TABLE)
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    read_model(written(tmp_path, TABLE))
