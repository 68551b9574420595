"""Answers Prometheus at an address of this machine alone."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import TYPE_CHECKING, Annotated

from consilium_chain.ledger.structs import Role
from consilium_core.connectivity import host_and_port
from consilium_core.logs import emit, heard_by
from pydantic import AfterValidator

if TYPE_CHECKING:
    from consilium_chain.ledger.ledger import Ledger

PATH = "/metrics"
PORTS = 8  # a home's hospital nodes, one a task, take one each
PATIENCE = 5.0  # seconds for a request


def _on_this_machine(text: str) -> str:
    host, _ = host_and_port(text)
    if not _is_loopback(host):
        raise ValueError(f"{host} is not this machine's own address: write 127.0.0.1:PORT or [::1]:PORT")
    return text


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


LoopbackAddress = Annotated[str, AfterValidator(_on_this_machine)]


@dataclass(frozen=True)
class Watched:
    """A node. `seats`: its index in each running task. `task`: of events that name none. `certificates`: files by a
    fixed name. `epsilon`: of that task, spent and bound; None without noise.
    """

    role: Role
    home: Path
    ledger: Ledger
    seats: Callable[[], Mapping[int, int]]
    task: int | None = None
    certificates: Mapping[str, Path] = field(default_factory=dict)
    epsilon: Callable[[], tuple[float, float]] | None = None


@contextmanager
def watched(address: str | None, node: Watched) -> Iterator[None]:
    """Within, the node's metrics are at this address, or at one of the next ports if others of its home have it.

    A node without metrics goes on: a missed round costs more. Its log says why.
    """
    if address is None:
        yield
        return
    from consilium_client.monitoring.figures import NodeMetrics

    metrics = NodeMetrics(node)
    server = _bound(*host_and_port(address), metrics.text)
    if server is None:
        emit("metrics-not-served", at=address, ports=PORTS)
        yield
        return
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    threading.Thread(target=metrics.keep_reading, name="money", daemon=True).start()
    emit("metrics-served", at=server.shown)
    try:
        with heard_by(metrics.hear):
            yield
    finally:
        metrics.stop()
        server.shutdown()
        server.server_close()


class _Server(ThreadingTCPServer):
    allow_reuse_address = True  # of connections that are closed
    daemon_threads = True

    def __init__(self, host: str, port: int, text: Callable[[], bytes]) -> None:
        """Raises OSError."""
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.text = text
        super().__init__((host, port), _Handler)

    @property
    def shown(self) -> str:
        host, port = self.server_address[:2]
        return f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"


class _Handler(BaseHTTPRequestHandler):
    timeout = PATIENCE
    server: _Server

    def do_GET(self) -> None:
        """A page in this machine's browser, whose name was made to lead here, has that name in `Host`."""
        host = self.headers.get("Host", "").rpartition(":")[0].strip("[]")
        if host != "localhost" and not _is_loopback(host):
            self.send_error(403)
            return
        if self.path != PATH:
            self.send_error(404)
            return
        body = self.server.text()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: standard output has the node's events."""


def _bound(host: str, port: int, text: Callable[[], bytes]) -> _Server | None:
    for one in range(port, min(port + PORTS, 65_536)):
        try:
            return _Server(host, one, text)
        except OSError:
            continue
    return None
