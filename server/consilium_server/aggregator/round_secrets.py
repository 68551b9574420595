"""Secrets that disclose a round's decoys: a file for each round, and a copy for the account's other machines.

They are stored before the publication. Without them nobody can disclose it, and a part of the bond is slashed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from consilium_core.private_files import write_private_file
from consilium_zk.curve import Commitment, parse_commitment

from consilium_server.errors import DecoysLost

SEED_BYTES = 32
Blinders = tuple[int, int]
# Unchained: the errors could quote the secrets.
UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True)
class RoundSecrets:
    """The seed, 32 bytes; two blinders of each summed blob, by cohort; the points of the hospitals in these sums, one
    per blob; a bit map of these hospitals.
    """

    seed: bytes
    blinders: Mapping[int, list[Blinders]]
    points: Mapping[int, Sequence[Commitment]] = field(default_factory=dict)
    survivors: int = 0

    def to_json(self) -> dict[str, Any]:
        pairs = {cohort: [[hex(one) for one in pair] for pair in blobs] for cohort, blobs in self.blinders.items()}
        points = {index: [point.hex() for point in row] for index, row in self.points.items()}
        return {"seed": self.seed.hex(), "survivors": self.survivors, "points": points, "blinders": pairs}

    @classmethod
    def of_json(cls, raw: Any) -> RoundSecrets:
        """Raises some of the errors `UNREADABLE`."""
        pairs = {
            int(cohort): [(int(first, 16), int(second, 16)) for first, second in blobs]
            for cohort, blobs in raw["blinders"].items()
        }
        seed = bytes.fromhex(raw["seed"])
        if len(seed) != SEED_BYTES:
            raise ValueError("seed")
        points = {
            int(index): [parse_commitment(bytes.fromhex(point)) for point in row]
            for index, row in raw["points"].items()
        }
        return cls(seed, pairs, points, int(raw["survivors"]))


class SecretStore(Protocol):
    """One task's secrets, by round. `shown`: where they are, for people."""

    shown: str

    def latest(self, round_: int) -> RoundSecrets | None:
        """Secrets of the last attempt to publish; None before the first. Raises DecoysLost."""

    def of(self, round_: int, commitment: bytes | None, survivors: int) -> RoundSecrets:
        """Secrets of the publication on the chain: the commitment to its seed (32 bytes), a bit map of its survivors.

        Raises DecoysLost.
        """

    def store(self, round_: int, found: RoundSecrets) -> None:
        """After the return they survive a power cut. Raises the errors of the disk."""

    def share(self) -> None:
        """Copies secrets for other machines that could not be copied when they were stored. Raises Unavailable."""

    def forget(self) -> None:
        """Deletes copies for other machines, once the task has ended."""


class SecretFiles:
    """Secrets on this machine's disk: those of each round's last attempt."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.shown = folder, str(folder)

    def latest(self, round_: int) -> RoundSecrets | None:
        return self.of(round_) if self._path(round_).exists() else None

    def of(self, round_: int, commitment: bytes | None = None, survivors: int = 0) -> RoundSecrets:
        path = self._path(round_)
        try:
            return RoundSecrets.of_json(json.loads(path.read_text()))
        except UNREADABLE:
            raise DecoysLost("DecoysLost", path=str(path)) from None

    def store(self, round_: int, found: RoundSecrets) -> None:
        write_private_file(self._path(round_), json.dumps(found.to_json()))

    def share(self) -> None:
        """Does nothing: there are no other machines."""

    def forget(self) -> None:
        """Does nothing: a reorganisation may undo the task's end."""

    def _path(self, round_: int) -> Path:
        return self._folder / f"round-{round_}.json"
