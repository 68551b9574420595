"""Passes TCP connections on: `python forward.py ADDRESS PORT TO_ADDRESS TO_PORT`."""

from __future__ import annotations

import socket
import sys
import threading
from contextlib import suppress


def pump(source: socket.socket, sink: socket.socket) -> None:
    """Until one of both ends."""
    with suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    for one in (source, sink):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


def both_ways(here: socket.socket, there: socket.socket) -> None:
    def back() -> None:
        pump(there, here)
        here.close()
        there.close()

    threading.Thread(target=pump, args=(here, there), daemon=True).start()
    threading.Thread(target=back, daemon=True).start()


def serve(listening: socket.socket, target: tuple[str, int]) -> None:
    """Until the socket is closed."""
    while True:
        try:
            here, _ = listening.accept()
        except OSError:
            return
        try:
            there = socket.create_connection(target, timeout=10)
        except OSError:
            here.close()
            continue
        there.settimeout(None)
        both_ways(here, there)


if __name__ == "__main__":
    serve(socket.create_server((sys.argv[1], int(sys.argv[2])), reuse_port=False), (sys.argv[3], int(sys.argv[4])))
