"""A round's update, on the hospital's own disk before its signature leaves: a restart must not lose the blinders.

Nor may it sign a second update: a holder of both could choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from consilium_chain.errors import SignedUpdateMalformed
from consilium_chain.keystore import write_private_file
from consilium_chain.messages import signed_update_bytes
from consilium_chain.rounds.signed_updates import SignedUpdate, parse_signed_update
from consilium_zk.blobs import Blob, parse_blob
from consilium_zk.constants import BYTES_PER_BLOB
from consilium_zk.errors import Malformed
from consilium_zk.masks import BYTES_PER_SEED

from consilium_client.errors import NodeError

_BYTES_PER_BLOB = signed_update_bytes(1) - signed_update_bytes(0) + BYTES_PER_BLOB


@dataclass(frozen=True)
class PendingUpdate:
    """A round's update: unweighted blobs, the signature by which anybody commits to them in this hospital's name, and
    the seed (32 bytes) of their masks.
    """

    signed: SignedUpdate
    blobs: Sequence[Blob]
    seed: bytes


class PendingUpdates:
    """Keeps the latest round's update of `hospital` only; files are readable by their owner alone."""

    def __init__(self, folder: Path, hospital: str) -> None:
        self._folder, self._hospital = folder, hospital
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def write(self, round_: int, update: PendingUpdate) -> None:
        for old in self._folder.glob("round-*"):
            old.unlink()
        write_private_file(
            self._folder / f"round-{round_}", b"".join([update.seed, update.signed.to_wire(), *update.blobs])
        )

    def forget(self) -> None:
        """Deletes its files, once the task has ended: nobody asks for them any more."""
        for old in self._folder.glob("round-*"):
            old.unlink()

    def read(self, round_: int) -> PendingUpdate | None:
        """None if no update of the round was kept. Raises PendingUpdateLost if one was and is not whole."""
        try:
            raw = (self._folder / f"round-{round_}").read_bytes()
        except FileNotFoundError:
            return None
        count, rest = divmod(len(raw) - BYTES_PER_SEED - signed_update_bytes(0), _BYTES_PER_BLOB)
        if count < 1 or rest:
            raise NodeError("PendingUpdateLost", round=round_)
        head = BYTES_PER_SEED + signed_update_bytes(count)
        try:
            signed = parse_signed_update(raw[BYTES_PER_SEED:head], self._hospital, count)
            blobs = [parse_blob(raw[i : i + BYTES_PER_BLOB]) for i in range(head, len(raw), BYTES_PER_BLOB)]
        except (SignedUpdateMalformed, Malformed) as error:
            raise NodeError("PendingUpdateLost", round=round_) from error
        return PendingUpdate(signed, blobs, raw[:BYTES_PER_SEED])
