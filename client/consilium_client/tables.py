"""A hospital's or voter's file becomes a typed table: the only door through which rows enter.

The file is CSV or Parquet, told apart by its first bytes. Without a mapping its columns are the schema's features and
label in any order, and nothing else, so that no patient number slips in; a CSV file has a header line, UTF-8, commas.
With a mapping (`mapping`) the file is as it says, and columns that are not the task's are left aside. An empty cell or
`?` is a missing value, in Parquet a null too.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Mapped
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

import numpy as np
from consilium_chain.data_schemas import CategoryFeature, Feature, TableSchema
from consilium_chain.task_spec import STATISTICS_RANGE
from numpy.typing import NDArray

from consilium_client.cells import DEFAULT, Cell
from consilium_client.csv_rows import CsvRows
from consilium_client.errors import (
    CodeUnknown,
    ColumnAllMissing,
    ColumnsWrong,
    DataFileEmpty,
    DataFileMissing,
    HeaderMissing,
    LabelOutOfSchema,
    MappingInvalid,
    OneClassOnly,
    TooFewRows,
    TooManyRows,
)
from consilium_client.mapping import FileFormat, Mapping

MOST_ROWS = int(STATISTICS_RANGE) - 1  # what round 0 can count
PARQUET = (b"PAR1", b"PARE")  # the latter: with an encrypted footer


@dataclass(frozen=True)
class Table:
    """Encoded rows: features float64 (n, columns) in [0, 1], NaN where missing; labels int64 (n,), from 0.

    A numeric column holds u = (x - min) / (max - min) of the schema's public range, a one-hot column 0 or 1.
    """

    features: NDArray[np.float64]
    labels: NDArray[np.int64]

    @property
    def rows(self) -> int:
        return len(self.labels)

    @property
    def classes_present(self) -> tuple[int, ...]:
        return tuple(int(label) for label in np.unique(self.labels))


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
    """What `read_table` does to the file itself, in memory of the values alone. Raises DataError."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            return _read(_opened(file, path, mapping), path, schema, mapping)
    except FileNotFoundError:
        why = "there is no such file"
    except OSError as error:
        why = error.strerror or type(error).__name__
    raise DataFileMissing(path, why)


def checked(raw: RawTable, schema: TableSchema, minimum_rows: int = 1, allow_one_class: bool = True) -> Table:
    """The table that a node works with. Raises ColumnAllMissing, TooFewRows, OneClassOnly."""
    table = encoded(raw, schema)
    for feature in schema.features:
        source = raw.sources[feature.name]
        if source is not None and np.isnan(_encode(raw.values[feature.name], feature)).all():
            raise ColumnAllMissing(raw.path, feature.name, source)
    if table.rows < minimum_rows:
        raise TooFewRows(table.rows, minimum_rows)
    if not allow_one_class and len(table.classes_present) < 2:
        raise OneClassOnly(raw.path, schema.label, table.classes_present[0])
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


class Rows(Protocol):
    """An opened file: `width` columns, whose `names` it may say, and cells of those at positions, row by row."""

    width: int
    names: list[str] | None

    @property
    def kind(self) -> Literal["CSV", "Parquet"]: ...

    def cells(self, positions: Sequence[int]) -> Iterator[tuple[int, Sequence[Cell]]]: ...


def _opened(file: BinaryIO, path: Path, mapping: Mapping | None) -> Rows:
    start = file.read(4)
    file.seek(0)
    if start not in PARQUET:
        return CsvRows(file, path, mapping.file if mapping else FileFormat())
    from consilium_client.parquet_rows import ParquetRows

    if mapping and not mapping.file.header:
        raise MappingInvalid(
            f"{path} is Parquet, which names its columns; leave header = false out of the mapping, and name them"
        )
    return ParquetRows(file, path)


def _read(rows: Rows, path: Path, schema: TableSchema, mapping: Mapping | None) -> RawTable:
    """The columns of one opened file, a row at a time; 8 bytes a value stay."""
    names = [*(feature.name for feature in schema.features), schema.label]
    wanted = {name: mapping.source(name) if mapping else name for name in names}
    sources = {name: f"column {at}" if isinstance(at, int) else at for name, at in wanted.items()}
    positions = _positions(rows, path, {name: at for name, at in wanted.items() if at is not None}, mapping is None)
    columns = {name: array("d") for name in positions}
    readings = {name: mapping.reading(name) if mapping else DEFAULT for name in positions}
    into = [(name, readings[name].number, columns[name].append) for name in positions]
    known = {CodeUnknown, *map(float, range(len(schema.classes)))}
    counted: Literal["line", "row"] = "line" if rows.kind == "CSV" else "row"
    count = 0
    for at, cells in rows.cells(list(positions.values())):
        count += 1
        if count > MOST_ROWS:
            raise TooManyRows(count, MOST_ROWS)
        for (name, number, append), cell in zip(into, cells, strict=True):
            found = number(cell)
            if name == schema.label:
                found = found if found in known else LabelOutOfSchema
            if not isinstance(found, float):
                raise found(path, at, name, counted, sources[name] or "")
            append(found)
    if count == 0:
        raise DataFileEmpty(path)
    aside = [position for position in range(rows.width) if position not in positions.values()]
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


def _positions(rows: Rows, path: Path, wanted: Mapped[str, str | int], strict: bool) -> dict[str, int]:
    """By column of the schema, where its column in the file is, from 0. `strict`: the file may have no others.

    Raises HeaderMissing, ColumnsWrong.
    """
    if rows.names is None:
        at = {name: position - 1 for name, position in wanted.items() if isinstance(position, int)}
        missing = [f"column {position + 1}" for position in at.values() if position >= rows.width]
        if missing:
            raise ColumnsWrong(path, missing, [], [])
        return at
    counts = Counter(rows.names)
    expected = [str(source) for source in wanted.values()]
    missing = [name for name in expected if name not in counts]
    unexpected = [name for name in counts if strict and name not in expected]
    duplicate = [name for name in expected if counts[name] > 1]
    if len(missing) == len(expected) and rows.kind == "CSV":
        # Without a header line the first row would be quoted as "unexpected columns": a patient in a log.
        raise HeaderMissing(path)
    if missing or unexpected or duplicate:
        raise ColumnsWrong(path, missing, unexpected, duplicate)
    return {name: rows.names.index(str(source)) for name, source in wanted.items()}
