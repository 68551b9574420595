"""Tables, as one of the kinds of examples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.task_spec import TaskSpec

from consilium_client.data.examples import REQUEST, Refusal, Row, unlabelled
from consilium_client.data.kinds import Kind
from consilium_client.data.mapping import read_mapping
from consilium_client.data.table.cells import DEFAULT
from consilium_client.data.table.profile import TableProfile, profile
from consilium_client.data.table.reader import RawTable, Table, checked, encoded, read_raw
from consilium_client.errors import CellError


class TableKind(Kind[RawTable, TableSchema]):
    def read(self, path: Path, schema: TableSchema, mapping: Path | None) -> RawTable:
        return read_raw(path, schema, read_mapping(mapping, schema))

    def examples(self, raw: RawTable, schema: TableSchema) -> Table:
        return checked(raw, schema)

    def profile(self, raw: RawTable, spec: TaskSpec) -> TableProfile:
        return profile(raw, spec)

    def requested(self, rows: Sequence[Row], schema: TableSchema, refusal: Refusal) -> Table:
        """A value is a number, a text that reads as one, or null where it is missing."""
        names = [feature.name for feature in schema.features]
        values = {name: np.array([_number(row[name], at, name) for at, row in enumerate(rows, 1)]) for name in names}
        return encoded(RawTable(REQUEST, "Parquet", values, unlabelled(rows), {}, 0, ()), schema)


def _number(value: Any, at: int, column: str) -> float:
    found: float | str = "ValueNotNumeric"
    if value is None or isinstance(value, str):
        found = DEFAULT.number(value.strip() if value else None)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        try:
            found = DEFAULT.number(float(value))
        except OverflowError:
            found = "ValueNotFinite"
    if isinstance(found, float):
        return found
    raise CellError(found, path=REQUEST, row=at, column=column, counted="row")


KIND = TableKind()
