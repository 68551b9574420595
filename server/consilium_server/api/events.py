"""Streams the chain's events to all clients as they are indexed: server-sent events (WHATWG HTML, 9.2).

One poller per process reads new rows and hands them to all streams. A stream has a queue of fixed length: a client that
does not read is disconnected, and comes back with its Last-Event-ID. An id names a block, a log and the block's hash.
So the server notices if a reorganisation removed a block that the client saw.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.errors import ChainError, name_of
from consilium_chain.settings import ChainUrls
from consilium_chain.tasks.chain_terms import ChainTerms
from consilium_core.logs import emit
from sqlalchemy import Engine, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session
from sse_starlette import ServerSentEvent
from starlette.concurrency import run_in_threadpool

from consilium_server.api.chain_watch import ChainWatch
from consilium_server.api.metrics import Metrics
from consilium_server.api.paging import behind
from consilium_server.api.reading import Head, head_of, of_this_loop, position_of
from consilium_server.config import ApiSettings
from consilium_server.database.tables import Block, EventRow
from consilium_server.jobs.retry_delay import RetryPolicy

QUEUE = 1024  # events that a stream may lag behind: more than come at once
REPLAYED = 200  # rows read at once
DEPTH = 256  # blocks with events whose hashes are compared again
HASH_DIGITS = 16  # of an id
RETRY = RetryPolicy(first=0.25, most=5.0)  # of a database that fails: events are late by this once it answers again
# All faults of a database: no connection in time, an error of the driver, a value that does not fit its column.
DATABASE_FAULTS = (SQLAlchemyError, ValueError)
_EVENT_ID = re.compile(rf"([0-9]{{1,18}})-([0-9]{{1,9}})(?:-([0-9a-f]{{{HASH_DIGITS}}}))?", re.ASCII)

EventPosition = tuple[int, int]  # block and log index
Result = TypeVar("Result")


@dataclass(frozen=True)
class EventId:
    """`digits`: the first digits of the block's hash, if the id has them."""

    position: EventPosition
    digits: str | None


@dataclass(frozen=True)
class StreamEvent:
    """An event for the streams. `task`: None if it belongs to none; a reorganisation goes to all."""

    kind: str  # chain or reorg
    position: EventPosition
    task: int | None
    encoded: bytes  # the same for all streams


@dataclass(eq=False)
class Stream:
    """The stream of one client. While it catches up, only reorganisations are put into its queue."""

    task: int | None
    queue: asyncio.Queue[StreamEvent] = field(default_factory=lambda: asyncio.Queue(QUEUE))
    is_live: bool = False
    is_dropped: bool = False

    def wants(self, event: StreamEvent) -> bool:
        """True if the event is put into the queue."""
        if event.kind == "reorg":
            return True
        return self.is_live and self.task in (None, event.task)


