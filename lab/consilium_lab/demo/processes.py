"""Child processes. Each runs in its own session, its log is read line by line, and it always ends."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from consilium_core.children import Child, child_environment
from consilium_core.starter import Starter

PRELOADED = (
    "consilium_cli.main", "consilium_client.hospital.node", "consilium_client.voter.node", "consilium_client.models",
    "consilium_server.aggregator.node", "consilium_server.flower.bounded_superlink", "consilium_client.relay.app",
    "flwr.supernode.cli.flower_supernode", "flwr.supernode.runtime.run_clientapp", "consilium_chain.rpc.cell_proofs",
    "consilium_zk.kzg:setup",  # 1.7 seconds of a core, for all that commit
)  # fmt: skip
GRACE = 8.0  # seconds between asking a process to end and ending it


@dataclass(frozen=True)
class Line:
    """A line of a process's log."""

    process: str
    fields: dict[str, Any]


class Processes:
    """Children by name. The end of the context ends all of them, and their own children."""

    def __init__(self, logs: Path, starter: Starter | None = None) -> None:
        """`starter`: starts them sooner, with libraries that it has loaded."""
        self._logs, self._starter = logs, starter
        self._children: dict[str, Child] = {}
        self._commands: dict[str, tuple[str, ...]] = {}
        self._servers: set[str] = set()
        self._lines: queue.Queue[Line] = queue.Queue()
        logs.mkdir(parents=True, exist_ok=True)

    def serve(self, name: str, module: str, *arguments: str) -> None:
        """Starts a child that does not end by itself."""
        self._servers.add(name)
        self.start(name, module, *arguments)

    def start(self, name: str, module: str, *arguments: str) -> None:
        self._commands[name] = (module, *arguments)
        self._start(name)

    def again(self, name: str) -> None:
        """Starts a child again that has ended."""
        _signal_group(self._children[name], signal.SIGKILL)  # its own children
        self._start(name)

    def _start(self, name: str) -> None:
        with (self._logs / f"{name}.err").open("ab") as errors:
            if self._starter is not None:
                child: Child = self._starter.start([*self._commands[name]], child_environment(), None, errors)
            else:
                child = _started_anew(self._commands[name], errors)
        if child.stdin is not None:
            child.stdin.close()  # none of them reads it
        self._children[name] = child
        threading.Thread(target=self._listen, args=(name, child), daemon=True).start()

    def _listen(self, name: str, child: Child) -> None:
        if child.stdout is None:
            return
        with (self._logs / f"{name}.jsonl").open("a") as journal, child.stdout as lines:
            for raw in lines:
                text = raw.decode(errors="replace")
                journal.write(text)
                journal.flush()
                try:
                    self._lines.put(Line(name, json.loads(text)))
                except json.JSONDecodeError:
                    continue  # a library printed it: the file keeps it

    def lines(self) -> list[Line]:
        """Log lines since the last call."""
        found = []
        while True:
            try:
                found.append(self._lines.get_nowait())
            except queue.Empty:
                return found

    def ended_badly(self) -> dict[str, int]:
        """Exit codes of the children that have ended with an error."""
        codes = {name: child.poll() for name, child in self._children.items()}
        return {name: code for name, code in codes.items() if code}

    def lost(self) -> dict[str, int]:
        """Exit codes of the children that have ended with an error, or that should not end at all."""
        return self.ended_badly() | {name: 0 for name in self._servers if self._children[name].poll() == 0}

    def is_server(self, name: str) -> bool:
        """True for a child that does not end by itself."""
        return name in self._servers

    def running(self) -> list[str]:
        return [name for name, child in self._children.items() if child.poll() is None]

    def kill(self, name: str) -> None:
        """Kills only the child, at once. Its own children go on."""
        child = self._children.pop(name)
        child.kill()
        child.wait()

    def forget(self, name: str) -> None:
        """Kills a child and its own children, at once and for ever."""
        child = self._children.pop(name)
        _signal_group(child, signal.SIGKILL)
        child.wait()

    def end(self, name: str, seconds: float) -> int:
        """Asks a child to end, and waits so long. Returns its exit code."""
        child = self._children.pop(name)
        child.terminate()
        return child.wait(seconds)

    def wait(self, seconds: float) -> list[str]:
        """Waits for the children that end by themselves. Returns those that have not ended."""
        end = time.monotonic() + seconds
        while (left := [name for name in self.running() if name not in self._servers]) and time.monotonic() < end:
            time.sleep(0.05)
        return left

    def errors_of(self, name: str) -> str:
        """The last line that a child wrote to standard error."""
        lines = (self._logs / f"{name}.err").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it wrote no error"

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children.values():
            if child.poll() is None:
                child.terminate()
        self._servers.clear()  # they end now
        self.wait(GRACE)
        for child in self._children.values():
            _signal_group(child, signal.SIGKILL)  # also its own children
            child.wait()


def _started_anew(command: Sequence[str], errors: IO[bytes]) -> Child:
    return subprocess.Popen(
        [sys.executable, "-m", *command],
        stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL,
        env=child_environment() | {"OMP_NUM_THREADS": "1"}, start_new_session=True,
    )  # fmt: skip


def _signal_group(child: Child, number: signal.Signals) -> None:
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        return  # all gone
