"""One aggregator to a home: two with one key would publish one round twice, differently."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from consilium_chain.locks import take_lock

from consilium_server.errors import AlreadyConducting

LOCK = "lock"


@contextmanager
def conducting_alone(home: Path) -> Iterator[None]:
    """Holds `home`'s lock, which ends with this process however it ends: no child inherits it (PEP 446).

    Raises AlreadyConducting.
    """
    handle = take_lock(home / LOCK)
    if handle is None:
        raise AlreadyConducting(str(home))
    try:
        yield
    finally:
        os.close(handle)
