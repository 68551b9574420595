"""A terminal: a program that runs in it sees a person's screen and keyboard."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A running program, and all that it has shown, without colours."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._screen, inside = pty.openpty()
        self.process = subprocess.Popen(
            command, stdin=inside, stdout=inside, stderr=inside, cwd=folder, env=environment, start_new_session=True
        )
        os.close(inside)
        self._raw = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while piece := os.read(self._screen, 1 << 16):
                self._raw += piece
        except OSError:
            return  # Linux: the program has closed its side

    @property
    def shown(self) -> str:
        return ESCAPES.sub("", self._raw.decode(errors="replace")).replace("\r", "")

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def wait_for(self, text: str, seconds: float = 120) -> str:
        """Returns all that is shown once the text is."""
        end = time.monotonic() + seconds
        while text not in self.shown:
            assert time.monotonic() < end, self.shown
            assert self.process.poll() is None or text in self.shown, self.shown
            time.sleep(0.05)
        return self.shown

    def wait(self, seconds: float = 180) -> int:
        """Returns the exit code."""
        code = self.process.wait(seconds)
        self._reader.join(10)
        return code

    def close(self) -> None:
        """Ends the program as Ctrl-C does, so that it can end its own children; then by force."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join(10)
        os.close(self._screen)


@contextmanager
def terminal(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Iterator[Terminal]:
    opened = Terminal(command, folder, environment)
    try:
        yield opened
    finally:
        opened.close()
