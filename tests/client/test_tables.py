"""The results of `read_table`; `test_bad_tables` has the tables that it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.features import CategoryFeature, NumericFeature
from consilium_client.data.kinds import read_examples
from consilium_client.errors import DataError
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
    assert set(table.labels.tolist()) == {0, 1}


def test_read_table_accepts_byte_order_mark_and_mixed_line_ends(tmp_path: Path) -> None:
    path = _write(tmp_path / "t.csv", b'\xef\xbb\xbfage,pain,ill\r\n55,1,1\r\n\r\n56,2,0\r57,"3",1\n58, 1 ,0')
    assert read_table(path, SCHEMA).labels.tolist() == [1, 0, 1, 0]


def test_read_table_one_class_only_where_both_are_needed(tmp_path: Path) -> None:
    path = _write(tmp_path / "t.csv", "age,pain,ill\n55,1,1\n56,1,1\n")
    assert read_table(path, SCHEMA).labels.tolist() == [1, 1]
    with raises_fault(DataError, "OneClassOnly") as caught:
        read_examples(path, SCHEMA, allow_one_class=False)
    assert caught.value.values["label"] == "ill"


def test_labels_are_numbers_or_names_of_classes(tmp_path: Path) -> None:
    """A number is never a name: in the third schema, 1 is the class named 3."""
    path = tmp_path / "rows.csv"
    for classes, cells, expected in (
        (["no", "yes"], ["no", " yes ", "1", "0.0"], [0, 1, 1, 0]),
        (["gesund", "Gefäß"], ["Gefa\u0308ß", "gesund"], [1, 0]),
        (["2", "3"], ["1", "0"], [1, 0]),
    ):
        schema = TableSchema(features=[NumericFeature(name="age", min=0, max=120)], label="ill", classes=classes)
        path.write_text("age,ill\n" + "".join(f"50,{cell}\n" for cell in cells))
        assert read_table(path, schema).labels.tolist() == expected
    schema = TableSchema(features=[NumericFeature(name="age", min=0, max=120)], label="ill", classes=["no", "2"])
    for cell in ("3", "No", "yes", "true"):
        path.write_text(f"age,ill\n50,no\n50,{cell}\n")
        with raises_fault(DataError, "LabelOutOfSchema"):
            read_table(path, schema)
