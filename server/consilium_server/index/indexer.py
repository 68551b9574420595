"""Follows the chain into the tables: each block's facts exactly once, and none of a block that is no longer on it.

A range of blocks is read first, and then written in one transaction with its checkpoint. The range counts only if the
chain did not change during the read: the range's last block and the checkpoint before it keep their hashes, and every
log has the hash of its block. A transaction writes only if it finds the checkpoint before its range. So one of two
indexers succeeds, and a kill at any point does no harm.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import ChainUnreachable, Refused, SpecInvalid, name_of
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import TaskParams
from consilium_chain.rpc.blocks import Head
from consilium_chain.rpc.event_logs import Event
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_core.errors import ArtifactCorrupt, ArtifactMissing, CoreError, StoreMissing
from consilium_core.logs import emit
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, IntegrityError, StatementError

from consilium_server.config import IndexerSettings
from consilium_server.database.engine import open_database, reading, shown, writing
from consilium_server.database.tables import Block, Checkpoint, Source, Spec
from consilium_server.errors import DatabaseUnfit, Unavailable
from consilium_server.index import store
from consilium_server.index.facts import facts

FIRST_SPAN, LONGEST_SPAN = 1_000, 50_000  # blocks of one range
MANY_EVENTS, MOST_EVENTS = 10_000, 20_000  # of a range, which is in memory and in one transaction
# The last blocks may still change, so their logs are compared with their headers one by one.
UNSETTLED = 64
SHALLOW = 1_000  # blocks in which the beginning of a reorganisation is searched first
RETRY = 5.0  # seconds
MOST_MOVES = 10  # of the chain during the read of one range


@dataclass(frozen=True)
class Reading:
    """The chain's data of a range of blocks that ends with `end`."""

    events: Sequence[Event]
    blocks: Sequence[Block]
    params: dict[int, TaskParams]
    end: Head


