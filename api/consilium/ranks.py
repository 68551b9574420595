"""An arena's ranks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC

from consilium.sources import open_chain

if TYPE_CHECKING:
    from consilium_operators.arena import Arena


def arena(task: int, *, rpc: str = LOCAL_RPC, address_book: str | Path = LOCAL_ADDRESS_BOOK) -> Arena:
    """An arena's trainers with their ranks, gains and pay, the one that earned most first.

    Raises OperatorError (NotAnArena), Refused (TaskUnknown), ChainUnreachable, DeploymentInvalid.
    """
    from consilium_operators.arena import arena_of

    return arena_of(open_chain(rpc, address_book), task)
