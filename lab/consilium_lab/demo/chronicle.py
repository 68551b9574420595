"""The record of a demo: the chain's events with the time each was seen, and the processes' logs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase
from consilium_chain.rounds.deadlines import Deadlines, Missed
from consilium_chain.rpc.event_logs import Event

from consilium_lab.demo.processes import Line


@dataclass(frozen=True)
class Seen:
    """An event and when the demo saw it, in seconds since its start."""

    event: Event
    at: float


@dataclass
class Chronicle:
    """Collects, in order, without gaps; asks the chain only for blocks that it has not read."""

    ledger: Ledger
    task: int
    started: float
    seen: list[Seen] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    _next_block: int = 0

    def __post_init__(self) -> None:
        self._next_block = self.ledger.deployment.first_block
        self._deadlines = Deadlines(self.ledger.tasks.params(self.task))

    def update(self, lines: list[Line]) -> list[Seen]:
        """Takes in journal lines and new events; returns the latter."""
        self.lines += lines
        latest = self.ledger.connection.blocks.number()
        if latest < self._next_block:
            return []
        found = list(self.ledger.logs.between(self._next_block, latest))
        own = [event for event in found if event.values.get("taskId") == self.task]
        times = {block: self.ledger.connection.blocks.time_of(block) for block in {event.block for event in own}}
        self._next_block = latest + 1
        now = time.monotonic() - self.started
        new = [Seen(event, now) for event in found]
        self.seen += new
        missed = (self._deadlines.take(event, times[event.block]) for event in own)
        self.missed += [one for one in missed if one is not None]
        return new

    def of_round(self, round_: int, name: str | None = None) -> list[Event]:
        """This task's events of one round, of one name or of all."""
        return [
            seen.event
            for seen in self.seen
            if seen.event.values.get("taskId") == self.task
            and seen.event.values.get("round") == round_
            and name in (None, seen.event.name)
        ]

    def phase_seconds(self, round_: int) -> dict[str, float]:
        """Seconds of each phase of a round, by the demo's own clock."""
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
