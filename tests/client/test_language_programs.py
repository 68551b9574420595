"""Programs of texts: their tokenizer, language models with their losses and metrics, and classes of texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import consilium
import numpy as np
import pytest
import torch
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.tasks.model_specs import ProgramSpec
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.kinds import kind_of, read_examples
from consilium_client.data.text.reader import TextSet
from consilium_client.errors import DataError, ModelError
from consilium_client.models import model_of, next_token
from consilium_client.models.program import OfProgram
from consilium_client.models.training import learn, train
from consilium_client.privacy.dp_sgd import Mechanism, learn_privately
from consilium_client.programs import confined, library
from consilium_client.programs.confined import computing_here
from consilium_client.programs.errors import ProgramError
from consilium_client.programs.library import Files
from consilium_core.kinds import of_kind
from raised_faults import raises_fault
from text_programs import CLASSES, CORPUS, EXAMPLE, LENGTH, Classes, exported_texts, letters, llama, text_spec
from tokenizers import pre_tokenizers
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

TEXTS = ("a fever and a cough", "fever", "no fever, no cough", "a", "cough at night; a fever by day")
FEATURES: list[dict[str, Any]] = [{"name": "age", "min": 0.0, "max": 1.0}]


class Seeing(nn.Module):
    """Each token's logits depend on all tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.last = nn.Embedding(257, 8), nn.Linear(8, 257)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        found = self.layers(tokens)
        logits: torch.Tensor = self.last(found + found.mean(dim=1, keepdim=True))
        return logits


@pytest.fixture(scope="module")
def folder(folder: Path) -> Path:
    """Both programs, with the store."""
    return exported_texts(folder)


def texts_of(data: str = CORPUS) -> TextSet:
    return TextSet(TEXTS, np.zeros(5, np.int64) if data == CORPUS else np.array([1, 1, 0, 2, 1]))


def inputs_of(spec: TaskSpec, data: str = CORPUS) -> Any:
    return model_of(spec).inputs(texts_of(data), np.array([5.0]))


# --- tokens ----------------------------------------------------------------------------------------------------------


def test_tokens_are_the_same_in_the_confined_process_and_by_the_library(folder: Path) -> None:
    spec = text_spec(folder)
    found = inputs_of(spec)
    tokenizer = letters()
    for text, row in zip(TEXTS, found, strict=True):
        own = tokenizer.encode(text).ids[:LENGTH]
        assert row.tolist() == own + [0] * (LENGTH - len(own))
    with computing_here():
        np.testing.assert_array_equal(inputs_of(spec), found)


@pytest.mark.parametrize(
    "raw", [b"{}", b"no json", b"\xff", b'{"version":"1.0","model":{"type":"BPE","vocab":{},"merges":["a"]}}', b""]
)
def test_a_foreign_tokenizer_is_refused_by_name(folder: Path, raw: bytes) -> None:
    with computing_here():  # the process tells errors by name, as other tests hold
        with_other_tokenizer(folder, raw, "TokenizerUnusable")


