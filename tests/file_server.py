"""An HTTP server of files, as a mirror is one, that can misbehave in every way and counts what it is asked."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

Behaviour = Callable[["Request", str], None]


class Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a body waits for its headers' delayed acknowledgement: 40 ms
    server: Listening

    def do_GET(self) -> None:
        mirror = self.server.mirror
        name = self.path.rpartition("/")[2]
        with mirror.lock:
            mirror.asked[name] += 1
            mirror.paths.append(self.path)
        if mirror.stop_after is not None and sum(mirror.asked.values()) > mirror.stop_after:
            self.give(503, b"")
            return
        try:
            mirror.behaviour(self, name)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def give(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Listening(ThreadingHTTPServer):
    mirror: FileServer


class FileServer:
    """Serves `folder` as it is; `behaviour` may be replaced."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.lock = folder, threading.Lock()
        self.asked: Counter[str] = Counter()
        self.paths: list[str] = []
        self.behaviour: Behaviour = self.serve
        self.stop_after: int | None = None
        self.over = threading.Event()
        self._server = Listening(("127.0.0.1", 0), Request)
        self._server.daemon_threads = True
        self._server.mirror = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> FileServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/artifacts"

    def serve(self, request: Request, name: str) -> None:
        path = self.folder / name
        if path.is_file():
            request.give(200, path.read_bytes())
        else:
            request.give(404, b"")

    # How a mirror can misbehave

    def hang(self, request: Request, name: str) -> None:
        self.over.wait(30)

    def drip(self, request: Request, name: str) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "131120")
        request.end_headers()
        while not self.over.wait(0.05):
            request.wfile.write(b"x")

    def send_for_ever(self, request: Request, name: str) -> None:
        request.send_response(200)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        while not self.over.is_set():
            request.wfile.write(b"10000\r\n" + bytes(1 << 16) + b"\r\n")

    def cut_off(self, request: Request, name: str) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "131120")
        request.end_headers()
        request.wfile.write(bytes(1000))
        request.close_connection = True
        request.connection.shutdown(socket.SHUT_RDWR)

    def refuse(self, request: Request, name: str) -> None:
        request.give(500, b"a stack trace")

    def compress(self, request: Request, name: str) -> None:
        import gzip

        request.give(200, gzip.compress(bytes(1 << 24)), **{"Content-Encoding": "gzip"})
