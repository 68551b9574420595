"""Reads of the index. Every answer belongs to one head, names it, and is not sent again to a client that has it.

An answer is a function of the request and of the latest block with any content. So that block's hash and the request
make a strong validator (RFC 9110, 8.8.3) that is known before anything is read. Requests for the same answer wait for
one read: many at once cost as much as one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from consilium_chain.deploying.address_book import Deployment
from pydantic import BaseModel
from sqlalchemy import Connection, Engine, FromClause, Select, and_, func, select
from sqlalchemy.orm import Session

from consilium_server.database.engine import open_database
from consilium_server.database.tables import Block, Checkpoint, EventRow, Spec

THREADS = 40  # that answer requests at the same time, and so the number of connections
READING = 4  # of them read the index for answers: more would only take turns at Python's interpreter
EXPORTING = 2  # read pages of exports: many exports take turns, and leave the rest to other requests
MOST_CACHED = 16 << 20  # bytes of answers


@dataclass(frozen=True)
class Head:
    """The block up to which the tables are complete; None before the first.

    `specs`: number of known task files, which arrive independently. `latest`, `time`: hash and time of the latest block
    with any content; empty and 0 before the first.
    """

    number: int | None
    hash: bytes
    specs: int
    latest: bytes
    time: int

    @property
    def state(self) -> str:
        """Names the state of the tables: blocks without content change nothing."""
        return f"{self.latest.hex()}-{self.specs}"


class Answers:
    """Cache of the latest state's answers by their validators. Answers of older states are dropped."""

    def __init__(self, most: int = MOST_CACHED) -> None:
        self._most, self._size, self._state = most, 0, ""
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    def get(self, tag: str) -> bytes | None:
        """The answer of a validator; None if it is not cached."""
        if tag in self._kept:
            self._kept.move_to_end(tag)
        return self._kept.get(tag)

    def put(self, state: str, tag: str, answer: bytes) -> None:
        """Caches an answer, and drops those of older states."""
        if state != self._state:
            self._state, self._size = state, 0
            self._kept.clear()
        self._size += len(answer) - len(self._kept.pop(tag, b""))
        self._kept[tag] = answer
        while self._size > self._most:
            _, oldest = self._kept.popitem(last=False)
            self._size -= len(oldest)


@dataclass(frozen=True)
class At:
    """The tables at one head."""

    db: Session
    head: Head
    deployment: Deployment


def open_engine(url: str) -> Engine:
    """The database for readers: each transaction sees one moment. Raises as `open_database`."""
    engine = open_database(url, THREADS)
    if engine.dialect.name == "sqlite":
        return engine
    return engine.execution_options(isolation_level="REPEATABLE READ")


@contextmanager
def at_head(engine: Engine, deployment: Deployment) -> Iterator[At]:
    """Reads of one moment of the database."""
    with Session(engine) as db, db.begin():
        yield At(db, head_of(db), deployment)


def _latest_of(column: Any, number: Any) -> Any:
    return select(column).order_by(number.desc()).limit(1).scalar_subquery()


_HEAD = select(
    _latest_of(Checkpoint.number, Checkpoint.number),
    _latest_of(Checkpoint.hash, Checkpoint.number),
    select(func.count()).select_from(Spec).scalar_subquery(),
    _latest_of(Block.hash, Block.number),
    _latest_of(Block.time, Block.number),
)


def head_of(db: Session | Connection) -> Head:
    """Head of the tables in this transaction."""
    number, hash_, specs, latest_hash, time = db.execute(_HEAD).one()
    return Head(number, hash_ or b"", specs, latest_hash or b"", time or 0)


def position_of(fact: Any) -> tuple[Any, Any, Any]:
    """The columns that say where on the chain a fact comes from, and so its order."""
    return fact.block, fact.log_index, fact.item


def with_log(rows: FromClause, *columns: Any) -> Select[Any]:
    """Rows of facts with the time of their block, the transaction of their log, and more columns of either."""
    same = and_(EventRow.block == rows.c.block, EventRow.log_index == rows.c.log_index)
    query = select(*rows.c, Block.time, EventRow.transaction, *columns).select_from(rows)
    return query.join(Block, Block.number == rows.c.block).outerjoin(EventRow, same)


Read = Callable[[At], BaseModel]
Result = TypeVar("Result")


class SharedReads:
    """Joins the requests of one event loop, so that one read serves all that wait for it."""

    def __init__(self, engine: Engine, deployment: Deployment) -> None:
        self._engine, self._deployment = engine, deployment
        self._limit, self._exports = CapacityLimiter(READING), CapacityLimiter(EXPORTING)
        self._answers = Answers()
        self._underway: dict[str, asyncio.Task[tuple[Head, bytes]]] = {}
        self._current: asyncio.Task[Head] | None = None
        self._next: asyncio.Task[Head] | None = None

    async def head(self) -> Head:
        """The head at the call or later.

        A call during a read waits for the next one, together with all calls until then.
        """
        if self._next is None:
            self._next = asyncio.create_task(self._head_after(self._current))
        return await asyncio.shield(self._next)

    async def _head_after(self, before: asyncio.Task[Head] | None) -> Head:
        if before is not None and not before.done():
            await asyncio.wait([before])
        self._current, self._next = self._next, None
        return await to_thread.run_sync(self._head)

    def _head(self) -> Head:
        with self._engine.connect() as db, db.begin():
            return head_of(db)

    async def answer(self, tag: str, head: Head, read: Read) -> tuple[Head, bytes]:
        """The answer of `read`, and its head: this one, or a later one. Raises as `read`."""
        cached = self._answers.get(tag)
        if cached is not None:
            return head, cached
        if tag not in self._underway:
            task = self._underway[tag] = asyncio.create_task(self._read(tag, head, read))
            task.add_done_callback(lambda _: self._underway.pop(tag))
        return await asyncio.shield(self._underway[tag])

    async def _read(self, tag: str, expected: Head, read: Read) -> tuple[Head, bytes]:
        def encoded(at: At) -> tuple[Head, bytes]:
            return at.head, read(at).model_dump_json().encode()

        head, answer = await to_thread.run_sync(self._at_head, encoded, limiter=self._limit)
        if head == expected:
            self._answers.put(head.state, tag, answer)
        return head, answer

    async def page(self, read: Callable[[At], Result]) -> Result:
        """A page of an export. Its connection is released before the page is sent. Raises as `read`."""
        return await to_thread.run_sync(self._at_head, read, limiter=self._exports)

    def _at_head(self, read: Callable[[At], Result]) -> Result:
        with at_head(self._engine, self._deployment) as at:
            return read(at)

    def underway(self) -> list[asyncio.Future[Any]]:
        """Reads that threads still do for this event loop."""
        return of_this_loop([*self._underway.values(), self._current, self._next])


def of_this_loop(futures: Iterable[asyncio.Future[Any] | None]) -> list[asyncio.Future[Any]]:
    """Futures that are not done yet, and that the running loop will see done."""
    loop = asyncio.get_running_loop()
    return [future for future in futures if future is not None and not future.done() and future.get_loop() is loop]