class Broadcaster:
    """Polls the index, and sends new events to all streams. Polls the chain node, if there is one.

    `chain_head`: latest block of the chain node. `chain_terms`: gas prices and fees. Both are None until the node
    answers, and while it does not. `token_symbol`, and `unbonding` in seconds: never change, and are read once.
    """

    def __init__(self, settings: ApiSettings, deployment: Deployment, engine: Engine, metrics: Metrics) -> None:
        self._settings, self._deployment, self._engine, self._metrics = settings, deployment, engine, metrics
        self._streams: set[Stream] = set()
        self._position: EventPosition = (0, -1)
        self._seen: OrderedDict[int, bytes] = OrderedDict()  # hashes of the latest blocks whose events were sent
        self._sent_up_to: Head | None = None  # all events at this head were sent
        self._is_ready = asyncio.Event()
        self._reading: asyncio.Future[Any] | None = None
        self.has_failed = False
        self.failure: str | None = None  # of the database, while it lasts
        self.chain_head: int | None = None
        self.chain_terms: ChainTerms | None = None
        self.unbonding: int | None = None
        self.token_symbol: str | None = None

    # The poller

    async def run(self) -> None:
        """Polls until it is cancelled. A failure of the database or the chain is logged, and tried again."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow())
                if self._settings.chain_url is not None:
                    group.create_task(self._watch_chain(self._settings.chain_url))
        except Exception:  # a fault of this program: streams are silent, and the server must not look ready
            self.has_failed = True
            logging.getLogger(__name__).exception("the poller of events ended")

    async def _follow(self) -> None:
        failures = 0
        while True:
            try:
                while await self._poll():
                    pass
            except DATABASE_FAULTS as error:
                failures += 1
                self._note_failure(name_of(error))
                await asyncio.sleep(RETRY.seconds(failures, random.random()))
                continue
            if self.failure is not None:
                emit("index-readable", failures=failures)
            failures, self.failure = 0, None
            await asyncio.sleep(self._settings.poll_seconds)

    def _note_failure(self, name: str) -> None:
        if name != self.failure:  # once, not at every poll
            self.failure = name
            emit("index-unreadable", error=name)

    async def _poll(self) -> bool:
        """Sends new events. Returns true if there may be more."""
        if not self._is_ready.is_set():
            self._position, self._seen = await self._read(self._present)
            self._is_ready.set()
        lost, head, events = await self._read(self._changes)
        if lost is not None:
            self._send_reorg(lost)
        if head.number is not None:
            self._metrics.index_head.set(head.number)
            if self.chain_head is not None:
                self._metrics.lag.set(max(0, self.chain_head - head.number))
        for event, block_hash in events:
            self._position = event.position
            self._seen[event.position[0]] = block_hash
            self._send(event)
        while len(self._seen) > DEPTH:
            self._seen.popitem(last=False)
        is_more = len(events) == REPLAYED
        self._sent_up_to = None if is_more else head
        return is_more

    async def _read(self, read: Callable[[], Result]) -> Result:
        reading = self._reading = asyncio.ensure_future(run_in_threadpool(read))
        return await asyncio.shield(reading)

    def underway(self) -> list[asyncio.Future[Any]]:
        """Reads of the database that a thread still does for this event loop."""
        return of_this_loop([self._reading])

    def _present(self) -> tuple[EventPosition, OrderedDict[int, bytes]]:
        last = select(EventRow.block, EventRow.log_index).order_by(*(column.desc() for column in position_of(EventRow)))
        with Session(self._engine) as db, db.begin():
            latest = db.execute(last.limit(1)).first()
            blocks = db.execute(select(Block.number, Block.hash).order_by(Block.number.desc()).limit(DEPTH)).all()
        return (latest[0], latest[1]) if latest else (0, -1), OrderedDict((n, h) for n, h in reversed(blocks))

    def _changes(self) -> tuple[int | None, Head, list[tuple[StreamEvent, bytes]]]:
        """The lowest sent block that is gone, the head, and the events after the last sent one that is still there."""
        with Session(self._engine) as db, db.begin():
            head = head_of(db)
            if head == self._sent_up_to:
                return None, head, []
            blocks = select(Block.number, Block.hash).where(Block.number >= min(self._seen, default=0))
            there = {number: hash_ for number, hash_ in db.execute(blocks.limit(2 * DEPTH).order_by(Block.number))}
            gone = [number for number, hash_ in self._seen.items() if there.get(number) != hash_]
            lost = min(gone, default=None)
            position = self._position if lost is None else min(self._position, (lost, -1))
            events = [(_chain_event(row), row.hash) for row in db.execute(_after(position, None))]
        return lost, head, events

    def _send_reorg(self, lost: int) -> None:
        emit("reorg", from_block=lost)
        self._metrics.reorgs.inc()
        for number in [number for number in self._seen if number >= lost]:
            del self._seen[number]
        self._position = min(self._position, (lost, -1))
        self._send(_reorg(lost))

    def _send(self, event: StreamEvent) -> None:
        for stream in list(self._streams):
            if not stream.wants(event):
                continue
            try:
                stream.queue.put_nowait(event)
            except asyncio.QueueFull:
                self._drop(stream)

    def _drop(self, stream: Stream) -> None:
        """Disconnects a slow client: empties its queue at once, and ends its connection at the next read or timeout."""
        stream.is_dropped = True
        self._leave(stream)
        while not stream.queue.empty():
            stream.queue.get_nowait()
        stream.queue.put_nowait(_reorg(0))  # wakes it
        self._metrics.dropped.inc()

    def _leave(self, stream: Stream) -> None:
        self._streams.discard(stream)
        self._metrics.subscribers.set(len(self._streams))

    async def _watch_chain(self, url: ChainUrls) -> None:
        watch = ChainWatch(url, self._deployment)
        while True:
            try:
                await run_in_threadpool(watch.look)
            except ChainError as error:
                if self.chain_head is not None:
                    emit("chain-unreachable", error=name_of(error))
                watch.forget()
            self.chain_head, self.chain_terms = watch.head, watch.terms
            self.unbonding, self.token_symbol = watch.unbonding, watch.token_symbol
            if watch.head is not None:
                self._metrics.chain_head.set(watch.head)
            await asyncio.sleep(watch.pause)

    # Streams

    async def stream(self, task: int | None, last_id: EventId | None) -> AsyncIterator[bytes]:
        """Events after the id, or from now on."""
        await self._is_ready.wait()
        stream = Stream(task)
        self._streams.add(stream)
        self._metrics.subscribers.set(len(self._streams))
        try:
            position = self._position
            if last_id is not None:
                position, lost = await run_in_threadpool(self._resumed, last_id)
                if lost is not None:
                    yield _reorg(lost).encoded
            async for missed in self._caught_up(stream, position):
                yield missed
            while not stream.is_dropped:
                waiting = [await stream.queue.get()]
                while not stream.queue.empty():  # events that came together go out together
                    waiting.append(stream.queue.get_nowait())
                if not stream.is_dropped:
                    yield b"".join(event.encoded for event in waiting)
        finally:
            self._leave(stream)

    async def _caught_up(self, stream: Stream, position: EventPosition) -> AsyncIterator[bytes]:
        """Rows between a position and the poller's; then the stream is live."""
        while True:
            with suppress(asyncio.QueueEmpty):
                reorg = stream.queue.get_nowait()
                position = min(position, (reorg.position[0], -1))
                yield reorg.encoded
                continue
            if position >= self._position:
                stream.is_live = True  # without an await since the position was read, so that no event is between
                return
            end = self._position
            rows = await run_in_threadpool(self._page, position, end, stream.task)
            if not stream.queue.empty():
                continue  # the rows may be gone
            if rows:
                yield b"".join(event.encoded for event in rows)
            position = rows[-1].position if len(rows) == REPLAYED else end

    def _page(self, position: EventPosition, end: EventPosition, task: int | None) -> list[StreamEvent]:
        with Session(self._engine) as db, db.begin():
            events = [_chain_event(row) for row in db.execute(_after(position, task))]
        return [event for event in events if event.position <= end]

    def _resumed(self, last_id: EventId) -> tuple[EventPosition, int | None]:
        """The position to continue from. If the block is gone, also the block from which all is sent again.

        An id does not say how deep the fork was.
        """
        block, digits = last_id.position[0], last_id.digits
        with Session(self._engine) as db, db.begin():
            there = db.scalar(select(Block.hash).where(Block.number == block))
        if digits is None or (there is not None and there.hex()[:HASH_DIGITS] == digits):
            return last_id.position, None
        lost = max(0, block - DEPTH)
        return (lost, -1), lost


