"""Tables with answers that are no classes: amounts, times until an event, several yes or no."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_chain.tasks.training_specs import TrainingSpec
from consilium_client.data.image.reader import ImageSet
from consilium_client.data.kinds import kind_of, read_examples
from consilium_client.data.mapping import parse_mapping
from consilium_client.data.standardise import public_sums
from consilium_client.errors import CellError, DataError
from consilium_client.models import model_of
from consilium_client.models.training import train
from consilium_core.kinds import of_kind
from PIL import Image
from raised_faults import raises_fault
from task_files import AMOUNT, EACH, METRICS, TIMES, asking


def asked(question: str) -> TaskSpec:
    return parse_task_spec(asking(question).encode())


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
        parse_task_spec(asking(question, metric="log_loss").encode())


def test_two_questions_at_once_are_refused() -> None:
    text = asking(EACH).replace("[data]\n", '[data]\nlabel = "sick"\nclasses = ["no", "yes"]\n')
    with pytest.raises(SpecInvalid, match="leave out label and classes"):
        parse_task_spec(text.encode())


@pytest.mark.parametrize(
    ("question", "metric"), [(AMOUNT, "log_loss"), (TIMES, "auc"), (EACH, "r2"), (EACH, "c_index")]
)
def test_a_metric_of_another_question_is_refused(question: str, metric: str) -> None:
    with pytest.raises(SpecInvalid, match=f"{metric} has no meaning for this data's question: judge by"):
        parse_task_spec(asking(question, metric=metric).encode())


@pytest.mark.parametrize("question", METRICS)
def test_balanced_classes_are_refused_without_classes(question: str) -> None:
    text = 'statistics = "exact"\n' + asking(question) + '[training]\nclass_weights = "balanced"\n'
    with pytest.raises(SpecInvalid, match="has no classes to balance"):
        parse_task_spec(text.encode())


@pytest.mark.parametrize(("question", "contradicts"), [(AMOUNT, False), (TIMES, False), (EACH, True)])
def test_patients_alike_may_live_for_different_times_and_not_have_other_findings(
    question: str, contradicts: bool, tmp_path: Path
) -> None:
    table = {AMOUNT: READ[0][1], TIMES: READ[1][1], EACH: READ[2][1]}[question].replace("60,", "50,")
    spec = asked(question)
    kind = kind_of(spec.data)
    profile = kind.profile(kind.read(written(tmp_path / "rows.csv", table), spec.data, None), spec)
    assert any("under another label" in one.concern for one in profile.findings) == contradicts


# --- texts and images ------------------------------------------------------------------------------------------------

TEXT = 'kind = "text"\nquestion = {}\n[model]\nname = "lora"\n'
IMAGE = 'kind = "images"\nheight = 8\nwidth = 8\nquestion = {}\n[model]\nname = "cnn"\nchannels = [2]\n'
LISTED = [
    (AMOUNT, "file,stay\n0,3\n1,400\n2,7.5\n", [[3], [100], [7.5]]),
    (TIMES, "file,died,days\n0,1,5\n1,0,90\n2,0,0\n", [[5, 1], [90, 0], [0, 0]]),
    (EACH, "file,mass,fluid\n0,1,0\n1,0,0\n2,1,1\n", [[0, 1], [0, 0], [1, 1]]),
]


def other_kind(form: str, question: str) -> TaskSpec:
    text = f'name = "asked"\n[data]\n{form.format(question)}[judging]\nmetric = "{METRICS[question]}"\n'
    return parse_task_spec(text.encode())


def image_file(path: Path, shade: int) -> None:
    Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8) + np.uint8(shade)).save(path)


@pytest.mark.parametrize("form", [TEXT, IMAGE], ids=["texts", "images"])
@pytest.mark.parametrize(("question", "listing", "labels"), LISTED)
def test_a_folders_list_has_the_answers(
    form: str, question: str, listing: str, labels: list[list[float]], tmp_path: Path
) -> None:
    ending = ".txt" if form is TEXT else ".png"
    for at in range(3):
        path = tmp_path / f"{at}{ending}"
        path.write_text(f"text {at}") if form is TEXT else image_file(path, at)
    spec = other_kind(form, question)
    with raises_fault(DataError, "DataFileMissing", "labels.csv"):
        read_examples(tmp_path, spec.data)
    (tmp_path / "labels.csv").write_text(re.sub(r"(?m)^(\d),", rf"\1{ending},", listing))
    assert read_examples(tmp_path, spec.data, allow_one_class=False).labels.tolist() == labels
    kind = kind_of(spec.data)
    assert kind.profile(kind.read(tmp_path, spec.data, None), spec).rows == 3
    wrong = (tmp_path / "labels.csv").read_text().replace(",1\n", ",x\n").replace(",90\n", ",x\n").replace("400", "x")
    (tmp_path / "labels.csv").write_text(wrong)
    with raises_fault(CellError, "ValueNotNumeric"):
        read_examples(tmp_path, spec.data)


def test_a_table_of_texts_has_the_answers(tmp_path: Path) -> None:
    spec = other_kind(TEXT, EACH)
    path = written(tmp_path / "notes.csv", "text,mass,fluid\none,1,no\ntwo,0,yes\n")
    mapping = written(tmp_path / "mapping.toml", "[columns]\nfluid = { codes = { yes = 1, no = 0 } }\n")
    assert read_examples(path, spec.data, mapping).labels.tolist() == [[0, 1], [1, 0]]
    with raises_fault(CellError, "ValueNotNumeric") as caught:
        read_examples(path, spec.data)
    assert (caught.value.values["row"], caught.value.values["column"]) == (2, "fluid")
    with raises_fault(DataError, "MappingInvalid", "the codes of fluid give 2"):
        parse_mapping(b"[columns]\nfluid = { codes = { yes = 2 } }\n", spec.data)


@pytest.mark.parametrize(
    ("question", "labels", "error"),
    [
        (AMOUNT, np.array([1.5, 2.0]), None),
        (AMOUNT, np.array([[1.5], [2.0]]), None),
        (AMOUNT, np.array([1.5, np.nan]), "AnswerMissing"),
        (AMOUNT, np.ones((2, 2)), "ArraysWrong"),
        (TIMES, np.array([[3.0, 1.0], [4.0, 0.0]]), None),
        (TIMES, np.array([[3.0, 1.0], [-4.0, 0.0]]), "TimeNegative"),
        (TIMES, np.array([3.0, 4.0]), "ArraysWrong"),
        (EACH, np.array([[1, 0], [0, 1]]), None),
        (EACH, np.array([[1, 0], [0, 2]]), "AnswerNotYesOrNo"),
        (EACH, np.array([["1", "0"], ["0", "1"]]), "ArraysWrong"),
    ],
)
def test_an_archive_has_the_answers(question: str, labels: np.ndarray, error: str | None, tmp_path: Path) -> None:
    path, spec = tmp_path / "images.npz", other_kind(IMAGE, question)
    images = np.arange(128, dtype=np.uint8).reshape(2, 8, 8)
    np.savez(path, images=images, labels=labels)
    if error is None:
        assert read_examples(path, spec.data).labels.tolist() == labels.reshape(2, -1).tolist()
        return
    with raises_fault(DataError, error) as caught:
        read_examples(path, spec.data)
    if error != "ArraysWrong":
        assert caught.value.values["row"] == 2


@pytest.mark.parametrize("question", METRICS)
def test_a_network_learns_the_answers_of_images(question: str) -> None:
    """The amount is the shade, the event comes to light images, and a half has each label."""
    spec = other_kind(IMAGE, question)
    spec = spec.model_copy(update={"training": TrainingSpec(epochs=30, batch_size=16, learning_rate=0.05)})
    random = np.random.default_rng(0)
    light = random.integers(0, 2, (64, 2))
    images = np.repeat(np.repeat(light[:, None, None, :], 8, axis=2), 4, axis=3).astype(np.uint8) * 200
    labels = {
        AMOUNT: light[:, :1] * 16.0 + 2, TIMES: np.stack([300 - 280.0 * light[:, 0], np.ones(64)], axis=1),
        EACH: light.astype(np.float64),
    }[question]  # fmt: skip
    model = model_of(spec)
    examples = ImageSet(images, labels)
    inputs = model.inputs(examples, public_sums(spec.data))
    trained = train(spec, model.initial(0), inputs, labels, seed=1)
    before, after = (
        model.objective.measures[spec.judging.metric].worth(labels, model.evaluate(one, inputs).predictions)  # type: ignore[index]
        for one in (model.initial(0), trained)
    )
    assert after > max(before, 0.8)
