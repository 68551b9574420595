"""Rows of a Parquet file: only the needed columns, a few thousand rows at a time.

Imported only for a Parquet file, because pyarrow takes a second to load, and 55 MB of memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
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
        encrypted = False
        try:
            self._file = pyarrow.parquet.ParquetFile(
                file, pre_buffer=False, buffer_size=READ_BUFFER, page_checksum_verification=True
            )
            self._types = list(self._file.schema_arrow.types)
            self._names = list(self._file.schema_arrow.names)
        except _FAULTS as error:
            encrypted = "crypt" in str(error)
        else:
            self.names: list[str] | None = self._names
            self.width = len(self._names)
            return
        raise self._unreadable(encrypted)

    def cells(self, positions: Sequence[int]) -> Iterator[tuple[int, list[Cell]]]:
        """Each row's cells at these positions (from 0), with its number from 1. Raises ColumnTypeWrong."""
        for position in positions:
            if not _is_plain(self._types[position]):
                raise DataError(
                    "ColumnTypeWrong", path=self._path, column=self._names[position], kind=str(self._types[position])
                )
        names = [self._names[position] for position in positions]
        self._require_unpackable()
        row = 0
        for columns in self._batches(names):
            for cells in zip(*columns, strict=True):
                row += 1
                yield row, [_cell(cell) for cell in cells]

    def _batches(self, names: list[str]) -> Iterator[list[list[Any]]]:
        """Columns of some rows each, as Python's numbers and texts."""
        batches = None
        while True:
            encrypted = False
            try:
                batches = batches or self._reader(names).iter_batches(ROWS_AT_A_TIME, columns=names, use_threads=False)
                batch = next(batches, None)
                columns = None if batch is None else [_values(batch.column(name)) for name in names]
            except _FAULTS as error:
                encrypted = "crypt" in str(error)
            else:
                if columns is None:
                    return
                yield columns
                continue
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
