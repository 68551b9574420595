"""A query on a database server, by SQLAlchemy: PostgreSQL with psycopg, and other servers whose driver is installed.

A file with the ending .url has the address. A password stands in it, or where the driver looks for one (PostgreSQL's
~/.pgpass). The transaction reads only and is never committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from consilium_core.errors import KeystoreError
from consilium_core.private_files import read_private_file
from sqlalchemy import URL, create_engine, exc, make_url
from sqlalchemy.pool import NullPool

from consilium_client.data.mapping import Query
from consilium_client.data.query.rows import ROWS_AT_A_TIME, named_in
from consilium_client.errors import DataError

# By dialect: the statements before the query, of which none outlasts the transaction or session.
FIRST: Final = {
    "postgresql": ("SET TRANSACTION READ ONLY", "SET LOCAL statement_timeout = {milliseconds}"),
    "mysql": ("SET SESSION TRANSACTION READ ONLY", "SET SESSION max_execution_time = {milliseconds}"),
    "mariadb": ("SET SESSION TRANSACTION READ ONLY", "SET SESSION max_statement_time = {seconds}"),
}
TIMED_OUT: Final = "57014"  # SQLSTATEs
NOT_ALLOWED: Final = {"42501", "25006", "25001", "0A000"}
NAMES_WRONG: Final = "42"  # a class of them: syntax, tables and columns
VALUE_WRONG: Final = "22"
Answer = TypeVar("Answer")


class ServerResult:
    """Raises DataError, here and from `batches`."""

    def __init__(self, path: Path, query: Query) -> None:
        self._path, self._query = path, query
        self._rows: Any = None
        url = _address(path)
        options: dict[str, Any] = {"poolclass": NullPool, "hide_parameters": True}
        self._connection = self._asked(lambda: create_engine(url, **options).connect(), self._unreachable)
        try:
            for statement in FIRST.get(url.get_backend_name(), ()):
                self._run(statement.format(seconds=query.seconds, milliseconds=1000 * query.seconds))
            self._rows = self._run(query.sql, stream_results=True, max_row_buffer=ROWS_AT_A_TIME)
        except BaseException:
            self.close()
            raise
        if not self._rows.returns_rows:
            self.close()
            raise DataError("QueryNotAllowed", path=path, at="")
        self.names = list(self._rows.keys())

    def batches(self) -> Iterator[Sequence[Sequence[Any]]]:
        while batch := self._asked(lambda: self._rows.fetchmany(ROWS_AT_A_TIME), self._fault):
            yield batch

    def close(self) -> None:
        """Without a commit."""
        if self._rows is not None:
            self._rows.close()
        self._connection.close()

    def _run(self, statement: str, **options: Any) -> Any:
        """Without parameters, so that %, : and ? mean what they mean on the server."""
        options["no_parameters"] = True
        return self._asked(lambda: self._connection.exec_driver_sql(statement, execution_options=options), self._fault)

    def _asked(self, act: Callable[[], Answer], fault_of: Callable[[Exception], DataError]) -> Answer:
        """A server's errors quote cells, so none is chained."""
        try:
            return act()
        except (exc.SQLAlchemyError, UnicodeError, ImportError) as error:
            found = error
        raise fault_of(found)

    def _unreachable(self, error: Exception) -> DataError:
        if isinstance(error, ImportError | exc.NoSuchModuleError):
            why = "the driver of this kind of server is not installed; install it, or correct the address"
            return DataError("ServerAddressWrong", path=self._path, why=why)
        return DataError("ServerUnreachable", path=self._path, kind=_kind(error))

    def _fault(self, error: Exception) -> DataError:
        state, kind = _state(error), _kind(error)
        about = {"path": self._path, "at": ""}
        if state == TIMED_OUT:
            limit = f"{self._query.seconds:,} seconds"
            return DataError("QueryBeyondLimit", path=self._path, limit=limit, setting="seconds")
        if state in NOT_ALLOWED:
            return DataError("QueryNotAllowed", **about)
        if state.startswith(NAMES_WRONG):
            return DataError("QueryWrong", **about, why=kind + named_in(str(error), self._query.sql))
        if state.startswith(VALUE_WRONG) or isinstance(error, exc.DataError):
            return DataError("QueryValueWrong", **about, kind=kind)
        return DataError("QueryFailed", **about, kind=kind)


def _address(path: Path) -> URL:
    """Raises ServerAddressWrong."""
    why = "it is not the address of a database server"
    try:
        return make_url(read_private_file(path).strip())
    except KeystoreError as error:
        why = str(error)
    except (exc.ArgumentError, ValueError):  # they quote the address, which may have a password
        pass
    raise DataError("ServerAddressWrong", path=path, why=why)


def _state(error: Exception) -> str:
    """The SQLSTATE of a driver's error; empty without one."""
    return str(getattr(getattr(error, "orig", None), "sqlstate", None) or "")


def _kind(error: Exception) -> str:
    """The error's class, and its SQLSTATE."""
    state = _state(error)
    name = type(getattr(error, "orig", None) or error).__name__
    return f"{name}, SQLSTATE {state}" if state else name
