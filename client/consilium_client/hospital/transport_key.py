"""The file of a hospital's Flower node key. The key signs requests to a SuperLink, and joining. It moves no money."""

from __future__ import annotations

from pathlib import Path

from consilium_chain.errors import TransportKeyMalformed
from consilium_chain.transport_keys import TransportKey

from consilium_client.errors import TransportKeyError


def make_transport_key(path: Path) -> None:
    """Writes a new key, readable by its owner alone, and its public half beside it."""
    TransportKey.generate().write(path)


def read_transport_key(path: Path) -> TransportKey:
    """Raises TransportKeyInvalid."""
    try:
        return TransportKey.read(path)
    except (OSError, TransportKeyMalformed) as error:
        raise TransportKeyError("TransportKeyInvalid", path=path, why=error) from error


def transport_public_key(path: Path) -> bytes:
    """The public half of the key in a file, as on chain: 64 bytes. Raises TransportKeyInvalid."""
    return read_transport_key(path).public
