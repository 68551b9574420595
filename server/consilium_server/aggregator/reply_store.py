"""Stores hospitals' replies of a round on the aggregator's disk before their use.

A killed aggregator must commit the signed updates after its restart. It must also publish the sum of exactly the
uploads with which it fixed the survivors. Hospitals send these again, but each may be away by then.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Sequence
from pathlib import Path

from consilium_chain.errors import SignedUpdateMalformed
from consilium_core.logs import emit
from consilium_core.private_files import write_private_file
from consilium_zk.blobs import parse_blob
from consilium_zk.constants import BYTES_PER_BLOB
from consilium_zk.errors import ZkError

from consilium_server.aggregator.uploads import Signed, Upload, parse_signed, parse_upload_body
from consilium_server.errors import ReplyRefused

_LENGTH = struct.Struct(">I")


class ReplyStore:
    """The replies of one round, by hospitals' indices.

    The folder also keeps those of the round before, to which a reorganisation may lead back. It removes all others.
    """

    def __init__(self, folder: Path, round_: int) -> None:
        self._folder, self._round = folder / f"round-{round_}", round_
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for other in folder.iterdir():
            if other.name not in (f"round-{round_ - 1}", self._folder.name):
                shutil.rmtree(other)
        self._folder.mkdir(exist_ok=True, mode=0o700)

    def keep(self, index: int, reply: Signed | Upload) -> None:
        """Writes a reply. After the return it survives a power cut."""
        match reply:
            case Signed():
                write_private_file(self._folder / f"signed-{index}", reply.update.to_wire() + reply.share_bundle)
            case Upload():
                body = b"".join(reply.points) + reply.statement
                write_private_file(
                    self._folder / f"upload-{index}", b"".join([_LENGTH.pack(len(body)), body, *reply.blobs])
                )

    def signed(self, addresses: Sequence[str], blob_count: int) -> dict[int, Signed]:
        """Stored signed updates, by hospital. `addresses`: hospitals' accounts by index."""
        found = {}
        for index, raw in self._read("signed", len(addresses)).items():
            try:
                found[index] = parse_signed(raw, addresses[index], blob_count)
            except SignedUpdateMalformed:
                self._log_damaged("signed", index)
        return found

    def uploads(self, hospitals: int, blob_count: int) -> dict[int, Upload]:
        """Stored uploads, by hospital. A damaged one is left out, and requested again."""
        found = {}
        for index, raw in self._read("upload", hospitals).items():
            try:
                found[index] = _parse_upload(raw, blob_count)
            except (ReplyRefused, ZkError):
                self._log_damaged("upload", index)
        return found

    def _read(self, kind: str, hospitals: int) -> dict[int, bytes]:
        paths = {index: self._folder / f"{kind}-{index}" for index in range(hospitals)}
        return {index: path.read_bytes() for index, path in paths.items() if path.exists()}

    def _log_damaged(self, kind: str, index: int) -> None:
        emit("reply-damaged", round=self._round, hospital=index, what=kind)


def _parse_upload(raw: bytes, blob_count: int) -> Upload:
    """Reads a stored upload. Raises ReplyRefused (UploadInvalid), BlobMalformed."""
    start = len(raw) - blob_count * BYTES_PER_BLOB
    if start < _LENGTH.size or _LENGTH.unpack_from(raw)[0] != start - _LENGTH.size:
        raise ReplyRefused("UploadInvalid", why="the stored upload is incomplete")
    blobs = [parse_blob(raw[i : i + BYTES_PER_BLOB]) for i in range(start, len(raw), BYTES_PER_BLOB)]
    return Upload(blobs, *parse_upload_body(raw[_LENGTH.size : start], blob_count))
