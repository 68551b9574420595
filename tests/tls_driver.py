"""A server on loopback that speaks TLS, and says one thing."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from consilium_server.certificates import ensure_certificates


@contextmanager
def server(folder: Path | None, answer: bytes = b"") -> Iterator[int]:
    """Listens on loopback, over TLS with the certificate in `folder`, and answers whoever asks; without one it accepts,
    and says nothing.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ends, kept = threading.Event(), list[socket.socket]()

        def serve() -> None:
            while not ends.is_set():
                try:
                    plain, _ = listening.accept()
                except OSError:
                    return
                if folder is None:
                    kept.append(plain)
                    continue
                made = ensure_certificates(folder)
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(made.certificate, made.key)
                try:
                    with context.wrap_socket(plain, server_side=True) as link:
                        if answer and link.recv(1_000):
                            link.sendall(answer)
                except OSError:
                    plain.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            ends.set()
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            for plain in kept:
                plain.close()
