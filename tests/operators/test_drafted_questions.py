"""`consilium task new` drafts each question from a sample, fair for its metric, and the draft reads the sample."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import consilium
import numpy as np
import pandas as pd
import pytest
from consilium_chain.tasks.concerns import Rule, concerns
from consilium_chain.tasks.fairness import unfairness
from consilium_chain.tasks.questions import Classification, Multilabel, Regression, Survival
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_cli.main import app
from consilium_client.data.door import admitted
from consilium_operators.errors import OperatorError
from raised_faults import raises_fault
from typer.testing import CliRunner

ROWS = 120


def ward() -> pd.DataFrame:
    random = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "age": random.normal(60, 10, ROWS).round(1), "sex": random.choice(["female", "male"], ROWS),
            "stay": random.gamma(2, 5, ROWS).round(2), "days": random.exponential(300, ROWS).round(),
            "died": random.integers(0, 2, ROWS), "cough": random.integers(0, 2, ROWS),
            "fever": random.integers(0, 2, ROWS), "found": random.choice(["healthy", "ill"], ROWS),
            "note": [f"The note number {at} of a ward." for at in range(ROWS)],
        }
    )  # fmt: skip


ASKED: dict[str, tuple[dict[str, Any], list[str], type]] = {
    "a class": ({"label": "found"}, ["age", "sex", "found"], Classification),
    "an amount": ({"label": "stay"}, ["age", "sex", "stay"], Regression),
    "a time": ({"label": "days", "event": "died"}, ["age", "sex", "days", "died"], Survival),
    "labels": ({"label": ["cough", "fever"]}, ["age", "sex", "cough", "fever"], Multilabel),
    "a class of a text": ({"label": "found", "text": "note"}, ["note", "found"], Classification),
    "a class of a text, as a number": ({"label": "died", "text": "note"}, ["note", "died"], Classification),
    "an amount of a text": ({"label": "stay", "text": "note"}, ["note", "stay"], Regression),
    "a time of a text": ({"label": "days", "event": "died", "text": "note"}, ["note", "days", "died"], Survival),
}  # fmt: skip


def sample(folder: Path, columns: list[str]) -> Path:
    ward()[columns].to_csv(path := folder / "rows.csv", index=False)
    return path


@pytest.mark.parametrize("asked", ASKED)
def test_each_question_is_drafted_from_a_sample_that_it_reads(tmp_path: Path, asked: str) -> None:
    given, columns, question = ASKED[asked]
    path = sample(tmp_path, columns)
    task = consilium.draft(path, **given)
    assert type(task.spec.data.asked) is question
    assert task.spec.data.used == columns
    assert (task.unlabelled, unfairness(task.spec)) == (0, "")
    assert Rule.HARM_NEAR_NOISE not in {one.rule for one in concerns(task.spec, None)}
    written = task.write(tmp_path / "task.toml").with_suffix(".mapping.toml")
    found = admitted(path, task.spec, written, {})
    assert (found.examples.rows, [one.key for one in found.remarks if one.asks]) == (ROWS, [])


@pytest.mark.parametrize("metric", ["accuracy", "auc", "macro_f1", "pr_auc"])
def test_thresholds_are_fair_for_the_metric_and_voters_have_the_rows(tmp_path: Path, metric: str) -> None:
    judging = consilium.draft(sample(tmp_path, ["age", "sex", "found"]), "found", metric=metric).spec.judging
    assert (judging.metric, judging.least_rows, judging.least_of_class) == (metric, 200, 20)


def test_a_missing_answer_counts(tmp_path: Path) -> None:
    frame = ward()[["age", "days", "died"]]
    frame.loc[3, "days"] = frame.loc[4, "died"] = None
    frame.to_csv(path := tmp_path / "rows.csv", index=False)
    assert consilium.draft(path, "days", event="died").unlabelled == 2


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"label": "days", "event": "age"}, "AnswersNotYesOrNo"),
        ({"label": ["died", "sex"]}, "AnswersNotYesOrNo"),
        ({"label": "sex", "event": "died"}, "TimesNotNumbers"),
        ({"label": "days", "event": "gone"}, "ColumnUnknown"),
        ({"label": "found", "text": "gone"}, "ColumnUnknown"),
        ({"label": "note"}, "LabelNotClasses"),
    ],
)
def test_columns_that_answer_nothing_are_refused_by_name(tmp_path: Path, given: dict[str, Any], fault: str) -> None:
    with raises_fault(OperatorError, fault):
        consilium.draft(sample(tmp_path, [*ward().columns]), **given)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (["--label", "days", "--event", "died"], "survival"),
        (["--label", "cough, fever"], "multilabel"),
        (["--label", "stay"], "regression"),
    ],
)
def test_the_command_takes_the_columns_of_an_answer(tmp_path: Path, options: list[str], kind: str) -> None:
    path, output = sample(tmp_path, ["age", "sex", "stay", "days", "died", "cough", "fever"]), tmp_path / "task.toml"
    ran = CliRunner().invoke(app, ["task", "new", "--from", str(path), "--output", str(output), *options])
    assert ran.exit_code == 0, ran.output
    assert tomllib.loads(output.read_text())["data"]["question"]["kind"] == kind
    assert parse_task_spec(output.read_bytes()).data.asked.in_words in ran.output
