"""One aggregator to a home: two with one key would publish one round twice, differently."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from consilium_server.errors import AlreadyConducting


@contextmanager
def conducting_alone(home: Path) -> Iterator[None]:
    """Holds `home`'s lock, which ends with this process however it ends. Raises AlreadyConducting."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(home / "lock", os.O_RDWR | os.O_CREAT, 0o600)  # which no child inherits (PEP 446)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyConducting(str(home)) from None
        yield
    finally:
        os.close(handle)
