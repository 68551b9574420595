"""Large CSV files are split by pyarrow, and give the same rows and errors as `csv`, with the same lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_client.data.mapping import Mapping, parse_mapping
from consilium_client.data.table import blocks, columns
from consilium_client.data.table.csv_rows import CsvRows
from consilium_client.data.table.reader import read_raw
from consilium_client.errors import DataError
from hypothesis import given, settings
from hypothesis import strategies as st

SCHEMA = TableSchema.model_validate({
    "label": "ill", "classes": ["no", "yes"],
    "features": [
        {"name": "age", "min": 0, "max": 120}, {"kind": "category", "name": "sex", "values": ["female", "male"]},
    ],
})  # fmt: skip
CELLS = st.sampled_from([
    "1", " 2 ", "", "?", "no", "yes", "male", "female ", '"male"', '"fe\nmale"', '"a,b"', '"1""2"', 'a"b', "é", "\0",
    "nan", "9" * 200_000, "1,2", "\t", "'1'", "\x1c3", "0x1", "1_0", '"', "\r",
])  # fmt: skip

GOOD = st.sampled_from([["50", "male", "no", "7"], ["", "female", "1", "x"], [""]])


def told(path: Path, mapping: Mapping | None) -> object:
    try:
        raw = read_raw(path, SCHEMA, mapping)
        return raw.labels.tolist(), {name: list(values) for name, values in raw.values.items()}, raw.patients
    except DataError as error:
        return str(error)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@settings(max_examples=150, deadline=None)
@given(st.lists(GOOD | st.lists(CELLS, min_size=3, max_size=5), max_size=6), st.booleans(), st.integers(1, 200))
def test_all_rows_and_errors_are_those_of_csv(
    tmp_path_factory: pytest.TempPathFactory, end: str, rows: Sequence[Sequence[str]], has_header: bool, size: int
) -> None:
    path = tmp_path_factory.mktemp("large") / "rows.csv"
    head = [["Alter", "sex", "ill", "case"]] if has_header else [["50", "male", "no", "7"]]
    path.write_bytes(end.join(",".join(row) for row in [*head, *rows]).encode())
    sources = ("Alter", "sex", "ill", "case") if has_header else (1, 2, 3, 4)
    named = dict(
        zip(("age", "sex", "ill", "patient"), (f'"{one}"' if has_header else one for one in sources), strict=True)
    )
    mapping = parse_mapping(
        f"[file]\nheader = {str(has_header).lower()}\npatient = {named['patient']}\n[columns]\nage = {named['age']}\n"
        f"sex = {named['sex']}\nill = {named['ill']}\n".encode(),
        SCHEMA,
    )
    found = told(path, mapping)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "LARGE", 0)
        np.testing.assert_equal(told(path, mapping), found)
        patch.setattr(blocks, "BLOCK", size)
        np.testing.assert_equal(told(path, mapping), found)


def test_plain_lines_are_split_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("age,sex,ill\n" + '50,"male",no\n61, female ,1\n' * 50)
    expected = told(path, None)
    monkeypatch.setattr(columns, "LARGE", 0)
    monkeypatch.setattr(CsvRows, "cells_of", None)
    assert told(path, None) == expected
