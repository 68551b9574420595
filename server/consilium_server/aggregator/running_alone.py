"""One aggregator to a home: two with one key would publish one round twice, differently."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from consilium_core.locks import alone

from consilium_server.errors import AlreadyConducting

LOCK = "lock"


def conducting_alone(home: Path) -> AbstractContextManager[None]:
    """Holds `home`'s lock, which ends with this process however it ends. Raises AlreadyConducting."""
    return alone(home / LOCK, AlreadyConducting(str(home)))
