"""Child processes that never outlive a measurement."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType, TracebackType

from consilium_core.children import child_environment

GRACE = 10.0
ROOT = Path(__file__).resolve().parents[1]


class Child:
    """A module with its arguments, in a session of its own; leaving the context ends it and whatever it started."""

    def __init__(
        self, arguments: Sequence[str], log: Path, environment: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._log = log
        with log.open("ab") as sink:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                env=child_environment() | {"OMP_NUM_THREADS": "1"} | dict(environment),
                start_new_session=True,
                cwd=ROOT,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait(self, seconds: float) -> None:
        """Waits for its end. Raises RuntimeError with its last words unless it ends well and in time."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(f"a child did not end within {seconds:.0f} s; it said: {self._last_words()}") from error
        if code != 0:
            raise RuntimeError(f"a child ended with exit code {code}; it said: {self._last_words()}")

    def _last_words(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").strip().splitlines()[-5:])

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # also what the child left behind in its session
        self._process.wait()
