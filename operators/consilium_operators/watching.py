"""`consilium operator watch`: logs a task's events as they happen. The demo and `consilium up` read the same feed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from consilium_chain.errors import ChainUnreachable
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import (
    DOES_NOT_MATCH,
    INVALID_SCORE,
    STATISTICS_ROUND,
    Outcome,
    Phase,
    SlashReason,
    TaskState,
    VoidReason,
    members,
)
from consilium_chain.rounds.deadlines import Deadlines, Missed, fields_of, in_words
from consilium_chain.rounds.machine import WAITING
from consilium_chain.rpc.event_logs import Event
from consilium_chain.rpc.retry import retry_policy
from consilium_chain.tasks.task_spec import MICRO
from consilium_core.live import CHAIN_UNREACHABLE, Fields, Waiting, Words
from consilium_core.logs import emit
from consilium_core.units import tokens

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


class Watcher:
    """Logs all events of a task in order, each once, from the proposal on."""

    def __init__(self, ledger: Ledger, task: int, follower: Follower | None = None) -> None:
        """Raises Refused (TaskUnknown)."""
        self._ledger, self._task, self._follower = ledger, task, follower
        self._feed = EventFeed(ledger, task)

    def run(self) -> None:
        """Until the task has ended."""
        while not retry_policy()(self._log_new):
            retry_policy()(self._ledger.connection.blocks.wait_after, self._feed.next_block - 1)
        if self._follower is not None:
            retry_policy()(self._follower.end)

    def _log_new(self) -> bool:
        """Logs the new events, or a part of them. Returns True if the task has ended."""
        own = [entry for entry in self._feed.read() if entry.event.values.get("taskId") == self._task]
        for entry in own:
            place = {"block": entry.event.block, "block_time": entry.time}
            if entry.missed:
                emit(DEADLINE_MISSED, **place, **fields_of(entry.missed))
            emit(log_name(entry.event.name), **place, **plain(entry.event))
        if self._follower is not None:
            self._follower.take(own, self._feed.next_block)
        return any(entry.event.name == "TaskEnded" for entry in own)

    def log_status(self) -> None:
        """Logs the task's state, then each finished round. Raises ChainUnreachable."""
        ledger, task = self._ledger, self._task
        state, params = ledger.tasks.state(task), ledger.tasks.params(task)
        has_deadline = state.deadline != 0 and state.phase not in WAITING
        emit(
            "status", task_number=task, phase=state.phase.name, round=state.round, rounds=params.rounds,
            seconds_left=max(0, state.deadline - ledger.connection.blocks.now()) if has_deadline else None,
            hospitals=len(ledger.tasks.hospitals(task)), max_hospitals=params.max_hospitals,
            voters=len(ledger.tasks.voters(task)), max_voters=params.max_voters, aggregator=state.aggregator_joined,
            pool_left=str(state.pool_left), pool=str(params.pool),
        )  # fmt: skip
        for round_ in rounds_over(state):
            found = ledger.tasks.round_state(task, round_)
            emit(
                "round", round=round_, outcome=found.outcome.name, reason=found.void_reason.name,
                medians=list(found.medians), accepted=list(members(found.accepted_cohorts)),
                revealed=found.revealed.bit_count(), seated=found.seated.bit_count(),
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
    bit maps as lists of indices.
    """
    return {name: _plain(event.name, name, value) for name, value in event.values.items() if _is_shown(name, value)}


def _is_shown(name: str, value: Any) -> bool:
    return name != "taskId" and not (isinstance(value, bytes) and len(value) > LONGEST_FIELD)


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
        case _, "acceptedCohorts" | "survivors" | "hospitals":
            return list(members(value))
    if name in AMOUNTS:
        return str(value)
    if isinstance(value, bytes):
        return "0x" + value.hex()
    return list(value) if isinstance(value, tuple) else value


# --- in words ------------------------------------------------------------------------------------------------------


def _phase(f: Fields) -> str:
    words = {
        "JOINING": "open to join", "FORMING": "the beacon assigns the cohorts",
        "COMMITTING": "hospitals train and commit",
        "UPLOADING": "hospitals upload their updates", "PUBLISHING": "the aggregator publishes the sums",
        "DISPUTING": "hospitals send evidence on a cohort without a sum", "DRAWING": "the beacon draws the seats",
        "SCORING": "the committee judges", "REVEALING": "the committee reveals its scores",
        "DISCLOSING": "the aggregator shows which sums were sign-flipped",
        "SETTLING": "rewards and slashes are settled",
        "ENDED": "over",
    }  # fmt: skip
    phase = words.get(f["phase"], f["phase"].lower())
    return phase if f["phase"] in ("JOINING", "ENDED") else f"[bold]round {f['round']}[/bold]: {phase}"


def _score(value: int) -> str:
    if value in (INVALID_SCORE, DOES_NOT_MATCH):
        return "no valid model" if value == INVALID_SCORE else "does not match"
    return f"{value / MICRO:+.4f}"


def _medians(f: Fields, accepted: str) -> str:
    if not f["medians"]:
        return "nothing was judged"
    return ", ".join(
        f"cohort {k} {_score(median)} {'[green]accepted[/green]' if k in f[accepted] else '[red]rejected[/red]'}"
        for k, median in enumerate(f["medians"])
    )


def _status(f: Fields) -> str:
    left = "" if f["seconds_left"] is None else f", {f['seconds_left']:,} s left"
    aggregator = "" if f["aggregator"] else "no aggregator yet, "
    return (
        f"task {f['task_number']}: round {f['round']} of {f['rounds']}, {f['phase'].lower()}{left}; {aggregator}"
        f"{f['hospitals']} of {f['max_hospitals']} hospitals, {f['voters']} of {f['max_voters']} voters;"
        f" {tokens(int(f['pool_left']))} of {tokens(int(f['pool']))} tokens are left in the pool"
    )


def _round(f: Fields) -> str:
    if f["outcome"] == Outcome.VOID.name:
        return f"round {f['round']}: [red]void[/red] ({_spaced(f['reason'])})"
    return f"round {f['round']}: settled, {_medians(f, 'accepted')}, {f['revealed']} of {f['seated']} seats revealed"


def _spaced(name: str) -> str:
    return name.lower().replace("_", " ")


def _of(words: str) -> Callable[[Fields], str]:
    return lambda f: f"round {f['round']}: {words.format(**f)}"


EVENTS: Words = {
    "task-proposed": lambda f: f"proposed by {f['operator']}, with a pool of {tokens(int(f['pool']))} tokens",
    "task-funded": lambda f: (
        f"its operator added {tokens(int(f['amount']))} tokens: the pool now has {tokens(int(f['pool']))}"
    ),
    "aggregator-joined": lambda f: f"the aggregator {f['aggregator']} joined",
    "hospital-joined": lambda f: f"{f['hospital']} joined as hospital {f['index']}",
    "voter-joined": lambda f: f"{f['voter']} joined as voter {f['index']}",
    "hospital-absent": _of("{hospital} did not take part"),
    "hospital-resumed": lambda f: f"{f['hospital']} is back",
    "phase-started": _phase,
    DEADLINE_MISSED: lambda f: f"[yellow]late[/yellow]: {in_words(f)}",
    "cohorts-formed": lambda f: (
        f"round {f['round']}: {len(f['members'])} cohort(s): "
        + "; ".join(f"{k} of hospitals {', '.join(map(str, cohort))}" for k, cohort in enumerate(f["members"]))
    ),
    "update-committed": _of("{hospital} committed"),
    "survivors-fixed": lambda f: f"round {f['round']}: {len(f['survivors'])} update(s) are in the sums",
    "shares-published": _of("{hospital} committed by its own transaction, with its secret shares"),
    "cohort-summed": _of("commitments of cohort {cohort} are added up, blob {blob}"),
    "cohort-published": _of("the sum of cohort {cohort} is published, blob {blob}"),
    "evidence-submitted": _of("{hospital} submitted evidence"),
    "cohort-dropped": _of("[red]cohort {cohort} has no sum[/red]"),
    "cohort-accused": _of("[red]cohort {cohort} is accused[/red]: its sum does not hold"),
    "cheaters-named": _of("[red]hospitals {hospitals} are named[/red] as cheaters"),
    "decoys-set": _of("its decoys are set"),
    "cohort-disclosed": _of("the sum of cohort {cohort} is disclosed"),
    "seats-drawn": _of("the seats are drawn"),
    "scores-committed": _of("{voter} has a seat, and committed to its scores"),
    "voter-stood-down": _of("{voter} has no seat"),
    "scores-revealed": lambda f: f"round {f['round']}: {f['voter']} revealed {', '.join(map(_score, f['scores']))}",
    "round-settled": lambda f: (
        f"[bold green]round {f['round']} is settled[/bold green]: {_medians(f, 'acceptedCohorts')}"
    ),
    "round-voided": lambda f: f"[bold red]round {f['round']} is void[/bold red] ({_spaced(f['reason'])})",
    "rewarded": lambda f: f"round {f['round']}: {f['account']} earns {tokens(int(f['amount']))} tokens",
    "slashed": lambda f: (
        f"round {f['round']}: [red]{f['account']} loses {tokens(int(f['amount']))} tokens[/red]"
        f" ({_spaced(f['reason'])})"
    ),
    "bounty-paid": lambda f: (
        f"round {f['round']}: {f['account']} earns {tokens(int(f['amount']))} tokens for ending a phase"
    ),
    "task-stopped": lambda f: f"its operator stopped it in round {f['round']}: no further one begins",
    "task-ended": lambda f: (
        f"[bold]the task has ended[/bold]; {tokens(int(f['refund']))} tokens go back to its operator,"
        f" {tokens(int(f['burnt']))} that rounds did not pay are burnt"
    ),
    "bond-released": lambda f: f"the bond of {f['account']} is free",
    "tracked": "{points} points are in {place}",
    "model-tracked": "the model, its card and its proof are in {place}",
    "no-model-tracked": "the task has no model: it ended before its first training round was over",
    "chain-unreachable": CHAIN_UNREACHABLE,
    "status": _status,
    "round": _round,
}
WATCHED = Waiting("reading the chain", dict.fromkeys(EVENTS, "waiting for the next event"), EVENTS)
