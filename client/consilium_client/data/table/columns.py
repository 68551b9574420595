"""An opened table, and where its columns are: CSV or Parquet, told apart by the first bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Mapped
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

from consilium_client.data.mapping import FileFormat, Mapping
from consilium_client.data.table.cells import Cell
from consilium_client.data.table.csv_rows import CsvRows
from consilium_client.errors import DataError, shortened

PARQUET = (b"PAR1", b"PARE")  # the latter: with an encrypted footer


class Rows(Protocol):
    """An opened file: `width` columns, whose `names` it may say, and cells of those at positions, row by row."""

    width: int
    names: list[str] | None

    @property
    def kind(self) -> Literal["CSV", "Parquet"]: ...

    def cells(self, positions: Sequence[int]) -> Iterator[tuple[int, Sequence[Cell]]]: ...


def counted(rows: Rows) -> Literal["line", "row"]:
    """The unit of the numbers of `cells`."""
    return "line" if rows.kind == "CSV" else "row"


def opened(file: BinaryIO, path: Path, mapping: Mapping | None) -> Rows:
    """Raises DataFileMalformed, DataFileEmpty, ParquetUnreadable, MappingInvalid."""
    start = file.read(4)
    file.seek(0)
    if start not in PARQUET:
        return CsvRows(file, path, mapping.file if mapping else FileFormat())
    from consilium_client.data.table.parquet_rows import ParquetRows

    if mapping and not mapping.file.header:
        raise DataError(
            "MappingInvalid",
            why=f"{path} is Parquet, which names its columns; leave header = false out of the mapping, and name them",
        )
    return ParquetRows(file, path)


def positions(rows: Rows, path: Path, wanted: Mapped[str, str | int], strict: bool) -> dict[str, int]:
    """By column of the schema, where its column in the file is, from 0. `strict`: the file may have no others.

    Raises HeaderMissing, ColumnsWrong.
    """
    if rows.names is None:
        at = {name: position - 1 for name, position in wanted.items() if isinstance(position, int)}
        missing = [f"column {position + 1}" for position in at.values() if position >= rows.width]
        if missing:
            raise _wrong(path, missing, [], [])
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
        raise _wrong(path, missing, unexpected, duplicate)
    return {name: rows.names.index(str(source)) for name, source in wanted.items()}


def _wrong(path: Path, missing: Sequence[str], unexpected: Sequence[str], duplicate: Sequence[str]) -> DataError:
    kinds = {"missing": tuple(missing), "unexpected": tuple(unexpected), "duplicate": tuple(duplicate)}
    told = {"missing": "missing", "unexpected": "unexpected", "duplicate": "named twice"}
    faults = "; ".join(f"{told[kind]}: {shortened(names)}" for kind, names in kinds.items() if names)
    return DataError("ColumnsWrong", path=path, faults=faults, **kinds)


def called(sources: Mapped[str, str | int | None]) -> dict[str, str | None]:
    """Each column's name in the file, for people."""
    return {name: f"column {at}" if isinstance(at, int) else at for name, at in sources.items()}
