"""The columns that a hospital's own query gives, as the rows of a file are."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal, Protocol
from uuid import UUID

from consilium_client.data.mapping import Query
from consilium_client.data.table.cells import Cell
from consilium_client.errors import DataError

ADDRESS: Final = ".url"  # the ending of a file with a database server's address
ROWS_AT_A_TIME: Final = 1000
_QUOTED = re.compile(r"""["'`][^"'`\n]{1,80}["'`]|(?<=with name )\S{1,80}""")


class Result(Protocol):
    """A query's result, as DuckDB or a server gives it. `names`: of its columns."""

    names: list[str]

    def batches(self) -> Iterator[Sequence[Sequence[Any]]]:
        """Some rows each. Raises DataError."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Queried:
    """The data at `path`, of which `query` gives the columns. `stack` closes what it opens."""

    query: Query
    path: Path
    stack: ExitStack

    def rows(self) -> QueryRows:
        """Runs the query. Raises DataError, and as `Result` does."""
        run = _on_server if self.path.suffix == ADDRESS else _on_files
        return QueryRows(self.path, self.stack.enter_context(closing(run(self.path, self.query))))


def _on_files(path: Path, query: Query) -> Result:
    from consilium_client.data.query.files import FilesResult  # few data need DuckDB

    return FilesResult(path, query)


def _on_server(path: Path, query: Query) -> Result:
    from consilium_client.data.query.server import ServerResult  # few data need SQLAlchemy

    return ServerResult(path, query)


class QueryRows:
    """`names`: of the result's columns."""

    kind: Literal["query"] = "query"

    def __init__(self, path: Path, result: Result) -> None:
        self._path, self._result = path, result
        self.names, self.width = result.names, len(result.names)

    def cells(self, positions: Sequence[int]) -> Iterator[tuple[int, Sequence[Cell]]]:
        """Each row's number, from 1, and its cells at these positions (from 0). Raises ColumnTypeWrong,
        QueryEmpty, and as `Result.batches` does."""
        row = 0
        for values in chain.from_iterable(self._result.batches()):
            row += 1
            yield row, [self._cell(values[at], at) for at in positions]
        if row == 0:
            raise DataError("QueryEmpty", path=self._path)

    def _cell(self, value: Any, at: int) -> Cell:
        match value:
            case None:
                return None
            case str():
                return value.strip()
            case int() | float() | Decimal():
                return _number(value)
            case datetime.date():
                return value.isoformat()
            case UUID():
                return str(value)
        kind = type(value).__name__
        raise DataError("ColumnTypeWrong", path=self._path, column=self.names[at], kind=kind)


def _number(value: float | Decimal) -> float:
    try:
        return float(value)
    except (OverflowError, ValueError):  # a signalling NaN, or beyond a float's range
        return float("inf")


def at_line(line: int) -> str:
    """For messages."""
    return f" (line {line})"


def named_in(said: str, sql: str) -> str:
    """The first name in quotation marks of a database's words that the query has, too: no cell, as cells have not been
    read when names are looked up.
    """
    names = (one.strip("\"'`") for one in _QUOTED.findall(said))
    return next((f": {name}" for name in names if name and name.lower() in sql.lower()), "")
