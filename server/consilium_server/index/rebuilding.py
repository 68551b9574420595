"""Rebuilds the tables from the chain and the artifacts, and compares them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from heapq import merge
from itertools import groupby, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.ledger import Ledger
from consilium_core.logs import emit
from sqlalchemy import Connection, Engine, Table, delete, insert, select

from consilium_server.config import IndexerSettings
from consilium_server.database.engine import open_database, reading, shown, writing
from consilium_server.database.tables import Base, Block, Checkpoint, Fact, Spec
from consilium_server.errors import DatabaseUnfit, Unavailable
from consilium_server.index import store
from consilium_server.index.indexer import Indexer

ROWS_AT_ONCE = 1_000
MOST_LOGGED = 100  # differences
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Difference:
    """A row of a table by its key, as found and as expected; None if there is none."""

    table: str
    key: Key
    found: dict[str, Any] | None
    expected: dict[str, Any] | None


def reindex(ledger: Ledger, database: Engine, store: ArtifactStore | None, folder: Path, replace: bool) -> int:
    """Rebuilds the tables up to the database's last block, and compares them; returns the number of rows.

    Logs the first MOST_LOGGED rows that differ. With `replace` the rebuilt rows then replace all rows in one
    transaction. `folder`: for the rebuilt tables. Raises DatabaseUnfit (IndexDiffers) if rows differ without
    `replace`, Unavailable (ChainMoved) after a reorganisation during the comparison, and as `Indexer.catch_up`.
    """
    last = _last(Indexer(ledger, database, store), replace)
    with TemporaryDirectory(prefix="reindex-", dir=folder) as temporary:
        fresh = open_database(f"sqlite:///{Path(temporary) / 'index.sqlite'}")
        try:
            built = Indexer(ledger, fresh, store).catch_up(last)
            if last is not None:
                rows, differing = _compared(database, fresh, last)
                emit("compared", last=last, rows=rows, differing=differing)
                if not replace:
                    if differing:
                        raise DatabaseUnfit("IndexDiffers", shown=shown(database), rows=differing, last=last)
                    return rows
            rows = _replace(database, fresh)
            emit("replaced", last=built, rows=rows)
            return rows
        finally:
            fresh.dispose()


def _last(indexer: Indexer, replace: bool) -> int | None:
    """The database's last block; None if it cannot be updated, and will be replaced."""
    try:
        return indexer.catch_up()
    except DatabaseUnfit as error:
        if error.name != "EventsInconsistent" or not replace:
            raise
        emit("not-brought-on", error=error.name)
        return None


def differences(found: Connection, expected: Connection, last: int) -> Iterator[Difference]:
    """Differing facts up to a block, and task files, table by table in the order of keys."""
    for table in _tables():
        both = merge(_keyed(found, table, last), _keyed(expected, table, last, True), key=lambda one: one[:2])
        for key, group in groupby(both, key=lambda one: one[0]):
            rows = {is_expected: row for _, is_expected, row in group}
            if rows.get(False) != rows.get(True):
                yield Difference(table.name, key, rows.get(False), rows.get(True))


def _keyed(
    connection: Connection, table: Table, last: int, is_expected: bool = False
) -> Iterator[tuple[Key, bool, dict[str, Any]]]:
    names = [column.key for column in table.primary_key]
    return ((tuple(row[name] for name in names), is_expected, row) for row in _rows(connection, table, last))


def _compared(database: Engine, fresh: Engine, last: int) -> tuple[int, int]:
    """Number of rebuilt rows, and of rows that differ."""
    with ExitStack() as stack:
        found, expected = (stack.enter_context(reading(engine)) for engine in (database, fresh))
        ends = [_hash_at(connection, last) for connection in (found, expected)]
        if ends[0] != ends[1]:
            raise Unavailable("ChainMoved", what=f"block {last}")
        differing = 0
        for one in differences(found, expected, last):
            differing += 1
            if differing > MOST_LOGGED:
                continue
            emit(
                "differs", table=one.table, key=[str(part) for part in one.key], found=_shown(one.found),
                expected=_shown(one.expected),
            )  # fmt: skip
        return sum(1 for table in _tables() for _ in _rows(expected, table, last)), differing


def _hash_at(connection: Connection, number: int) -> bytes | None:
    """Hash of a block's checkpoint, which stays while another indexer continues."""
    return connection.scalar(select(Checkpoint.hash).where(Checkpoint.number == number))


def _tables() -> list[Table]:
    """Tables but the indexer's own bookkeeping; referenced tables come first."""
    kept = {store.table_of(kind).name for kind in (Block, Spec)}
    facts = {store.table_of(kind).name for kind in Fact.__subclasses__()}
    return [table for table in Base.metadata.sorted_tables if table.name in kept | facts]


def _rows(connection: Connection, table: Table, last: int) -> Iterator[dict[str, Any]]:
    """Rows in the order of keys; facts only up to a block."""
    block = table.columns.get("block", table.columns.get("number"))
    query = select(table).order_by(*table.primary_key)
    if block is not None:
        query = query.where(block <= last)
    result = connection.execution_options(yield_per=ROWS_AT_ONCE).execute(query)
    return (dict(row._mapping) for row in result)


def _replace(database: Engine, fresh: Engine) -> int:
    """Replaces all rows; returns their number, without the indexer's own."""
    tables, copied = [*_tables(), store.table_of(Checkpoint)], 0
    with reading(fresh) as source, writing(database) as target:
        for table in reversed(tables):
            target.execute(delete(table))
        for table in tables:
            rows = iter(source.execute(select(table)).mappings())
            while batch := [dict(row) for row in islice(rows, ROWS_AT_ONCE)]:
                target.execute(insert(table), batch)
                copied += len(batch) if table.name != Checkpoint.__tablename__ else 0
    return copied


def _shown(row: dict[str, Any] | None) -> dict[str, str] | None:
    return None if row is None else {name: str(value) for name, value in row.items()}


def compare(settings: IndexerSettings, replace: bool) -> int:
    """The command `consilium server reindex`. Returns the number of rows. Raises as `reindex`."""
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    database = open_database(settings.url)
    return reindex(settings.connect(), database, settings.store, settings.home, replace)
