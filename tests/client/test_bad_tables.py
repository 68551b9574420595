"""Every way in which a hospital's file may be wrong: an error of its own, where the fault is, and nothing of a cell."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.features import CategoryFeature, NumericFeature
from consilium_client.data.examples import MOST_ROWS
from consilium_client.data.kinds import read_examples
from consilium_client.data.mapping import parse_mapping
from consilium_client.data.table.csv_rows import MOST_OF_CELL, MOST_OF_LINE
from consilium_client.data_faults import QUERIES
from consilium_client.errors import CellError, DataError, ExampleError, FolderError
from examples_read import read_table
from raised_faults import raises_fault

SCHEMA = TableSchema(
    features=[
        NumericFeature(name="age", min=20, max=90),
        CategoryFeature(kind="category", name="pain", values=[1, 2, 3]),
    ],
    label="ill",
    classes=["healthy", "ill"],
)
SECRET = "Mustermann"  # a cell, or in one, of every table below that has room for it


def zipped() -> bytes:
    with zipfile.ZipFile(stream := io.BytesIO(), "w") as archive:
        archive.writestr(f"{SECRET}.xml", SECRET)
    return stream.getvalue()


def parquet(**columns: object) -> bytes:
    stream = io.BytesIO()
    plain = {"age": [55.0], "pain": [1], "ill": [1]}
    pyarrow.parquet.write_table(pyarrow.table(plain | columns), stream)
    return stream.getvalue()


def parquet_of(kind: pyarrow.DataType, value: object) -> bytes:
    return parquet(age=pyarrow.array([value], kind))


def damaged(raw: bytes) -> bytes:
    """The first page's header is not one."""
    return raw[:4] + bytes(40) + raw[44:]


HEAD = "age,pain,ill\n"
GERMAN = '[file]\ndelimiter = ";"\ndecimal = ","\n'
CODED = '[columns]\nill = { column = "dx", codes = { B = 0, M = 1 } }\npain = { codes = { none = 1, some = 2 } }\n'
DATED = '[columns]\nage = { born = "born", on = "seen" }\n'
BY_POSITION = "[file]\nheader = false\n[columns]\nage = 1\npain = 2\nill = 3\n"

