"""A hospital's or voter's file becomes a typed table: the only door through which rows enter.

The file is CSV or Parquet, told apart by its first bytes. Without a mapping its columns are the schema's features and
label in any order, and nothing else, so that no patient number slips in; a CSV file has a header line, UTF-8, commas.
With a mapping (`mapping`) the file is as it says, and columns that are not the task's are left aside. An empty cell or
`?` is a missing value, in Parquet a null too.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from consilium_chain.tasks.data_schemas import CategoryFeature, Feature, TableSchema
from consilium_chain.tasks.task_spec import STATISTICS_RANGE
from numpy.typing import NDArray

from consilium_client.data.examples import Examples, require_classes
from consilium_client.data.mapping import Mapping
from consilium_client.data.table.cells import DEFAULT
from consilium_client.data.table.columns import Rows, called, counted, opened, positions
from consilium_client.errors import CellError, DataError, in_file

MOST_ROWS = int(STATISTICS_RANGE) - 1  # what round 0 can count
CANONICAL = "<f8"  # of a value in `row_bytes`
# Steps of a feature's range that are told apart: coarse against what a form of file rounds, as float32 does, so that
# of a thousand values not one lies so near to a border between two steps that it changes sides.
STEPS = 4096
MISSING = -1


@dataclass(frozen=True)
class Table(Examples):
    """Encoded rows: features float64 (n, columns) in [0, 1], NaN where missing; labels int64 (n,), from 0.

    A numeric column holds u = (x - min) / (max - min) of the schema's public range, a one-hot column 0 or 1.
    """

    features: NDArray[np.float64]
    labels: NDArray[np.int64]

    def row_bytes(self) -> Iterator[bytes]:
        """After the label each feature in 8 bytes, with one NaN and one zero."""
        canonical = np.where(self.features == 0, 0.0, self.features).astype(CANONICAL)
        canonical[np.isnan(canonical)] = np.nan
        for label, row in zip(self.labels, canonical, strict=True):
            yield int(label).to_bytes(4, "little") + row.tobytes()

    def contents(self) -> Iterator[bytes]:
        return (row.tobytes() for row in row_codes(self))

    def chosen(self, which: NDArray[np.bool_]) -> Table:
        return Table(self.features[which], self.labels[which])

    def relabelled(self, labels: NDArray[np.int64]) -> Table:
        return Table(self.features, labels)

    def followed_by(self, others: Sequence[Table]) -> Table:
        parts = [self, *others]
        return Table(np.concatenate([part.features for part in parts]), np.concatenate([part.labels for part in parts]))

    def sums(self) -> NDArray[np.float64]:
        """Each column's values, then all Σu, then all Σu², float64 (3 · columns,)."""
        present = ~np.isnan(self.features)
        filled = np.where(present, self.features, 0.0)
        return np.concatenate([present.sum(axis=0).astype(np.float64), filled.sum(axis=0), (filled**2).sum(axis=0)])


def row_codes(table: Table) -> NDArray[np.int32]:
    """Features in whole steps of their range, little-endian int32 (n, columns); MISSING where there is no value."""
    steps = np.where(np.isnan(table.features), MISSING, np.rint(table.features * STEPS))
    return np.ascontiguousarray(steps, dtype="<i4")


@dataclass(frozen=True)
class RawTable:
    """A file's rows in the task's own units and codes, before they are clamped and encoded.

    `values`: by the schema's features, float64 (n,), NaN where missing; labels int64 (n,), from 0. `sources`: by
    column of the schema, what it is called in the file; None where the mapping says that the file has none.
    `left_aside` of the file's columns were not read; their names, in a file that names its columns.
    """

    path: Path
    kind: Literal["CSV", "Parquet"]
    values: dict[str, NDArray[np.float64]] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    sources: dict[str, str | None]
    left_aside: int
    left_aside_names: tuple[str, ...]

    @property
    def rows(self) -> int:
        return len(self.labels)


