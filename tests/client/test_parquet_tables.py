"""Parquet and CSV are two ways to write one table; what is not plain in Parquet is refused (`test_bad_tables`)."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.features import CategoryFeature, NumericFeature
from consilium_client.data.mapping import parse_mapping
from consilium_client.data.table.reader import read_raw
from consilium_client.errors import DataError
from examples_read import read_table
from hypothesis import given
from hypothesis import strategies as st
from raised_faults import raises_fault

SCHEMA = TableSchema(
    features=[
        NumericFeature(name="age", min=20, max=90),
        NumericFeature(name="chol", min=0, max=650),
        CategoryFeature(kind="category", name="pain", values=[1, 2, 3]),
        CategoryFeature(kind="category", name="sex", values=[0, 1]),
    ],
    label="ill",
    classes=["healthy", "ill"],
)
MAPPING = parse_mapping(
    b"""
    [file]
    missing = ["?", "-9"]
    [columns]
    chol = { column = "serum", scale = 38.67, offset = -0.5 }
    pain = { column = "chest", codes = { none = 1, some = 2, "3" = 3 } }
    """,
    SCHEMA,
)

numbers = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "age": st.none() | st.integers(-(2**63), 2**63 - 1),
            "serum": st.none() | numbers,
            "chest": st.sampled_from([None, "none", "some", "3", "3.0", "?", " some "]),
            "sex": st.none() | st.booleans(),
            "ill": st.integers(0, 1),
            "name": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9),
        }
    ),
    min_size=1,
    max_size=30,
)
TYPES = pyarrow.schema(
    [
        ("ill", pyarrow.int8()),
        ("chest", pyarrow.dictionary(pyarrow.int8(), pyarrow.string())),
        ("age", pyarrow.int64()),
        ("name", pyarrow.large_string()),
        ("serum", pyarrow.float64()),
        ("sex", pyarrow.bool_()),
    ]
)


RECORD = {"age": 50, "serum": 1.0, "chest": "some", "sex": True, "ill": 1, "name": "Mustermann"}


def written(path: Path, records: list[dict[str, object]], types: pyarrow.Schema = TYPES, **options: object) -> Path:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records, types), path, **options)
    return path


@given(RECORDS)
def test_same_table_in_both_forms_gives_the_same_bits(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("forms")
    by_parquet = written(folder / "table", records, row_group_size=7)
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, TYPES.names, lineterminator="\r\n")
    table.writeheader()
    table.writerows(record | {"sex": None if record["sex"] is None else int(record["sex"])} for record in records)
    by_csv = folder / "table.csv"
    by_csv.write_bytes(text.getvalue().encode())
    one, other = (read_raw(path, SCHEMA, MAPPING) for path in (by_csv, by_parquet))
    assert (one.source.kind, other.source.kind) == ("CSV", "Parquet")
    for name, values in one.values.items():
        assert values.tobytes() == other.values[name].tobytes()
    assert one.labels.tobytes() == other.labels.tobytes()
    assert one.source.left_aside_names == other.source.left_aside_names
    assert one.source.names == other.source.names


@pytest.mark.parametrize("kind", ["int8", "uint16", "int64", "uint64", "float16", "float32", "float64", "string"])
def test_types_of_numbers_do_not_matter(tmp_path: Path, kind: str) -> None:
    columns: dict[str, list[int | None]] = {
        "age": [20, 55, None], "chol": [65, 13, 26], "pain": [3, 2, 1], "sex": [1, 0, None], "ill": [0, 1, 1],
    }  # fmt: skip
    arrays = {
        name: pyarrow.array([None if v is None else str(v) for v in values] if kind == "string" else values).cast(
            kind, safe=False
        )
        for name, values in columns.items()
    }
    pyarrow.parquet.write_table(pyarrow.table(arrays), tmp_path / "table.csv")  # the name says nothing
    table = read_table(tmp_path / "table.csv", SCHEMA)
    nan = np.nan
    np.testing.assert_allclose(
        table.features, [[0, 0.1, 0, 1, 1], [0.5, 0.02, 1, 0, 0], [nan, 0.04, 0, 0, nan]], rtol=1e-15
    )
    assert table.labels.tolist() == [0, 1, 1]


def test_rows_are_counted_on_over_row_groups_and_batches(tmp_path: Path) -> None:
    records = [RECORD] * 8765 + [RECORD | {"chest": "so so"}] + [RECORD] * 9
    with pytest.raises(DataError) as caught:
        read_table(written(tmp_path / "table", records, row_group_size=700), SCHEMA, mapping=MAPPING)
    assert "row 8766, column pain (chest in the file)" in str(caught.value)


def test_columns_left_aside_are_not_looked_at(tmp_path: Path) -> None:
    """Neither their types nor their bytes."""
    plain = {"age": [50, 60], "chol": [1, 2], "pain": [1, 2], "sex": [0, 1], "ill": [0, 1]}
    dates = pyarrow.array([1, 2], pyarrow.date32())
    letters = pyarrow.array([{"a": [b"1"]}, None])
    pyarrow.parquet.write_table(pyarrow.table({"born": dates, **plain, "letters": letters}), tmp_path / "table")
    table = read_raw(tmp_path / "table", SCHEMA, parse_mapping(b"", SCHEMA))
    assert table.source.left_aside_names == ("born", "letters")
    assert table.rows == 2


@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_encrypted_file_is_refused_as_such(tmp_path: Path, plaintext_footer: bool) -> None:
    encryption = pytest.importorskip("pyarrow.parquet.encryption")

    class OneKey(encryption.KmsClient):  # type: ignore[misc,name-defined]
        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
            return key_bytes.hex().encode()

        def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
            return bytes.fromhex(wrapped_key.decode())

    settings = encryption.EncryptionConfiguration(
        footer_key="footer", column_keys={"column": list(TYPES.names)}, plaintext_footer=plaintext_footer
    )
    factory = encryption.CryptoFactory(lambda _: OneKey())
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), settings)
    path = written(tmp_path / "table", [RECORD], encryption_properties=properties)
    with raises_fault(DataError, "ParquetUnreadable") as caught:
        read_table(path, SCHEMA, mapping=MAPPING)
    assert caught.value.values["why"] == "it is encrypted"


def test_index_beyond_a_dictionary_is_refused_by_name(tmp_path: Path) -> None:
    path = written(tmp_path / "table", [RECORD] * 50, compression="none")
    raw = bytearray(path.read_bytes())
    raw[66] = raw[86] = 0
    path.write_bytes(raw)
    with raises_fault(DataError, "ParquetUnreadable", match="damaged"):
        read_table(path, SCHEMA, mapping=MAPPING)


@given(st.data())
def test_damaged_file_gives_a_table_or_a_named_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = written(tmp_path_factory.mktemp("damaged") / "table", [RECORD] * 50, compression="none")
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(4, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(raw[: data.draw(st.integers(len(raw) - 2, len(raw)))]))
    try:
        read_table(path, SCHEMA, mapping=MAPPING)
    except DataError as error:
        chain: BaseException | None = error
        while chain is not None:
            assert "Mustermann" not in str(chain)
            chain = chain.__cause__ or chain.__context__


def test_pyarrow_is_loaded_for_parquet_alone(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("age,chol,pain,sex,ill\n50,200,1,1,0\n")
    written(tmp_path / "table.parquet", [RECORD])
    program = f"""
import sys
from pathlib import Path
sys.path[:0] = {sys.path!r}
from consilium_client.data.table.reader import read_raw
from consilium_client.data.mapping import parse_mapping
from consilium_chain.tasks.data_schemas import TableSchema
schema = TableSchema.model_validate_json({SCHEMA.model_dump_json()!r})
read_raw(Path({str(tmp_path / "table.csv")!r}), schema)
assert "pyarrow" not in sys.modules and "pandas" not in sys.modules
mapping = parse_mapping(b'[columns]\\nchol = "serum"\\npain = {{ column = "chest", codes = {{ some = 1 }} }}', schema)
read_raw(Path({str(tmp_path / "table.parquet")!r}), schema, mapping)
assert "pyarrow" in sys.modules and "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
