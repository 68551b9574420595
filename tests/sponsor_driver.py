"""A sponsor's service over HTTPS, in the test's own process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from consilium_chain.sponsoring.batches import Sponsor
from consilium_server.certificates import ensure_certificates
from starlette.types import ASGIApp


@contextmanager
def served(app: ASGIApp, folder: Path) -> Iterator[Sponsor]:
    """The app over HTTPS on a free port, until the block ends."""
    certificates = ensure_certificates(folder / "tls")
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, log_level="warning", ws="none", ssl_certfile=certificates.certificate, ssl_keyfile=certificates.key
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        yield Sponsor(f"https://127.0.0.1:{listening.getsockname()[1]}", certificates.authority)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
