"""A hospital's own file through a mapping: what comes out, and what mappings are refused."""

from __future__ import annotations

import csv
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from consilium_chain.tasks.data_schemas import TableSchema, TextSchema
from consilium_chain.tasks.features import CategoryFeature, NumericFeature
from consilium_chain.tasks.series_schema import SeriesSchema
from consilium_client.data.mapping import parse_mapping, read_mapping
from consilium_client.data.table.reader import RawTable, read_raw
from consilium_client.errors import CellError, DataError
from examples_read import read_table
from hypothesis import given
from hypothesis import strategies as st
from raised_faults import raises_fault

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "data.md"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
HEART, FLAMBY = SHARED / "heart", SHARED / "heart_flamby_split"

SCHEMA = TableSchema(
    features=[
        NumericFeature(name="age", min=20, max=90),
        NumericFeature(name="chol", min=0, max=16),
        CategoryFeature(kind="category", name="pain", values=[1, 2, 3]),
    ],
    label="ill",
    classes=["healthy", "ill"],
)
CLINIC = """
[file]
delimiter = ";"
decimal = ","
encoding = "cp1252"
missing = ["k.A.", "-9"]
[columns]
age = "Alter"
chol = { column = "Cholesterin (mg/dl)", scale = 0.02586, missing = ["0"] }
pain = { column = "Schmerz", codes = { keiner = 1, "mäßig" = 2, stark = 3 } }
ill = { column = "Diagnose", codes = { gesund = 0, "1" = 1, "2" = 1 } }
"""


def raw(tmp_path: Path, content: str, mapping: str, encoding: str = "utf-8") -> RawTable:
    path = tmp_path / "table.csv"
    path.write_bytes(content.encode(encoding))
    return read_raw(path, SCHEMA, parse_mapping(mapping.encode(), SCHEMA))


def test_mapping_reads_a_file_that_was_not_made_for_the_task(tmp_path: Path) -> None:
    table = raw(
        tmp_path,
        "Name;Schmerz;Diagnose;Alter;Cholesterin (mg/dl)\n"
        "Müller;mäßig;gesund;55,5;200\nMaier;k.A.;2,0;-9,0; 0 \nHuber;stark;1;;-9\n",
        CLINIC,
        "cp1252",
    )
    nan = np.nan
    np.testing.assert_array_equal(table.values["age"], [55.5, nan, nan])
    np.testing.assert_allclose(table.values["chol"], [200 * 0.02586, nan, nan], rtol=1e-15)
    np.testing.assert_array_equal(table.values["pain"], [2, nan, 3])
    assert table.labels.tolist() == [0, 1, 1]
    assert (table.source.left_aside, table.source.left_aside_names) == (1, ("Name",))
    assert table.source.names == {
        "age": "Alter", "chol": "Cholesterin (mg/dl)", "pain": "Schmerz", "ill": "Diagnose",
    }  # fmt: skip


def test_mapping_by_position_names_nothing_of_what_is_left_aside(tmp_path: Path) -> None:
    mapping = "[file]\nheader = false\n[columns]\nage = 3\nchol = 2\npain = { absent = true }\nill = 5\n"
    table = raw(tmp_path, "Huber,5.5,60,x,1\nMaier,?,50,y,0\n", mapping)
    np.testing.assert_array_equal(table.values["age"], [60, 50])
    np.testing.assert_array_equal(table.values["chol"], [5.5, np.nan])
    assert np.isnan(table.values["pain"]).all()
    assert (table.source.left_aside, table.source.left_aside_names) == (2, ())
    assert table.source.names == {"age": "column 3", "chol": "column 2", "pain": None, "ill": "column 5"}


def test_absent_column_counts_as_missing_in_every_row(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("chol,pain,ill\n5,1,0\n6,3,1\n")
    table = read_table(path, SCHEMA, mapping=parse_mapping(b"[columns]\nage = { absent = true }", SCHEMA))
    np.testing.assert_array_equal(table.features[:, 0], [np.nan, np.nan])


def test_columns_not_named_are_those_of_the_same_name(tmp_path: Path) -> None:
    strict, mapped = tmp_path / "strict.csv", tmp_path / "mapped.csv"
    strict.write_text("age,chol,pain,ill\n50,5,1,0\n60,?,3,1\n")
    mapped.write_text("ill\tno\tpain\tchol\tage\n0\t7\t1\t5\t50\n1\t7\t3\t?\t60\n")
    mapping = parse_mapping(b'[file]\ndelimiter = "\\t"\n', SCHEMA)
    np.testing.assert_array_equal(
        read_table(strict, SCHEMA).features, read_table(mapped, SCHEMA, mapping=mapping).features
    )


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["{!r}", "{:.17e}", " {!r} "]))
def test_code_is_known_however_its_number_is_written(number: float, form: str) -> None:
    mapping = parse_mapping(f'[columns]\nill = {{ codes = {{ "{number!r}" = 1, other = 0 }} }}'.encode(), SCHEMA)
    assert mapping.reading("ill").number(form.format(number).strip()) == 1
    assert mapping.reading("ill").number(number) == 1


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_decimal_comma_is_a_decimal_point(number: float) -> None:
    reading = parse_mapping(b"[file]\ndecimal = ','\ndelimiter = ';'", SCHEMA).reading("age")
    assert reading.number(repr(number).replace(".", ",")) == number
    if "." in repr(number):
        assert reading.number(repr(number)) in CellError.MESSAGES


