"""Stores hospitals' replies of a round on the aggregator's disk before they are used, so that nobody need send them
again.

An aggregator that was killed must commit the updates that were signed for it. It must also publish the sum of the very
uploads by which it fixed the survivors, which hospitals no longer send by then.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Sequence
from pathlib import Path

from consilium_chain.errors import SignedUpdateMalformed
from consilium_chain.keystore import write_private_file
from consilium_core.logs import emit
from consilium_zk.blobs import parse_blob
from consilium_zk.constants import BYTES_PER_BLOB
from consilium_zk.errors import ZkError

from consilium_server.aggregator.uploads import Signed, Upload, parse_signed
from consilium_server.errors import ReplyRefused

_LENGTH = struct.Struct(">I")


class ReplyStore:
    """The replies of one round, by hospitals' indices.

    The folder also has those of the round before, to which a reorganisation may lead back. All others are removed.
    """

    def __init__(self, folder: Path, round_: int) -> None:
        self._folder, self._round = folder / f"round-{round_}", round_
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for other in folder.iterdir():
            if other.name not in (f"round-{round_ - 1}", self._folder.name):
                shutil.rmtree(other)
        self._folder.mkdir(exist_ok=True, mode=0o700)

    def keep(self, index: int, reply: Signed | Upload) -> None:
        """Writes a reply. On return it outlasts a power cut."""
        match reply:
            case Signed():
                write_private_file(self._folder / f"signed-{index}", reply.update.to_wire() + reply.dealing)
            case Upload():
                head = _LENGTH.pack(len(reply.statement)) + reply.statement
                write_private_file(self._folder / f"upload-{index}", b"".join([head, *reply.blobs]))

    def signed(self, addresses: Sequence[str], blob_count: int) -> dict[int, Signed]:
        """Stored signed updates, by hospital. `addresses`: hospitals' accounts by index."""
        found = {}
        for index, raw in self._read("signed", len(addresses)).items():
            try:
                found[index] = parse_signed(raw, addresses[index], blob_count)
            except SignedUpdateMalformed:
                self._tell_damaged("signed", index)
        return found

    def uploads(self, hospitals: int, blob_count: int) -> dict[int, Upload]:
        """Stored uploads, by hospital. A damaged one is left out, and asked for again."""
        found = {}
        for index, raw in self._read("upload", hospitals).items():
            try:
                found[index] = _parse_upload(raw, blob_count)
            except (ReplyRefused, ZkError):
                self._tell_damaged("upload", index)
        return found

    def _read(self, what: str, hospitals: int) -> dict[int, bytes]:
        paths = {index: self._folder / f"{what}-{index}" for index in range(hospitals)}
        return {index: path.read_bytes() for index, path in paths.items() if path.exists()}

    def _tell_damaged(self, what: str, index: int) -> None:
        """Logs a damaged reply, which is asked for again."""
        emit("reply-damaged", round=self._round, hospital=index, what=what)


def _parse_upload(raw: bytes, blob_count: int) -> Upload:
    """Reads a stored upload. Raises ReplyRefused (UploadInvalid), BlobMalformed."""
    start = len(raw) - blob_count * BYTES_PER_BLOB
    if start < _LENGTH.size or _LENGTH.unpack_from(raw)[0] != start - _LENGTH.size:
        raise ReplyRefused("UploadInvalid", why="it was not kept whole")
    blobs = [parse_blob(raw[i : i + BYTES_PER_BLOB]) for i in range(start, len(raw), BYTES_PER_BLOB)]
    return Upload(blobs, raw[_LENGTH.size : start])
