"""Chains and artifact stores that the functions here read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from consilium_chain.artifacts.store import ArtifactStore
    from consilium_chain.ledger.ledger import Ledger


def open_chain(rpc: str, address_book: str | Path) -> Ledger:
    """The contracts' client without an account. Raises DeploymentInvalid, ChainUnreachable."""
    from consilium_verify.verification import reader

    return reader(rpc, Path(address_book))


def open_store(artifacts: Sequence[str | Path]) -> ArtifactStore:
    """`artifacts`: folders and URLs, the first that answers. If the first is a folder, it keeps copies from the others.

    Raises ConfigInvalid, MirrorUnsupported.
    """
    from consilium_chain.artifacts.store import ArtifactStore
    from consilium_core.artifacts.backends import parse_locations

    return ArtifactStore(parse_locations(artifacts))
