"""Tables with answers that are no classes: amounts, times until an event, several yes or no."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.data.kinds import kind_of, read_examples
from consilium_client.data.mapping import parse_mapping
from consilium_client.errors import CellError, DataError
from consilium_core.kinds import of_kind
from raised_faults import raises_fault

AMOUNT = '{ kind = "regression", label = "stay", min = 0, max = 100, mean = 10, deviation = 8, unit = "days" }'
TIMES = '{ kind = "survival", time = "days", event = "died", bounds = [30, 90, 365] }'
EACH = '{ kind = "multilabel", labels = ["fluid", "mass"] }'
METRICS = {AMOUNT: "r2", TIMES: "c_index", EACH: "auc"}


def text_of(question: str, metric: str | None = None) -> str:
    return f"""
name = "asked"
[data]
question = {question}
[[data.features]]
name = "age"
min = 0
max = 120
[model]
name = "logistic"
[judging]
metric = "{metric or METRICS[question]}"
"""


def asked(question: str) -> TaskSpec:
    return parse_task_spec(text_of(question).encode())


def schema_of(question: str) -> TableSchema:
    return of_kind(TableSchema, asked(question).data)


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


READ = [
    (AMOUNT, "age,stay\n50,3\n60,400\n70,-1\n", [[3], [100], [0]]),  # clamped, as features are
    (TIMES, "age,days,died\n50,0,1\n60,90,0\n70,1000.5,1\n", [[0, 1], [90, 0], [1000.5, 1]]),
    (EACH, "age,mass,fluid\n50,1,0\n60,0,0\n70,1,1\n", [[0, 1], [0, 0], [1, 1]]),
]


@pytest.mark.parametrize(("question", "table", "labels"), READ)
def test_answers_are_read_as_the_question_asks(
    question: str, table: str, labels: list[list[float]], tmp_path: Path
) -> None:
    found = read_examples(written(tmp_path / "rows.csv", table), schema_of(question))
    assert found.labels.tolist() == labels
    assert found.labels.dtype == np.float64
    first, *_ = found.row_bytes()
    assert first.startswith(np.array(labels[0], "<f8").tobytes())
    assert len(set(found.row_bytes())) == 3


@pytest.mark.parametrize(
    ("question", "table", "error", "row", "column"),
    [
        (AMOUNT, "age,stay\n50,3\n60,\n", "AnswerMissing", 3, "stay"),
        (AMOUNT, "age,stay\n50,long\n", "ValueNotNumeric", 2, "stay"),
        (TIMES, "age,days,died\n50,?,1\n", "AnswerMissing", 2, "days"),
        (TIMES, "age,days,died\n50,-0.5,1\n", "TimeNegative", 2, "days"),
        (TIMES, "age,days,died\n50,5,\n", "AnswerMissing", 2, "died"),
        (TIMES, "age,days,died\n50,5,2\n", "AnswerNotYesOrNo", 2, "died"),
        (TIMES, "age,days,died\n50,5,0.5\n", "AnswerNotYesOrNo", 2, "died"),
        (TIMES, "age,days,died\n50,2026-01-01,1\n", "ValueIsDate", 2, "days"),
        (EACH, "age,fluid,mass\n50,1,1\n60,1,-1\n", "AnswerNotYesOrNo", 3, "mass"),
        (EACH, "age,fluid,mass\n50,1,\n", "AnswerMissing", 2, "mass"),
        (EACH, "age,fluid,mass\n50,1,yes\n", "ValueNotNumeric", 2, "mass"),
    ],
)
def test_a_wrong_answer_is_refused_by_line_and_column(
    question: str, table: str, error: str, row: int, column: str, tmp_path: Path
) -> None:
    with raises_fault(CellError, error) as caught:
        read_examples(written(tmp_path / "rows.csv", table), schema_of(question))
    assert (caught.value.values["row"], caught.value.values["column"]) == (row, column)


@pytest.mark.parametrize(
    ("question", "table", "what"),
    [
        (AMOUNT, "age,stay\n50,3\n60,3\n", "stay"),
        (TIMES, "age,days,died\n50,3,0\n60,5,0\n", "days and died"),
        (TIMES, "age,days,died\n50,3,1\n60,5,1\n", "days and died"),
        (EACH, "age,fluid,mass\n50,1,0\n60,1,0\n", "fluid and mass"),
    ],
)
def test_held_out_rows_with_one_answer_are_refused(question: str, table: str, what: str, tmp_path: Path) -> None:
    path, schema = written(tmp_path / "rows.csv", table), schema_of(question)
    with raises_fault(DataError, "OneClassOnly") as caught:
        read_examples(path, schema, allow_one_class=False)
    assert caught.value.values["label"] == what
    kind = kind_of(schema)
    profile = kind.profile(kind.read(path, schema, None), asked(question))
    assert any("all labels are the same" in one.concern for one in profile.findings)


@pytest.mark.parametrize(
    ("question", "table", "counts"),
    [
        (AMOUNT, READ[0][1], {"0 to 20": 2, "20 to 40": 0, "40 to 60": 0, "60 to 80": 0, "80 to 100": 1}),
        (TIMES, READ[1][1], {"died by 365": 1, "no died by 365": 2}),
        (EACH, READ[2][1], {"fluid": 1, "mass": 2}),
    ],
)
def test_a_profile_counts_answers(question: str, table: str, counts: dict[str, int], tmp_path: Path) -> None:
    spec = asked(question)
    kind = kind_of(spec.data)
    profile = kind.profile(kind.read(written(tmp_path / "rows.csv", table), spec.data, None), spec)
    assert (profile.rows, dict(profile.answers)) == (3, counts)


def test_a_mapping_gives_codes_and_units_to_answers(tmp_path: Path) -> None:
    mapping = b"""
