"""Starts processes from one that has loaded their libraries already.

A node's libraries (torch, web3, Flower) take one to three seconds of a core to load, and 100 MB. The starter loads them
once, and forks a child for every process: a session, an account, a home and logs of its own, as if it were started
anew. Children share the pages of the libraries. The starter opens no socket, thread or file of its own besides those to
its owner and to its children, so a child inherits nothing of another.

A child has its own children (relay, SuperLink, provers) started so, too: by the starter of its owner, or by one of its
own if it should live longer than the owner.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
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
from typing import IO, Any

from consilium_core import children
from consilium_core.children import child_environment
from consilium_core.errors import StarterLost

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
LONGEST_REQUEST = 1 << 16  # bytes
LONGEST_COMMAND = 2_000  # bytes of a child's command that `ps` shows
STANDARD_ERROR = 2
ERRORS = "starter.err"


class ForkedChild:
    """A child of the starter: the part of `subprocess.Popen` that `consilium_core.children` names."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes] | None) -> None:
        self.pid = pid
        self.stdin: IO[bytes] | None = stdin
        self.stdout = stdout
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


class Forks:
    """Starts processes through a connection to the starter."""

    def __init__(self, connection: socket.socket, name: str = "") -> None:
        """`name`: of children that get none."""
        self._socket, self._name = connection, name
        self._children: dict[int, ForkedChild] = {}
        self._started: list[int] = []
        self._early: dict[int, int] = {}  # exit codes of those that ended before `start` knew of them
        self._changed = threading.Condition()
        self._starting = threading.Lock()
        self._listener: threading.Thread | None = None
        self._lost = False

    def start(
        self,
        command: list[str],
        environment: dict[str, str],
        output: IO[bytes] | None,
        errors: IO[bytes] | None,
        name: str = "",
        lives_on: bool = False,
    ) -> ForkedChild:
        """Starts a module with its arguments. Raises StarterLost.

        `output`: by default a pipe. `name`: 15 bytes for `ps` and `top`, which then also show the command. `lives_on`:
        longer than this process. Its children belong to its session, and have its name.
        """
        about = {"name": name or self._name, "lives_on": lives_on}
        request = json.dumps({"command": command, "environment": environment | ONE_THREAD, **about}).encode()
        with self._starting, contextlib.ExitStack() as theirs:
            if self._listener is None:  # a fork would not have it
                self._listener = threading.Thread(target=self._listen, daemon=True)
                self._listener.start()
            read_input, write_input = os.pipe()
            theirs.callback(os.close, read_input)
            stdin, stdout = os.fdopen(write_input, "wb"), None
            if output is None:
                reading, writing = os.pipe()
                theirs.callback(os.close, writing)
                stdout = os.fdopen(reading, "rb")
            else:
                writing = output.fileno()
            written = STANDARD_ERROR if errors is None else errors.fileno()
            try:
                socket.send_fds(self._socket, [request], [read_input, writing, written])
            except OSError as error:
                raise _lost(stdin, stdout) from error
            with self._changed:
                self._changed.wait_for(lambda: self._started or self._lost)
                if not self._started:
                    raise _lost(stdin, stdout)
                pid = self._started.pop()
                child = self._children[pid] = ForkedChild(pid, stdin, stdout)
                if pid in self._early:
                    self._children.pop(pid).end(self._early.pop(pid))
        return child

    def _listen(self) -> None:
        while raw := _received(self._socket):
            pid, code = json.loads(raw)
            with self._changed:
                if code is None:
                    self._started.append(pid)
                elif child := self._children.pop(pid, None):
                    child.end(code)
                else:
                    self._early[pid] = code
                self._changed.notify_all()
        with self._changed:
            self._lost = True
            self._changed.notify_all()


def _lost(*pipes: IO[bytes] | None) -> StarterLost:
    for pipe in pipes:
        if pipe is not None:
            pipe.close()
    return StarterLost()


class Starter(Forks):
    """The starter's process. End its children before it, or let them live on."""

    def __init__(self, folder: Path, preloaded: Sequence[str]) -> None:
        """`folder`: for its own errors. `preloaded`: modules, and functions to call, as `module:function`."""
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other, (folder / ERRORS).open("wb") as errors:
            self._process = subprocess.Popen(
                [
                    sys.executable, "-m", "consilium_core.starter", str(other.fileno()),
                    str(folder).ljust(LONGEST_COMMAND), *preloaded,
                ],
                stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, pass_fds=[other.fileno()],
                env=child_environment() | ONE_THREAD, start_new_session=True,
            )  # fmt: skip
        super().__init__(own)

    def close(self) -> None:
        """Ends the process. Children go on."""
        self._process.terminate()
        self._process.wait()
        self._socket.close()

    def __enter__(self) -> Starter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(LONGEST_REQUEST)
    except OSError:
        return b""


