"""Sends a watched task's points to trackers, each once, and the model at its end."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from consilium_chain.errors import RecordIncomplete
from consilium_chain.ledger.ledger import Ledger
from consilium_core.logs import emit

from consilium_operators.tracking.points import USED, Point, PointKey, points_of
from consilium_operators.watching import Entry


@dataclass(frozen=True)
class TrackedTask:
    """`name`: the run's. It differs for a local chain that was started anew, though all else is the same."""

    number: int
    chain_id: int
    contract: str
    name: str
    terms: dict[str, int]


class Tracker(Protocol):
    """A service or folder that keeps points. Its methods raise OperatorError (TrackingFailed)."""

    @property
    def location(self) -> str:
        """The location as logs may show it."""

    def kept(self) -> dict[PointKey, float]:
        """The points that are there from earlier watches."""

    def add(self, points: Sequence[Point]) -> None: ...

    def has_model(self) -> bool: ...

    def add_model(self, folder: Path) -> None:
        """Keeps a copy of the folder's files."""

    def end(self) -> None:
        """Marks the task as over."""


def tracked_task(ledger: Ledger, number: int) -> TrackedTask:
    """Raises Refused (TaskUnknown), ChainUnreachable."""
    params, contract, chain_id = ledger.tasks.params(number), ledger.deployment.tasks, ledger.connection.chain_id
    first = ledger.connection.blocks.hash_of(0)
    mark = hashlib.sha256(first + bytes.fromhex(contract[2:])).hexdigest()[:8]
    terms = {
        "rounds": params.rounds, "cohorts": params.cohorts, "max_hospitals": params.max_hospitals,
        "max_voters": params.max_voters, "seats": params.seats,
    }  # fmt: skip
    return TrackedTask(number, chain_id, contract, f"task-{number}-{mark}", terms)


class Tracking:
    """Follows a task's events for some trackers."""

    def __init__(self, trackers: Sequence[Tracker], download: Callable[[Path], object] | None = None) -> None:
        """`download`: writes the model into a new folder; None if no model is wanted."""
        self._trackers, self._download = trackers, download
        self._kept = [tracker.kept() for tracker in trackers]
        self._entries: list[Entry] = []

    def take(self, entries: Sequence[Entry], next_block: int) -> None:
        """Takes the task's new events. `next_block`: the first one that was not read; lower than before if the chain
        was taken back.
        """
        still = [entry for entry in self._entries if entry.event.block < next_block]
        used = [entry for entry in entries if entry.event.name in USED]
        if not used and len(still) == len(self._entries):
            return
        self._entries = still + used
        points = points_of(self._entries)
        for tracker, kept in zip(self._trackers, self._kept, strict=True):
            if missing := [point for point in points if not point.is_kept_as(kept.get(point.key))]:
                tracker.add(missing)
                kept.update({point.key: point.value for point in missing})
                emit("tracked", points=len(missing), place=tracker.location)

    def end(self) -> None:
        """After the task has ended: adds the model to trackers that lack it.

        Raises OperatorError (TrackingFailed, NotVerified), ChainUnreachable.
        """
        lacking = [tracker for tracker in self._trackers if not tracker.has_model()]
        if self._download is not None and lacking:
            with TemporaryDirectory() as folder:
                model = Path(folder) / "model"
                try:
                    self._download(model)
                except RecordIncomplete:
                    emit("no-model-tracked")
                else:
                    for tracker in lacking:
                        tracker.add_model(model)
                        emit("model-tracked", place=tracker.location)
        for tracker in self._trackers:
            tracker.end()
