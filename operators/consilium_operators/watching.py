"""A task's events as they happen, and its state. The demo and `consilium up` read the same feed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from consilium_chain.errors import ChainUnreachable
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import (
    STATISTICS_ROUND,
    Phase,
    SlashReason,
    TaskState,
    VoidReason,
    members,
)
from consilium_chain.rounds.deadlines import Deadlines, Missed, fields_of
from consilium_chain.rounds.machine import WAITING
from consilium_chain.rpc.event_logs import Event
from consilium_chain.rpc.retry import retry_policy

LONGEST_SPAN = 50_000  # blocks asked for at once; providers refuse more, and some of them fewer
LONGEST_FIELD = 32  # bytes; longer values are in the chain's own events
DEADLINE_MISSED = "deadline-missed"
AMOUNTS = ("amount", "pool", "refund", "burnt", "seatWeight")


@dataclass(frozen=True)
class Entry:
    """`time`: of the event's block, in seconds; None if its task is not followed. `missed`: the deadline that the event
    shows was missed.
    """

    event: Event
    time: int | None
    missed: Missed | None


class EventFeed:
    """The chain's events, each once and in order, with the deadlines that they show were missed."""

    def __init__(self, ledger: Ledger, task: int | None = None) -> None:
        """`task`: the task that is followed; None for all. Raises Refused (TaskUnknown)."""
        self._ledger, self._task = ledger, task
        self.next_block = ledger.deployment.first_block
        self._span = LONGEST_SPAN
        self._deadlines = {} if task is None else {task: Deadlines(ledger.tasks.params(task))}

    def read(self) -> list[Entry]:
        """The events since the last call, or the first part of them. If the chain was taken back, the events that come
        from there on. Raises ChainUnreachable: then the next call returns the same events.
        """
        blocks = self._ledger.connection.blocks
        latest = blocks.number()
        if latest < self.next_block - 1:
            self.next_block = latest + 1
            self._deadlines.clear()
        if latest < self.next_block:
            return []
        last = min(latest, self.next_block + self._span - 1)
        try:
            events = list(self._ledger.logs.between(self.next_block, last))
        except ChainUnreachable:
            blocks.number()  # raises if the node answers nothing at all
            if last == self.next_block:
                raise
            self._span = (last - self.next_block + 1) // 2
            return []
        self._span = min(2 * self._span, LONGEST_SPAN)
        followed = [event for event in events if self._is_followed(event)]
        times = {block: blocks.time_of(block) for block in {event.block for event in followed}}
        for task in {event.values["taskId"] for event in followed} - self._deadlines.keys():
            self._deadlines[task] = Deadlines(self._ledger.tasks.params(task))
        self.next_block = last + 1
        return [self._entry(event, times) for event in events]

    def _is_followed(self, event: Event) -> bool:
        task = event.values.get("taskId")
        return task is not None and self._task in (None, task)

    def _entry(self, event: Event, times: dict[int, int]) -> Entry:
        if not self._is_followed(event):
            return Entry(event, None, None)
        time = times[event.block]
        return Entry(event, time, self._deadlines[event.values["taskId"]].take(event, time))


class Follower(Protocol):
    """Takes the events that a watcher logs."""

    def take(self, entries: Sequence[Entry], next_block: int) -> None:
        """`next_block`: the first one that was not read; lower than before if the chain was taken back."""

    def end(self) -> None:
        """After the task has ended. May raise ChainUnreachable, and is called again then."""


@dataclass(frozen=True)
class SeenEvent:
    """`name`: such as phase-started. `time`: of its block, in Unix seconds. `values`: ready for JSON; amounts of tokens
    as text, in the smallest unit.
    """

    name: str
    block: int
    time: int | None
    values: dict[str, object]


def watch(ledger: Ledger, task: int, follower: Follower | None = None) -> Iterator[SeenEvent]:
    """All events of a task in order, each once, from the proposal until the task has ended. Waits while the chain does
    not answer. Raises Refused (TaskUnknown) at once.
    """
    return _watched(ledger, task, EventFeed(ledger, task), follower)


