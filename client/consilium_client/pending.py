"""Updates committed and not yet uploaded, on the hospital's own disk: a restart must not lose the blinders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from consilium_zk.blobs import Blob, parse_blob
from consilium_zk.constants import BYTES_PER_BLOB
from consilium_zk.errors import BlobMalformed

from consilium_client.errors import PendingUpdateLost


class PendingUpdates:
    """Keeps the blobs of the latest round only; files are readable by their owner alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def write(self, round_: int, blobs: Sequence[Blob]) -> None:
        for old in self._folder.glob("round-*"):
            old.unlink()
        temporary = self._folder / "writing"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.writelines(blobs)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self._folder / f"round-{round_}")

    def read(self, round_: int) -> list[Blob]:
        """Raises PendingUpdateLost."""
        path = self._folder / f"round-{round_}"
        try:
            raw = path.read_bytes()
        except FileNotFoundError as error:
            raise PendingUpdateLost(round_) from error
        if not raw or len(raw) % BYTES_PER_BLOB:
            raise PendingUpdateLost(round_)
        try:
            return [parse_blob(raw[i : i + BYTES_PER_BLOB]) for i in range(0, len(raw), BYTES_PER_BLOB)]
        except BlobMalformed as error:
            raise PendingUpdateLost(round_) from error
