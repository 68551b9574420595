"""Copies a round's artifacts, which the chain names, to the artifact store's mirrors."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from consilium_chain.artifacts.public_record import named_files, shown_uploads
from consilium_chain.artifacts.store import ArtifactStore
from consilium_core.errors import ArtifactCorrupt, ArtifactMissing, CoreError, StoreMissing
from consilium_core.logs import emit
from sqlalchemy import Connection, func, select

from consilium_server.database.tables import Block, EventRow, JobRow
from consilium_server.index.store import table_of
from consilium_server.jobs.store import not_before

NAMING = ("TaskProposed", "UpdateCommitted", "CohortAccused", "CohortPublished")  # events that name artifacts
PIN = "pin"
NOTHING = "0x" + 64 * "0"
MOST_AT_ONCE = 100  # rounds that one call returns


@dataclass
class RoundArtifacts:
    """Digests that the chain names in one round: files by keccak256, blobs by versioned hash.

    `evidence`: files of accusations. `task_files`: of the task, in round 0.
    """

    files: list[bytes] = field(default_factory=list)
    evidence: list[bytes] = field(default_factory=list)
    blobs: list[bytes] = field(default_factory=list)
    task_files: list[bytes] = field(default_factory=list)


def unpinned(connection: Connection, locations: Sequence[str], now: float) -> list[tuple[int, int]]:
    """Rounds that are due, by task and number: the chain named artifacts after the last copy."""
    number = func.coalesce(EventRow.round, 0).label("number")
    named = (
        select(EventRow.task, number, func.count().label("count"), func.max(EventRow.block).label("last"))
        .where(EventRow.name.in_(NAMING))
        .group_by(EventRow.task, number)
        .subquery()
    )
    query = select(named.c.task, named.c.number, named.c["count"], Block.hash).join(Block, Block.number == named.c.last)
    jobs = (JobRow(**row._mapping) for row in connection.execute(select(table_of(JobRow)).where(JobRow.job == PIN)))
    known = {row.subject: (row.mark, not_before(row, now)) for row in jobs}
    due = []
    for task, round_, count, last in connection.execute(query.order_by(named.c.task, named.c.number)):
        mark, earliest = known.get(f"{task}/{round_}", (None, 0.0))
        if earliest <= now and mark != _mark(count, last, locations):
            due.append((task, round_))
    return due[:MOST_AT_ONCE]


def artifacts(connection: Connection, task: int, round_: int, locations: Sequence[str]) -> tuple[RoundArtifacts, str]:
    """Artifacts of a round, and a mark that identifies them and their mirrors."""
    query = (
        select(EventRow.name, EventRow.account, EventRow.values, Block.hash)
        .join(Block, Block.number == EventRow.block)
        .where(
            EventRow.task == task,
            func.coalesce(EventRow.round, 0) == round_,
            EventRow.name.in_((*NAMING, "SharesPublished")),
        )
        .order_by(EventRow.block, EventRow.log_index)
    )
    rows = list(connection.execute(query))
    on_chain = {account for name, account, *_ in rows if name == "SharesPublished"}
    digests: dict[str, list[bytes]] = defaultdict(list)
    for name, account, values, _ in rows:
        if name in NAMING and not (name == "UpdateCommitted" and account in on_chain):
            digest = values[_FIELD[name]]
            digests[name] += [] if digest == NOTHING else [bytes.fromhex(digest[2:])]
    evidence = digests["CohortAccused"]
    found = RoundArtifacts(
        files=digests["TaskProposed"] + digests["UpdateCommitted"] + evidence,
        evidence=evidence,
        task_files=digests["TaskProposed"],
        blobs=digests["CohortPublished"],
    )
    naming = [block for name, _, _, block in rows if name in NAMING]
    return found, _mark(len(naming), naming[-1] if naming else b"", locations)


_FIELD = {
    "TaskProposed": "specHash",
    "UpdateCommitted": "shareBundle",
    "CohortAccused": "evidence",
    "CohortPublished": "versionedHash",
}


def _mark(count: int, last: bytes, locations: Sequence[str]) -> str:
    """The hash of the last block with artifacts also identifies all blocks before it."""
    content = "\0".join((str(count), last.hex(), *locations))
    return hashlib.sha256(content.encode()).hexdigest()


TOGETHER = 64  # blobs in memory at once
UNREADABLE = (ArtifactMissing, ArtifactCorrupt, StoreMissing)


def pin(store: ArtifactStore, named: RoundArtifacts) -> int:
    """Copies all readable artifacts to all writable mirrors; returns the number of artifacts.

    Raises the first error after the copies: ArtifactMissing, ArtifactCorrupt, StoreMissing or StoreUnwritable.
    """
    faults: list[CoreError] = []
    files = list(named.files)
    for digest in named.evidence:
        try:
            files += shown_uploads(store.get_file(digest))
        except UNREADABLE:  # reported below
            continue
    for digest in named.task_files:
        try:
            files += named_files(store.get_file(digest))
        except UNREADABLE:  # reported below
            continue
    count = 0
    for digest in dict.fromkeys(files):
        count += _pin(store, [digest], [], faults)
    for batch in _batches(list(dict.fromkeys(named.blobs))):
        try:
            count += _pin(store, [], batch, faults, whole=True)
        except UNREADABLE:
            count += sum(_pin(store, [], [digest], faults) for digest in batch)
    if faults:
        raise faults[0]
    emit("pinned", artifacts=count)
    return count


def _pin(
    store: ArtifactStore, files: Sequence[bytes], blobs: Sequence[bytes], faults: list[CoreError], whole: bool = False
) -> int:
    """`whole`: raises if one of them cannot be read."""
    try:
        failed = store.pin(files, blobs)
    except UNREADABLE as error:
        if whole:
            raise
        faults.append(error)
        return 0
    faults += failed
    return 0 if failed else len(files) + len(blobs)


def _batches(digests: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (digests[start : start + TOGETHER] for start in range(0, len(digests), TOGETHER))
