"""Finished models of questions other than classes: predictions, ONNX, metrics, a server and the layout of a Hub."""

from __future__ import annotations

import io
import json
from pathlib import Path

import consilium
import numpy as np
import onnxruntime
import pytest
from consilium_chain.evaluations.measures import Group
from consilium_cli.evaluation_screen import of_operator
from consilium_core.kinds import of_kind
from consilium_operators.hugging_face import export_hugging_face
from consilium_operators.model_folder import INDEX, ONNX, read_model
from consilium_operators.model_server import service
from consilium_operators.onnx_file import add_onnx
from consilium_operators.prediction import Predictor
from model_driver import written
from rich.console import Console
from starlette.testclient import TestClient
from task_files import AGE, AMOUNT, ANSWERS, EACH, TIMES, asking

COLUMNS = {  # of the answers
    AMOUNT: ["stay"],
    TIMES: ["no_died_by_30_days", "no_died_by_90_days", "no_died_by_365_days"],
    EACH: ["probability_fluid", "probability_mass"],
}
SEX = '[[data.features]]\nkind = "category"\nname = "sex"\nvalues = [0, 1, 2]\n'
MODELS = ('name = "logistic"', 'name = "mlp"\nhidden = [4]')


def text_of(question: str, model: str = MODELS[0]) -> str:
    return asking(question, model, AGE + SEX)


def rows_of(path: Path, question: str, rows: int = 40) -> Path:
    random = np.random.default_rng(5)
    times = np.stack([random.integers(0, 500, rows), random.integers(0, 2, rows)], axis=1)
    labels = {AMOUNT: times[:, :1] % 90, TIMES: times, EACH: random.integers(0, 2, (rows, 2))}[question]
    lines = [f"{random.integers(20, 90)},{random.integers(0, 3)},{','.join(map(str, label))}" for label in labels]
    path.write_text("\n".join([f"age,sex,{ANSWERS[question]}", *lines]) + "\n")
    return path


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("question", COLUMNS)
def test_onnx_answers_as_the_model_does(question: str, model: str, tmp_path: Path) -> None:
    folder = written(tmp_path, text_of(question, model))
    assert add_onnx(folder) < 1e-5
    session = onnxruntime.InferenceSession(folder / ONNX, providers=["CPUExecutionProvider"])
    assert [one.name for one in session.get_outputs()] == ["answers"]
    assert json.loads(session.get_modelmeta().custom_metadata_map["answers"]) == COLUMNS[question]
    (found,) = session.run(None, {"rows": np.array([[61.5, 1.0], [np.nan, 7.0]])})
    expected = Predictor(read_model(folder), clamp=True).predict(
        b'{"rows": [{"age": 61.5, "sex": 1}, {"age": null, "sex": 7}]}'
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("question", COLUMNS)
def test_predictions_have_a_column_for_each_answer(question: str, tmp_path: Path) -> None:
    answers = COLUMNS[question]
    model = consilium.Model.read(written(tmp_path, text_of(question)))
    lines = rows_of(tmp_path / "rows.csv", question).read_text().splitlines()
    (tmp_path / "rows.csv").write_text("".join(",".join(line.split(",")[:2]) + "\n" for line in lines))
    found = model.predict(tmp_path / "rows.csv")
    assert list(found.columns) == ["row", *answers]
    values = found[answers].to_numpy()
    assert values.shape == (40, len(answers))
    low, high = (0, 100) if question == AMOUNT else (0, 1)
    assert ((values >= low) & (values <= high)).all()
    if question == TIMES:
        assert (np.diff(values, axis=1) <= 0).all()  # the chance of no event only falls


@pytest.mark.parametrize("question", COLUMNS)
def test_an_evaluation_has_the_questions_metrics(question: str, tmp_path: Path) -> None:
    model = consilium.Model.read(written(tmp_path, text_of(question)))
    report = model.evaluate(rows_of(tmp_path / "rows.csv", question)).report
    whole = of_kind(Group, report.all_rows)
    assert set(whole.measures) == set(model.details.spec.data.asked.metrics)
    assert all(one.low is not None for one in whole.measures.values())
    assert [one.class_name for one in report.calibration] == (["fluid", "mass"] if question == EACH else [])
    console = Console(record=True, width=120, file=io.StringIO())
    for part in of_operator(report):
        console.print(part)
    said = console.export_text()
    assert {AMOUNT: "0 to 20", TIMES: "died by 365", EACH: "mass"}[question] in said
    assert {AMOUNT: "R²", TIMES: "C-index", EACH: "PR-AUC"}[question] in said


@pytest.mark.parametrize("question", COLUMNS)
def test_a_server_names_the_answers(question: str, tmp_path: Path) -> None:
    client = TestClient(service(Predictor(read_model(written(tmp_path, text_of(question))))), "http://127.0.0.1")
    answers = COLUMNS[question]
    described = client.get("/").json()
    assert (described["classes"], described["answers"], described["columns"]) == ([], answers, ["age", "sex"])
    (found,) = client.post("/predict", json={"rows": [{"age": 50, "sex": 1}]}).json()["predictions"]
    assert list(found) == ["answers"]
    assert list(found["answers"]) == answers


@pytest.mark.parametrize("question", COLUMNS)
def test_the_hubs_layout_knows_no_classes(question: str, tmp_path: Path) -> None:
    export_hugging_face(written(tmp_path, text_of(question)), tmp_path / "hub")
    readme = (tmp_path / "hub" / "README.md").read_text()
    assert 'pipeline_tag: "tabular-regression"' in readme
    index = json.loads((tmp_path / "hub" / INDEX).read_text())
    assert [one["column"] for one in index["answers"]] == COLUMNS[question]