REFUSED = {
    "not toml": ("[columns", ["is not TOML"]),
    "unknown key": ("[file]\nseparator = ';'", ["file.separator"]),
    "unknown encoding": ("[file]\nencoding = 'utf-7'", ["file.encoding", "'utf-8', 'latin-1' or 'cp1252'"]),
    "delimiter is decimal": ("[file]\ndecimal = ','", ["delimiter and decimal are the same"]),
    "unknown column": ("[columns]\nweight = 'kg'", ["the task has no column weight"]),
    "two to one": ("[columns]\nage = 'a'\nchol = 'a'", ["age and chol use the same column of the file, a"]),
    "two to one, one by its own name": ("[columns]\nage = 'chol'", ["age and chol use the same column"]),
    "position with header": ("[columns]\nage = 1", ["age needs the name of its column"]),
    "name without header": (
        "[file]\nheader = false\n[columns]\nage = 1\nchol = 2\npain = 3\nill = 'ill'",
        ["ill needs the position of its column"],
    ),
    "no position without header": (
        "[file]\nheader = false\n[columns]\nage = 1\nchol = 2\npain = 3",
        ["ill needs the position of its column"],
    ),
    "position 0": ("[columns]\nage = 0", ["columns.age"]),
    "position true": ("[columns]\nage = true", ["columns.age"]),
    "code that the task has not": ("[columns]\npain = { codes = { a = 1, b = 7.5 } }", ["pain give 7.5"]),
    "label code": ("[columns]\nill = { codes = { a = 1, b = 2 } }", ["ill give 2"]),
    "code of nan": ("[columns]\nage = { codes = { a = nan } }", ["columns.age"]),
    "code means missing": ("[columns]\npain = { codes = { '?' = 1 } }", ['"?" of pain has two meanings']),
    "code of the empty cell": ("[columns]\npain = { codes = { ' ' = 1 } }", ['" " of pain has two meanings']),
    "code twice": ("[columns]\npain = { codes = { '1' = 1, '1.0' = 2 } }", ['"1.0" of pain has two meanings']),
    "codes and scale": ("[columns]\npain = { codes = { a = 1 }, scale = 2 }", ["leave out scale and offset"]),
    "scale of a category": ("[columns]\npain = { scale = 2 }", ["pain holds codes"]),
    "scale of the label": ("[columns]\nill = { offset = 1 }", ["ill holds codes"]),
    "scale 0": ("[columns]\nage = { scale = 0 }", ["scale is 0"]),
    "scale infinite": ("[columns]\nage = { scale = inf }", ["columns.age"]),
    "absent and more": ("[columns]\nage = { absent = true, column = 'a' }", ["remove absent, or all others"]),
    "absent label": ("[columns]\nill = { absent = true }", ["the label ill may not be absent"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_mapping_is_refused_by_name(case: str) -> None:
    text, words = REFUSED[case]
    with raises_fault(DataError, "MappingInvalid") as caught:
        parse_mapping(text.encode(), SCHEMA)
    assert [word for word in words if word not in str(caught.value)] == []


def test_mappings_of_the_guide_hold() -> None:
    blocks = re.findall(r"```toml\n(\[file\].*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) == 4
    for block in blocks[:2]:
        named = [*tomllib.loads(block)["columns"], "disease"]
        features: list[NumericFeature | CategoryFeature] = [
            NumericFeature(name=name, min=0, max=1) for name in named if name not in ("disease", "sex")
        ]
        if "male" in block:
            features.append(CategoryFeature(kind="category", name="sex", values=["female", "male"]))
        else:
            features.append(NumericFeature(name="sex", min=0, max=1))
        parse_mapping(block.encode(), TableSchema(features=features, label="disease", classes=["no", "yes"]))
    texts = TextSchema(kind="text", text="note", label="found", classes=["healthy", "ill"])
    assert parse_mapping(blocks[2].encode(), texts).classes(texts) == {"o.B.": "healthy", "path": "ill"}
    variables = [NumericFeature(name=name, min=0, max=1) for name in ("heart_rate", "lactate")]
    stays = SeriesSchema(kind="series", features=variables, steps=48, step=1, label="died", classes=["no", "yes"])
    assert parse_mapping(blocks[3].encode(), stays).source("heart_rate") == "220045"


def test_codes_of_a_label_are_numbers_of_its_classes(tmp_path: Path) -> None:
    schema = SCHEMA.model_copy(update={"classes": ["healthy", "ill", "very ill"]})
    mapping = parse_mapping(b"[columns]\nill = { codes = { no = 0, yes = 1, very = 2 } }\n", schema)
    path = tmp_path / "table.csv"
    path.write_text("age,chol,pain,ill\n50,5,1,very\n51,5,2,no\n")
    assert read_table(path, schema, mapping=mapping).labels.tolist() == [2, 0]
    with raises_fault(DataError, "MappingInvalid", match="the codes of ill give 3"):
        parse_mapping(b"[columns]\nill = { codes = { no = 0, yes = 3 } }\n", schema)
    with raises_fault(DataError, "MappingInvalid", match="the codes of ill give texts"):
        parse_mapping(b"[columns]\nill = { codes = { no = 'healthy' } }\n", schema)


def test_mapping_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert read_mapping(None, SCHEMA) is None
    for path in (tmp_path / "none.toml", tmp_path):
        with raises_fault(DataError, "MappingInvalid", match=str(path)):
            read_mapping(path, SCHEMA)


# --- UCI heart disease: four hospitals' own files ------------------------------------------------------------------

# In the order of the other copy's columns.
HEART_SCHEMA = TableSchema(
    features=[
        NumericFeature(name="age", min=20, max=90),
        NumericFeature(name="sex", min=0, max=1),
        NumericFeature(name="trestbps", min=60, max=220),
        NumericFeature(name="chol", min=0, max=650),
        NumericFeature(name="fbs", min=0, max=1),
        NumericFeature(name="thalach", min=50, max=220),
        NumericFeature(name="exang", min=0, max=1),
        NumericFeature(name="oldpeak", min=-3, max=7),
        CategoryFeature(kind="category", name="cp", values=[1, 2, 3, 4]),
        CategoryFeature(kind="category", name="restecg", values=[0, 1, 2]),
    ],
    label="disease",
    classes=["healthy", "disease"],
)
HEART_MAPPING = b"""
[file]
header = false
[columns]
age = 1
sex = 2
cp = 3
trestbps = 4
chol = 5
fbs = 6
restecg = 7
thalach = 8
exang = 9
oldpeak = 10
disease = { column = 14, codes = { "0" = 0, "1" = 1, "2" = 1, "3" = 1, "4" = 1 } }
"""


@pytest.mark.skipif(not (HEART.is_dir() and FLAMBY.is_dir()), reason=f"no UCI heart files at {HEART} and {FLAMBY}")
@pytest.mark.parametrize(
    ("hospital", "rows", "complete"),
    [("cleveland", 303, 303), ("hungarian", 294, 261), ("switzerland", 123, 46), ("va", 200, 130)],
)
def test_mapping_reads_heart_files_as_others_did(hospital: str, rows: int, complete: int) -> None:
    """The other copy holds the complete rows alone, split in two, one-hot encoded by somebody else's program."""
    mapping = parse_mapping(HEART_MAPPING, HEART_SCHEMA)
    table = read_table(HEART / f"processed.{hospital}.data", HEART_SCHEMA, mapping=mapping)
    assert table.rows == rows
    ours = np.column_stack([table.features, table.labels])
    ours = ours[~np.isnan(ours).any(axis=1)]
    theirs = np.concatenate([_flamby(FLAMBY / f"{hospital}.{part}.csv") for part in ("train", "test")])
    assert len(ours) == len(theirs) == complete
    assert sorted(map(tuple, ours)) == sorted(map(tuple, theirs))  # bit for bit


def _flamby(path: Path) -> np.ndarray:
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == [
        *(f.name for f in HEART_SCHEMA.features[:8]),
        "cp_2",
        "cp_3",
        "cp_4",
        "restecg_1",
        "restecg_2",
        "y",
    ]
    values = np.array(rows, dtype=np.float64)
    for column, feature in enumerate(HEART_SCHEMA.features[:8]):
        assert isinstance(feature, NumericFeature)
        clamped = values[:, column].clip(feature.min, feature.max)  # Long Beach has a blood pressure of 0
        values[:, column] = (clamped - feature.min) / (feature.max - feature.min)
    return values
