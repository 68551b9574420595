"""The task's columns in a CSV or Parquet file. The first bytes show the format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Mapped
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from consilium_client.data.examples import MOST_ROWS, Source
from consilium_client.data.foreign import Foreign, ForeignRows, Opened
from consilium_client.data.mapping import ON, FileFormat, Mapping
from consilium_client.data.query.rows import Queried, QueryRows
from consilium_client.data.table.cells import Cell
from consilium_client.data.table.csv_rows import CsvRows
from consilium_client.errors import DataError, shortened

if TYPE_CHECKING:
    from consilium_client.data.table.parquet_rows import ParquetRows

    Rows = CsvRows | ParquetRows | ForeignRows | QueryRows

PARQUET = (b"PAR1", b"PARE")  # the latter: with an encrypted footer
LARGE = 1 << 26  # bytes of a CSV file, from which on loading pyarrow pays
FAULTS = {"missing": "missing", "unexpected": "unexpected", "duplicate": "named twice"}


class Columns:
    """The task's columns in an opened file. Iterating gives each row's number and its cells, in the order of `at`.

    `at`: the position in the file, from 0, of each of the schema's columns, and of those that its mapping names beside
    them (`Mapping.sources`); without absent columns.
    """

    def __init__(
        self, file: Opened, path: Path, mapping: Mapping | None, used: Sequence[str], dates: Sequence[str] = ()
    ) -> None:
        """`dates`: those of `used` that may be dates or times in Parquet; their cells are ISO texts.

        Raises DataError where the file cannot be read, or its columns are not the `used` ones of the schema; also
        as `Foreign.rows` or `Queried.rows` does.
        """
        wanted = mapping.sources(used) if mapping else {name: name for name in used}
        present = {name: source for name, source in wanted.items() if source is not None}
        reader, asked = "", [f"{one}" for one in present.values()]
        rows: Rows
        if isinstance(file, Foreign):
            reader, rows = file.in_words, file.rows(asked)
        elif isinstance(file, Queried):
            rows = file.rows()
        else:
            rows = opened(file, path, mapping)
        self.rows, self._file, self._format = rows, file, mapping.file if mapping else FileFormat()
        self.at = positions(rows, path, present, strict=mapping is None)
        if rows.kind == "Parquet":
            rows.dates = frozenset(self.at[name] for name in dates)
        aside = [position for position in range(rows.width) if position not in self.at.values()]
        called = {name: f"column {source}" if isinstance(source, int) else source for name, source in wanted.items()}
        names = {
            name: f"{called[name]} and {called[name + ON]}" if name + ON in called else called[name] for name in used
        }
        aside_names = tuple(rows.names[position] for position in aside) if rows.names else ()
        self.source = Source(path, rows.kind, names, len(aside), aside_names, reader)

    def __iter__(self) -> Iterator[tuple[int, Sequence[Cell]]]:
        """Raises TooManyRows, DataFileEmpty, and the errors of the file's bytes."""
        count = 0
        for count, row in enumerate(self._cells(list(self.at.values())), 1):
            if count > MOST_ROWS:
                raise DataError("TooManyRows", rows=count, at_most=MOST_ROWS)
            yield row
        if count == 0:
            raise DataError("DataFileEmpty", path=self.source.path)

    def _cells(self, positions: list[int]) -> Iterator[tuple[int, Sequence[Cell]]]:
        if isinstance(self._file, Foreign | Queried) or not isinstance(self.rows, CsvRows):
            return self.rows.cells(positions)
        if self.source.path.stat().st_size < LARGE:
            return self.rows.cells(positions)
        from consilium_client.data.table.blocks import csv_cells

        return csv_cells(self._file, self.rows, self._format, positions)


def opened(file: BinaryIO, path: Path, mapping: Mapping | None) -> CsvRows | ParquetRows:
    """Raises DataError, also MappingInvalid where the mapping is none for Parquet."""
    start = file.read(4)
    file.seek(0)
    if start not in PARQUET:
        return CsvRows(file, path, mapping.file if mapping else FileFormat())
    from consilium_client.data.table.parquet_rows import ParquetRows  # a second to load, and 55 MB

    if mapping and not mapping.file.header:
        raise DataError(
            "MappingInvalid",
            why=f"{path} is Parquet, so its columns have names; remove header = false from the mapping, and use them",
        )
    return ParquetRows(file, path)


def positions(rows: Rows, path: Path, wanted: Mapped[str, str | int], strict: bool) -> dict[str, int]:
    """The position in the file, from 0, of each of the schema's columns. `strict`: the file may have no others.

    Raises HeaderMissing, ColumnsWrong.
    """
    if rows.names is None:
        at = {name: position - 1 for name, position in wanted.items() if isinstance(position, int)}
        missing = [f"column {position + 1}" for position in at.values() if position >= rows.width]
        if missing:
            raise _wrong(path, missing=missing)
        return at
    counts = Counter(rows.names)
    expected = [str(source) for source in wanted.values()]
    missing = [name for name in expected if name not in counts]
    unexpected = [name for name in counts if strict and name not in expected]
    duplicate = [name for name in expected if counts[name] > 1]
    if len(missing) == len(expected) and rows.kind == "CSV":
        # Without a header line the first row would be quoted as "unexpected columns": a patient in a log.
        raise DataError("HeaderMissing", path=path, line=1)
    if missing or unexpected or duplicate:
        raise _wrong(path, missing=missing, unexpected=unexpected, duplicate=duplicate)
    return {name: rows.names.index(str(source)) for name, source in wanted.items()}


def _wrong(path: Path, **kinds: Sequence[str]) -> DataError:
    faults = [f"{FAULTS[kind]}: {shortened(names)}" for kind, names in kinds.items() if names]
    return DataError("ColumnsWrong", path=path, faults="; ".join(faults), **{k: tuple(v) for k, v in kinds.items()})
