"""Queries and writes of the index, within a transaction of the caller."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.rpc.blocks import Head
from sqlalchemy import Connection, Engine, Select, Table, and_, bindparam, delete, func, insert, select
from sqlalchemy.orm import Session

from consilium_server.database.engine import shown
from consilium_server.database.sale_tables import OfferRow, PartsRow, SaleRow
from consilium_server.database.tables import (
    Base,
    Block,
    Checkpoint,
    EventRow,
    Fact,
    Participant,
    PoolRow,
    Position,
    Source,
    Spec,
    TaskRow,
    UnbondingRow,
)
from consilium_server.errors import DatabaseUnfit
from consilium_server.index.staking_facts import Known, Latest

KEPT_CHECKPOINTS = 1_000  # blocks; blocks with facts show deeper reorganisations
Row = TypeVar("Row", bound=Base)


def table_of(kind: type[Base]) -> Table:
    """The table of a kind of row."""
    return Base.metadata.tables[kind.__tablename__]


def has_source(database: Engine, connection: Connection | Session, deployment: Deployment) -> bool:
    """True if the tables belong to these contracts, False if to none yet. Raises DatabaseUnfit (SourceMismatch)."""
    own = Source(deployment.chain_id, deployment.tasks)
    found = [Source(*row) for row in connection.execute(select(table_of(Source)))]
    if found and found != [own]:
        raise DatabaseUnfit("SourceMismatch", shown=shown(database), found=_named(found[0]), expected=_named(own))
    return bool(found)


def _named(source: Source) -> str:
    return f"contract {source.tasks} on chain {source.chain_id}"


def checkpoint(connection: Connection) -> Checkpoint | None:
    """The latest checkpoint."""
    found = connection.execute(select(table_of(Checkpoint)).order_by(Checkpoint.number.desc()).limit(1)).first()
    return None if found is None else Checkpoint(*found)


def hashes(connection: Connection, limit: int | None) -> dict[int, bytes]:
    """Block hashes of the last `limit` checkpoints and as many blocks, by ascending number; of all if it is None."""
    found: dict[int, bytes] = {}
    for kind in (Block, Checkpoint):
        ordered = select(kind.number, kind.hash).order_by(kind.number.desc()).limit(limit)
        found |= {number: digest for number, digest in connection.execute(ordered)}
    return dict(sorted(found.items()))


def take_back(connection: Connection, fork: Checkpoint | None) -> int:
    """Removes all after a block; returns the number of removed blocks with facts."""
    number = -1 if fork is None else fork.number
    gone = connection.execute(delete(table_of(Block)).where(Block.number > number)).rowcount
    connection.execute(delete(table_of(Checkpoint)).where(Checkpoint.number >= number))
    if fork is not None:
        add(connection, [fork])
    return gone


def advance(connection: Connection, end: Head) -> None:
    """Records that the tables are complete up to `end`."""
    add(connection, [Checkpoint(end.number, end.hash)])
    connection.execute(delete(table_of(Checkpoint)).where(Checkpoint.number < end.number - KEPT_CHECKPOINTS))


def add(connection: Connection, rows: Iterable[Base]) -> None:
    """Inserts the rows."""
    by_kind: dict[type[Base], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        columns = table_of(type(row)).columns
        by_kind[type(row)].append({column.key: getattr(row, column.key) for column in columns})
    for kind, values in by_kind.items():
        connection.execute(insert(table_of(kind)), values)


def missing_specs(connection: Connection) -> list[bytes]:
    """Hashes of task files that tasks name and the tables do not have."""
    wanted = select(TaskRow.spec_hash).distinct().where(TaskRow.spec_hash.not_in(select(Spec.hash)))
    return list(connection.scalars(wanted.order_by(TaskRow.spec_hash)))


def has_spec(connection: Connection, digest: bytes) -> bool:
    return connection.scalar(select(Spec.hash).where(Spec.hash == digest)) is not None


def latest(model: Any, keys: Sequence[Any], *where: Any, first: bool = False) -> Any:
    """A subquery of each key's latest row, by block and log; with `first`, of the latest in its first block.

    The block is found in the database's index alone, because a table has many rows for each key.
    """
    chosen = (func.min if first else func.max)(model.block).label("chosen")
    named = [key.label(f"key_{n}") for n, key in enumerate(keys)]
    blocks = select(*named, chosen).where(*where).group_by(*keys).subquery()
    same = [key == blocks.c[f"key_{n}"] for n, key in enumerate(keys)]
    order = (model.log_index.desc(), model.item.desc())
    rank = func.row_number().over(partition_by=list(keys), order_by=order).label("rank")
    ranked = select(model, rank).join(blocks, and_(*same, model.block == blocks.c.chosen)).where(*where).subquery()
    return select(ranked).where(ranked.c.rank == 1).subquery()


def known(connection: Connection) -> Known:
    """The state at the end of the tables. Each row is read when it is needed."""

    def roles(task: int) -> dict[str, int]:
        members = select(Participant.account, Participant.role).where(Participant.task == task)
        return {account: role for account, role in connection.execute(members)}

    def operator(task: int) -> str | None:
        return connection.scalar(select(TaskRow.operator).where(TaskRow.task == task))

    def has_voter_key(account: str) -> bool:
        registered = (EventRow.name == "VoterKeyRegistered", EventRow.account == account)
        return connection.execute(select(EventRow.account).where(*registered).limit(1)).first() is not None

    def price(key: tuple[int, str]) -> int | None:
        offer = _latest(connection, OfferRow, _OFFER, key)
        return None if offer is None else offer.price

    return Known(
        Latest(lambda key: _latest(connection, PoolRow, _POOL, key)),
        Latest(lambda key: _latest(connection, Position, _POSITION, key)),
        Latest(lambda key: _latest(connection, UnbondingRow, _REQUEST, key)),
        Latest(roles),
        Latest(operator),
        Latest(has_voter_key),
        Latest(price),
        Latest(lambda key: _latest(connection, PartsRow, _PARTS, key)),
        Latest(lambda key: _latest(connection, SaleRow, _SALE, key)),
    )


def _newest(kind: type[Fact]) -> tuple[Any, ...]:
    return kind.block.desc(), kind.log_index.desc(), kind.item.desc()


def _by(kind: type[Fact], *columns: Any) -> Select[Any]:
    """Latest row of each tuple of these columns' values, which are k0, k1 and so on."""
    matches = [column == bindparam(f"k{index}") for index, column in enumerate(columns)]
    return select(table_of(kind)).where(*matches).order_by(*_newest(kind)).limit(1)


_POOL = _by(PoolRow, PoolRow.node, PoolRow.role)
_POSITION = _by(Position, Position.delegator, Position.node, Position.role)
_REQUEST = _by(UnbondingRow, UnbondingRow.delegator, UnbondingRow.request)
_OFFER = _by(OfferRow, OfferRow.task, OfferRow.server)
_PARTS = _by(PartsRow, PartsRow.task, PartsRow.holder)
_SALE = _by(SaleRow, SaleRow.task, SaleRow.kind)


def _latest(connection: Connection, kind: type[Row], by: Select[Any], key: tuple[Any, ...]) -> Row | None:
    found = connection.execute(by, {f"k{index}": value for index, value in enumerate(key)}).first()
    return None if found is None else kind(**found._mapping)
