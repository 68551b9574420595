"""Reads of the index: every answer belongs to one head, says which, and is not sent again to a client that has it.

An answer is a function of the question and of the latest block with any content. So that block's hash and the question
make a strong validator (RFC 9110, 8.8.3), known before anything is read. Requests for the same answer wait for the one
that reads it: many at once cost as much as one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from consilium_chain.deploying.address_book import Deployment
from pydantic import BaseModel
from sqlalchemy import Connection, Engine, and_, func, select
from sqlalchemy.orm import Session

from consilium_server.api.state import State
from consilium_server.database.engine import open_database
from consilium_server.database.tables import Block, Checkpoint, Spec

THREADS = 40  # that answer requests side by side, and so connections
READING = 4  # of them read the index for answers: more only take turns at Python's interpreter
EXPORTING = 2  # read pages of exports: many exports at once take turns, and leave everything else to others
MOST_KEPT = 16 << 20  # bytes of answers


@dataclass(frozen=True)
class Head:
    """Block up to which all is in the tables; None before the first.

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
    """Answers of the latest state by their validators: each is read and encoded once. Older states are dropped."""

    def __init__(self, most: int = MOST_KEPT) -> None:
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
def at_head(state: State) -> Iterator[At]:
    """Reads of one moment of the database."""
    with Session(state.engine) as db, db.begin():
        yield At(db, head_of(db), state.deployment)


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


def latest(model: Any, keys: Sequence[Any], *where: Any, first: bool = False) -> Any:
    """A subquery of the latest row for each of the keys, by block and log; or of the latest in its `first` block.

    The block is found in the index alone, for a table has many rows for each key; then of those in it the row.
    """
    chosen = (func.min if first else func.max)(model.block).label("chosen")
    named = [key.label(f"key_{n}") for n, key in enumerate(keys)]
    blocks = select(*named, chosen).where(*where).group_by(*keys).subquery()
    same = [key == blocks.c[f"key_{n}"] for n, key in enumerate(keys)]
    order = (model.log_index.desc(), model.item.desc())
    rank = func.row_number().over(partition_by=list(keys), order_by=order).label("place")
    ranked = select(model, rank).join(blocks, and_(*same, model.block == blocks.c.chosen)).where(*where).subquery()
    return select(ranked).where(ranked.c.place == 1).subquery()


Read = Callable[[At], BaseModel]
Found = TypeVar("Found")


class Desk:
    """Joins the requests of one event loop, so that one read serves all who wait for it."""

    def __init__(self, state: State) -> None:
        self._state, self._limit, self._exports = state, CapacityLimiter(READING), CapacityLimiter(EXPORTING)
        self._answers = Answers()
        self._underway: dict[str, asyncio.Task[tuple[Head, bytes]]] = {}
        self._asking: asyncio.Task[Head] | None = None
        self._next: asyncio.Task[Head] | None = None

    async def head(self) -> Head:
        """The head at the call or later.

        A call during a read waits for the next one, together with all calls until then.
        """
        if self._next is None:
            self._next = asyncio.create_task(self._ask_after(self._asking))
        return await asyncio.shield(self._next)

    async def _ask_after(self, before: asyncio.Task[Head] | None) -> Head:
        if before is not None and not before.done():
            await asyncio.wait([before])
        self._asking, self._next = self._next, None
        return await to_thread.run_sync(self._head)

    def _head(self) -> Head:
        with self._state.engine.connect() as db, db.begin():
            return head_of(db)

    async def answer(self, tag: str, head: Head, read: Read) -> tuple[Head, bytes]:
        """The answer of `read`, and its head: this one, or a later one. Raises what `read` raises."""
        found = self._answers.get(tag)
        if found is not None:
            return head, found
        if tag not in self._underway:
            task = self._underway[tag] = asyncio.create_task(self._read(tag, head, read))
            task.add_done_callback(lambda _: self._underway.pop(tag))
        return await asyncio.shield(self._underway[tag])

    async def _read(self, tag: str, expected: Head, read: Read) -> tuple[Head, bytes]:
        head, found = await to_thread.run_sync(self._said, read, limiter=self._limit)
        if head == expected:
            self._answers.put(head.state, tag, found)
        return head, found

    async def page(self, read: Callable[[At], Found]) -> Found:
        """A page of an export. Its connection is given back before the page is sent. Raises what `read` raises."""
        return await to_thread.run_sync(self._at_head, read, limiter=self._exports)

    def _at_head(self, read: Callable[[At], Found]) -> Found:
        with at_head(self._state) as at:
            return read(at)

    def underway(self) -> list[asyncio.Future[Any]]:
        """Reads that threads still do for this event loop."""
        return of_this_loop([*self._underway.values(), self._asking, self._next])

    def _said(self, read: Read) -> tuple[Head, bytes]:
        with at_head(self._state) as at:
            return at.head, read(at).model_dump_json().encode()


def of_this_loop(futures: Iterable[asyncio.Future[Any] | None]) -> list[asyncio.Future[Any]]:
    """Futures that are not done yet, and that the running loop will see done."""
    loop = asyncio.get_running_loop()
    return [future for future in futures if future is not None and not future.done() and future.get_loop() is loop]
