"""Many rows of a CSV or Parquet file at a time, as arrays, where each of their cells is plain; otherwise cell by cell.

An array has the same bits as the numbers that `cells.Reading` finds. Where a cell is not plain, such as a code, a
quotation mark inside a text, or a fault, the block has no arrays, and its rows are read one by one by the usual rules.

Imported only for series and large files, because pyarrow takes a second to load, and 55 MB of memory.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.csv
from numpy.typing import NDArray
from pyarrow import types

from consilium_client.data.mapping import FileFormat
from consilium_client.data.table.cells import Cell, Reading
from consilium_client.data.table.csv_rows import MOST_OF_CELL, MOST_OF_LINE, CsvRows
from consilium_client.data.table.parquet_rows import ParquetRows

BLOCK = 1 << 22  # bytes of a CSV file; a line above a cell's limit is read by itself
_NEW_LINE, _RETURN, _QUOTE = b'\n\r"'


@dataclass(frozen=True)
class Wanted:
    """A column by its position in the file. `rule`: of its numbers; None for names, such as those of stays."""

    at: int
    rule: Reading | None = None


@dataclass(frozen=True)
class Names:
    """A column of names: each row's index among the distinct ones, int64 (n,)."""

    indices: NDArray[np.int64]
    distinct: Sequence[Cell]


Column = NDArray[np.float64] | Names


class Block(ABC):
    """Some rows of a file."""

    @abstractmethod
    def columns(self) -> list[Column] | None:
        """Numbers float64 (n,), NaN where missing, or names, of each wanted column; None if not all cells are plain."""

    @abstractmethod
    def cells(self) -> Iterator[tuple[int, Sequence[Cell]]]:
        """Each row's line or number, and its wanted cells. Raises as `CsvRows.cells` does."""


# CSV


@dataclass(frozen=True)
class CsvBlock(Block):
    """`raw`: whole lines, of which the first has the number `line`. `rows`: the file."""

    raw: bytes
    line: int
    rows: CsvRows
    format_: FileFormat
    wanted: Sequence[Wanted]

    def columns(self) -> list[Column] | None:
        rules = [one.rule for one in self.wanted if one.rule]
        missing = frozenset.intersection(*(rule.missing for rule in rules)) if rules else frozenset()
        kinds = [pyarrow.float64() if one.rule else pyarrow.string() for one in self.wanted]
        return _of_table(self._table(kinds, [one for one in missing if isinstance(one, str)]), self.wanted)

    def _table(self, kinds: Sequence[Any], missing: Sequence[str] = ()) -> Any:
        """The wanted columns, of these kinds; None if the lines are not plain, or a cell is of another kind."""
        if not self.raw.isascii() or b"\0" in self.raw or _longest_line(self.raw) > MOST_OF_CELL:
            return None
        names = [f"{at}" for at in range(self.rows.width)]
        by_name = {f"{one.at}": kind for one, kind in zip(self.wanted, kinds, strict=True)}
        try:
            return pyarrow.csv.read_csv(
                io.BytesIO(self.raw),
                pyarrow.csv.ReadOptions(use_threads=False, block_size=len(self.raw) + 1, column_names=names),
                pyarrow.csv.ParseOptions(delimiter=self.format_.delimiter),
                pyarrow.csv.ConvertOptions(
                    include_columns=list(by_name), column_types=by_name, decimal_point=self.format_.decimal,
                    null_values=["", *missing], check_utf8=False,
                ),
            )  # fmt: skip
        except pyarrow.ArrowInvalid:
            return None

    def cells(self) -> Iterator[tuple[int, Sequence[Cell]]]:
        """Arrow splits plain lines, if none is blank: then rows have the numbers of lines."""
        table = self._table([pyarrow.string()] * len(self.wanted))
        lines = self.raw.count(b"\n") + (not self.raw.endswith(b"\n"))
        if table is None or table.num_rows != lines:
            return self.rows.cells_of(io.BytesIO(self.raw), [one.at for one in self.wanted], self.line)
        texts = {name: [cell.strip() for cell in table[name].to_pylist()] for name in table.column_names}
        return enumerate(zip(*(texts[f"{one.at}"] for one in self.wanted), strict=True), self.line)


@dataclass(frozen=True)
class CsvRest(Block):
    """All further rows, where quotation marks may hold lines together. `file` stands at the line `line`. `skipped`:
    rows of the header.
    """

    file: BinaryIO
    line: int
    rows: CsvRows
    wanted: Sequence[Wanted]
    skipped: int = 0

    def columns(self) -> None:
        return None

    def cells(self) -> Iterator[tuple[int, Sequence[Cell]]]:
        return islice(self.rows.cells_of(self.file, [one.at for one in self.wanted], self.line), self.skipped, None)


