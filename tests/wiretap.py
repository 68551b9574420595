"""What crosses a socket, byte by byte, and whether secrets are in it."""

from __future__ import annotations

import base64
import json
import re
import socket
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import numpy as np
from consilium_client.relay.wire import socket_address

_KEY = 8  # bytes by which needles are looked up: any shorter one would be found by chance
_HEX = re.compile(rb"[0-9a-fA-F]{%d,}" % (2 * _KEY))


@dataclass
class Conversation:
    """Bytes of one connection: of whoever opened it, and of whom it reached."""

    caller: bytearray = field(default_factory=bytearray)
    callee: bytearray = field(default_factory=bytearray)


class Wiretap:
    """Stands where a server would, passes everything on, and keeps it."""

    def __init__(self, listening: socket.socket, connect: Callable[[], socket.socket]) -> None:
        self._listening, self._connect = listening, connect
        self.conversations: list[Conversation] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    @classmethod
    def of_port(cls, port: int) -> Wiretap:
        return cls(socket.create_server(("127.0.0.1", 0)), lambda: socket.create_connection(("127.0.0.1", port)))

    @classmethod
    def of_path(cls, here: Path, there: Path) -> Wiretap:
        def connect() -> socket.socket:
            connection = socket.socket(socket.AF_UNIX)
            with socket_address(there) as address:
                connection.connect(address)
            return connection

        listening = socket.socket(socket.AF_UNIX)
        with socket_address(here) as address:
            listening.bind(address)
        listening.listen()
        return cls(listening, connect)

    @property
    def address(self) -> str:
        host, port = self._listening.getsockname()
        return f"{host}:{port}"

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _start(self, work: Callable[..., None], *given: object) -> None:
        thread = threading.Thread(target=work, args=given, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            self._start(self._pass_on, near)

    def _pass_on(self, near: socket.socket) -> None:
        kept = Conversation()
        self.conversations.append(kept)
        with near, self._connect() as far:
            back = threading.Thread(target=_pump, args=(far, near, kept.callee), daemon=True)
            back.start()
            _pump(near, far, kept.caller)
            back.join()


def _pump(source: socket.socket, sink: socket.socket, kept: bytearray) -> None:
    with suppress(OSError):
        while part := source.recv(1 << 16):
            kept += part  # before it is passed on: whoever has had an answer finds what led to it here
            sink.sendall(part)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def spellings(text: str) -> set[bytes]:
    """A text as programs write it, each of eight bytes at least; `search` finds hexadecimal by itself."""
    raw = text.encode()
    found = {one.encode() for one in (text, text.lower(), text.upper(), quote(text), json.dumps(text)[1:-1])}
    found |= {"".join(f"%{byte:02{case}}" for byte in raw).encode() for case in "xX"}
    found |= {text.encode(encoding, "ignore") for encoding in ("latin-1", "utf-16-le", "utf-16-be")}
    for before in range(3):  # bytes of another text, which base64 shares a sign with
        signs = base64.b64encode(bytes(before) + raw)[-(-8 * before // 6) : 8 * (before + len(raw)) // 6]
        found |= {signs, signs.translate(bytes.maketrans(b"+/", b"-_"))}
    return {one for one in found if len(one) >= _KEY}


def search(traffic: Iterable[bytes], needles: Mapping[str, Iterable[bytes]]) -> set[str]:
    """Kinds of needles, each of eight bytes at least, that are in the traffic as they are or in hexadecimal."""
    by_key: dict[int, list[tuple[str, bytes]]] = {}
    for kind, some in needles.items():
        for needle in some:
            assert len(needle) >= _KEY, (kind, needle)
            by_key.setdefault(int.from_bytes(needle[:_KEY], "little"), []).append((kind, needle))
    keys = np.fromiter(by_key, dtype=np.uint64, count=len(by_key))
    whole = b"\xff\x00".join(traffic)
    found = set()
    for haystack in (whole, *_from_hex(whole)):
        for place in _places(haystack, keys):
            key = int.from_bytes(haystack[place : place + _KEY], "little")
            found |= {kind for kind, needle in by_key[key] if haystack.startswith(needle, place)}
    return found


def _from_hex(stream: bytes) -> Sequence[bytes]:
    """Runs of hexadecimal digits as bytes, from the first digit on and from the second."""
    runs = _HEX.findall(stream)
    return [
        b"\xff\x00".join(bytes.fromhex(run[start : len(run) - (len(run) - start) % 2].decode()) for run in runs)
        for start in (0, 1)
    ]


def _places(haystack: bytes, keys: np.typing.NDArray[np.uint64]) -> list[int]:
    """Where a window of eight bytes is one of the keys."""
    found = []
    for offset in range(min(_KEY, max(0, len(haystack) - _KEY + 1))):
        windows = np.frombuffer(haystack, dtype="<u8", offset=offset, count=(len(haystack) - offset) // _KEY)
        found += [offset + _KEY * int(at) for at in np.flatnonzero(np.isin(windows, keys))]
    return found
