"""Files and folders that one process at a time locks. A lock ends with its process, however that ends (flock(2)).

Missing files and their folders are made. No child inherits its parent's locks (PEP 446).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(path: Path, taken: Exception) -> Iterator[None]:
    """Holds the lock. Raises `taken` if another process holds it."""
    with _opened(path) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise taken from None
        yield


@contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Waits for the lock, and holds it."""
    with _opened(path) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def is_locked(path: Path) -> bool:
    """True if some process holds the lock."""
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
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)
