"""A drand relay on loopback that serves the pinned rounds of quicknet, and lies in every way that a relay can."""

from __future__ import annotations

import gzip
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

QUICKNET = json.loads((Path(__file__).parent / "vectors" / "drand_quicknet.json").read_text())
ROUNDS: dict[int, dict[str, Any]] = {case["round"]: case for case in QUICKNET["rounds"]}
LARGE = 5_000_000


def signature_of(round_: int) -> str:
    return str(ROUNDS[round_]["signature"]).removeprefix("0x")


def answer(round_: int, signature: str, **more: object) -> bytes:
    return json.dumps({"round": round_, "signature": signature} | more).encode()


def _negated(round_: int) -> str:
    """The other sign of y."""
    raw = bytearray.fromhex(signature_of(round_))
    raw[0] ^= 0x20
    return raw.hex()


ANSWERS: dict[str, Callable[[int], bytes]] = {
    "v1": lambda r: answer(r, signature_of(r), randomness=str(ROUNDS[r]["randomness"]).removeprefix("0x")),
    "v2": lambda r: answer(r, signature_of(r)),
    "wrong-randomness": lambda r: answer(r, signature_of(r), randomness="00" * 32),
    "another-round": lambda r: answer(42, signature_of(42)),
    "another-rounds-signature": lambda r: answer(r, signature_of(42)),
    "negated-signature": lambda r: answer(r, _negated(r)),
    "identity": lambda r: answer(r, "c0" + "00" * 47),
    "no-point": lambda r: answer(r, "ff" * 48),
    "empty": lambda r: b"",
    "web-page": lambda r: b"<html>welcome to the hotel</html>",
    "not-text": lambda r: b"\xff\xfe\x00",
    "list": lambda r: b"[1, 2]",
    "nested": lambda r: b"[" * 4_000,
    "no-signature": lambda r: json.dumps({"round": r}).encode(),
    "short-signature": lambda r: answer(r, signature_of(r)[:-2]),
    "no-hexadecimal": lambda r: answer(r, "zz" * 48),
    "round-as-text": lambda r: json.dumps({"round": str(r), "signature": signature_of(r)}).encode(),
    "null": lambda r: json.dumps({"round": r, "signature": None}).encode(),
    "large": lambda r: answer(r, signature_of(r)) + b" " * LARGE,
    "compressed": lambda r: gzip.compress(answer(r, signature_of(r)) + b" " * LARGE),
}


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Relay)
        self.asked: list[str] = []
        self.ended = threading.Event()


class _Relay(http.server.BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        _, what, round_ = self.path.split("/")
        self.server.asked.append(self.path)
        if what == "hang":
            self.server.ended.wait()
        elif what == "drip":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            with suppress(OSError):  # the client has gone
                while not self.server.ended.wait(0.05):  # each read is answered in time, the answer never ends
                    self.wfile.write(b"X-Slow: 1\r\n")
        elif what.isdecimal():
            self.send_error(int(what))
        else:
            self._answer(what, int(round_))

    def _answer(self, what: str, round_: int) -> None:
        body = ANSWERS[what](round_)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        if what == "compressed":
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        with suppress(OSError):  # the client has read enough
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class RelayServer:
    """`url(what)` is a relay that answers as `ANSWERS` says, hangs, drips, or gives a status."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self.asked = server.asked  # the paths asked for, in order

    def url(self, what: str) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/{what}/{{round}}"


@contextmanager
def relay_server() -> Iterator[RelayServer]:
    server = _Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield RelayServer(server)
    finally:
        server.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()
