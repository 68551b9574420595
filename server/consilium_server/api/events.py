"""Streams the chain's events to all clients as they are indexed: server-sent events (WHATWG HTML, 9.2).

One poller per process reads new rows and hands them to all streams. A stream has a queue of fixed length: a client that
does not read is disconnected, and comes back with its Last-Event-ID. An id names a block, a log and the block's hash,
so that the server notices if a block that the client saw is gone.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from consilium_chain.errors import ChainError, name_of
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc.connection import Connection
from consilium_core.logs import emit
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session
from sse_starlette import ServerSentEvent
from starlette.concurrency import run_in_threadpool

from consilium_server.api.paging import behind
from consilium_server.api.reading import Head, head_of, of_this_loop
from consilium_server.api.state import State
from consilium_server.database.tables import Block, EventRow
from consilium_server.jobs.retry_delay import RetryPolicy

QUEUE = 1024  # events that a stream may lag behind: more than come at once
REPLAYED = 200  # rows read at once
DEPTH = 256  # blocks with events whose hashes are looked at again
CHAIN_EVERY = 5.0  # seconds
TERMS_EVERY = 15.0  # seconds between looks for what gas costs
HASH_DIGITS = 16  # of an id
RETRY = RetryPolicy(first=0.25, most=5.0)  # of a database that fails: so late may events be once it answers again
# All that a database can bring about: no connection in time, an error of the driver, a value that is not of its column.
DATABASE_FAULTS = (SQLAlchemyError, ValueError)
_EVENT_ID = re.compile(rf"([0-9]{{1,18}})-([0-9]{{1,9}})(?:-([0-9a-f]{{{HASH_DIGITS}}}))?", re.ASCII)

Place = tuple[int, int]  # block and log index
Found = TypeVar("Found")


@dataclass(frozen=True)
class EventId:
    """`digits`: the first ones of the block's hash, where they were named."""

    place: Place
    digits: str | None


@dataclass(frozen=True)
class Told:
    """An event to be sent. `task`: None if it belongs to none; a reorganisation goes to all."""

    kind: str  # chain or reorg
    place: Place
    task: int | None
    sent: bytes  # as it goes out, to all alike


@dataclass(eq=False)
class Stream:
    """The stream of one client. While it catches up, only reorganisations are put into its queue."""

    task: int | None
    queue: asyncio.Queue[Told] = field(default_factory=lambda: asyncio.Queue(QUEUE))
    is_live: bool = False
    is_dropped: bool = False

    def wants(self, told: Told) -> bool:
        """True if the event is put into the queue."""
        if told.kind == "reorg":
            return True
        return self.is_live and self.task in (None, told.task)


