"""`consilium predict` and `consilium operator evaluate`, as their users type them."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest
import sklearn.metrics
from consilium_cli.main import app
from consilium_client.data.mapping import parse_mapping
from consilium_client.errors import CellError, DataError, RangeError
from consilium_core.faults import FaultError
from consilium_operators.errors import OperatorError
from consilium_operators.model_folder import MODEL, read_model
from consilium_operators.prediction import Predictor
from model_driver import written
from PIL import Image
from raised_faults import raises_fault
from typer.testing import CliRunner

TASK = """
name = "in use"
[data]
label = "sick"
classes = ["no", "yes"]
[[data.features]]
name = "age"
min = 0.0
max = 120.0
[[data.features]]
name = "creatinine"
min = 0.1
max = 20.0
[model]
name = "mlp"
hidden = [4]
"""
MAPPING = '[columns]\nage = "Alter"\ncreatinine = { column = "Krea", scale = 0.5 }\nsick = "Befund"\n'


def say(*arguments: object) -> str:
    ran = CliRunner(env={"COLUMNS": "200"}).invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    return ran.output


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return written(tmp_path, TASK)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Labels that lean towards the model's answers; sites and patients in columns of their own."""
    random = np.random.default_rng(1)
    path = tmp_path / "rows.csv"
    lines = ["patient,age,creatinine,sick,site"]
    for at in range(80):
        age = "" if at == 5 else f"{random.uniform(0, 120):.1f}"
        lines.append(
            f"p{at},{age},{random.uniform(0.1, 20):.2f},{random.integers(0, 2)},{'Bern' if at % 4 else 'Basel'}"
        )
    path.write_text("\n".join(lines) + "\n")
    return path


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def served(model: Path, given: list[dict[str, str]]) -> Any:
    """The probabilities that a served model answers."""
    asked = [{name: row[name] or None for name in ("age", "creatinine")} for row in given]
    return Predictor(read_model(model)).predict(json.dumps({"rows": asked}).encode())


# --- predict ---------------------------------------------------------------------------------------------------------


def test_each_row_has_a_row_of_the_answers_that_a_served_model_gives(model: Path, rows: Path, tmp_path: Path) -> None:
    output = tmp_path / "new" / "predictions.csv"
    said = say("predict", model, "--input", rows, "--output", output, "--id-column", "patient")
    assert "80 predictions of in use" in said
    found, given = read(output), read(rows)
    assert list(found[0]) == ["row", "patient", "class", "probability_no", "probability_yes"]
    assert [(one["row"], one["patient"]) for one in found] == [(f"{at + 1}", f"p{at}") for at in range(80)]
    expected = served(model, given)
    assert [[float(one["probability_no"]), float(one["probability_yes"])] for one in found] == expected.tolist()
    assert [one["class"] for one in found] == ["yes" if yes >= no else "no" for no, yes in expected]
    assert len({one["class"] for one in found}) == 2
    assert output.stat().st_mode & 0o077 == 0


