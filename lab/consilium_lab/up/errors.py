"""Errors of `consilium up`.

UpError
└── NetworkNotUp    a process of the network ended, or did not answer, while it started
"""

from __future__ import annotations

from pathlib import Path


class UpError(Exception):
    """Root of the standing network's errors."""


class NetworkNotUp(UpError):
    def __init__(self, process: str, code: int | None, error: str, logs: Path) -> None:
        ended = "does not answer" if code is None else f"ended with exit code {code} while starting"
        super().__init__(f"{process} {ended}: {error}; its journal and its errors are in {logs}")