class Broadcaster:
    """Polls the index, and sends what is new to all streams."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._streams: set[Stream] = set()
        self._place: Place = (0, -1)
        self._seen: OrderedDict[int, bytes] = OrderedDict()  # hashes of the latest blocks told of
        self._looked: Head | None = None  # all that was there at this head has been told
        self._is_ready = asyncio.Event()
        self._reading: asyncio.Future[Any] | None = None
        self.has_failed = False
        self.failure: str | None = None  # of the database, while it lasts

    # The poller

    async def run(self) -> None:
        """Polls until it is cancelled. A failure of the database or the chain is logged, and tried again."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow())
                if self._state.settings.chain_url is not None:
                    group.create_task(self._watch_chain(self._state.settings.chain_url))
        except Exception:  # a fault of this program's: streams would be silent, and the server must not look well
            self.has_failed = True
            logging.getLogger(__name__).exception("the poller of events ended")

    async def _follow(self) -> None:
        failures = 0
        while True:
            try:
                while await self._look():
                    pass
            except DATABASE_FAULTS as error:
                failures += 1
                self._note_failure(name_of(error))
                await asyncio.sleep(RETRY.seconds(failures, random.random()))
                continue
            if self.failure is not None:
                emit("index-readable", failures=failures)
            failures, self.failure = 0, None
            await asyncio.sleep(self._state.settings.poll_seconds)

    def _note_failure(self, name: str) -> None:
        if name != self.failure:  # once, not at every look
            self.failure = name
            emit("index-unreadable", error=name)

    async def _look(self) -> bool:
        """Sends what is new. Returns true if there may be more."""
        if not self._is_ready.is_set():
            self._place, self._seen = await self._read(self._present)
            self._is_ready.set()
        lost, head, found = await self._read(self._changes)
        if lost is not None:
            self._tell_reorg(lost)
        metrics = self._state.metrics
        if head.number is not None:
            metrics.index_head.set(head.number)
            if self._state.chain_head is not None:
                metrics.lag.set(max(0, self._state.chain_head - head.number))
        for told, block_hash in found:
            self._place = told.place
            self._seen[told.place[0]] = block_hash
            self._tell(told)
        while len(self._seen) > DEPTH:
            self._seen.popitem(last=False)
        is_more = len(found) == REPLAYED
        self._looked = None if is_more else head
        return is_more

    async def _read(self, what: Callable[[], Found]) -> Found:
        reading = self._reading = asyncio.ensure_future(run_in_threadpool(what))
        return await asyncio.shield(reading)

    def underway(self) -> list[asyncio.Future[Any]]:
        """Reads of the database that a thread still does for this event loop."""
        return of_this_loop([self._reading])

    def _present(self) -> tuple[Place, OrderedDict[int, bytes]]:
        with Session(self._state.engine) as db, db.begin():
            latest = db.execute(
                select(EventRow.block, EventRow.log_index)
                .order_by(EventRow.block.desc(), EventRow.log_index.desc())
                .limit(1)
            ).first()
            blocks = db.execute(select(Block.number, Block.hash).order_by(Block.number.desc()).limit(DEPTH)).all()
        return (latest[0], latest[1]) if latest else (0, -1), OrderedDict((n, h) for n, h in reversed(blocks))

    def _changes(self) -> tuple[int | None, Head, list[tuple[Told, bytes]]]:
        """The lowest sent block that is gone, the head, and the events after the last sent one that is still there."""
        with Session(self._state.engine) as db, db.begin():
            head = head_of(db)
            if head == self._looked:
                return None, head, []
            blocks = select(Block.number, Block.hash).where(Block.number >= min(self._seen, default=0))
            there = {number: hash_ for number, hash_ in db.execute(blocks.limit(2 * DEPTH).order_by(Block.number))}
            gone = [number for number, hash_ in self._seen.items() if there.get(number) != hash_]
            lost = min(gone, default=None)
            place = self._place if lost is None else min(self._place, (lost, -1))
            found = [(_told(row), row.hash) for row in db.execute(_after(place, None))]
        return lost, head, found

    def _tell_reorg(self, lost: int) -> None:
        emit("reorg", from_block=lost)
        self._state.metrics.reorgs.inc()
        for number in [number for number in self._seen if number >= lost]:
            del self._seen[number]
        self._place = min(self._place, (lost, -1))
        self._tell(_reorg(lost))

    def _tell(self, told: Told) -> None:
        for stream in list(self._streams):
            if not stream.wants(told):
                continue
            try:
                stream.queue.put_nowait(told)
            except asyncio.QueueFull:
                self._drop(stream)

    def _drop(self, stream: Stream) -> None:
        """Disconnects a slow client: empties its queue at once, and ends its connection at the next read or timeout."""
        stream.is_dropped = True
        self._leave(stream)
        while not stream.queue.empty():
            stream.queue.get_nowait()
        stream.queue.put_nowait(_reorg(0))  # wakes it
        self._state.metrics.dropped.inc()

    def _leave(self, stream: Stream) -> None:
        self._streams.discard(stream)
        self._state.metrics.subscribers.set(len(self._streams))

    async def _watch_chain(self, url: str) -> None:
        connection: Connection | None = None
        terms_due = 0.0
        while True:
            try:
                if connection is None:
                    connection = await run_in_threadpool(Connection, url)
                head = await run_in_threadpool(connection.blocks.number)
                self._state.chain_head = head
                if time.monotonic() >= terms_due:
                    ledger = Ledger(connection, self._state.deployment)
                    self._state.chain_terms = await run_in_threadpool(ledger.chain_terms)
                    terms_due = time.monotonic() + TERMS_EVERY
                self._state.metrics.chain_head.set(head)
            except ChainError as error:
                if self._state.chain_head is not None:
                    emit("chain-unreachable", error=name_of(error))
                self._state.chain_head, self._state.chain_terms, connection = None, None, None
            await asyncio.sleep(CHAIN_EVERY)

    # Streams

    async def stream(self, task: int | None, last_id: EventId | None) -> AsyncIterator[bytes]:
        """Events after the id, or from now on."""
        await self._is_ready.wait()
        stream = Stream(task)
        self._streams.add(stream)
        self._state.metrics.subscribers.set(len(self._streams))
        try:
            place = self._place
            if last_id is not None:
                place, lost = await run_in_threadpool(self._resumed, last_id)
                if lost is not None:
                    yield _reorg(lost).sent
            async for missed in self._caught_up(stream, place):
                yield missed
            while not stream.is_dropped:
                waiting = [await stream.queue.get()]
                while not stream.queue.empty():  # what came at once goes out at once
                    waiting.append(stream.queue.get_nowait())
                if not stream.is_dropped:
                    yield b"".join(told.sent for told in waiting)
        finally:
            self._leave(stream)

    async def _caught_up(self, stream: Stream, place: Place) -> AsyncIterator[bytes]:
        """Rows between a place and the poller's; then the stream is live."""
        while True:
            with suppress(asyncio.QueueEmpty):
                reorg = stream.queue.get_nowait()
                place = min(place, (reorg.place[0], -1))
                yield reorg.sent
                continue
            if place >= self._place:
                stream.is_live = True  # nothing awaited since the poller's place was read: no event is between
                return
            end = self._place
            rows = await run_in_threadpool(self._page, place, end, stream.task)
            if not stream.queue.empty():
                continue  # what was read may be gone
            if rows:
                yield b"".join(told.sent for told in rows)
            place = rows[-1].place if len(rows) == REPLAYED else end

    def _page(self, place: Place, end: Place, task: int | None) -> list[Told]:
        with Session(self._state.engine) as db, db.begin():
            found = [_told(row) for row in db.execute(_after(place, task))]
        return [told for told in found if told.place <= end]

    def _resumed(self, last_id: EventId) -> tuple[Place, int | None]:
        """The place to go on from. If the block is gone, also the block from which all is sent again.

        An id does not say how deep the fork was.
        """
        block, digits = last_id.place[0], last_id.digits
        with Session(self._state.engine) as db, db.begin():
            there = db.scalar(select(Block.hash).where(Block.number == block))
        if digits is None or (there is not None and there.hex()[:HASH_DIGITS] == digits):
            return last_id.place, None
        lost = max(0, block - DEPTH)
        return (lost, -1), lost


