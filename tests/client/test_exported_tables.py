"""Tables as hospitals export them: named values, numbers with codes among them, ages from dates, rows of patients."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.features import CategoryFeature, NumericFeature
from consilium_client.data.examples import joined
from consilium_client.data.kinds import kind_of
from consilium_client.data.mapping import Mapping, parse_mapping
from consilium_client.data.standardise import Standardiser, public_sums, sums_of
from consilium_client.data.table.reader import RawTable, Table, checked, read_raw
from consilium_client.data.use import Use
from consilium_client.errors import CellError, DataError, RangeError
from consilium_client.hospital.training import held_out, split
from consilium_core.faults import Fault
from consilium_core.kinds import of_kind
from examples_read import read_table
from pydantic import ValidationError
from raised_faults import raises_fault

SCHEMA = TableSchema(
    features=[
        NumericFeature(name="age", min=0, max=120, missing="indicator"),
        CategoryFeature(kind="category", name="sex", values=["female", "male", "früher"]),
        CategoryFeature(kind="category", name="pain", values=[1, 2]),
    ],
    label="ill",
    classes=["healthy", "ill"],
)
ARE_NUMBERS = TableSchema(
    features=[NumericFeature(name="age", min=0, max=120), CategoryFeature(kind="category", name="pain", values=[1, 2])],
    label="ill",
    classes=["healthy", "ill"],
)


def mapped(text: str) -> Mapping:
    return parse_mapping(text.encode(), SCHEMA)


def place(error: Fault) -> tuple[object, object]:
    return error.values["row"], error.values["column"]


def raw(tmp_path: Path, content: str, mapping: str | None = None) -> RawTable:
    path = tmp_path / "table.csv"
    path.write_text(content)
    return read_raw(path, SCHEMA, None if mapping is None else mapped(mapping))


# --- Named values ----------------------------------------------------------------------------------------------------


def test_a_table_that_has_the_tasks_names_needs_no_codes(tmp_path: Path) -> None:
    text = "age,sex,pain,ill\n50,male,1,ill\n60,female,2,0\n70,?,,1\n80,fru\u0308her,1,1\n"
    found = raw(tmp_path, text)
    np.testing.assert_array_equal(found.values["sex"], [1, 0, math.nan, 2])
    table = checked(found, SCHEMA)
    np.testing.assert_array_equal(table.features[:, 2:4], [[1, 0], [0, 0], [math.nan, math.nan], [0, 1]])
    assert [one.name for one in SCHEMA.encoded] == [
        "age", "age is missing", "sex = male", "sex = früher", "pain = 2",
    ]  # fmt: skip
    assert SCHEMA.reads == "columns age (0 to 120), sex (values female, male, früher), pain (codes 1, 2)"


def test_a_mapping_gives_its_texts_the_tasks_names_beside_the_names_themselves(tmp_path: Path) -> None:
    codes = '[columns]\nsex = { codes = { m = "male", "2" = "female" } }\n'
    found = raw(tmp_path, "age,sex,pain,ill\n50,m,1,1\n60,2.0,2,0\n70,male,1,1\n", codes)
    np.testing.assert_array_equal(found.values["sex"], [1, 0, 1])
    with raises_fault(CellError, "CodeUnknown") as caught:
        raw(tmp_path, "age,sex,pain,ill\n50,w,1,1\n", codes)
    assert place(caught.value) == (2, "sex")


@pytest.mark.parametrize("cell", ["Male", "0", "1", "divers"])
def test_a_text_or_number_that_is_no_name_is_refused(tmp_path: Path, cell: str) -> None:
    with raises_fault(CellError, "CodeUnknown"):
        raw(tmp_path, f"age,sex,pain,ill\n50,{cell},1,1\n")


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ('sex = { codes = { m = "man" } }', "sex give man, but the task has female, male, früher"),
        ("sex = { codes = { m = 1 } }", "sex give 1, but the task has female"),
        ('sex = { codes = { m = "male" }, scale = 2 }', "sex holds codes: leave out scale"),
        ('sex = { codes = { m = "male", " m" = "female" } }', '" m" of sex has two meanings'),
        ("age = { born = 'a' }", "an age needs both dates"),
        ("age = { format = '%Y' }", "format is of dates"),
        ("age = { born = 'a', on = 'b', format = '%d.%m' }", "does not give day, month and year"),
        ("age = { born = 'a', on = 'b', scale = 2 }", "leave out all others"),
        ("sex = { born = 'a', on = 'b' }", "sex holds codes: leave out born and on"),
        ("ill = { born = 'a', on = 'b' }", "the label ill is no age"),
        ("age = 'MRN'\n[file]\npatient = 'MRN'", "age and patient use the same column"),
        ("[file]\nheader = false", "age needs the position"),
    ],
)  # fmt: skip
def test_mappings_that_do_not_fit(columns: str, why: str) -> None:
    with raises_fault(DataError, "MappingInvalid") as caught:
        mapped(f"[columns]\n{columns}\n")
    assert why in str(caught.value)


@pytest.mark.parametrize("values", [["a"], ["a", "a"], ["a", "?"], ["1", "b"], ["a", " b"], ["a", "nan"], ["a", 1], []])
def test_values_that_are_no_names_are_refused(values: list[object]) -> None:
    with pytest.raises(ValidationError):
        CategoryFeature.model_validate({"kind": "category", "name": "x", "values": values})


def test_tasks_with_codes_keep_their_meaning() -> None:
    """Also the bytes by which exact statistics know a schema."""
    quoted = CategoryFeature(kind="category", name="pain", values=["1", "2"])
    assert (quoted.values, quoted.codes, quoted.names) == ([1.0, 2.0], [1.0, 2.0], ["1", "2"])
    assert ARE_NUMBERS.row_encoding == (
        b'{"kind":"numeric","name":"age","min":0.0,"max":120.0}\n{"kind":"category","name":"pain","values":[1.0,2.0]}'
    )


def test_rows_to_predict_have_names(tmp_path: Path) -> None:
    kind, row = kind_of(SCHEMA), {"age": 50, "pain": 1}
    table = of_kind(Table, kind.requested([{**row, "sex": "male"}, {**row, "sex": None}], SCHEMA, ValueError))
    np.testing.assert_array_equal(table.features[:, 2], [1, math.nan])
    for foreign in ("divers", 1):
        with raises_fault(RangeError, "CodeOutOfRange") as caught:
            kind.requested([{**row, "sex": foreign}], SCHEMA, ValueError)
        assert caught.value.values["codes"] == "female, male, früher"
        clamped = of_kind(Table, kind.requested([{**row, "sex": foreign}], SCHEMA, ValueError, clamp=True))
        assert np.isnan(clamped.features[0, 2])
    path = tmp_path / "rows.csv"
    path.write_text("age,sex,pain,MRN\n50,male,1,7\n60,divers,2,\n")
    use = Use(mapped('[file]\npatient = "MRN"\n'), clamp=True)
    used = of_kind(Table, kind.in_use(path, SCHEMA, use).examples)
    np.testing.assert_array_equal(used.features[:, 2], [1, math.nan])


# --- Numbers and codes in one column ---------------------------------------------------------------------------------


def test_a_column_of_numbers_may_have_codes_among_them(tmp_path: Path) -> None:
    """As eICU has ages. Scale and offset are of the numbers; a code has the task's number."""
    codes = '[columns]\nage = { codes = { "> 89" = 90, "<1" = 0 }, scale = 0.5 }\n'
    found = raw(tmp_path, "age,sex,pain,ill\n> 89,male,1,1\n60,male,1,0\n<1,male,1,0\n,male,1,0\n", codes)
    np.testing.assert_array_equal(found.values["age"], [90, 30, 0, math.nan])
    with raises_fault(CellError, "CodeUnknown"):
        raw(tmp_path, "age,sex,pain,ill\n>89,male,1,1\n", codes)


