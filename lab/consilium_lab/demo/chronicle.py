"""The record of a demo: the chain's events with the time of their arrival, and the processes' logs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase
from consilium_chain.rounds.deadlines import Missed
from consilium_chain.rpc.event_logs import Event
from consilium_operators.watching import EventFeed

from consilium_lab.demo.processes import Line


@dataclass(frozen=True)
class Seen:
    """`at`: the time at which the demo saw the event, in seconds since its start."""

    event: Event
    at: float


@dataclass
class Chronicle:
    """Collects events and log lines, in order and without gaps."""

    ledger: Ledger
    task: int
    started: float
    seen: list[Seen] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._feed = EventFeed(self.ledger, self.task)

    def update(self, lines: list[Line]) -> list[Seen]:
        """Takes in log lines and new events. Returns the events."""
        self.lines += lines
        entries, now = self._feed.read(), time.monotonic() - self.started
        new = [Seen(entry.event, now) for entry in entries]
        self.seen += new
        self.missed += [entry.missed for entry in entries if entry.missed is not None]
        return new

    def of_round(self, round_: int, name: str | None = None) -> list[Event]:
        """This task's events of one round, with one name or with any."""
        return [
            seen.event
            for seen in self.seen
            if seen.event.values.get("taskId") == self.task
            and seen.event.values.get("round") == round_
            and name in (None, seen.event.name)
        ]

    def phase_seconds(self, round_: int) -> dict[str, float]:
        """The duration of each phase of a round in seconds, by the demo's own clock."""
        starts = [
            (seen.at, seen.event)
            for seen in self.seen
            if seen.event.name == "PhaseStarted" and seen.event.values["taskId"] == self.task
        ]
        ends = [at for at, _ in starts[1:]] + [self.seen[-1].at if self.seen else 0.0]
        lasted: dict[str, float] = {}
        for (at, event), end in zip(starts, ends, strict=True):
            if event.values["round"] == round_:
                name = Phase(event.values["phase"]).name.lower()
                lasted[name] = round(lasted.get(name, 0.0) + end - at, 3)
        return lasted

    def lines_of(self, event: str) -> list[Line]:
        return [line for line in self.lines if line.fields.get("event") == event]