def csv_blocks(file: BinaryIO, rows: CsvRows, format_: FileFormat, wanted: Sequence[Wanted]) -> Iterator[Block]:
    """`rows`: of the same file. Raises as `CsvRows.cells` does."""
    file.seek(0)
    header = b"".join(file.readline(MOST_OF_LINE) for _ in range(rows.header_ends))
    if not _ends_by_line_feeds(header):
        file.seek(0)
        yield CsvRest(file, 1, rows, wanted, skipped=1)
        return
    line, at = 1 + rows.header_ends, len(header)
    while raw := file.read(BLOCK):
        raw += b"" if raw.endswith(b"\n") else file.readline(MOST_OF_CELL)
        if not _is_closed(raw, format_.delimiter.encode()):
            file.seek(at)
            yield CsvRest(file, line, rows, wanted)
            return
        yield CsvBlock(raw, line, rows, format_, wanted)
        line, at = line + raw.count(b"\n"), at + len(raw)


def csv_cells(
    file: BinaryIO, rows: CsvRows, format_: FileFormat, positions: Sequence[int]
) -> Iterator[tuple[int, Sequence[Cell]]]:
    """As `CsvRows.cells` gives them."""
    for block in csv_blocks(file, rows, format_, [Wanted(at) for at in positions]):
        yield from block.cells()


def _ends_by_line_feeds(raw: bytes) -> bool:
    return b"\r" not in raw or raw.count(b"\r") == raw.count(b"\r\n")


def _is_closed(raw: bytes, delimiter: bytes) -> bool:
    """True if these are whole lines, and each quotation mark stands at the begin or the end of a cell on one line."""
    if len(raw) >= BLOCK + MOST_OF_CELL or not _ends_by_line_feeds(raw):
        return False
    if b'"' not in raw:
        return True
    codes = np.frombuffer(raw, np.uint8)
    marks, ends = np.flatnonzero(codes == _QUOTE), np.flatnonzero(codes == _NEW_LINE)
    if len(marks) % 2:
        return False
    opening, closing = marks[::2], marks[1::2]
    around = np.append(codes, _NEW_LINE)  # also before the first
    begin, end = (
        np.isin(around[opening - 1], [*delimiter, _NEW_LINE]),
        np.isin(around[closing + 1], [*delimiter, _NEW_LINE, _RETURN]),
    )
    return bool((begin & end & (np.searchsorted(ends, opening) == np.searchsorted(ends, closing))).all())


def _longest_line(raw: bytes) -> int:
    ends = np.flatnonzero(np.frombuffer(raw, np.uint8) == _NEW_LINE)
    return int(np.diff(ends, prepend=-1, append=len(raw)).max())


# Parquet


@dataclass(frozen=True)
class ParquetBlock(Block):
    """`batch`: rows of the file, of which the first has the number `row`."""

    batch: Any
    row: int
    rows: ParquetRows
    wanted: Sequence[Wanted]

    def columns(self) -> list[Column] | None:
        return _of_table(self.batch, self.wanted)

    def cells(self) -> Iterator[tuple[int, Sequence[Cell]]]:
        return self.rows.cells_of(self.batch, self.row)


def parquet_blocks(rows: ParquetRows, wanted: Sequence[Wanted]) -> Iterator[Block]:
    """Raises as `ParquetRows.cells` does."""
    row = 1
    for batch in rows.batches([one.at for one in wanted]):
        yield ParquetBlock(batch, row, rows, wanted)
        row += batch.num_rows


# Arrow


def _of_table(table: Any, wanted: Sequence[Wanted]) -> list[Column] | None:
    if table is None:
        return None
    found = list[Column]()
    for column, one in zip(table.columns, wanted, strict=True):
        values = _names(column) if one.rule is None else _numbers(column, one.rule)
        if values is None:
            return None
        found.append(values)
    return found


def _names(column: Any) -> Names | None:
    whole = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    coded = whole if types.is_dictionary(whole.type) else whole.dictionary_encode()
    coded = coded.chunk(0) if isinstance(coded, pyarrow.ChunkedArray) else coded
    distinct = [_cell(one) for one in coded.dictionary.to_pylist()]
    indices = coded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False).astype(np.int64)
    is_whole = not len(indices) or 0 <= indices.min() <= indices.max() <= len(distinct)  # or the file is damaged
    return Names(indices, [*distinct, None]) if is_whole else None


def _cell(value: Any) -> Cell:
    return value.strip() if isinstance(value, str) else None if value is None else float(value)


def _numbers(column: Any, rule: Reading) -> NDArray[np.float64] | None:
    kind = column.type
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if not (types.is_floating(kind) or types.is_integer(kind)):
        return None
    values = column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
    known = ~np.isnan(values)
    if int(known.sum()) != len(column) - column.null_count:  # a NaN that is a value
        return None
    return rule.numbers(values)
