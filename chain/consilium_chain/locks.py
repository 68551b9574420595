"""Files that one process at a time holds, and that come free with its end, however it ends (flock(2))."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def take_lock(path: Path) -> int | None:
    """A handle, which holds the lock until it is closed; None where another has it. File and folder are made."""
    handle = _opened(path)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except BaseException:
        os.close(handle)
        raise
    return handle


@contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Holds the lock, once whoever else has it lets go. File and folder are made."""
    handle = _opened(path)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def is_locked(path: Path) -> bool:
    """Whether anybody holds it."""
    if not path.exists():
        return False
    handle = take_lock(path)
    if handle is None:
        return True
    os.close(handle)
    return False


def _opened(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
