"""`consilium up` as a process, and what it tells."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
from consilium_chain.rpc.local_node import free_port
from consilium_core.children import child_environment

Fields = dict[str, Any]


class Up:
    """The command's process, and what it tells line by line."""

    def __init__(self, folder: Path, *arguments: str, **variables: str) -> None:
        self.home, self.port, self.chain_port = folder / "up", free_port(), free_port()
        self.address_book = folder / "local.json"
        command = [
            sys.executable, "-m", "consilium_cli.main", "up", "--home", str(self.home), "--port", str(self.port),
            "--chain-port", str(self.chain_port), "--address-book", str(self.address_book), "--hospitals", "3",
            "--voters", "2", "--rounds", "1", *arguments,
        ]  # fmt: skip
        self.errors = folder / "errors"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder, start_new_session=True,
                env=child_environment() | {"OMP_NUM_THREADS": "1"} | variables,
            )  # fmt: skip
        self.told: list[Fields] = []
        self._lines: queue.Queue[str] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._lines.put(line)

    def close(self) -> None:
        """Whatever still runs."""
        if self.process.poll() is None:
            for process in self.family():
                process.kill()
            self.process.kill()
            self.process.wait()
        self._listener.join(10)

    def wait_for(self, event: str, seconds: float = 150, **fields: object) -> Fields:
        """The first such line from here on."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.process.poll() is None, self.errors.read_text()
            try:
                line: Fields = json.loads(self._lines.get(timeout=0.5))
            except queue.Empty:
                continue
            self.told.append(line)
            if line["event"] == event and fields.items() <= line.items():
                return line
        raise AssertionError(f"no {event} {fields} in {seconds} s; {self.told[-12:]}; {self.errors.read_text()}")

    def get(self, path: str) -> Fields:
        answer: Fields = httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=20).raise_for_status().json()
        return answer

    def get_until(self, path: str, **fields: object) -> Fields:
        """The index follows the chain a moment later."""
        end = time.monotonic() + 30
        while not fields.items() <= (answer := self.get(path)).items():
            assert time.monotonic() < end, answer
            time.sleep(0.2)
        return answer

    def family(self, word: str = "") -> list[psutil.Process]:
        """Living processes that it started, and they, whose command line has the word."""
        found = []
        for process in psutil.Process(self.process.pid).children(recursive=True):
            try:
                if word in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.NoSuchProcess:
                continue
        return found


@contextmanager
def up(folder: Path, *arguments: str, **variables: str) -> Iterator[Up]:
    """Ended as by Ctrl-C, by which everything must have ended."""
    running = Up(folder, *arguments, **variables)
    try:
        yield running
        family = running.family()
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(60) == 130, running.errors.read_text()
        assert "Traceback" not in running.errors.read_text()
        _, alive = psutil.wait_procs(family, timeout=15)
        assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
    finally:
        running.close()