CASES: dict[str, tuple[str | bytes, str, str, dict[str, object]]] = {
    # Files that are no CSV
    "no bytes": ("", "", "DataFileEmpty", {}),
    "blank lines": ("\n\r\n\n", "", "DataFileEmpty", {}),
    "header only": (HEAD, "", "DataFileEmpty", {}),
    "no row, by position": ("\n", BY_POSITION, "DataFileEmpty", {}),
    "gzip": (gzip.compress(f"{HEAD}{SECRET},1,1\n".encode()), "", "FileKindWrong", {"kind": "a gzip archive"}),
    "xlsx": (zipped(), "", "FileKindWrong", {"kind": "an Excel workbook (.xlsx) or another zip archive"}),
    "xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "", "FileKindWrong", {"kind": "an old Excel workbook (.xls)"}),
    "utf-16": (f"{HEAD}{SECRET},1,1\n".encode("utf-16"), "", "EncodingWrong", {"line": 1}),
    "utf-16 without a mark": (f"{HEAD}{SECRET},1,1\n".encode("utf-16-be"), "", "EncodingWrong", {"line": 1}),
    "latin-1": (f"{HEAD}1,1,1\n{SECRET}\xfc,1,1\n".encode("latin-1"), "", "EncodingWrong", {"line": 3}),
    "latin-1, quoted over lines": (b'age,pain,ill\n1,"\n\n\xff",1\n', "", "EncodingWrong", {"line": 4}),
    "not cp1252": (
        b"age,pain,ill\n\x81,1,1\n", '[file]\nencoding = "cp1252"', "EncodingWrong", {"encoding": "CP1252"},
    ),
    "zero byte": (f"{HEAD}{SECRET}\0,1,1\n", "", "NullByte", {"line": 2}),
    "long line": (
        HEAD + f"{SECRET}," * 100_000, "", "LineTooLong", {"line": 2, "what": "line", "at_most": MOST_OF_LINE},
    ),
    "long cell": (
        HEAD + f"{'9' * (MOST_OF_CELL + 1)},1,1\n", "", "LineTooLong",
        {"line": 2, "what": "cell", "at_most": MOST_OF_CELL},
    ),
    "short line": (f"{HEAD}1,1,1\n{SECRET},1\n", "", "LineWidthWrong", {"line": 3, "found": 2, "expected": 3}),
    "wide line": (f"{HEAD}1,1,1,{SECRET}\n", "", "LineWidthWrong", {"line": 2, "found": 4, "expected": 3}),
    "wide line, by position": (f"1,1,1\n1,1,1,{SECRET}\n", BY_POSITION, "LineWidthWrong", {"line": 2}),
    "decimal comma unquoted": (f"{HEAD}5,5,1,1\n", "", "LineWidthWrong", {"line": 2, "found": 4}),
    "open quote": (f'{HEAD}1,1,1\n{SECRET},"1,1\n1,1,1\n', "", "QuoteNotClosed", {"line": 3}),
    "open quote, long": (f'{HEAD}1,"1,1\n' + f"{SECRET},1,1\n" * 20_000, "", "QuoteNotClosed", {"line": 2}),
    "quote amidst": (f'{HEAD}1,1,1\n"{SECRET}"1,1,1\n', "", "DataFileMalformed", {"line": 3}),
    # Headers
    "no header": (f"{SECRET},1,1\n55,1,1\n", "", "HeaderMissing", {"line": 1}),
    "no header, mapped": (f"{SECRET},1,1\n55,1,1\n", '[columns]\nage = "Alter"', "HeaderMissing", {"line": 1}),
    "semicolons": (f"age;pain;ill\n{SECRET};1;1\n", "", "DelimiterWrong", {"expected": ",", "found": ";"}),
    "tabs": (f"age\tpain\till\n{SECRET}\t1\t1\n", "", "DelimiterWrong", {"found": "\t"}),
    "commas where not": (
        f"{SECRET},1,1\n", BY_POSITION.replace("[file]", '[file]\ndelimiter = ";"'), "DelimiterWrong",
        {"expected": ";", "found": ","},
    ),
    "column missing": ("age,ill\n55,1\n", "", "ColumnsWrong", {"missing": ("pain",)}),
    "mapped column missing": (
        f"{HEAD}{SECRET},1,1\n", '[columns]\nage = "Alter"', "ColumnsWrong", {"missing": ("Alter",)},
    ),
    "position missing": (f"{SECRET},1\n", BY_POSITION, "ColumnsWrong", {"missing": ("column 3",)}),
    "column unexpected": (f"age,pain,ill,name\n55,1,1,{SECRET}\n", "", "ColumnsWrong", {"unexpected": ("name",)}),
    "column unnamed": (f"age,pain,ill,\n55,1,1,{SECRET}\n", "", "ColumnsWrong", {"unexpected": ("",)}),
    "column twice": (f"age,age,pain,ill\n{SECRET},1,1,1\n", "", "ColumnsWrong", {"duplicate": ("age",)}),
    "mapped column twice": ("dx,age,dx,pain\nB,1,M,none\n", CODED, "ColumnsWrong", {"duplicate": ("dx",)}),
    # Cells
    "text": (f"{HEAD}55,1,1\n{SECRET},1,1\n", "", "ValueNotNumeric", {"row": 3, "column": "age"}),
    "text, by position": (f"55,1,1\n{SECRET},1,1\n", BY_POSITION, "ValueNotNumeric", {"row": 2, "column": "age"}),
    "category text": (f"{HEAD}55,{SECRET},1\n", "", "ValueNotNumeric", {"row": 2, "column": "pain"}),
    "digit groups": (f"{HEAD}1_0,1,1\n", "", "ValueNotNumeric", {"row": 2, "column": "age"}),
    "after a blank line": (f"{HEAD}\n55,1,1\n{SECRET},1,1\n", "", "ValueNotNumeric", {"row": 4, "column": "age"}),
    "date": (f"{HEAD}1971-05-17,1,1\n", "", "ValueIsDate", {"row": 2, "column": "age"}),
    "german date": (f"{HEAD}17.05.1971,1,1\n", "", "ValueIsDate", {"row": 2, "column": "age"}),
    "american date": (f"{HEAD}05/17/71,1,1\n", "", "ValueIsDate", {"row": 2, "column": "age"}),
    "date and time": (f"{HEAD}1971-05-17T10:20,1,1\n", "", "ValueIsDate", {"row": 2, "column": "age"}),
    "time": (f"{HEAD}10:20,1,1\n", "", "ValueIsDate", {"row": 2, "column": "age"}),
    "decimal comma": (f'{HEAD}"5718,5",1,1\n', "", "DecimalMarkWrong", {"row": 2, "column": "age"}),
    "decimal point": ("age;pain;ill\n5718.5;1;1\n", GERMAN, "DecimalMarkWrong", {"row": 2, "column": "age"}),
    "thousands": (f'{HEAD}"5,718.5",1,1\n', "", "ThousandsSeparator", {"row": 2, "column": "age"}),
    "german thousands": ("age;pain;ill\n5.718,5;1;1\n", GERMAN, "ThousandsSeparator", {"row": 2, "column": "age"}),
    "swiss thousands": (f"{HEAD}5'718,1,1\n", "", "ThousandsSeparator", {"row": 2, "column": "age"}),
    "spaced thousands": (f"{HEAD}5\u202f718,1,1\n", "", "ThousandsSeparator", {"row": 2, "column": "age"}),
    "nan": (f"{HEAD}nan,1,1\n", "", "ValueNotFinite", {"row": 2, "column": "age"}),
    "infinite": (f"{HEAD}1,-inf,1\n", "", "ValueNotFinite", {"row": 2, "column": "pain"}),
    "overflow": (f"{HEAD}1e999,1,1\n", "", "ValueNotFinite", {"row": 2, "column": "age"}),
    "huge integer": (f"{HEAD}{'5718' * 5000},1,1\n", "", "ValueNotFinite", {"row": 2, "column": "age"}),
    "overflow by scale": (
        f"{HEAD}1e200,1,1\n", "[columns]\nage = { scale = 1e200 }", "ValueNotFinite", {"row": 2, "column": "age"},
    ),
    "code unknown": (f"age,dx,pain\n1,B,none\n1,M,{SECRET}\n", CODED, "CodeUnknown", {"row": 3, "column": "pain"}),
    "label's code unknown": (f"age,dx,pain\n1,{SECRET},none\n", CODED, "CodeUnknown", {"row": 2, "column": "ill"}),
    "label two": (f"{HEAD}55,1,2\n", "", "LabelOutOfSchema", {"row": 2, "column": "ill"}),
    "label half": (f"{HEAD}55,1,0.5\n", "", "LabelOutOfSchema", {"row": 2, "column": "ill"}),
    "label missing": (f"{HEAD}55,1,\n", "", "LabelOutOfSchema", {"row": 2, "column": "ill"}),
    "label nan": (f"{HEAD}55,1,nan\n", "", "LabelOutOfSchema", {"row": 2, "column": "ill"}),
    "label text": (f"{HEAD}55,1,{SECRET}\n", "", "LabelOutOfSchema", {"row": 2, "column": "ill"}),
    "mapped label missing": ("age,dx,pain\n1,?,none\n", CODED, "LabelOutOfSchema", {"row": 2, "column": "ill"}),
    "date malformed": (
        "born,seen,pain,ill\n1971-05-17,5718,1,1\n", DATED, "DateMalformed", {"row": 2, "column": "age"},
    ),
    "age impossible": (
        "born,seen,pain,ill\n1971-05-17,1970-01-01,1,1\n", DATED, "AgeImpossible", {"row": 2, "column": "age"},
    ),
    "patient missing": (
        f"{HEAD[:-1]},MRN\n55,1,1,{SECRET}\n55,1,1,\n", '[file]\npatient = "MRN"', "PatientMissing",
        {"row": 3, "column": "patient"},
    ),
    # Tables
    "column out of range": (HEAD + "5718,1,1\n55,1,1\n" * 9, "", "ColumnOutOfRange", {"column": "age"}),
    "column all missing": (f"{HEAD}?,1,1\n,2,0\n", "", "ColumnAllMissing", {"column": "age"}),
    "no category known": (f"{HEAD}1,7,1\n2,,0\n", "", "ColumnAllMissing", {"column": "pain"}),
    "too many rows": (HEAD + "55,1,1\n" * (MOST_ROWS + 1), "", "TooManyRows", {"at_most": MOST_ROWS}),
    # Parquet
    "parquet cut off": (parquet(name=[SECRET])[:-9], "", "ParquetUnreadable", {}),
    "parquet damaged": (damaged(parquet(age=[SECRET])), "", "ParquetUnreadable", {}),
    "parquet magic only": (b"PAR1", "", "ParquetUnreadable", {}),
    "parquet encrypted": (b"PARE" + SECRET.encode() * 9 + b"\x10\0\0\0PARE", "", "ParquetUnreadable", {}),
    "parquet without rows": (
        parquet(age=pyarrow.array([], "double"), pain=pyarrow.array([], "double"), ill=pyarrow.array([], "double")),
        "", "DataFileEmpty", {},
    ),
    "parquet column missing": (parquet(), '[columns]\nage = "Alter"', "ColumnsWrong", {"missing": ("Alter",)}),
    "parquet column unexpected": (parquet(name=[SECRET]), "", "ColumnsWrong", {"unexpected": ("name",)}),
    "parquet by position": (parquet(), BY_POSITION, "MappingInvalid", {}),
    "parquet date": (
        parquet_of(pyarrow.date32(), 571), "", "ColumnTypeWrong", {"column": "age", "kind": "date32[day]"},
    ),
    "parquet time stamp": (parquet_of(pyarrow.timestamp("ms"), 5718), "", "ColumnTypeWrong", {"kind": "timestamp[ms]"}),
    "parquet decimal": (
        parquet_of(pyarrow.decimal128(9, 2), 5718), "", "ColumnTypeWrong", {"kind": "decimal128(9, 2)"},
    ),
    "parquet list": (
        parquet_of(pyarrow.list_(pyarrow.float64()), [5718.0]), "", "ColumnTypeWrong",
        {"kind": "list<element: double>"},
    ),
    "parquet bytes": (parquet_of(pyarrow.binary(), SECRET.encode()), "", "ColumnTypeWrong", {"kind": "binary"}),
    "parquet text": (parquet(age=[SECRET]), "", "ValueNotNumeric", {"row": 1, "column": "age"}),
    "parquet nan": (parquet(age=[float("nan")]), "", "ValueNotFinite", {"row": 1}),
    "parquet label": (parquet(ill=[5718]), "", "LabelOutOfSchema", {"row": 1, "column": "ill"}),
    "parquet label null": (
        parquet(ill=pyarrow.array([None], "int8")), "", "LabelOutOfSchema", {"row": 1},
    ),
    "parquet all null": (parquet(age=[None]), "", "ColumnAllMissing", {"column": "age"}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bad_table_is_refused_by_name(tmp_path: Path, case: str) -> None:
    content, mapping, error, values = CASES[case]
    path = tmp_path / "table"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataError) as caught:
        read_table(path, SCHEMA, mapping=parse_mapping(mapping.encode(), SCHEMA) if mapping else None)
    assert caught.value.name == error
    assert {name: caught.value.values[name] for name in values} == values
    nothing_leaks(caught.value)
    said = str(caught.value)
    assert len(said) < 600
    counted = "row" if case.startswith("parquet") else "line"
    place = {"row": f"{counted} {values.get('row')}", "line": f"line {values.get('line')}"}
    assert [words for name, words in place.items() if name in values and words not in said] == []
    if error != "TooManyRows":
        assert str(path) in said
    assert "; " in said  # what to do about it


def test_every_error_has_a_case() -> None:
    of_texts_and_images = {*FolderError.MESSAGES, *ExampleError.MESSAGES, "ArraysWrong", "LabelUnknown"}
    known = {*DataError.MESSAGES, *CellError.MESSAGES} | of_texts_and_images
    of_questions = {"AnswerMissing", "AnswerNotYesOrNo", "TimeNegative"}  # tests/client/test_answers.py
    elsewhere = {
        "DataFileMissing",
        "TooFewRows",
        "OneClassOnly",
        "RemarksUnanswered",
        "TooFewHeldOut",
    } | of_texts_and_images
    elsewhere |= of_questions | set(QUERIES)  # tests/client/test_bad_queries.py, test_query_servers.py
    elsewhere |= {"SeriesTooLarge", "StayMissing", "StayTwice", "TimeMissing"}  # tests/client/test_series_read.py
    elsewhere |= {"TimeSkipped", "ZoneMissing", "ZoneTwice"}  # tests/client/test_series_dates.py
    assert {error for _, _, error, _ in CASES.values()} == known - elsewhere


def nothing_leaks(error: BaseException | None) -> None:
    """No cell in the message, nor in any error chained to it, shown or hidden."""
    while error is not None:
        for content in (SECRET, "5718", "5'718", "1971", "10:20"):
            assert content not in str(error).replace(str(MOST_OF_CELL), "")
            assert content not in repr(error.args)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        (lambda path: None, "there is no such file"),
        (lambda path: path.mkdir(), "Is a directory"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
    ],
    ids=["missing", "directory", "loop"],
)
def test_file_that_cannot_be_read_is_refused_by_name(
    tmp_path: Path, prepare: Callable[[Path], object], why: str
) -> None:
    path = tmp_path / "table.csv"
    prepare(path)
    with raises_fault(DataError, "DataFileMissing") as caught:
        read_table(path, SCHEMA)
    assert caught.value.values["why"] == why
    nothing_leaks(caught.value)


def test_file_of_another_user_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(SECRET)
    path.chmod(0)
    user = os.geteuid()
    try:
        if user == 0:  # who may read everything
            os.seteuid(65_534)
        with raises_fault(DataError, "DataFileMissing") as caught:
            read_table(path, SCHEMA)
    finally:
        os.seteuid(user)
    assert caught.value.values["why"] == "Permission denied"


def test_table_that_is_not_enough_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"{HEAD}55,1,1\n56,1,1\n")
    with raises_fault(DataError, "OneClassOnly") as one:
        read_examples(path, SCHEMA, allow_one_class=False)
    assert one.value.values["label"] == "ill"


def test_many_unexpected_columns_are_not_all_listed(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("age,pain,ill," + ",".join(f"x{i}" for i in range(5000)) + "\n")
    with raises_fault(DataError, "ColumnsWrong") as caught:
        read_table(path, SCHEMA)
    assert "x9 and 4990 more" in str(caught.value)