def test_a_tokenizer_that_never_ends_costs_a_call_and_not_the_node(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pattern tries each way to part a text of one letter."""
    made = letters()
    made.pre_tokenizer = pre_tokenizers.Split(pattern_of("(a+)+$|(a|aa)+b"), "isolated")
    monkeypatch.setattr(confined, "SPARE_SECONDS", -58.0)
    raw = made.to_str().encode()
    try:
        with_other_tokenizer(folder, raw, "ProgramEnded", ("a" * 60_000 + "c",))
    finally:
        confined.end_all()


def pattern_of(text: str) -> Any:
    from tokenizers import Regex

    return Regex(text)


def with_other_tokenizer(folder: Path, raw: bytes, error: str, texts: tuple[str, ...] = TEXTS) -> None:
    store = ArtifactStore(folder / "artifacts")
    spec = text_spec(folder)
    model = of_kind(ProgramSpec, spec.model).model_copy(update={"tokenizer": [store.put_file(raw or b" ").hex()]})
    other = spec.model_copy(update={"model": model})
    library.offer(store, other)
    with raises_fault(ProgramError, error):
        model_of(other).inputs(TextSet(texts, np.zeros(len(texts), np.int64)), np.array([1.0]))


# --- a language model ------------------------------------------------------------------------------------------------


def test_losses_and_hits_are_of_all_next_tokens_as_by_plain_torch(folder: Path) -> None:
    spec = text_spec(folder)
    model, tokens = model_of(spec), inputs_of(spec)
    found = model.evaluate(model.initial(0), tokens)
    losses, hits = list[float](), list[bool]()
    module = llama().double().eval()
    with torch.no_grad():
        for row in tokens:
            own = torch.from_numpy(row[row > 0])[None]
            logits = module(own).logits[0, :-1]
            losses += nn.functional.cross_entropy(logits, own[0, 1:], reduction="none").tolist()
            hits += (logits.argmax(dim=1) == own[0, 1:]).tolist()
    values = model.objective.measured(*found.answers(texts_of().labels))
    assert values["log_loss"] == pytest.approx(np.mean(losses), abs=1e-7)  # its rotations are in single precision
    assert values["accuracy"] == pytest.approx(np.mean(hits))
    assert values["perplexity"] == pytest.approx(np.exp(np.mean(losses)), rel=1e-6)
    assert values.keys() == {"log_loss", "accuracy", "perplexity"}
    assert found.rows is not None
    assert np.bincount(found.rows, minlength=5).tolist() == [LENGTH - 1, 4, LENGTH - 1, 0, LENGTH - 1]
    assert -model.objective.measures["log_loss"].worth(*found.answers(texts_of().labels)) == values["log_loss"]


def test_training_is_plain_torchs_on_the_same_batches_to_float_rounding(folder: Path) -> None:
    spec = text_spec(folder, training='optimizer = "sgd"\nepochs = 4')
    model, tokens = model_of(spec), inputs_of(spec)
    base = model.initial(0)
    found = train(spec, base, tokens, texts_of().labels, 3)
    module = llama()
    trained = [one for one in module.parameters() if one.requires_grad]
    optimizer = torch.optim.SGD(trained, 0.5)
    targets = torch.from_numpy(next_token.targets_of(tokens, 0))
    for _ in range(4):  # all rows are in one batch, so their order adds alone
        optimizer.zero_grad()
        logits = module(torch.from_numpy(tokens)).logits
        nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=next_token.NONE).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    expected = torch.cat([one.detach().flatten() for one in trained]).numpy()
    assert np.abs(expected - base).max() > 1e-3
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("update", ["bits = 10", '[update.codec]\nname = "hash"\nbuckets = 40'])
@pytest.mark.parametrize("data", [CORPUS, CLASSES])
def test_the_confined_process_learns_the_same_bits(folder: Path, data: str, update: str) -> None:
    spec = text_spec(folder, data, update=update)
    given = model_of(spec).initial(0), inputs_of(spec, data), texts_of(data).labels
    found = learn(spec, spec.basis(bytes(32)), *given, 1)
    with computing_here():
        np.testing.assert_array_equal(learn(spec, spec.basis(bytes(32)), *given, 1), found)
    assert np.abs(found).max() > 0


def test_a_text_counts_once_in_a_private_task_however_long_it_is() -> None:
    """A sum of losses has each row's mean, and so has its gradient."""
    logits = torch.randn(2, 6, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    targets = torch.tensor([[1, 2, 3, 4, 0, 1], [2, -100, -100, -100, -100, -100]])
    rows = [nn.functional.cross_entropy(logits[at][targets[at] >= 0], targets[at][targets[at] >= 0]) for at in range(2)]
    torch.testing.assert_close(next_token.loss(logits, targets, "sum"), rows[0] + rows[1])
    empty = torch.full((2, 6), next_token.NONE)
    assert float(next_token.loss(logits.detach(), empty, "sum")) == 0
    assert float(next_token.loss(logits.detach(), empty, "mean")) == 0


def test_a_private_task_trains_a_language_model_row_by_row(folder: Path) -> None:
    text = "[privacy]\nepsilon = 8.0\nmax_grad_norm = 1.0\n\n[update]\n"
    spec = text_spec(folder, update=f"bits = 10\n{text.removesuffix('[update]' + chr(10))}")
    model = model_of(spec)
    model.require_apart()
    assert spec.privacy is not None
    found = learn_privately(
        spec, spec.privacy, Mechanism(1.0, 0.5, 5), spec.basis(bytes(32)), model.initial(0), inputs_of(spec),
        texts_of().labels,
    )  # fmt: skip
    assert found.shape == (spec.coordinates,)
    assert np.isfinite(found).all()


def test_a_model_that_sees_the_next_token_is_not_exported(tmp_path: Path) -> None:
    with raises_fault(ProgramError, "NotExportable", "later tokens"):
        consilium.export(Seeing(), EXAMPLE, tmp_path / "seeing", tokenizer=letters())


def test_models_of_transformers_export_as_they_come(tmp_path: Path) -> None:
    """By default they keep a cache of earlier tokens."""
    config = GPT2Config(vocab_size=257, n_embd=16, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=1)
    module = GPT2LMHeadModel(config)
    found = consilium.export(module, EXAMPLE, tmp_path / "gpt2", outputs="logits", tokenizer=letters())
    assert found.parameters == sum(one.numel() for one in module.parameters())
    assert config.use_cache


@pytest.mark.parametrize("form", ["file", "transformers"])
def test_a_tokenizer_comes_as_a_file_or_of_transformers(folder: Path, tmp_path: Path, form: str) -> None:
    letters().save(str(tmp_path / "tokenizer.json"))
    given: Any = str(tmp_path / "tokenizer.json")
    if form == "transformers":
        given = PreTrainedTokenizerFast(tokenizer_file=given, pad_token="<none>")
    consilium.export(Classes(), EXAMPLE, tmp_path / form, tokenizer=given)
    assert json.loads((tmp_path / form / "tokenizer.json").read_text())["padding"]["pad_id"] == 0


def test_a_tokenizer_with_more_tokens_than_the_model_is_not_exported(tmp_path: Path) -> None:
    made = letters()
    made.add_tokens(["fever"])
    with raises_fault(ProgramError, "NotExportable", "258 tokens"):
        consilium.export(Classes(), EXAMPLE, tmp_path / "few", tokenizer=made)
    with raises_fault(ProgramError, "NotExportable", "rows of tokens"):
        consilium.export(nn.Linear(3, 1), torch.zeros(2, 3), tmp_path / "none", tokenizer=letters())


# --- task files and data ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda spec: spec["judging"].update(metric="auc"), "auc has no meaning"),
        (
            lambda spec: spec["training"].update(class_weights="balanced") or spec.update(statistics="exact"),
            "no classes",
        ),
        (lambda spec: spec["model"].update(tokenizer=[]), "needs a tokenizer"),
        (lambda spec: spec.update(model={"name": "lora"}), "takes data of kind text"),
        (lambda spec: spec.update(data={"label": "y", "classes": ["a", "b"], "features": FEATURES}), "has no texts"),
    ],
)
def test_a_task_file_that_does_not_fit_is_refused(folder: Path, change: Callable[[Any], Any], why: str) -> None:
    spec = text_spec(folder).model_dump()
    change(spec)
    with pytest.raises(ValueError, match=why):
        TaskSpec.model_validate(spec)