def test_codes_of_numbers_recode_all_of_a_column(tmp_path: Path) -> None:
    codes = '[columns]\nage = { codes = { "1" = 40, "2" = 60 } }\n'
    np.testing.assert_array_equal(raw(tmp_path, "age,sex,pain,ill\n2,male,1,1\n", codes).values["age"], [60])
    with raises_fault(CellError, "CodeUnknown"):
        raw(tmp_path, "age,sex,pain,ill\n3,male,1,1\n", codes)


# --- Ages from dates -------------------------------------------------------------------------------------------------

HEAD = "born,admitted,sex,pain,ill\n"


@pytest.mark.parametrize(
    ("mapping", "born", "admitted", "age"),
    [
        ('born = "born", on = "admitted"', "1950-06-01", "2020-05-31", 69),
        ('born = "born", on = "admitted"', "1950-06-01", "2020-06-01", 70),
        ('born = "born", on = "admitted"', "2000-02-29 08:30", "2021-02-28T23:59:00", 20),
        ('born = "born", on = "admitted"', "", "2021-02-28", math.nan),
        ('born = "born", on = "admitted"', "1950-06-01", "?", math.nan),
        ('born = "born", on = "admitted", missing = ["01.01.1900"]', "01.01.1900", "2020-06-01", math.nan),
        ('born = "born", on = "admitted", format = "%d.%m.%Y"', "01.06.1950", "31.05.2020", 69),
        ('born = "born", on = 2020-12-31', "1950-06-01", "", 70),
        ('born = "born", on = "2020-12-31"', "1950-06-01", "", 70),
    ],
)  # fmt: skip
def test_an_age_is_the_completed_years_between_two_dates(
    tmp_path: Path, mapping: str, born: str, admitted: str, age: float
) -> None:
    found = raw(tmp_path, f"{HEAD}{born},{admitted},male,1,1\n", f"[columns]\nage = {{ {mapping} }}\n")
    np.testing.assert_array_equal(found.values["age"], [age])