def _after(position: EventPosition, task: int | None) -> Any:
    columns = (EventRow.block, EventRow.log_index)
    query = select(EventRow, Block.hash, Block.time).join(Block, Block.number == EventRow.block)
    query = query.where(*behind(columns, list(position), descending=False)).order_by(*columns).limit(REPLAYED)
    return query if task is None else query.where(EventRow.task == task)


def parse_event_id(text: str) -> EventId | None:
    """Parses a Last-Event-ID; None if it is not an id of this server."""
    match = _EVENT_ID.fullmatch(text)
    return None if match is None else EventId((int(match[1]), int(match[2])), match[3])


def _chain_event(row: Any) -> StreamEvent:
    event, block_hash, time = row
    data = {
        "block": event.block, "log_index": event.log_index, "time": time, "transaction": "0x" + event.transaction.hex(),
        "contract": event.contract, "name": event.name, "task": event.task, "round": event.round,
        "account": event.account, "other": event.other, "values": event.values,
    }  # fmt: skip
    id_ = f"{event.block}-{event.log_index}-{block_hash.hex()[:HASH_DIGITS]}"
    sent = ServerSentEvent(data=json.dumps(data, separators=(",", ":")), event="chain", id=id_)
    return StreamEvent("chain", (event.block, event.log_index), event.task, sent.encode())


def _reorg(lost: int) -> StreamEvent:
    sent = ServerSentEvent(data=json.dumps({"from_block": lost}), event="reorg")
    return StreamEvent("reorg", (lost, -1), None, sent.encode())