def test_a_program_of_another_shape_is_refused(folder: Path) -> None:
    language, classes = text_spec(folder), text_spec(folder, CLASSES)
    for spec, model in ((language, classes.model), (classes, language.model)):
        with raises_fault(ModelError, "ShapeMismatch", "logits"):
            model_of(spec.model_copy(update={"model": model}))


@pytest.mark.parametrize("form", ["csv", "folder"])
def test_a_corpus_is_a_column_of_texts_or_a_folder_of_files(folder: Path, tmp_path: Path, form: str) -> None:
    spec = text_spec(folder)
    path = tmp_path / form
    if form == "csv":
        path.write_text("text\n" + "\n".join(f'"{text}"' for text in TEXTS))
    else:
        (path / "2024").mkdir(parents=True)
        for at, text in enumerate(TEXTS):
            (path / "2024" / f"{at}.txt").write_text(text)
    found = read_examples(path, spec.data, allow_one_class=False)
    assert found.rows == 5
    kind = kind_of(spec.data)
    profile = kind.profile(kind.read(path, spec.data, None), spec)
    assert (profile.rows, profile.answers) == (5, (("text", 5),))
    assert not any("one class" in finding.concern for finding in profile.findings)
    with raises_fault(DataError, "HeaderMissing"):
        (tmp_path / "other.csv").write_text("words\na\n")
        read_examples(tmp_path / "other.csv", spec.data)


def test_files_of_a_program_hash_with_their_tokenizer(folder: Path) -> None:
    spec = of_kind(ProgramSpec, text_spec(folder).model)
    files = library.files_of(ArtifactStore(folder / "artifacts"), spec)
    assert files.digests == spec.digests
    altered = Files(files.graph, files.weights, files.frozen, files.tokenizer.replace(b"<none>", b"<nine>"))
    with raises_fault(ProgramError, "ProgramMissing"):
        library.keep(altered, spec)
    assert of_kind(OfProgram, model_of(text_spec(folder))).input_shape == (LENGTH,)


def test_the_library_may_be_absent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    with raises_fault(ModelError, "ModelNotInstalled", "tokenizers"):
        model_of(text_spec(folder)).require_installed()


def test_a_task_file_with_a_token_beyond_all_is_refused(folder: Path) -> None:
    spec = text_spec(folder).model_dump_json()
    with pytest.raises(ValueError, match="padding"):
        TaskSpec.model_validate_json(spec.replace('"padding":0', f'"padding":{1 << 31}'))
