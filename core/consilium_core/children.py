"""Child processes: modules of this project, each an interpreter of its own, or a fork of one that has them loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Protocol

PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "LD_PRELOAD")
_START_TIME = 18  # proc_pid_stat(5): field 22, of which these are the ones from the fourth
# Flower reads the first as it loads.
QUIET_FLOWER = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}


class Child(Protocol):
    """The part of `subprocess.Popen` that this project uses. `stdin` ends with the parent, however that ends."""

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None

    @property
    def returncode(self) -> int | None: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


class Starts(Protocol):
    def __call__(
        self, command: list[str], environment: dict[str, str], output: IO[bytes] | None, errors: IO[bytes] | None
    ) -> Child: ...


def child_environment() -> dict[str, str]:
    """The environment of a child process, without variables that could hold a secret. The paths of libraries are needed
    too, for example a GPU's.
    """
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ} | QUIET_FLOWER


def _anew(command: list[str], environment: dict[str, str], output: IO[bytes] | None, errors: IO[bytes] | None) -> Child:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-m", *command], stdin=pipe, stdout=pipe if output is None else output, stderr=errors,
        env=environment,
    )  # fmt: skip


starts: Starts = _anew
"""Starts all children of this process. The demo replaces it by forks of a process that has the libraries loaded."""


def started_at(pid: int) -> int | None:
    """When a process started, in ticks since the machine did: a later process of the same number differs.

    None if it has ended, or if this system has no /proc.
    """
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state in "ZX" else int(fields[_START_TIME])


def start_module(
    module: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    output: IO[bytes] | None = None,
    errors: IO[bytes] | None = None,
) -> Child:
    """Starts a module as `python -m` does, with a pipe as its standard input.

    `environment`: added to `child_environment`. `output`, `errors`: files for its outputs; by default a pipe, and this
    process's own standard error.
    """
    return starts([module, *arguments], child_environment() | dict(environment or {}), output, errors)
