"""An ensemble's folder, its answers, and its one graph."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import consilium
import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from consilium_chain.ledger.ensembles import ENSEMBLES
from consilium_chain.tasks.data_schemas import CorpusSchema
from consilium_cli.main import app
from consilium_operators.ensembles import onnx_graph
from consilium_operators.ensembles.errors import EnsembleError
from consilium_operators.ensembles.exporting import export_ensemble
from consilium_operators.ensembles.folder import ENSEMBLE, read_ensemble
from consilium_operators.ensembles.opening import opened
from consilium_operators.ensembles.predictor import EnsemblePredictor
from consilium_operators.ensembles.sellable import require_ensemble_sellable
from consilium_operators.errors import OperatorError
from consilium_operators.market.errors import SaleError
from consilium_operators.model_folder import CARD, INDEX, ONNX, SavedModel, read_model
from consilium_operators.onnx_file import drawn, onnx_of
from consilium_operators.prediction import Predictor, requested
from ensemble_folder_driver import CHAIN, NUMBER, SHARES, TASKS, TEXTS, chain_with, exported, members, of_gains
from model_driver import TABLE, written
from raised_faults import raises_fault
from task_files import AGE, AMOUNT, EACH, TIMES, X_RAYS, asking
from typer.testing import CliRunner

MLP = 'name = "mlp"\nhidden = [4]\n'
LOGISTIC = TABLE.replace(MLP, 'name = "logistic"\n')
WIDE = TABLE.replace("[4]", "[16, 8]")
SERIES = """
name = "stays"
[data]
kind = "series"
label = "died"
classes = ["no", "yes"]
steps = 6
[[data.features]]
name = "pulse"
min = 20
max = 200
[[data.features]]
name = "spo2"
min = 50
max = 100
[model]
"""
TABLES = [LOGISTIC, TABLE, WIDE]
KINDS = {
    "tables": TABLES,
    "images": [X_RAYS, X_RAYS.replace("[4]", "[4, 8]")],
    "series": [SERIES + MLP, SERIES + 'name = "tcn"\nchannels = [4]\n'],
    "amounts": [asking(AMOUNT), asking(AMOUNT, MLP)],
    "times": [asking(TIMES), asking(TIMES, MLP)],
    "several": [asking(EACH, MLP), asking(EACH)],
}
BODY = json.dumps({"rows": [{"age": 61.5, "sex": 1}, {"age": None, "sex": 0}, {"age": 0, "sex": None}]}).encode()
FEATURE = AGE.replace("age", "height")
GAINS = (30_000, 10_000, 60_000)


# --- answers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", KINDS.values(), ids=KINDS.keys())
def test_answers_are_the_weighted_mean_and_the_graph_gives_the_same(tmp_path: Path, texts: list[str]) -> None:
    gains = GAINS[: len(texts)]
    folder = exported(tmp_path, texts, gains, with_onnx=True)
    predictor = opened(folder, clamp=True)
    assert isinstance(predictor, EnsemblePredictor)
    examples, given = drawn(predictor.schema)  # type: ignore[arg-type]
    found = predictor.answered(examples)
    alone = [Predictor(one, clamp=True).evaluation(examples) for one in predictor.saved.models]
    expected = np.average([one.predictions for one in alone], axis=0, weights=gains)
    np.testing.assert_allclose(found.predictions, expected, rtol=1e-12)
    assert [one.shape for one in found.activations] == [one.activations.shape for one in alone]
    session = onnxruntime.InferenceSession(folder / ONNX, providers=["CPUExecutionProvider"])
    (name,) = (one.name for one in session.get_inputs())
    for part in (slice(0, 1), slice(1, None)):
        (computed,) = session.run(None, {name: given[part]})
        assert computed.dtype == np.float32
        sizes = np.maximum(np.abs(expected[part]).max(axis=0), 1)
        assert (np.abs(computed - expected[part]) / sizes).max() < 1e-5


def test_the_graph_says_its_ensemble_and_is_valid(tmp_path: Path) -> None:
    folder = exported(tmp_path, TABLES, GAINS, with_onnx=True)
    model = onnx.load(folder / ONNX)
    onnx.checker.check_model(model, full_check=True)
    found = {one.key: one.value for one in model.metadata_props}
    saved = read_ensemble(folder)
    assert (found["ensemble"], found["sha256"]) == (str(NUMBER), saved.index.sha256)
    assert [one["gain"] for one in json.loads(found["members"])] == list(GAINS)
    assert json.loads(found["columns"]) == ["age", "sex"]
    assert str(tmp_path).encode() not in (folder / ONNX).read_bytes()


def test_a_graph_that_differs_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mean = onnx_graph._add_mean
    monkeypatch.setattr(
        onnx_graph, "_add_mean", lambda graph, outputs, weights, name: mean(graph, outputs, weights[::-1], name)
    )
    with raises_fault(OperatorError, "OnnxDiffers"):
        exported(tmp_path, TABLES, GAINS, with_onnx=True)
    assert not (tmp_path / "ensemble").exists()


def test_texts_have_no_graph(tmp_path: Path) -> None:
    with raises_fault(EnsembleError, "GraphImpossible", "its members read texts.*pass --no-onnx"):
        exported(tmp_path, TEXTS, (1, 1), with_onnx=True)


def test_a_member_without_a_graph_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of(saved: SavedModel) -> tuple[bytes, float]:
        if saved.index.task == 2:
            raise OperatorError("OnnxImpossible", why="it is a plug-in")
        return onnx_of(saved)

    monkeypatch.setattr(onnx_graph, "onnx_of", of)
    with raises_fault(EnsembleError, "GraphImpossible", "task 2 has none: it is a plug-in: pass --no-onnx"):
        exported(tmp_path, TABLES[:2], (1, 1), with_onnx=True)
    monkeypatch.setattr(onnx_graph, "onnx_of", onnx_of)
    monkeypatch.setattr(onnx_graph, "MOST_BYTES", 1_000)
    with raises_fault(EnsembleError, "GraphImpossible", "more than 1,000 bytes"):
        exported(tmp_path / "large", TABLES[:2], (1, 1), with_onnx=True)
    read_ensemble(exported(tmp_path / "without", TABLES[:2], (1, 1), with_onnx=False))


def test_a_weight_is_a_share_of_all_gains(tmp_path: Path) -> None:
    saved = read_ensemble(exported(tmp_path, TABLES, (1, (1 << 96) - 1, 1)))
    assert sum(saved.weights) == pytest.approx(1)
    assert saved.weights[0] < 1e-28


def test_what_a_server_says_of_an_ensemble(tmp_path: Path) -> None:
    about = opened(exported(tmp_path, TABLES, GAINS)).about
    assert (about["name"], about["task"], about["verified"]) == ("ensemble 1 of 3 models", NUMBER, True)
    assert [(one["task"], one["weight"]) for one in about["members"]] == [(1, 0.3), (2, 0.1), (3, 0.6)]


def test_an_ensemble_predicts_by_the_command_and_takes_no_local_tensors(tmp_path: Path) -> None:
    folder, rows, output = exported(tmp_path, TABLES, GAINS), tmp_path / "rows.csv", tmp_path / "out.csv"
    rows.write_text("id,age,sex\na,50,1\nb,,0\n")
    words = ["predict", str(folder), "--input", str(rows), "--output", str(output), "--id-column", "id"]
    refused = CliRunner().invoke(app, [*words, "--local", str(rows)])
    assert (refused.exit_code, output.exists()) == (2, False)
    known = json.loads((folder / "task-1" / INDEX).read_text())
    (folder / "task-1" / INDEX).write_text(json.dumps(known | {"verified": False}))
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0
    assert "NOT VERIFIED" in done.output
    found = pd.read_csv(output)
    assert list(found.columns) == ["row", "id", "class", "probability_no", "probability_maybe", "probability_yes"]
    np.testing.assert_allclose(found.iloc[:, 3:].sum(axis=1), 1)
    with raises_fault(OperatorError, "OutputTaken"):
        consilium.EnsembleModel.read(folder).predict(rows, output=output)


# --- the digest ----------------------------------------------------------------------------------------------------


def test_anybody_computes_the_digest_from_the_chain_and_the_models(tmp_path: Path) -> None:
    folder = exported(tmp_path, TABLES, GAINS)
    digests = [read_model(tmp_path / str(task) / "model").index.sha256 for task in (1, 2, 3)]
    parts = ",".join(
        f'{{"gain":{gain},"sha256":"{digest}","task":{task}}}'
        for task, (gain, digest) in enumerate(zip(GAINS, digests, strict=True), 1)
    )
    content = f'{{"chain_id":{CHAIN},"members":[{parts}],"number":{NUMBER}}}'
    assert opened(folder).sha256 == hashlib.sha256(content.encode()).hexdigest()


# --- the folder ----------------------------------------------------------------------------------------------------


def changed(**changes: Any) -> Callable[[Path], None]:
    def tamper(folder: Path) -> None:
        (folder / ENSEMBLE).write_text(json.dumps(json.loads((folder / ENSEMBLE).read_text()) | changes))

    return tamper


def member(at: int, **changes: Any) -> Callable[[Path], None]:
    def tamper(folder: Path) -> None:
        known = json.loads((folder / ENSEMBLE).read_text())
        known["members"][at] |= changes
        (folder / ENSEMBLE).write_text(json.dumps(known))

    return tamper


def with_members(change: Callable[[list[Any]], list[Any]]) -> Callable[[Path], None]:
    def tamper(folder: Path) -> None:
        known = json.loads((folder / ENSEMBLE).read_text())
        changed(members=change(known["members"]))(folder)

    return tamper


def swapped(folder: Path) -> None:
    """The folders of two members."""
    (folder / "task-1").rename(folder / "one")
    (folder / "task-2").rename(folder / "task-1")
    (folder / "one").rename(folder / "task-2")


TAMPERED: list[tuple[Callable[[Path], Any], str]] = [
    (lambda folder: (folder / ENSEMBLE).write_text("{}"), "Field required"),
    (lambda folder: (folder / ENSEMBLE).write_bytes(b"\xff"), "not JSON"),
    (lambda folder: (folder / ENSEMBLE).write_text("[" * 99_999), "more than"),
    (lambda folder: (folder / ENSEMBLE).write_text('{"number": 1, "number": 2}'), "twice"),
    (changed(format="consilium-ensemble-2"), "format"),
    (changed(more=1), "more"),
    (changed(number=ENSEMBLES), "number"),
    (changed(number=2 * ENSEMBLES), "number"),
    (changed(number=str(NUMBER)), "number"),
    (changed(number=float(NUMBER)), "number"),
    (changed(chain_id=0), "chain_id"),
    (changed(chain_id=2), "not the model of task 1"),
    (changed(members=[]), "members"),
    (changed(onnx="0" * 63), "onnx"),
    (with_members(lambda all_: all_[:1]), "members"),
    (with_members(lambda all_: all_ * 6), "members"),
    (with_members(lambda all_: [all_[0], all_[0]]), "do not ascend"),
    (with_members(lambda all_: all_[::-1]), "do not ascend"),
    (member(0, task=0), "task"),
    (member(0, gain=0), "gain"),
    (member(0, gain=-1), "gain"),
    (member(0, gain=1 << 96), "gain"),
    (member(0, gain=True), "gain"),
    (member(0, gain=1.5), "gain"),
    (member(0, sha256="00" * 32), "not the model of task 1"),
    (member(0, folder="../1/model"), "the folder of task 1 is not task-1"),
    (member(0, folder="/tmp"), "the folder of task 1 is not task-1"),
    (member(1, folder="task-1"), "the folder of task 2 is not task-2"),
    (member(2, task=4, folder="task-4"), "cannot be read"),
    (swapped, "not the model of task 1"),
    (lambda folder: shutil.rmtree(folder / "task-2"), "cannot be read"),
    (lambda folder: (folder / "task-2" / CARD).write_text("another"), "was changed"),
    (lambda folder: (folder / ONNX).write_bytes(b""), "model.onnx: its SHA-256"),
    (lambda folder: (folder / ONNX).unlink(), "cannot be read"),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported(tmp_path_factory.mktemp("whole"), TABLES, GAINS, with_onnx=True)


@pytest.mark.parametrize(("tamper", "words"), TAMPERED, ids=range(len(TAMPERED)))
def test_a_folder_that_is_not_what_it_says_is_refused(
    whole: Path, tmp_path: Path, tamper: Callable[[Path], Any], words: str
) -> None:
    folder = tmp_path / "e"
    shutil.copytree(whole, folder)
    read_ensemble(folder)
    tamper(folder)
    with pytest.raises((EnsembleError, OperatorError), match=words) as refused:
        read_ensemble(folder)
    assert refused.value.name in ("EnsembleFolderInvalid", "ModelFolderInvalid")


def test_only_members_own_files_are_copied(tmp_path: Path) -> None:
    folders = members(tmp_path, TABLES)
    (folders[0] / "notes.txt").write_text("a patient's name")
    export_ensemble(chain_with(of_gains(*GAINS)), NUMBER, folders, tmp_path / "e", False)
    assert {one.name for one in (tmp_path / "e" / "task-1").iterdir()} == {
        INDEX, *read_model(folders[0]).index.files
    }  # fmt: skip
    known = json.loads((folders[0] / INDEX).read_text())
    known["files"]["../secret"] = "00" * 32
    (folders[0] / INDEX).write_text(json.dumps(known))
    with raises_fault(OperatorError, "ModelFolderInvalid", r"it names the file \.\./secret"):
        export_ensemble(chain_with(of_gains(*GAINS)), NUMBER, folders, tmp_path / "f", False)
    assert {one.name for one in tmp_path.iterdir()} == {"1", "2", "3", "e"}


# --- refusals ------------------------------------------------------------------------------------------------------


def test_members_that_ask_differently_are_refused_with_the_values(tmp_path: Path) -> None:
    others: list[tuple[str, str, str, str]] = [
        (TABLE.replace('"maybe", ', ""), "classes", "['no', 'maybe', 'yes']", "['no', 'yes']"),
        (TABLE.replace('"sick"', '"dead"'), "label", "sick", "dead"),
        (TABLE.replace("120.0", "130.0"), "features.1.max", "120.0", "130.0"),
        (TABLE.replace("[0, 1, 2]", "[0, 1]"), "features.2.values", "[0.0, 1.0, 2.0]", "[0.0, 1.0]"),
        (TABLE.replace("120.0", '120.0\nmissing = "indicator"'), "features.1.missing", "None", "indicator"),
        (TABLE.replace('"age"', '"weight"'), "features.1.name", "age", "weight"),
        (TABLE.replace("[model]", FEATURE + "[model]"), "features.3.kind", "None", "numeric"),
        (X_RAYS, "kind", "table", "images"),
        (asking(AMOUNT), "label", "sick", ""),
    ]
    for at, (text, field, wanted, found) in enumerate(others):
        with raises_fault(EnsembleError, "MembersDiffer", r"the tasks 1 and 2 ask differently: data\.") as refused:
            exported(tmp_path / str(at), [TABLE, text], (1, 1))
        values = refused.value.values
        assert (values["field"], values["wanted"], values["found"]) == (f"data.{field}", wanted, found)
    judged = LOGISTIC + '[judging]\nmetric = "brier"\n'
    with raises_fault(EnsembleError, "MembersDiffer", r"judging\.metric is log_loss in the first, and brier"):
        exported(tmp_path / "metric", [LOGISTIC, judged], (1, 1))
    with raises_fault(EnsembleError, "MembersDiffer", r"question\.max is 100\.0 in the first, and 200\.0"):
        exported(tmp_path / "question", [asking(AMOUNT), asking(AMOUNT.replace("100", "200"), metric="r2")], (1, 1))


def test_members_may_differ_in_priors_and_subgroups(tmp_path: Path) -> None:
    other = LOGISTIC.replace("120.0", "120.0\nmean = 70\ndeviation = 20").replace(
        "[data]", '[data]\nsubgroups = ["sex"]'
    )
    predictor = opened(exported(tmp_path, [TABLE, other], (1, 3)))
    alone = [Predictor(read_model(tmp_path / at / "model")) for at in "12"]
    expected = alone[0].predict(BODY) / 4 + alone[1].predict(BODY) * 3 / 4
    np.testing.assert_allclose(predictor.answered(requested(predictor, BODY)).predictions, expected, rtol=1e-12)


def test_language_models_and_segmentations_are_refused(tmp_path: Path) -> None:
    asked = 'question = { kind = "segmentation", classes = ["none", "organ"] }'
    marks = X_RAYS.replace('classes = ["normal", "ill"]', asked).replace(
        "height = 8\nwidth = 10", "height = 16\nwidth = 16"
    )
    marks = marks.replace('"cnn"\nchannels = [4]', '"unet"')
    with raises_fault(OperatorError, "MarksPixels"):
        exported(tmp_path, [marks, marks], (1, 1))
    saved = read_ensemble(exported(tmp_path / "tables", TABLES, GAINS))
    first, *others = saved.models
    corpus = replace(first, spec=first.spec.model_copy(update={"data": CorpusSchema(kind="corpus")}))
    with raises_fault(OperatorError, "ForetellsTokens"):
        replace(saved, models=(corpus, *others)).require_alike()


def test_a_model_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    text = TABLE + '[training]\nlocal = ["2.weight", "2.bias"]\n'
    with raises_fault(EnsembleError, "MemberLocal", r"task 2 leaves out 2\.weight, 2\.bias"):
        exported(tmp_path, [TABLE, text], (1, 1))


def test_foreign_and_missing_members_are_refused(tmp_path: Path) -> None:
    chain, folders, output = chain_with(of_gains(*GAINS)), members(tmp_path, TABLES), tmp_path / "e"
    with raises_fault(EnsembleError, "EnsembleUnknown", str(NUMBER + 1)):
        export_ensemble(chain, NUMBER + 1, folders, output)
    with raises_fault(EnsembleError, "MemberMissing", "tasks 2, 3, which"):
        export_ensemble(chain, NUMBER, folders[:1], output)
    with raises_fault(EnsembleError, "MemberTwice", "task 1"):
        export_ensemble(chain, NUMBER, [folders[0], *folders], output)
    for at, origin in enumerate([(4, CHAIN, TASKS), (1, CHAIN + 1, TASKS), (1, CHAIN, "0x01")]):
        foreign = written(tmp_path / f"foreign {at}", TABLE, task=origin)
        with raises_fault(EnsembleError, "MemberForeign", "tasks 1, 2, 3 of chain 1 and contract 0x"):
            export_ensemble(chain, NUMBER, [foreign, *folders[1:]], output)
    (tmp_path / "taken").mkdir()
    with raises_fault(OperatorError, "OutputTaken"):
        export_ensemble(chain, NUMBER, folders, tmp_path / "taken")
    with raises_fault(OperatorError, "ModelFolderInvalid"):
        export_ensemble(chain, NUMBER, [tmp_path / "nothing"], output)
    known = json.loads((folders[1] / INDEX).read_text())
    (folders[1] / INDEX).write_text(json.dumps(known | {"verified": False}))
    with raises_fault(EnsembleError, "MemberNotVerified", "task 2"):
        export_ensemble(chain, NUMBER, folders, output)
    assert not output.exists()


def test_only_the_chains_ensemble_is_sold(tmp_path: Path) -> None:
    folder = exported(tmp_path, TABLES, GAINS)
    saved = read_ensemble(folder)
    require_ensemble_sellable(chain_with(of_gains(*GAINS)), saved, NUMBER, folder)
    with raises_fault(SaleError, "ModelOfAnotherTask"):
        require_ensemble_sellable(chain_with(of_gains(*GAINS)), saved, NUMBER + 1, folder)
    with raises_fault(EnsembleError, "EnsembleUnknown"):
        require_ensemble_sellable(chain_with(), saved, NUMBER, folder)
    for gains in ((30_000, 10_001, 60_000), (30_000, 10_000), (30_000, 10_000, 60_000, 1)):
        with raises_fault(EnsembleError, "EnsembleDiffers", "30000 of task 1, 10000 of task 2, 60000 of task 3, and"):
            require_ensemble_sellable(chain_with(of_gains(*gains)), saved, NUMBER, folder)
    changed(contract="0x" + "22" * 20)(folder)
    with raises_fault(SaleError, "ModelOfAnotherTask"):
        require_ensemble_sellable(chain_with(of_gains(*GAINS)), read_ensemble(folder), NUMBER, folder)
    changed(contract=SHARES)(folder)
    known = json.loads((folder / "task-3" / INDEX).read_text())
    for change, name in (({"verified": False}, "MemberNotVerified"), ({"contract": "0x01"}, "MemberForeign")):
        (folder / "task-3" / INDEX).write_text(json.dumps(known | change))
        with raises_fault(EnsembleError, name, "task-3"):
            require_ensemble_sellable(chain_with(of_gains(*GAINS)), read_ensemble(folder), NUMBER, folder)
