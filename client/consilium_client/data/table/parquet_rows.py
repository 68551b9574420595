"""Rows of a Parquet file: only the needed columns, a few thousand rows at a time.

Imported only for a Parquet file, because pyarrow takes a second to load, and 55 MB of memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Literal

import pyarrow
import pyarrow.parquet
from pyarrow import types

from consilium_client.data.table.cells import Cell
from consilium_client.errors import DataError

ROWS_AT_A_TIME = 4096
READ_BUFFER = 1 << 18  # bytes of a column chunk at a time
# A group of rows above this size may not be packed into less than a hundredth, because pages are unpacked whole.
MOST_UNPACKED, MOST_PACKED = 1 << 26, 100
# Errors of pyarrow about a file's bytes, and of indices beyond a dictionary. Their messages may quote the bytes.
_FAULTS = (pyarrow.ArrowException, OSError, ValueError, TypeError, LookupError, MemoryError)


class ParquetRows:
    """An opened file, with its schema read. Raises ParquetUnreadable, here and from `cells`."""

    kind: Literal["Parquet"] = "Parquet"

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._path, self._source = path, file
        self._file = self._read(
            lambda: pyarrow.parquet.ParquetFile(
                file, pre_buffer=False, buffer_size=READ_BUFFER, page_checksum_verification=True
            )
        )
        schema = self._read(lambda: self._file.schema_arrow)
        self._types, self._names = list(schema.types), list(schema.names)
        self.names: list[str] | None = self._names
        self.width = len(self._names)
        self.dates = frozenset[int]()  # positions of columns that may be dates or times

    def cells(self, positions: Sequence[int]) -> Iterator[tuple[int, list[Cell]]]:
        """Each row's cells at these positions (from 0), with its number from 1. Raises ColumnTypeWrong."""
        row = 1
        for batch in self.batches(positions):
            yield from self.cells_of(batch, row)
            row += batch.num_rows

    def cells_of(self, batch: Any, row: int) -> Iterator[tuple[int, list[Cell]]]:
        """The same of a batch, of which the first row has this number."""
        columns = self._read(lambda: [_values(column) for column in batch.columns])
        for at, cells in enumerate(zip(*columns, strict=True), row):
            yield at, [_cell(cell) for cell in cells]

    def batches(self, positions: Sequence[int]) -> Iterator[Any]:
        """Arrow's record batches of some rows each. Raises ColumnTypeWrong."""
        for position in positions:
            kind = self._types[position]
            if not (_is_plain(kind) or (position in self.dates and _is_date(kind))):
                raise DataError("ColumnTypeWrong", path=self._path, column=self._names[position], kind=str(kind))
        names = [self._names[position] for position in positions]
        self._require_unpackable()
        reader = self._read(lambda: self._reader(names))
        batches = self._read(lambda: reader.iter_batches(ROWS_AT_A_TIME, columns=names, use_threads=False))
        while (batch := self._read(lambda: next(batches, None))) is not None:
            yield self._in_iso(batch.select(names))  # in this order

    def _in_iso(self, batch: Any) -> Any:
        """With dates and times as ISO texts, those of a time zone in UTC."""
        columns = [self._read(partial(_iso, one)) for one in batch.columns]
        return pyarrow.record_batch(columns, names=batch.schema.names)

    def _read(self, call: Callable[[], Any]) -> Any:
        """Raises ParquetUnreadable, which is not chained: pyarrow's errors may quote the file."""
        try:
            return call()
        except _FAULTS as error:
            encrypted = "crypt" in str(error)
        raise self._unreadable(encrypted)

    def _reader(self, names: list[str]) -> pyarrow.parquet.ParquetFile:
        """Keeps texts in the file's dictionaries. Written out, one text of a page may become thousands of copies."""
        return pyarrow.parquet.ParquetFile(
            self._source, metadata=self._file.metadata, read_dictionary=names, pre_buffer=False,
            buffer_size=READ_BUFFER, page_checksum_verification=True,
        )  # fmt: skip

    def _require_unpackable(self) -> None:
        """Checks whole groups: asking for a column of an encrypted group crashes the process (pyarrow 26)."""
        metadata, most = self._file.metadata, max(MOST_UNPACKED, MOST_PACKED * self._source.seek(0, os.SEEK_END))
        if any(metadata.row_group(at).total_byte_size > most for at in range(metadata.num_row_groups)):
            raise DataError(
                "ParquetUnreadable", path=self._path, why=f"it unpacks to more than {MOST_PACKED} times its size"
            )

    def _unreadable(self, encrypted: bool) -> DataError:
        return DataError(
            "ParquetUnreadable", path=self._path, why="it is encrypted" if encrypted else "it is damaged or cut off"
        )


def _values(column: Any) -> list[Any]:
    """Cells of a batch's column. Equal cells of a dictionary are one object."""
    if not types.is_dictionary(column.type):
        return list(column.to_pylist())
    known = column.dictionary.to_pylist()
    return [None if at is None else known[at] for at in column.indices.to_pylist()]


def _is_date(kind: Any) -> bool:
    return bool(types.is_timestamp(kind) or types.is_date(kind))


def _iso(column: Any) -> Any:
    if not _is_date(column.type):
        return column
    if types.is_timestamp(column.type):
        exact = pyarrow.timestamp("us", "UTC" if column.type.tz else None)
        column = column.cast(exact, safe=False)  # drops nanoseconds
    return column.cast(pyarrow.string())


def _is_plain(kind: Any) -> bool:
    """True if values of an Arrow type are numbers or texts."""
    if types.is_dictionary(kind):
        return _is_plain(kind.value_type)
    tests = (
        types.is_integer, types.is_floating, types.is_boolean, types.is_string, types.is_large_string,
        types.is_string_view, types.is_null,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def _cell(cell: Any) -> Cell:
    if isinstance(cell, str):
        return cell.strip()
    return None if cell is None else float(cell)