def _watched(ledger: Ledger, task: int, feed: EventFeed, follower: Follower | None) -> Iterator[SeenEvent]:
    while True:
        own = [entry for entry in retry_policy()(feed.read) if entry.event.values.get("taskId") == task]
        for entry in own:
            block, time = entry.event.block, entry.time
            if entry.missed:
                yield SeenEvent(DEADLINE_MISSED, block, time, fields_of(entry.missed))
            yield SeenEvent(log_name(entry.event.name), block, time, plain(entry.event))
        if follower is not None:
            follower.take(own, feed.next_block)
        if any(entry.event.name == "TaskEnded" for entry in own):
            break
        retry_policy()(ledger.connection.blocks.wait_after, feed.next_block - 1)
    if follower is not None:
        retry_policy()(follower.end)


@dataclass(frozen=True)
class RoundStatus:
    """A finished round. `reason`: of a void one. `medians`: of each cohort, in millionths. `accepted`: cohorts."""

    round: int
    outcome: str
    reason: str
    medians: tuple[int, ...]
    accepted: tuple[int, ...]
    revealed: int
    seated: int


@dataclass(frozen=True)
class TaskStatus:
    """`seconds_left`: of the phase; None without a deadline. `aggregator`: it has joined. The pool is in the smallest
    unit.
    """

    phase: str
    round: int
    rounds: int
    seconds_left: int | None
    hospitals: int
    max_hospitals: int
    voters: int
    max_voters: int
    aggregator: bool
    pool_left: int
    pool: int
    finished: tuple[RoundStatus, ...]


def status(ledger: Ledger, task: int) -> TaskStatus:
    """Raises Refused (TaskUnknown), ChainUnreachable."""
    params, state = ledger.tasks.params(task), ledger.tasks.state(task)
    has_deadline = state.deadline != 0 and state.phase not in WAITING
    return TaskStatus(
        phase=state.phase.name, round=state.round, rounds=params.rounds,
        seconds_left=max(0, state.deadline - ledger.connection.blocks.now()) if has_deadline else None,
        hospitals=len(ledger.tasks.hospitals(task)), max_hospitals=params.max_hospitals,
        voters=len(ledger.tasks.voters(task)), max_voters=params.max_voters, aggregator=state.aggregator_joined,
        pool_left=state.pool_left, pool=params.pool,
        finished=tuple(_round_status(ledger, task, round_) for round_ in rounds_over(state)),
    )  # fmt: skip


def _round_status(ledger: Ledger, task: int, round_: int) -> RoundStatus:
    found = ledger.tasks.round_state(task, round_)
    return RoundStatus(
        round_, found.outcome.name, found.void_reason.name, tuple(found.medians),
        tuple(members(found.accepted_cohorts)), found.revealed.bit_count(), found.seated.bit_count(),
    )  # fmt: skip


def rounds_over(state: TaskState) -> range:
    """Rounds with an outcome. A task that ended while nodes joined it has none."""
    if state.phase in (Phase.NONE, Phase.JOINING):
        return range(0)
    return range(STATISTICS_ROUND, state.round + (state.phase is Phase.ENDED))


def log_name(name: str) -> str:
    """PhaseStarted: phase-started."""
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")


def plain(event: Event) -> dict[str, object]:
    """An event's values for JSON: bytes in hexadecimal, without long ones; amounts of tokens as text; enums by name;
    hospitals and cohorts as lists of indices.
    """
    return {name: _plain(event.name, name, value) for name, value in event.values.items() if _is_shown(name, value)}


def _is_shown(name: str, value: Any) -> bool:
    if name in ("taskId", "pointHashes"):
        return False
    return name == "hospitals" or not (isinstance(value, bytes) and len(value) > LONGEST_FIELD)


def _plain(event: str, name: str, value: Any) -> object:
    match event, name:
        case "PhaseStarted", "phase":
            return Phase(value).name
        case "RoundVoided", "reason":
            return VoidReason(value).name
        case "Slashed", "reason":
            return SlashReason(value).name
        case "CohortsFormed", "members":
            return [list(members(cohort)) for cohort in value]
        case "PointsShown", "hospitals":
            return list(value)
        case _, "acceptedCohorts" | "survivors" | "hospitals":
            return list(members(value))
    if name in AMOUNTS:
        return str(value)
    if isinstance(value, bytes):
        return "0x" + value.hex()
    return list(value) if isinstance(value, tuple) else value