def _after(place: Place, task: int | None) -> Any:
    found = (
        select(EventRow, Block.hash, Block.time)
        .join(Block, Block.number == EventRow.block)
        .where(*behind((EventRow.block, EventRow.log_index), list(place), descending=False))
        .order_by(EventRow.block, EventRow.log_index)
        .limit(REPLAYED)
    )
    return found if task is None else found.where(EventRow.task == task)


def parse_event_id(text: str) -> EventId | None:
    """Parses a Last-Event-ID; None if this server gave no such id."""
    match = _EVENT_ID.fullmatch(text)
    return None if match is None else EventId((int(match[1]), int(match[2])), match[3])


def event_id(block: int, log_index: int, block_hash: bytes) -> str:
    """The id of an event, as clients send it back in Last-Event-ID."""
    return f"{block}-{log_index}-{block_hash.hex()[:HASH_DIGITS]}"


def _told(row: Any) -> Told:
    event, block_hash, time = row[0], row[1], row[2]
    data = described(event, time)
    id_ = event_id(event.block, event.log_index, block_hash)
    sent = ServerSentEvent(data=json.dumps(data, separators=(",", ":")), event="chain", id=id_)
    return Told("chain", (event.block, event.log_index), event.task, sent.encode())


def described(event: EventRow, time: int) -> dict[str, Any]:
    """The event as JSON."""
    return {
        "block": event.block, "log_index": event.log_index, "time": time, "transaction": "0x" + event.transaction.hex(),
        "contract": event.contract, "name": event.name, "task": event.task, "round": event.round,
        "account": event.account, "other": event.other, "values": event.values,
    }  # fmt: skip


def _reorg(lost: int) -> Told:
    sent = ServerSentEvent(data=json.dumps({"from_block": lost}), event="reorg")
    return Told("reorg", (lost, -1), None, sent.encode())
