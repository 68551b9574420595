"""Files that one process at a time holds, and that come free with its end, however it ends (flock(2))."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def take_lock(path: Path, wait: bool = False) -> int | None:
    """A handle, which holds the lock until it is closed; None where another has it. The file and its folder are made.

    `wait`: until the other one lets go.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        os.close(handle)
        return None
    except BaseException:
        os.close(handle)
        raise
    return handle


def is_locked(path: Path) -> bool:
    """Whether anybody holds it."""
    if not path.exists():
        return False
    handle = take_lock(path)
    if handle is None:
        return True
    os.close(handle)
    return False
