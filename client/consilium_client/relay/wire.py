"""Typed frames between the relay and the node over a Unix socket.

Request: contract (20 bytes), task (8), round (4), part (1), big-endian. Reply: code (1), length (4) and count (4), then
a body of that length, which the relay forwards unchanged, and `count` blobs of 131,072 bytes. Errors travel as codes,
because an exception's text could contain a row of data.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from consilium_chain.messages import Part, ReplyCode, signed_update_bytes
from consilium_chain.tasks.judging_spec import MAX_PARTICIPANTS
from consilium_zk.constants import BYTES_PER_BLOB, BYTES_PER_COMPRESSED_G1
from consilium_zk.secret_shares import share_bundle_bytes

from consilium_client.errors import FrameError

_REQUEST = struct.Struct(">20sQIB")
_REPLY = struct.Struct(">BII")
MAX_BLOBS = 4_096
_SIGNED = signed_update_bytes(MAX_BLOBS) + share_bundle_bytes(MAX_PARTICIPANTS)
_UPLOADED = MAX_BLOBS * BYTES_PER_COMPRESSED_G1 + 1_024  # points, and the statement on the upload
MAX_BODY = max(_SIGNED, _UPLOADED)
MAX_ADDRESS = 103  # bytes of a Unix socket's address: Linux takes 107, macOS 103
OPEN_FOLDERS = Path("/proc/self/fd")
SOCKET_VARIABLE = "CONSILIUM_NODE_SOCKET"  # of the relay's environment: the path of the node's socket


@contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """An address of the Unix socket at a path of any length, to bind it or to connect to it.

    A long path is reached through its open folder: the socket stays in the node's private home, and needs no other.
    Raises OSError if the folder does not open, or if the path is long and this system has no /proc.
    """
    if len(os.fsencode(path)) <= MAX_ADDRESS:
        yield str(path)
        return
    if not OPEN_FOLDERS.is_dir():
        raise OSError(errno.ENAMETOOLONG, f"more than {MAX_ADDRESS} bytes, for a socket", str(path))
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield str(OPEN_FOLDERS / str(folder) / path.name)
    finally:
        os.close(folder)


@dataclass(frozen=True)
class RoundRequest:
    """Asks a hospital for a part of a round. The hospital reads everything else from the chain."""

    contract: bytes
    task: int
    round: int
    part: Part

    def encode(self) -> bytes:
        """Raises FrameMalformed where a value does not fit its field."""
        try:
            return _REQUEST.pack(self.contract, self.task, self.round, self.part)
        except struct.error as error:
            raise FrameError("FrameMalformed", why="a value of the request does not fit its field") from error

    @classmethod
    def parse(cls, raw: bytes) -> RoundRequest:
        if len(raw) != _REQUEST.size:
            raise FrameError("FrameMalformed", why=f"a request has {_REQUEST.size} bytes, not {len(raw)}")
        contract, task, round_, part = _REQUEST.unpack(raw)
        if part not in set(Part):
            raise FrameError("FrameMalformed", why=f"{part} is not a part of a round")
        return cls(contract, task, round_, Part(part))


@dataclass(frozen=True)
class RoundReply:
    """A hospital's answer. `body`: with SIGNED the signed update and its secret shares, with ANSWERED the answer that
    unmasks, with OK the points, and the signed statement on masked blobs. `blobs`: with OK the weighted blobs.
    """

    code: ReplyCode
    blobs: Sequence[bytes] = ()
    body: bytes = b""

    def encode(self) -> Iterator[bytes]:
        """The frame, in parts."""
        yield _REPLY.pack(self.code, len(self.body), len(self.blobs)) + self.body
        yield from self.blobs


def send_request(connection: socket.socket, request: RoundRequest) -> None:
    connection.sendall(request.encode())


def receive_request(connection: socket.socket) -> RoundRequest:
    return RoundRequest.parse(_receive(connection, _REQUEST.size))


def send_reply(connection: socket.socket, reply: RoundReply) -> None:
    for part in reply.encode():
        connection.sendall(part)


def receive_reply(connection: socket.socket) -> RoundReply:
    code, length, count = _REPLY.unpack(_receive(connection, _REPLY.size))
    if code not in set(ReplyCode) or count > MAX_BLOBS or length > MAX_BODY:
        raise FrameError(
            "FrameMalformed", why=f"a reply cannot have code {code}, {count} blobs and a body of {length} bytes"
        )
    body = _receive(connection, length)
    return RoundReply(ReplyCode(code), [_receive(connection, BYTES_PER_BLOB) for _ in range(count)], body)


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = connection.recv(min(size - len(received), 1 << 20))
        if not part:
            raise FrameError("FrameMalformed", why=f"the connection was closed after {len(received)} of {size} bytes")
        received += part
    return bytes(received)