def test_csv_and_parquet_with_or_without_labels_give_the_same_answers(model: Path, rows: Path, tmp_path: Path) -> None:
    table = pyarrow.csv.read_csv(rows)
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    pyarrow.csv.write_csv(table.drop_columns(["sick", "site", "patient"]), tmp_path / "bare.csv")
    answers = []
    for name in ("rows.csv", "rows.parquet", "bare.csv"):
        output = tmp_path / f"{name}-predictions.csv"
        say("predict", model, "--input", tmp_path / name, "--output", output)
        answers.append(output.read_bytes())
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("held", [True, False], ids=["in the model", "as an option"])
def test_a_mapping_is_the_models_or_an_option(model: Path, tmp_path: Path, held: bool) -> None:
    data = read_model(model).spec.data
    (tmp_path / "mapping.toml").write_text(MAPPING)
    (tmp_path / "german.csv").write_text("Alter,Krea,Zimmer\n40,3,12\n50,30,13\n")
    (tmp_path / "plain.csv").write_text("age,creatinine\n40,1.5\n50,15\n")
    used = written(tmp_path / "held", TASK, parse_mapping(MAPPING.encode(), data)) if held else model
    option = [] if held else ["--mapping", tmp_path / "mapping.toml"]
    say("predict", used, "--input", tmp_path / "german.csv", "--output", tmp_path / "a.csv", *option)
    say("predict", model, "--input", tmp_path / "plain.csv", "--output", tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    if held:
        (tmp_path / "none.toml").write_text("")
        plain = ["--input", tmp_path / "plain.csv", "--output", tmp_path / "c.csv"]
        with raises_fault(DataError, "HeaderMissing"):
            say("predict", used, *plain)
        say("predict", used, *plain, "--mapping", tmp_path / "none.toml")
        assert (tmp_path / "c.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_a_folder_of_images_needs_no_labels_to_predict_and_has_them_to_evaluate(tmp_path: Path) -> None:
    task = (
        'name = "seen"\n[data]\nkind = "images"\nclasses = ["normal", "ill"]\nheight = 8\nwidth = 8\n'
        '[model]\nname = "cnn"\nchannels = [3]\n'
    )
    model, pixels = written(tmp_path, task), np.random.default_rng(2).integers(0, 256, (4, 8, 8), dtype=np.uint8)
    for at, one in enumerate(pixels):
        for folder in ("flat", f"sorted/{('normal', 'ill')[at % 2]}"):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
            Image.fromarray(one).save(tmp_path / folder / f"{at}.png")
    output, result = tmp_path / "out.csv", tmp_path / "result.json"
    say("predict", model, "--input", tmp_path / "flat", "--output", output)
    found = read(output)
    assert [one["file"] for one in found] == ["0.png", "1.png", "2.png", "3.png"]
    say("operator", "evaluate", model, "--data", tmp_path / "sorted", "--output", result)
    hits = [one["class"] == ("normal", "ill")[at % 2] for at, one in enumerate(found)]
    assert json.loads(result.read_text())["all_rows"]["measures"]["accuracy"]["value"] == np.mean(hits)


def test_values_outside_are_refused_and_nothing_is_written(model: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("age,creatinine\n50,1\n50,150\n")
    given = ["predict", model, "--input", tmp_path / "rows.csv", "--output", tmp_path / "out.csv"]
    with raises_fault(RangeError, "ValueOutOfRange", r"rows\.csv, line 3, column creatinine: .* 0\.1 to 20; .*--clamp"):
        say(*given)
    assert not (tmp_path / "out.csv").exists()
    say(*given, "--clamp")
    (tmp_path / "rows.csv").write_text("age,creatinine\n50,1\n50,20\n")
    say(*given[:-1], tmp_path / "bound.csv")
    assert (tmp_path / "out.csv").read_text() == (tmp_path / "bound.csv").read_text()


REFUSED: list[tuple[Callable[[Path], Any], type[FaultError], str]] = [
    (lambda folder: (folder / "rows.csv").write_text("age,creatinine\n50,high\n"), CellError, "ValueNotNumeric"),
    (lambda folder: (folder / "rows.csv").write_text("age\n50\n"), DataError, "ColumnsWrong"),
    (lambda folder: (folder / "rows.csv").unlink(), DataError, "DataFileMissing"),
    (lambda folder: (folder / "out.csv").write_text("mine"), OperatorError, "OutputTaken"),
    (lambda folder: (folder / "model" / MODEL).write_bytes(b"other"), OperatorError, "ModelFolderInvalid"),
]


@pytest.mark.parametrize(("break_", "kind", "name"), REFUSED, ids=[name for _, _, name in REFUSED])
def test_it_refuses_by_name(
    model: Path, rows: Path, tmp_path: Path, break_: Callable[[Path], Any], kind: type[FaultError], name: str
) -> None:
    break_(tmp_path)
    with raises_fault(kind, name):
        say("predict", model, "--input", rows, "--output", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists() or (tmp_path / "out.csv").read_text() == "mine"


# --- evaluate --------------------------------------------------------------------------------------------------------


def test_an_evaluation_is_shown_and_written(model: Path, rows: Path, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    given = ["operator", "evaluate", model, "--data", rows, "--site-column", "site", "--output"]
    said = say(*given, output)
    result = json.loads(output.read_text())
    answers, labels = served(model, read(rows)), [int(row["sick"]) for row in read(rows)]
    assert result["metric"] == "log_loss"
    assert result["sha256"] == read_model(model).index.sha256
    assert result["all_rows"]["measures"]["log_loss"]["value"] == pytest.approx(
        sklearn.metrics.log_loss(labels, answers[:, 1])
    )
    assert [(one["name"], one["rows"]) for one in result["sites"]] == [("Basel", 20), ("Bern", 60)]
    assert result["calibration"][0]["class_name"] == "yes"
    assert output.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    for words in ("80 rows", "Basel", "Bern", "log loss", "Calibration of yes", f"written: {output}"):
        assert words in said
    say(*given, tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == result
    say(*given, tmp_path / "other.json", "--seed", 1)
    assert json.loads((tmp_path / "other.json").read_text()) != result
    with raises_fault(OperatorError, "OutputTaken"):
        say(*given, output)


def test_without_matplotlib_there_is_the_table_alone(
    model: Path, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name == "consilium_operators.calibration_chart" or name.startswith("matplotlib"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = say("operator", "evaluate", model, "--data", rows, "--output", tmp_path / "result.json")
    assert "no picture of the calibration" in said
    assert (tmp_path / "result.json").exists()
    assert not (tmp_path / "result.png").exists()


def test_an_evaluation_needs_labels_within_the_range_and_a_column_of_sites(
    model: Path, rows: Path, tmp_path: Path
) -> None:
    evaluate = ["operator", "evaluate", model, "--data"]
    with raises_fault(DataError, "ColumnsWrong", "missing: clinic"):
        say(*evaluate, rows, "--site-column", "clinic")
    (tmp_path / "bare.csv").write_text("age,creatinine\n50,1\n")
    with raises_fault(DataError, "ColumnsWrong", "missing: sick"):
        say(*evaluate, tmp_path / "bare.csv")
    (tmp_path / "high.csv").write_text("age,creatinine,sick\n50,150,1\n60,2,0\n")
    with raises_fault(RangeError, "ValueOutOfRange"):
        say(*evaluate, tmp_path / "high.csv")
    assert "2 rows" in say(*evaluate, tmp_path / "high.csv", "--clamp")


@pytest.mark.parametrize("command", [["predict"], ["operator", "evaluate"]])
def test_help_loads_nothing_heavy(command: list[str]) -> None:
    script = (
        f"import sys; sys.argv = ['consilium', *{command}, '--help']\n"
        "from consilium_cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'web3', 'flwr', 'numpy', 'safetensors', 'matplotlib'} & sys.modules.keys()\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_predictions_load_no_web_server_and_no_torch(model: Path, rows: Path, tmp_path: Path) -> None:
    script = (
        f"import sys; sys.argv = ['consilium', 'predict', {str(model)!r}, '--input', {str(rows)!r}, '--output',"
        f" {str(tmp_path / 'out.csv')!r}]\n"
        "from consilium_cli.main import main\n"
        "main.__globals__['app'](standalone_mode=False)\n"
        "heavy = {'torch', 'uvicorn', 'starlette', 'fastapi', 'matplotlib'} & sys.modules.keys()\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