@pytest.mark.parametrize(
    ("born", "admitted", "error"),
    [
        ("2021-01-01", "2020-01-01", "AgeImpossible"),
        ("1850-01-01", "2020-01-01", "AgeImpossible"),
        ("01.06.1950", "2020-01-01", "DateMalformed"),
        ("1950-02-30", "2020-01-01", "DateMalformed"),
        ("1950-02-20", "soon", "DateMalformed"),
    ],
)  # fmt: skip
def test_an_impossible_age_is_refused_by_row_and_field(tmp_path: Path, born: str, admitted: str, error: str) -> None:
    with raises_fault(CellError, error) as caught:
        raw(
            tmp_path,
            f"{HEAD}1950-01-01,2020-01-01,male,1,1\n{born},{admitted},male,1,1\n",
            '[columns]\nage = { born = "born", on = "admitted" }\n',
        )
    assert place(caught.value) == (3, "age")
    assert "column age (born and admitted in the file)" in str(caught.value)
    assert born not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_column_of_positions_and_dates(tmp_path: Path) -> None:
    mapping = "[file]\nheader = false\npatient = 1\n[columns]\nage = { born = 2, on = 3 }\nsex = 4\npain = 5\nill = 6\n"
    found = raw(tmp_path, "7,1950-01-01,2020-01-02,male,1,1\n", mapping)
    np.testing.assert_array_equal(found.values["age"], [70])
    assert found.patients == ("7.0",)
    assert found.source.names["age"] == "column 2 and column 3"
    assert found.source.left_aside == 0


# --- Missing values --------------------------------------------------------------------------------------------------


def test_an_indicator_says_that_a_value_is_missing(tmp_path: Path) -> None:
    table = checked(raw(tmp_path, "age,sex,pain,ill\n60,male,1,1\n,male,2,0\n"), SCHEMA)
    np.testing.assert_array_equal(table.features[:, :2], [[0.5, 0], [math.nan, 1]])
    sums = sums_of(table, SCHEMA)
    assert sums.shape == public_sums(SCHEMA).shape == (15,)
    assert sums.reshape(3, -1)[:, 1].tolist() == [2, 1, 1]
    inputs = Standardiser.from_sums(public_sums(SCHEMA)).transform(table)
    np.testing.assert_allclose(inputs[:, :2], [[0, -1], [0, 1]])
    assert b'"missing":"indicator"' in SCHEMA.row_encoding


def test_a_column_without_any_value_is_refused_beside_its_indicator_too(tmp_path: Path) -> None:
    with raises_fault(DataError, "ColumnAllMissing"):
        checked(raw(tmp_path, "age,sex,pain,ill\n,male,1,1\n,male,2,0\n"), SCHEMA)


# --- Rows of one patient ---------------------------------------------------------------------------------------------

PATIENTS = '[file]\npatient = "MRN"\n'


def stays(tmp_path: Path, order: int = 1) -> Table:
    """Three stays of each of 100 patients."""
    rows = [f"{20 + at % 3 + at // 10},male,{at % 2 + 1},{at % 2},P{at // 3}\n" for at in range(300)][::order]
    path = tmp_path / "stays.csv"
    path.write_text("age,sex,pain,ill,MRN\n" + "".join(rows))
    return read_table(path, SCHEMA, mapped(PATIENTS))


def test_all_rows_of_a_patient_are_on_one_side(tmp_path: Path) -> None:
    table, salt = stays(tmp_path), bytes(range(16))
    out = held_out(table, 0.3, salt)
    assert 0.15 < out.mean() < 0.45
    np.testing.assert_array_equal(out, np.repeat(out[::3], 3))
    np.testing.assert_array_equal(held_out(stays(tmp_path, -1), 0.3, salt)[::-1], out)
    assert (held_out(table, 0.3, bytes(16)) != out).any()
    kept, away = (of_kind(Table, part) for part in split(table, 0.3, salt))
    assert not set(kept.patients) & set(away.patients)
    assert len(kept.patients) == kept.rows
    assert joined([kept, away]).rows == 300


def test_a_patients_number_is_in_nothing_that_is_shown_or_sent(tmp_path: Path) -> None:
    table = stays(tmp_path)
    assert "P17" not in repr(table)
    assert not any(b"P17" in row for row in [*table.row_bytes(), *table.contents()])


@pytest.mark.parametrize("cell", ["", "?", " "])
def test_a_row_without_a_patient_is_refused(tmp_path: Path, cell: str) -> None:
    with raises_fault(CellError, "PatientMissing") as caught:
        raw(tmp_path, f"age,sex,pain,ill,MRN\n50,male,1,1,Huber\n50,male,1,1,{cell}\n", PATIENTS)
    assert place(caught.value) == (3, "patient")
    assert "Huber" not in str(caught.value)
