"""Opens a database by its URL, and brings its tables up to this version.

There are two kinds: SQLite, a file in WAL mode (one writer, and readers beside it), and PostgreSQL. A writer holds one
lock from its first read on, so that no other writer changes the rows that it has read. Migrations hold it, too: an
older program that still runs writes nothing after a later version changed the tables.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.orm import Session

from consilium_server.errors import DatabaseUnfit, ServerError, Unavailable

if TYPE_CHECKING:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

BUSY_TIMEOUT = 30  # seconds to wait for another transaction
WRITERS_LOCK = 0x436F6E73696C6975  # number of a PostgreSQL advisory lock, chosen by this program
MIGRATIONS = Path(__file__).parent / "migrations"
_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}


def open_database(url: str, connections: int = 5) -> Engine:
    """Opens `sqlite:///PATH` or `postgresql://USER:PASSWORD@HOST:PORT/NAME`, and upgrades its tables.

    `connections`: most that stay open. Raises DatabaseUrlInvalid, DatabaseUnreachable, SchemaTooNew. None of these
    shows a password.
    """
    engine = connect(url, connections)
    try:
        upgrade(engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def connect(url: str, connections: int = 5) -> Engine:
    """Opens the database without an upgrade, for checks of its version. Raises ServerError (DatabaseUrlInvalid)."""
    parsed = _parsed(url)
    if parsed.get_backend_name() == "sqlite":
        engine = create_engine(parsed, pool_size=connections, connect_args={"timeout": BUSY_TIMEOUT})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    return create_engine(parsed, pool_size=connections, pool_pre_ping=True, connect_args={"connect_timeout": 10})


def shown(engine: Engine) -> str:
    """The database's name for errors and screens, without the password."""
    url = engine.url
    where = f"{url.host or ''}{f':{url.port}' if url.port else ''}"
    return f"{url.get_backend_name()}://{where}/{url.database or ''}"


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A transaction that sees the database as of one moment. Raises DatabaseUnreachable."""
    options: dict[str, Any] = {}
    if engine.dialect.name == "postgresql":
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    with _named_errors(engine), engine.connect() as connection, connection.execution_options(**options).begin():
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """The transaction of the only writer: committed at the end of the block, rolled back if the block raises.

    Raises DatabaseUnreachable, also if another writer takes longer than BUSY_TIMEOUT, and SchemaTooNew if a later
    version has changed the tables since they were opened.
    """
    with _alone(engine) as connection:
        require_known(engine, connection)
        yield connection


@contextmanager
def updating(engine: Engine) -> Iterator[Connection]:
    """A transaction without the writers' lock, for rows that no other transaction reads and writes in two steps.

    Raises DatabaseUnreachable.
    """
    with _named_errors(engine), engine.begin() as connection:
        yield connection


def require_known(engine: Engine, connection: Connection | Session) -> None:
    """Raises DatabaseUnfit (SchemaTooNew) if this program does not know the tables' version. The tables must exist."""
    found = connection.scalar(text("SELECT version_num FROM alembic_version"))
    if found not in _versions():
        raise DatabaseUnfit("SchemaTooNew", shown=shown(engine), revision=str(found))


@contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    writes = {"consilium_writes": True}
    with _named_errors(engine), engine.connect() as connection, connection.execution_options(**writes).begin():
        if engine.dialect.name == "postgresql":
            connection.execute(text(f"SET LOCAL lock_timeout = '{BUSY_TIMEOUT}s'"))
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": WRITERS_LOCK})
        yield connection


def upgrade(engine: Engine) -> None:
    """Upgrades the tables to this version; does nothing if another process did so.

    Raises SchemaTooNew if a later version has changed the tables, DatabaseUnreachable.
    """
    from alembic import command
    from alembic.runtime.migration import MigrationContext

    config, _ = _scripts()
    with _alone(engine) as connection:
        for revision in MigrationContext.configure(connection).get_current_heads():
            if revision not in _versions():
                raise DatabaseUnfit("SchemaTooNew", shown=shown(engine), revision=revision)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


@dataclass(frozen=True)
class Schema:
    """The last migration of a database's tables, None if there are no tables; `newest` is this version's."""

    found: str | None
    newest: str
    is_known: bool


def schema_of(engine: Engine) -> Schema:
    """Reads the schema's version, and changes nothing. Raises DatabaseUnreachable."""
    from alembic.runtime.migration import MigrationContext

    with _named_errors(engine), engine.connect() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
    return Schema(found, _versions()[0], found in _versions())


@cache
def _versions() -> tuple[str, ...]:
    """Versions that this program knows, the newest first."""
    return tuple(script.revision for script in _scripts()[1].walk_revisions())


def _scripts() -> tuple[Config, ScriptDirectory]:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config, ScriptDirectory.from_config(config)


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
        driver = _DRIVERS[parsed.get_backend_name()]
    except (ArgumentError, NoSuchModuleError, ValueError, KeyError):
        raise ServerError("DatabaseUrlInvalid") from None  # URL and cause may contain a password
    if any("password" in name for name in parsed.query):
        raise ServerError("DatabaseUrlInvalid")  # SQLAlchemy would show it
    return parsed.set(drivername=driver)


@contextmanager
def _named_errors(engine: Engine) -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        if not _is_unreachable(error):
            raise
        raise Unavailable("DatabaseUnreachable", shown=shown(engine), cause=_cause(engine.url, error)) from None


def _is_unreachable(error: DBAPIError) -> bool:
    """True if a driver's error comes from the database's state, and not from the query."""
    kinds = {kind.__name__ for kind in type(error.orig).__mro__}
    damaged = type(error.orig) is sqlite3.DatabaseError  # the file is damaged, or not a database
    return error.connection_invalidated or damaged or bool(kinds & {"OperationalError", "InterfaceError"})


def _cause(url: URL, error: DBAPIError) -> str:
    """A driver's message in one line, without the password."""
    words = " ".join(str(error.orig).split())
    return words.replace(str(url.password), "…") if url.password else words


def _prepare_sqlite(connection: Any, record: Any) -> None:
    # The driver would begin transactions by its own rules.
    connection.isolation_level = None
    _in_wal_mode(connection)
    for pragma in ("synchronous = NORMAL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _in_wal_mode(connection: Any) -> None:
    """Retries, because SQLite does not wait here for a lock, and several processes may open a new file at once."""
    end = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.02)


def _begin_sqlite(connection: Connection) -> None:
    """A writer takes its lock at the beginning: SQLite refuses a lock after a read if another writer came between."""
    writes = connection.get_execution_options().get("consilium_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