class Indexer:
    """Reads with a ledger, which needs no account, and writes into a database. `store`: has the task files."""

    def __init__(self, ledger: Ledger, database: Engine, store: ArtifactStore | None = None) -> None:
        self._ledger, self._database, self._store = ledger, database, store
        self._span = FIRST_SPAN
        self._logged: set[bytes] = set()  # task files that are missing or invalid
        self._invalid: set[bytes] = set()

    def follow(self) -> None:
        """Follows the chain without end. Tries again if chain or database do not answer."""
        seen = -1
        while True:
            try:
                seen = self.catch_up()
                self._ledger.connection.blocks.wait_after(seen)
            except (ChainUnreachable, Unavailable) as error:
                emit("waiting", error=name_of(error))
                time.sleep(RETRY)

    def catch_up(self, last: int | None = None) -> int:
        """Updates the tables to the chain's latest block, or to `last`; returns the number of their last block.

        Raises ChainUnreachable, DatabaseUnfit, and Unavailable: DatabaseUnreachable, or ChainMoved if the chain was
        reorganised during every attempt at one range, or its node contradicts itself.
        """
        self.require_own()
        moved, more = 0, True
        while more:
            try:
                more, moved = self._step(last), 0
            except Unavailable as error:
                moved += 1
                if error.name != "ChainMoved" or moved == MOST_MOVES:
                    raise
                emit("chain-moved", what=error.values["what"])
        self.fetch_specs()
        return self._done(self._checkpoint())

    def fetch_specs(self) -> None:
        """Stores the task files that tasks name. The next call tries a missing file again."""
        if self._store is None:
            return
        with reading(self._database) as connection:
            missing = store.missing_specs(connection)
        for digest in missing:
            if digest in self._invalid:
                continue
            try:
                raw = self._store.get_file(digest)
                parse_task_spec(raw)
            except (ArtifactMissing, ArtifactCorrupt, StoreMissing, SpecInvalid) as error:
                self._log_missing(digest, error)
                continue
            with writing(self._database) as connection:
                if not store.has_spec(connection, digest):
                    store.add(connection, [Spec(digest, raw.decode())])

    def _log_missing(self, digest: bytes, error: CoreError) -> None:
        if isinstance(error, SpecInvalid):
            self._invalid.add(digest)  # no other file has this hash
        if digest not in self._logged:
            self._logged.add(digest)
            emit("no-task-file", spec=digest.hex(), error=name_of(error))

    def require_own(self) -> None:
        """Raises DatabaseUnfit (SourceMismatch) if the tables belong to other contracts; Unavailable."""
        deployment = self._ledger.deployment
        with writing(self._database) as connection:
            if not store.has_source(self._database, connection, deployment):
                store.add(connection, [Source(deployment.chain_id, deployment.tasks)])

    def _checkpoint(self) -> Checkpoint | None:
        with reading(self._database) as connection:
            return store.checkpoint(connection)

    def _done(self, checkpoint: Checkpoint | None) -> int:
        return self._ledger.deployment.first_block - 1 if checkpoint is None else checkpoint.number

    def _step(self, last: int | None) -> bool:
        """Reads one range, or undoes one reorganisation; false if nothing is left. Raises Unavailable."""
        started = time.monotonic()
        before = self._checkpoint()
        if before is not None and not self._stands(before.number, before.hash):
            self._reorganise(before)
            return True
        latest = self._block(None).number
        first, aim = self._done(before) + 1, latest if last is None else min(last, latest)
        if first > aim:
            return False
        reading_ = self._read(first, aim, latest)
        if before is not None and not self._stands(before.number, before.hash):
            raise Unavailable("ChainMoved", what=f"block {before.number} before the range")
        if self._write(before, reading_) and (reading_.events or reading_.end.number < aim):
            rate = len(reading_.events) / max(time.monotonic() - started, 1e-9)
            emit(
                "indexed", first=first, last=reading_.end.number, behind=latest - reading_.end.number,
                events=len(reading_.events), events_per_second=round(rate),
            )  # fmt: skip
        return True

    # Reading

    def _block(self, number: int | None) -> Head:
        found = self._ledger.connection.blocks.head(number)
        if found is None:
            raise Unavailable("ChainMoved", what=f"no block {number}")
        return found

    def _stands(self, number: int, digest: bytes) -> bool:
        found = self._ledger.connection.blocks.head(number)
        return found is not None and found.hash == digest

    def _read(self, first: int, aim: int, latest: int) -> Reading:
        """Reads as many blocks from `first` to `aim` as the node gives. Raises Unavailable, ChainUnreachable."""
        while True:
            end = self._block(min(first + self._span - 1, aim))
            count = end.number - first + 1
            try:
                events = list(self._ledger.logs.indexed(first, end.number))
            except ChainUnreachable:
                self._block(None)  # raises if the node answers nothing
                if count == 1:
                    raise
                self._span = count // 2
                continue
            if len(events) <= MOST_EVENTS or count == 1:
                break
            self._span = max(1, count * MANY_EVENTS // len(events))
        params = self._params(events)
        blocks = self._blocks(events, end, latest)
        if not self._stands(end.number, end.hash):
            raise Unavailable("ChainMoved", what=f"block {end.number}")
        if len(events) < MANY_EVENTS:
            self._span = min(2 * self._span, LONGEST_SPAN)
        return Reading(events, blocks, params, end)

    def _params(self, events: Sequence[Event]) -> dict[int, TaskParams]:
        """Terms of the tasks that these events propose.

        Terms never change, and nodes drop earlier states, so the present terms are read. Only the pool can grow, so it
        comes from the event. A reorganisation may have replaced the task: an equal hash, a pool at least as large as
        the event's and an unchanged chain show that it is the same task.
        """
        found = {}
        for event in events:
            if event.name != "TaskProposed":
                continue
            try:
                terms = self._ledger.tasks.params(event.values["taskId"])
            except Refused:  # a reorganisation removed the task
                raise Unavailable("ChainMoved", what=f"no task {event.values['taskId']}") from None
            proposed = event.values["pool"]
            if terms.spec_hash != event.values["specHash"] or terms.pool < proposed:
                raise Unavailable("ChainMoved", what=f"task {event.values['taskId']}")
            found[event.values["taskId"]] = replace(terms, pool=proposed)
        return found

    def _blocks(self, events: Sequence[Event], end: Head, latest: int) -> list[Block]:
        """Blocks of these events. Each log must have its block's hash."""
        found: dict[int, Block] = {}
        for event in events:
            block = found.get(event.block)
            if block is None:
                block = found[event.block] = self._block_of(event, end, latest)
            if block.hash != event.block_hash:
                raise Unavailable("ChainMoved", what=f"a log of another block {event.block}")
        return list(found.values())

    def _block_of(self, event: Event, end: Head, latest: int) -> Block:
        if event.time is not None and event.block <= latest - UNSETTLED:
            return Block(event.block, event.block_hash, event.time)
        head = end if event.block == end.number else self._block(event.block)
        return Block(head.number, head.hash, head.time)

    # Writing

    def _write(self, before: Checkpoint | None, reading_: Reading) -> bool:
        """Writes the rows; false if another indexer was faster."""
        book = self._ledger.deployment
        times = {block.number: block.time for block in reading_.blocks}
        with writing(self._database) as connection:
            if store.checkpoint(connection) != before:
                return False
            known = store.known(connection)
            with self._consistent(before, reading_):
                store.add(connection, reading_.blocks)
                terms = reading_.params
                store.add(connection, facts(reading_.events, times, book.staking, known, terms, book.model_shares))
            store.advance(connection, reading_.end)
        return True

    @contextmanager
    def _consistent(self, before: Checkpoint | None, reading_: Reading) -> Iterator[None]:
        """Raises EventsInconsistent for an impossible event, such as an unknown subject or a negative total."""
        try:
            yield
        except (KeyError, ValueError, StatementError) as error:
            if isinstance(error, DBAPIError) and not isinstance(error, IntegrityError):
                raise
            first, url = self._done(before) + 1, self._ledger.connection.shown_url
            raise DatabaseUnfit("EventsInconsistent", url=url, first=first, last=reading_.end.number) from error

    def _reorganise(self, before: Checkpoint) -> None:
        """Removes the rows that are no longer on the chain."""
        fork = self._fork()
        with writing(self._database) as connection:
            if store.checkpoint(connection) != before:
                return
            gone = store.take_back(connection, fork)
        kept = self._done(fork)
        emit("reorganised", fork=kept, depth=before.number - kept, blocks=gone)

    def _fork(self) -> Checkpoint | None:
        """The last block of the tables that is on the chain. All before it are its ancestors, and so on it, too."""
        for limit in (SHALLOW, None):
            with reading(self._database) as connection:
                known = store.hashes(connection, limit)
            numbers = list(known)
            gone = bisect_left(numbers, True, key=lambda number: not self._stands(number, known[number]))
            if gone:
                return Checkpoint(numbers[gone - 1], known[numbers[gone - 1]])
        return None


def index(settings: IndexerSettings) -> None:
    """Follows the chain without end. Raises as `Indexer.catch_up`, and the errors of the settings."""
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    ledger, database = settings.connect(), open_database(settings.url)
    emit("indexing", database=shown(database), chain=ledger.connection.shown_url)
    Indexer(ledger, database, settings.store).follow()