[columns]
days = { column = "months", scale = 30.44 }
died = { column = "outcome", codes = { dead = 1, alive = 0 } }
"""
    path = written(tmp_path / "rows.csv", "age,months,outcome\n50,1,dead\n60,12,alive\n")
    (tmp_path / "mapping.toml").write_bytes(mapping)
    found = read_examples(path, schema_of(TIMES), tmp_path / "mapping.toml")
    np.testing.assert_allclose(found.labels, [[30.44, 1], [365.28, 0]])


@pytest.mark.parametrize(
    ("question", "mapping", "why"),
    [
        (TIMES, "[columns]\ndays = { absent = true }\n", "the label days may not be absent"),
        (TIMES, "[columns]\ndied = { codes = { dead = 2 } }\n", "the codes of died give 2"),
        (TIMES, "[columns]\ndied = { scale = 2.0 }\n", "died holds codes"),
        (EACH, "[columns]\nmass = { absent = true }\n", "the label mass may not be absent"),
        (AMOUNT, "[columns]\nstay = { absent = true }\n", "the label stay may not be absent"),
    ],
)
def test_a_mapping_that_does_not_fit_the_answers_is_refused(question: str, mapping: str, why: str) -> None:
    with raises_fault(DataError, "MappingInvalid") as caught:
        parse_mapping(mapping.encode(), schema_of(question))
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (AMOUNT.replace("max = 100", "max = -1"), "min must be below max"),
        (AMOUNT.replace("mean = 10", "mean = 101"), "must lie between min and max"),
        (AMOUNT.replace("deviation = 8", "deviation = 0.01"), "a thousandth and a half of the range"),
        (AMOUNT.replace("deviation = 8", "deviation = nan"), "finite"),
        (TIMES.replace("[30, 90, 365]", "[30, 30]"), "bounds must ascend"),
        (TIMES.replace("[30, 90, 365]", "[0, 30]"), "greater than 0"),
        (TIMES.replace("[30, 90, 365]", "[]"), "bounds"),
        (TIMES.replace('"died"', '"days"'), "name two columns"),
        (TIMES.replace('"died"', '"age"'), "columns named twice: age"),
        (EACH.replace('"mass"', '"fluid"'), "a label appears twice"),
        (EACH.replace('["fluid", "mass"]', '["fluid"]'), "labels"),
        ('{ kind = "prophecy" }', "question"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(question: str, why: str) -> None:
    with pytest.raises(SpecInvalid, match=why):
        parse_task_spec(text_of(question, "log_loss").encode())


def test_two_questions_at_once_are_refused() -> None:
    text = text_of(EACH).replace("[data]\n", '[data]\nlabel = "sick"\nclasses = ["no", "yes"]\n')
    with pytest.raises(SpecInvalid, match="leave out label and classes"):
        parse_task_spec(text.encode())


@pytest.mark.parametrize(
    ("question", "metric"), [(AMOUNT, "log_loss"), (TIMES, "auc"), (EACH, "r2"), (EACH, "c_index")]
)
def test_a_metric_of_another_question_is_refused(question: str, metric: str) -> None:
    with pytest.raises(SpecInvalid, match=f"{metric} has no meaning for this data's question: judge by"):
        parse_task_spec(text_of(question, metric).encode())


@pytest.mark.parametrize("question", METRICS)
def test_balanced_classes_are_refused_without_classes(question: str) -> None:
    text = 'statistics = "exact"\n' + text_of(question) + '[training]\nclass_weights = "balanced"\n'
    with pytest.raises(SpecInvalid, match="has no classes to balance"):
        parse_task_spec(text.encode())