def read_table(
    path: Path,
    schema: TableSchema,
    *,
    mapping: Mapping | None = None,
    minimum_rows: int = 1,
    allow_one_class: bool = True,
) -> Table:
    """Read, check and encode a CSV or Parquet file.

    Numbers are clamped to the schema's range and scaled by it to [0, 1]; a category becomes one 0/1 column per value
    after the first, and a code that the schema does not know counts as missing. A hospital may have one class only;
    held-out data may not (`allow_one_class=False`). `mapping` fits the schema (`require_fits`). Raises a DataError
    that names file, line and column, never a cell's content.
    """
    return checked(read_raw(path, schema, mapping), schema, minimum_rows, allow_one_class)


def read_raw(path: Path, schema: TableSchema, mapping: Mapping | None = None) -> RawTable:
    """Reads the file itself, and keeps 8 bytes a value. Raises DataError."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            return _read(opened(file, path, mapping), path, schema, mapping)
    except FileNotFoundError:
        why = "there is no such file"
    except OSError as error:
        why = error.strerror or type(error).__name__
    raise DataError("DataFileMissing", path=path, why=why)


def checked(raw: RawTable, schema: TableSchema, minimum_rows: int = 1, allow_one_class: bool = True) -> Table:
    """The table that a node works with. Raises ColumnAllMissing, TooFewRows, OneClassOnly."""
    table = encoded(raw, schema)
    for feature in schema.features:
        source = raw.sources[feature.name]
        if source is not None and np.isnan(_encode(raw.values[feature.name], feature)).all():
            raise DataError(
                "ColumnAllMissing", path=raw.path, column=feature.name, called=in_file(feature.name, source)
            )
    if table.rows < minimum_rows:
        raise DataError("TooFewRows", rows=table.rows, at_least=minimum_rows)
    if not allow_one_class:
        require_classes(table, raw.path, schema)
    return table


def encoded(raw: RawTable, schema: TableSchema) -> Table:
    blocks = [_encode(raw.values[feature.name], feature) for feature in schema.features]
    return Table(features=np.hstack(blocks), labels=raw.labels)


def _encode(values: NDArray[np.float64], feature: Feature) -> NDArray[np.float64]:
    """One column's numbers (n,) to its encoded block (n, 1) or (n, values - 1)."""
    if not isinstance(feature, CategoryFeature):
        clamped = np.clip(values, feature.min, feature.max)  # passes NaN through
        unit: NDArray[np.float64] = ((clamped - feature.min) / (feature.max - feature.min)).reshape(-1, 1)
        return unit
    matches = values[:, None] == np.array(feature.values)[None, :]
    block: NDArray[np.float64] = matches[:, 1:].astype(np.float64)
    block[~matches.any(axis=1)] = np.nan
    return block


def _read(rows: Rows, path: Path, schema: TableSchema, mapping: Mapping | None) -> RawTable:
    """The columns of one opened file, a row at a time; 8 bytes a value stay."""
    names = [*(feature.name for feature in schema.features), schema.label]
    wanted = {name: mapping.source(name) if mapping else name for name in names}
    sources = called(wanted)
    places = positions(rows, path, {name: at for name, at in wanted.items() if at is not None}, mapping is None)
    columns = {name: array("d") for name in places}
    readings = {name: mapping.reading(name) if mapping else DEFAULT for name in places}
    into = [(name, readings[name].number, columns[name].append) for name in places]
    known = {"CodeUnknown", *map(float, range(len(schema.classes)))}
    count = 0
    for at, cells in rows.cells(list(places.values())):
        count += 1
        if count > MOST_ROWS:
            raise DataError("TooManyRows", rows=count, at_most=MOST_ROWS)
        for (name, number, append), cell in zip(into, cells, strict=True):
            found = number(cell)
            if name == schema.label:
                found = found if found in known else "LabelOutOfSchema"
            if not isinstance(found, float):
                where = {"counted": counted(rows), "called": in_file(name, sources[name])}
                raise CellError(found, path=path, row=at, column=name, **where)
            append(found)
    if count == 0:
        raise DataError("DataFileEmpty", path=path)
    aside = [position for position in range(rows.width) if position not in places.values()]
    return RawTable(
        path=path,
        kind=rows.kind,
        values={
            feature.name: np.array(columns[feature.name]) if feature.name in columns else np.full(count, math.nan)
            for feature in schema.features
        },
        labels=np.array(columns[schema.label]).astype(np.int64),
        sources=sources,
        left_aside=len(aside),
        left_aside_names=tuple(rows.names[position] for position in aside) if rows.names else (),
    )
