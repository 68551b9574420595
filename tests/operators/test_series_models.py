"""Finished models of series, of every question: predictions, ONNX, metrics, a server, and a model card's inputs."""

from __future__ import annotations

import json
from pathlib import Path

import consilium
import numpy as np
import onnxruntime
import pytest
from consilium_operators.hugging_face import export_hugging_face
from consilium_operators.model_folder import INDEX, ONNX, read_model
from consilium_operators.model_server import service
from consilium_operators.onnx_file import add_onnx
from consilium_operators.prediction import Predictor
from model_driver import written
from series_files import answers, drawn, write
from starlette.testclient import TestClient

CLASSES = 'label = "died"\nclasses = ["no", "yes"]'
AMOUNT = 'question = { kind = "regression", label = "died", min = 0, max = 1, mean = 0.5, deviation = 0.5 }'
TIMES = 'question = { kind = "survival", time = "days", event = "died", bounds = [3, 9] }'
EACH = 'question = { kind = "multilabel", labels = ["died", "moved"] }'
QUESTIONS = (CLASSES, AMOUNT, TIMES, EACH)
MODELS = ('name = "tcn"\nchannels = [4, 4]', 'name = "mlp"\nhidden = [4]', 'name = "logistic"')
METRICS = {CLASSES: "auc", AMOUNT: "r2", TIMES: "c_index", EACH: "auc"}


def text_of(question: str, model: str = MODELS[0]) -> str:
    features = "".join(
        f'[[data.features]]\nname = "{name}"\nmin = 0\nmax = {high}\n'
        for name, high in (("heart_rate", 250), ("lactate", 30))
    )
    return (
        f'name = "icu"\n[data]\nkind = "series"\nsteps = 6\nstep = 2\n{question}\n{features}[model]\n{model}\n'
        f'[judging]\nmetric = "{METRICS[question]}"\n'
    )


def folder_of(place: Path, question: str, stays: int = 40) -> Path:
    found = answers(stays).assign(days=range(stays), moved=[at % 3 == 0 for at in range(stays)])
    columns = {CLASSES: ["died"], AMOUNT: ["died"], TIMES: ["days", "died"], EACH: ["died", "moved"]}[question]
    return write(place, drawn(2, stays=stays), found[["stay", *columns]].astype(int))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_onnx_answers_as_the_model_does(question: str, model: str, tmp_path: Path) -> None:
    folder = written(tmp_path, text_of(question, model))
    assert add_onnx(folder) < 1e-5
    session = onnxruntime.InferenceSession(folder / ONNX, providers=["CPUExecutionProvider"])
    rates = [[None, 80, None, None, 400, None], [70] * 6]
    lactates = [[None] * 6, [-1] * 6]
    pairs = [*zip(rates, lactates, strict=True)]
    request = {"rows": [{"heart_rate": rate, "lactate": lactate} for rate, lactate in pairs]}
    series = np.array(pairs, np.float64)
    (found,) = session.run(None, {"series": series})
    expected = Predictor(read_model(folder), clamp=True).predict(json.dumps(request).encode())
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_folder_is_predicted_and_evaluated(question: str, tmp_path: Path) -> None:
    model = consilium.Model.read(written(tmp_path, text_of(question)))
    folder = folder_of(tmp_path / "s", question)
    report = model.evaluate(folder).report
    assert report.all_rows is not None
    assert set(report.all_rows.measures) == set(model.details.spec.data.asked.metrics)
    with_list = model.predict(folder)
    assert list(with_list["stay"]) == [f"{at}" for at in range(1, 41)]
    (folder / "outcomes.csv").unlink()
    without = model.predict(folder).set_index("stay").loc[list(with_list["stay"])].reset_index()
    np.testing.assert_array_equal(without[with_list.columns].to_numpy(), with_list.to_numpy())


def test_model_json_has_what_computes_the_inputs(tmp_path: Path) -> None:
    folder = written(tmp_path, text_of(CLASSES))
    index = json.loads((folder / INDEX).read_text())
    series = np.array([[[np.nan, 80, np.nan, 90, 100, np.nan], [3.0, np.nan, np.nan, np.nan, np.nan, 1]]])
    inputs, names = [], ["heart_rate", "lactate"]
    for one in index["inputs"]:
        values = series[:, names.index(one["variable"])]
        measured = ~np.isnan(values)
        if not one.get("is_measured"):
            at = np.maximum.accumulate(np.where(measured, np.arange(6), -1), axis=1)
            last = np.take_along_axis(values, np.maximum(at, 0), 1)
            inputs.append(np.where(at < 0, 0, (last - one["subtract"]) * one["multiply"]))
        else:
            inputs.append((measured - one["subtract"]) * one["multiply"])
    request = {
        "rows": [{name: [None if np.isnan(v) else v for v in of] for name, of in zip(names, series[0], strict=True)}]
    }
    from consilium_operators.prediction import examples_of

    predictor = Predictor(read_model(folder))
    found = predictor.inputs(examples_of(request["rows"], predictor.saved.spec.data))
    np.testing.assert_allclose(found, np.stack(inputs, axis=1), rtol=1e-5)
    export_hugging_face(folder, tmp_path / "hub")
    assert 'pipeline_tag: "tabular-classification"' in (tmp_path / "hub" / "README.md").read_text()


@pytest.mark.parametrize(
    ("rate", "name"),
    [([80] * 5, "RowsInvalid"), (80, "RowsInvalid"), (["80"] * 6, "RowsInvalid"), ([300] * 6, "ValueOutOfRange")],
)
def test_a_server_answers_and_refuses_other_lists(rate: object, name: str, tmp_path: Path) -> None:
    client = TestClient(service(Predictor(read_model(written(tmp_path, text_of(CLASSES))))), "http://127.0.0.1")
    good = client.post("/predict", json={"rows": [{"heart_rate": [80, None] * 3, "lactate": [None] * 6}]})
    assert good.json()["predictions"][0]["class"] in ("no", "yes")
    bad = client.post("/predict", json={"rows": [{"heart_rate": rate, "lactate": [None] * 6}]})
    assert bad.status_code >= 400
    assert name in bad.text
