"""A webhook's HTTPS server and a mail server, on loopback, with certificates of their own."""

from __future__ import annotations

import datetime
import json
import socketserver
import ssl
import threading
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from consilium_core.notify import Reach
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOOK, OTHER = "hook.example.org", "second.example.org"


def certificate(folder: Path, *hosts: str) -> Path:
    """A file with a certificate for the hosts, its own authority, and its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = folder / f"{hosts[0]}.pem"
    path.write_bytes(made.public_bytes(pem) + secret)
    return path


def _tls(path: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


@contextmanager
def _running(server: socketserver.TCPServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Hooks:
    """Webhooks by path, and what they were sent. `status`: of answers; `proves`: it repeats challenges.

    `pages`: answers to GET, by path; `asked`: hosts and paths of GET.
    """

    port: int
    authority: Path
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    status: int = 200
    proves: bool = True
    pages: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def url(self, path: str = "/", host: str = HOOK) -> str:
        return f"https://{host}:{self.port}{path}"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, _, body in self.got]

    def reach(self, **changes: Any) -> Reach:
        """All names lead to this server."""
        given: dict[str, Any] = {
            "ports": frozenset({self.port}), "admits": lambda address: address.is_loopback,
            "authority": self.authority, "resolve": lambda host, port: ["127.0.0.1"],
        }  # fmt: skip
        return Reach(**given | changes)


@contextmanager
def hooks(folder: Path) -> Iterator[Hooks]:
    path = certificate(folder, HOOK, OTHER)
    found = Hooks(0, path)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.got.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            if self.path == "/slow":
                self._drip()
                return
            asked = json.loads(body).get("challenge", "") if found.proves else ""
            said = b"x" * 1_000_000 if self.path == "/large" else asked.encode()
            self.send_response(302 if self.path == "/redirect" else found.status)
            self.send_header("Location", found.url("/redirected"))
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def do_GET(self) -> None:
            found.asked.append((self.headers["Host"], self.path))
            page = found.pages.get(self.path, b"")
            self.send_response(found.status if page else 404)
            self.send_header("Location", found.url("/elsewhere"))
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def _drip(self) -> None:
            """A header line now and then: no single read is slow."""
            self.send_response(200)
            self.flush_headers()
            try:
                for number in range(200):
                    self.wfile.write(f"X-{number}: a\r\n".encode())
                    time.sleep(0.05)
            except OSError:
                return

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:  # of clients that went away
            pass

    server = Server(("127.0.0.1", 0), Handler)
    server.socket = _tls(path).wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with _running(server) as port:
        found.port = port
        yield found


@dataclass
class Mails:
    """A mail server, and what it took. `refuses`: an answer to a recipient, such as "550 no such user"."""

    port: int
    authority: Path
    got: list[Message] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    refuses: str = ""

    def text(self, place: int = -1) -> str:
        raw = self.got[place].get_payload(decode=True)
        return raw.decode().replace("\r\n", "\n") if isinstance(raw, bytes) else ""


@contextmanager
def mails(folder: Path, with_tls: bool = False) -> Iterator[Mails]:
    path = certificate(folder, "localhost")
    found = Mails(0, path)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 test")
            while line := self.rfile.readline(2_000).decode().strip():
                verb = line[:4].upper()
                if verb == "DATA":
                    self._say("354 go on")
                    lines = iter(self.rfile.readline, b".\r\n")
                    found.got.append(message_from_bytes(b"".join(lines)))
                elif verb == "AUTH":
                    found.logins.append(b64decode(line.split()[2]).decode())
                    self._say("235 ok")
                    continue
                elif verb == "EHLO":
                    self._say("250-test\r\n250 AUTH PLAIN")
                    continue
                elif verb == "QUIT":
                    break
                self._say(found.refuses if found.refuses and verb == "RCPT" else "250 ok")
            self._say("221 bye")

        def _say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    if with_tls:
        server.socket = _tls(path).wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with _running(server) as port:
        found.port = port
        yield found
