"""The processes of a worker's aggregators, as their folders show them."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import suppress
from pathlib import Path

from consilium_core.children import started_at

STARTED = "started-by-worker"  # event in a journal
_NAMED_ERROR = re.compile(rb"error \((\w{1,60})\)")
_TAIL = 4_096  # bytes of a journal


class Started:
    """The last process that a worker started in a task's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = folder / "pid"
        self._began: int | None = None
        try:
            pid, *began = self._file.read_text().split()
            self.pid: int | None = int(pid)
            self._began = int(began[0]) if began and began[0].isdecimal() else None
            self.seconds = max(0.0, time.time() - self._file.stat().st_mtime)
        except (FileNotFoundError, ValueError):
            self.pid, self.seconds = None, 0.0

    @property
    def runs(self) -> bool:
        """True if the process is alive. A zombie, or another process with the same number, does not count.

        Without /proc only the lock shows it.
        """
        return self._began is not None and self._now == self._began

    @property
    def _now(self) -> int | None:
        return None if self.pid is None else started_at(self.pid)

    def ask_to_end(self) -> None:
        if self.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)

    def clear_away(self) -> None:
        """Ends the rest of its session: a killed aggregator leaves a SuperLink, which blocks the next one's port.

        No process gets the number of a group that has members. So the members belong to it, unless another process
        has the number.
        """
        if self.pid is not None and self._now in (None, self._began):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self._file.unlink(missing_ok=True)


def last_error(journal: Path) -> str | None:
    """The name of the error that ended the last process which a worker started; None if it named none."""
    try:
        with journal.open("rb") as file:
            file.seek(max(0, journal.stat().st_size - _TAIL))
            found = _NAMED_ERROR.findall(file.read().rpartition(STARTED.encode())[2])
    except FileNotFoundError:
        return None
    return found[-1].decode() if found else None
