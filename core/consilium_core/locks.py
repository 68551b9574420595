"""Files that one process at a time holds, and that come free with its end, however it ends (flock(2)).

Files and their folders are made. No child inherits what its parent holds (PEP 446).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(path: Path, taken: Exception) -> Iterator[None]:
    """Holds the lock. Raises `taken` where another does."""
    with _opened(path) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise taken from None
        yield


@contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Holds the lock, once whoever else has it lets go."""
    with _opened(path) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def is_locked(path: Path) -> bool:
    """True if some process holds it."""
    if not path.exists():
        return False
    with _opened(path) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)
