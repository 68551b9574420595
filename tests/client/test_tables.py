"""What `read_table` accepts, and the named error for each thing it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from consilium_chain.task_spec import CategoryFeature, DataSchema, NumericFeature
from consilium_client.errors import (
    ColumnsWrong,
    DataError,
    DataFileEmpty,
    DataFileMalformed,
    DataFileMissing,
    LabelOutOfSchema,
    OneClassOnly,
    TooFewRows,
    ValueNotFinite,
    ValueNotNumeric,
)
from consilium_client.tables import read_table

SCHEMA = DataSchema(
    features=[
        NumericFeature(name="age", min=20, max=90),
        CategoryFeature(kind="category", name="pain", values=[1, 2, 3]),
    ],
    label="ill",
    classes=["healthy", "ill"],
)
SECRET = "Mustermann"


def _write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_read_table_encodes_in_schema_order(tmp_path: Path) -> None:
    path = _write(tmp_path / "t.csv", "ill,pain,age\n1,2.0,55\n0, 1 ,120\n1,3,?\n0,,.5e2\n1,7,10\n")
    table = read_table(path, SCHEMA)
    nan = np.nan
    expected = [[0.5, 1, 0], [1, 0, 0], [nan, 0, 1], [3 / 7, nan, nan], [0, nan, nan]]
    np.testing.assert_allclose(table.features, np.array(expected))
    assert table.labels.tolist() == [1, 0, 1, 0, 1]
    assert table.labels.dtype == np.int64
    assert table.classes_present == (0, 1)


def test_read_table_accepts_byte_order_mark_and_windows_lines(tmp_path: Path) -> None:
    path = _write(tmp_path / "t.csv", b"\xef\xbb\xbfage,pain,ill\r\n55,1,1\r\n\r\n56,2,0\r\n")
    assert read_table(path, SCHEMA).rows == 2


REFUSED: list[tuple[str, str | bytes, type[DataError], dict[str, object]]] = [
    ("zero_bytes", "", DataFileEmpty, {}),
    ("header_only", "age,pain,ill\n", DataFileEmpty, {}),
    ("short_line", "age,pain,ill\n1,1,1\n1,1\n", DataFileMalformed, {"line": 3}),
    ("long_line", "age,pain,ill\n1,1,1,1\n", DataFileMalformed, {"line": 2}),
    ("open_quote", 'age,pain,ill\n1,"1,1\n', DataFileMalformed, {"line": 2}),
    ("not_utf8", b"age,pain,ill\n1,1,1\n\xff,1,1\n", DataFileMalformed, {"line": 3}),
    ("no_header", f"{SECRET},1,1\n55,1,1\n", DataFileMalformed, {"line": 1}),
    ("semicolons", "age;pain;ill\n55;1;1\n", DataFileMalformed, {"line": 1}),
    ("column_missing", "age,ill\n55,1\n", ColumnsWrong, {"missing": ("pain",)}),
    ("column_unexpected", f"age,pain,ill,name\n55,1,1,{SECRET}\n", ColumnsWrong, {"unexpected": ("name",)}),
    ("column_twice", "age,age,pain,ill\n55,1,1,1\n", ColumnsWrong, {"duplicate": ("age",)}),
    ("column_unnamed", "age,pain,ill,\n55,1,1,\n", ColumnsWrong, {"unexpected": ("",)}),
    ("text", f"age,pain,ill\n55,1,1\n{SECRET},1,1\n", ValueNotNumeric, {"row": 3, "column": "age"}),
    ("decimal_comma", 'age,pain,ill\n"5,5",1,1\n', ValueNotNumeric, {"row": 2, "column": "age"}),
    ("digit_groups", "age,pain,ill\n1_0,1,1\n", ValueNotNumeric, {"row": 2, "column": "age"}),
    ("category_text", f"age,pain,ill\n55,{SECRET},1\n", ValueNotNumeric, {"row": 2, "column": "pain"}),
    ("nan", "age,pain,ill\nnan,1,1\n", ValueNotFinite, {"row": 2, "column": "age"}),
    ("inf", "age,pain,ill\n1,-inf,1\n", ValueNotFinite, {"row": 2, "column": "pain"}),
    ("overflow", "age,pain,ill\n1e999,1,1\n", ValueNotFinite, {"row": 2, "column": "age"}),
    ("after_blank_line", "age,pain,ill\n\n55,1,1\nx,1,1\n", ValueNotNumeric, {"row": 4, "column": "age"}),
    ("label_two", "age,pain,ill\n55,1,2\n", LabelOutOfSchema, {"row": 2, "column": "ill"}),
    ("label_half", "age,pain,ill\n55,1,0.5\n", LabelOutOfSchema, {"row": 2, "column": "ill"}),
    ("label_missing", "age,pain,ill\n55,1,\n", LabelOutOfSchema, {"row": 2, "column": "ill"}),
    ("label_nan", "age,pain,ill\n55,1,nan\n", LabelOutOfSchema, {"row": 2, "column": "ill"}),
    ("label_text", f"age,pain,ill\n55,1,{SECRET}\n", LabelOutOfSchema, {"row": 2, "column": "ill"}),
]


@pytest.mark.parametrize(
    ("content", "error", "values"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_read_table_refuses_by_name(
    tmp_path: Path, content: str | bytes, error: type[DataError], values: dict[str, object]
) -> None:
    path = _write(tmp_path / "t.csv", content)
    with pytest.raises(DataError) as caught:
        read_table(path, SCHEMA)
    assert type(caught.value) is error
    assert {name: getattr(caught.value, name) for name in values} == values
    assert _nothing_leaks(caught.value)


def _nothing_leaks(error: BaseException | None) -> bool:
    """No cell in the message, nor in any error chained to it, shown or hidden."""
    while error is not None:
        if SECRET in str(error) or SECRET in repr(error.args):
            return False
        error = error.__cause__ or error.__context__
    return True


def test_read_table_refuses_missing_file_and_directory(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.csv", tmp_path):
        with pytest.raises(DataFileMissing):
            read_table(path, SCHEMA)


def test_read_table_one_class_only_where_both_are_needed(tmp_path: Path) -> None:
    path = _write(tmp_path / "t.csv", "age,pain,ill\n55,1,1\n56,1,1\n")
    assert read_table(path, SCHEMA).classes_present == (1,)
    with pytest.raises(OneClassOnly) as caught:
        read_table(path, SCHEMA, allow_one_class=False)
    assert caught.value.present == 1


def test_read_table_too_few_rows(tmp_path: Path) -> None:
    path = _write(tmp_path / "t.csv", "age,pain,ill\n55,1,1\n56,1,0\n")
    assert read_table(path, SCHEMA, minimum_rows=2).rows == 2
    with pytest.raises(TooFewRows) as caught:
        read_table(path, SCHEMA, minimum_rows=3)
    assert (caught.value.rows, caught.value.at_least) == (2, 3)