class _Server:
    """The starter's side. `askers`: the connection that asked for each running child, by its process id."""

    def __init__(self, owner: socket.socket, of_child: bool = False) -> None:
        """`of_child`: the owner is a child, and its children stay in its session."""
        self._owner, self._of_child = owner, of_child
        self._askers: dict[int, socket.socket] = {}
        self._ends, self._wakes = os.pipe()
        os.set_blocking(self._wakes, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakes)
        self._selector = selectors.DefaultSelector()
        self._selector.register(owner, selectors.EVENT_READ)
        self._selector.register(self._ends, selectors.EVENT_READ)

    def serve(self) -> list[str]:
        """Forks on request and reports ends. Returns the command in each child; in the starter, empty at the end."""
        while True:
            for key, _ in self._selector.select():
                asker = key.fileobj
                if not isinstance(asker, socket.socket):
                    os.read(self._ends, 1 << 12)
                    self._report_ended()
                    continue
                raw, descriptors = _request(asker)
                if raw and (command := self._start(asker, raw, descriptors)):
                    return command
                if not raw:
                    self._selector.unregister(asker)
                    asker.close()
                    if asker is self._owner:
                        return []

    def _start(self, asker: socket.socket, raw: bytes, descriptors: list[int]) -> list[str] | None:
        """None in the starter."""
        ours = theirs = None
        request = json.loads(raw)
        if asker is self._owner and not self._of_child and not request["lives_on"]:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._selector.register(ours, selectors.EVENT_READ)
        pid = os.fork()
        if not pid:
            self._close()
            if not self._of_child:
                os.setsid()
            return _become(request, descriptors, theirs)
        for descriptor in descriptors:
            os.close(descriptor)
        if theirs is not None:
            theirs.close()
        self._askers[pid] = asker
        _tell(asker, pid, None)
        return None

    def _report_ended(self) -> None:
        """One signal can stand for many ends."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                _tell(self._askers.pop(ended[0]), ended[0], os.waitstatus_to_exitcode(ended[1]))

    def _close(self) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()
        os.close(self._ends)
        os.close(self._wakes)


def _request(asker: socket.socket) -> tuple[bytes, list[int]]:
    """Empty at the end of the asker."""
    try:
        raw, descriptors, *_ = socket.recv_fds(asker, LONGEST_REQUEST, 3)
    except ConnectionError:
        return b"", []
    return raw, descriptors


def _tell(asker: socket.socket, pid: int, code: int | None) -> None:
    with contextlib.suppress(OSError):  # it ended before
        asker.send(json.dumps([pid, code]).encode())


def _become(request: dict[str, Any], descriptors: list[int], starter: socket.socket | None) -> list[str]:
    """Makes this process one of its own: environment, input and outputs. `starter`: for its own children."""
    for standard, given in enumerate(descriptors):
        os.dup2(given, standard)
        os.close(given)
    os.environ.clear()
    os.environ.update(request["environment"])
    if request["name"]:
        _show(request["name"], request["command"])
    if request["lives_on"]:
        starter, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if not os.fork():
            starter.close()
            if request["name"]:
                _show(request["name"], ["consilium_core.starter"])
            return _Server(other, of_child=True).serve()
        other.close()
    if starter is not None:
        children.starts = Forks(starter, request["name"]).start
    return list(request["command"])


def _show(name: str, command: list[str]) -> None:
    """Writes both over this process's own, for `ps`: proc_pid_comm(5), and proc_pid_stat(5), fields 48 and 49."""
    with contextlib.suppress(OSError):  # a system without /proc
        Path("/proc/self/comm").write_text(name)
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(fields[45]), int(fields[46])
        words = " ".join([sys.executable, "-m", *command]).encode()[: end - start - 2]
        if start:  # without a zero byte as the last one, Linux shows a text up to the first
            ctypes.memmove(start, words.ljust(end - start - 1, b"\0") + b"+", end - start)


class _Ending:
    """Ends this process without the interpreter's own tidying, which touches, and so copies, all pages of the starter:
    200 MB in each child, of all children at once. Threads and exit handlers have ended before.
    """

    def __init__(self) -> None:
        self.code = 0
        atexit.register(self.end)  # before any library: the first handler is called last

    def run(self, command: list[str]) -> None:
        self.code = 1
        sys.modules.pop(command[0], None)  # it may be loaded, and runpy would warn of that
        try:
            runpy.run_module(command[0], run_name="__main__", alter_sys=True)
            self.code = 0
        except SystemExit as asked:
            self.code = asked.code if isinstance(asked.code, int) else int(asked.code is not None)
            raise

    def end(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # its reader is gone, or it is closed
                stream.flush()
        os._exit(self.code)


def main() -> None:
    ending = _Ending()
    connection = socket.socket(fileno=int(sys.argv[1]))
    for name in sys.argv[3:]:
        module, _, function = name.partition(":")
        loaded = importlib.import_module(module)
        if function:
            getattr(loaded, function)()
    gc.freeze()  # a collection in a child would touch, and so copy, all pages of the starter
    if command := _Server(connection).serve():
        sys.argv = list(command)
        ending.run(command)


if __name__ == "__main__":
    main()
