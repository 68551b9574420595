"""Rows for a finished model: their labels may be absent, and their file may have other columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from consilium_client.data.examples import Examples, Source
from consilium_client.data.foreign import Opened
from consilium_client.data.mapping import ColumnMapping, Mapping
from consilium_client.data.table.cells import Cell
from consilium_client.data.table.columns import Columns
from consilium_client.errors import DataError

NO_VALUE = "(none)"  # of a cell in a column of the file's own


@dataclass(frozen=True)
class Use:
    """The way to read rows for a finished model.

    `mapping`: of the file's columns; without one they have the task's names. `own`: a column of the file that the model
    does not read, such as a site or an identifier. `clamp`: a value outside the model's range counts as in training, as
    the nearest bound or as missing. `labelled`: the rows have labels.
    """

    mapping: Mapping | None = None
    own: str | None = None
    clamp: bool = False
    labelled: bool = False

    @property
    def columns(self) -> Mapping:
        """The mapping, with the file's own column. Columns that it does not name are ignored."""
        mapping = (self.mapping or Mapping()).without_patients()
        if self.own is None or mapping.file.header or not self.own.isdecimal():
            return mapping
        at_position = ColumnMapping(column=int(self.own)) if int(self.own) else ColumnMapping()
        return mapping.model_copy(update={"columns": {**mapping.columns, self.own: at_position}})


@dataclass(frozen=True)
class Used:
    """Examples in the order of their file, labelled 0 unless the labels were asked for.

    `own`: the cells of the file's own column, as text. `names`: the files of a folder; both None if not there.
    """

    source: Source
    examples: Examples = field(repr=False)
    own: tuple[str, ...] | None = field(default=None, repr=False)
    names: tuple[str, ...] | None = field(default=None, repr=False)


class UsedRows:
    """Rows of an opened file. Iterating gives a row's number and its cells of the `wanted` columns, by name."""

    def __init__(self, file: Opened, path: Path, wanted: Sequence[str], use: Use) -> None:
        """Raises as `Columns` does, and ColumnsWrong if the file has no column `use.own`."""
        own = [] if use.own is None or use.own in wanted else [use.own]
        self._columns, self._name, self._cells = Columns(file, path, use.columns, [*wanted, *own]), use.own, list[str]()
        self.source = self._columns.source
        if use.own is not None and use.own not in self._columns.at:
            raise without_column(path, use.own)

    def __iter__(self) -> Iterator[tuple[int, dict[str, Cell]]]:
        """Raises as `Columns` does."""
        for row, cells in self._columns:
            by_name = dict(zip(self._columns.at, cells, strict=True))
            if self._name is not None:
                self._cells.append(in_text(by_name[self._name]))
            yield row, by_name

    @property
    def own(self) -> tuple[str, ...] | None:
        """The cells of the file's own column in the rows so far."""
        return None if self._name is None else tuple(self._cells)


def without_column(path: Path, column: str) -> DataError:
    return DataError("ColumnsWrong", path=path, faults=f"missing: {column}", missing=(column,))


def in_text(cell: Cell) -> str:
    """A cell as text. Parquet has whole numbers as 3.0."""
    if cell is None or cell == "":
        return NO_VALUE
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
