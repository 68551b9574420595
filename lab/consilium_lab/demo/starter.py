"""Starts the demo's processes from one that has loaded the libraries already.

A node's libraries (torch, web3, Flower) take one to three seconds of a core to load. The starter loads them once, and
forks a child for every process: a session, an account, a home and logs of its own, as if it were started anew. It
opens no socket, thread or file of its own besides the one to the demo, so a child inherits nothing of another.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from consilium_chain.rpc.local_node import child_environment
from consilium_zk import kzg

from consilium_lab.errors import LabError

PRELOADED = (
    "consilium_cli.main", "consilium_client.hospital.node", "consilium_client.voter.node", "consilium_client.models",
    "consilium_server.aggregator.node",
)  # fmt: skip
LONGEST_REQUEST = 1 << 16  # bytes


class ForkedChild:
    """A child of the starter: the part of `subprocess.Popen` that `Processes` uses."""

    def __init__(self, pid: int, stdout: IO[str]) -> None:
        self.pid, self.stdout = pid, stdout
        self.returncode: int | None = None
        self._ended = threading.Event()

    def end(self, code: int) -> None:
        self.returncode = code
        self._ended.set()

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if not self._ended.wait(timeout) or self.returncode is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return self.returncode

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class Starter:
    """Starts processes as forks of one. End them before it. `logs`: the folder of its own errors."""

    def __init__(self, logs: Path) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        self._children: dict[int, ForkedChild] = {}
        self._started: list[int] = []
        self._changed = threading.Condition()
        self._lost = False
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other, (logs / "starter.err").open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "consilium_lab.demo.starter", str(other.fileno()), str(logs)],
                stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, pass_fds=[other.fileno()],
                env=child_environment() | {"OMP_NUM_THREADS": "1"}, start_new_session=True,
            )  # fmt: skip
        threading.Thread(target=self._listen, daemon=True).start()

    def start(self, command: Sequence[str], errors: IO[bytes]) -> ForkedChild:
        """Starts a module with its arguments. Raises LabError (StarterLost)."""
        reading, writing = os.pipe()
        try:
            request = json.dumps(command).encode()
            socket.send_fds(self._socket, [request], [writing, errors.fileno()])
        except OSError as error:
            os.close(reading)
            raise LabError("StarterLost", code=self._process.poll()) from error
        finally:
            os.close(writing)
        with self._changed:
            self._changed.wait_for(lambda: self._started or self._lost)
            if not self._started:
                os.close(reading)
                raise LabError("StarterLost", code=self._process.poll())
            pid = self._started.pop()
            child = self._children[pid] = ForkedChild(pid, os.fdopen(reading, encoding="utf-8", errors="replace"))
        return child

    def _listen(self) -> None:
        while raw := _received(self._socket):
            pid, code = json.loads(raw)
            with self._changed:
                if code is None:
                    self._started.append(pid)
                elif child := self._children.pop(pid, None):
                    child.end(code)
                self._changed.notify_all()
        with self._changed:
            self._lost = True
            self._changed.notify_all()

    def __enter__(self) -> Starter:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # it ended before
            self._socket.shutdown(socket.SHUT_RDWR)
        self._process.wait()
        self._socket.close()


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(LONGEST_REQUEST)
    except OSError:
        return b""


def _serve(connection: socket.socket) -> list[str]:
    """Forks on request and reports ends. Returns the command in each child; in the starter, empty at the end."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing)
    selector = selectors.DefaultSelector()
    selector.register(connection, selectors.EVENT_READ)
    selector.register(reading, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj == reading:
                os.read(reading, 1 << 12)
                _report_ended(connection)
                continue
            raw, descriptors, *_ = socket.recv_fds(connection, LONGEST_REQUEST, 2)
            if not raw:
                return []
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                selector.close()
                os.close(reading)
                os.close(writing)
                connection.close()
                _become_leader(*descriptors)
                return [str(part) for part in json.loads(raw)]
            for descriptor in descriptors:
                os.close(descriptor)
            connection.send(json.dumps([pid, None]).encode())


def _report_ended(connection: socket.socket) -> None:
    """One signal can stand for many ends."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            connection.send(json.dumps([ended[0], os.waitstatus_to_exitcode(ended[1])]).encode())


def _become_leader(stdout: int, stderr: int) -> None:
    """Starts a session of its own, with the given outputs."""
    os.setsid()
    for given, standard in ((stdout, 1), (stderr, 2)):
        os.dup2(given, standard)
        os.close(given)


def main() -> None:
    connection = socket.socket(fileno=int(sys.argv[1]))
    for name in PRELOADED:
        importlib.import_module(name)
    kzg.setup()  # 1.7 seconds of a core, for all who commit
    gc.freeze()  # a collection in a child would touch, and so copy, all pages of the starter
    if command := _serve(connection):
        sys.argv = list(command)
        runpy.run_module(command[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
