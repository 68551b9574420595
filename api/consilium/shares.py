"""Parts of finished models, and the money that they bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC

from consilium.account import Account
from consilium.chain import checked_address
from consilium.sources import open_chain, open_store

if TYPE_CHECKING:
    from consilium_operators.selling import TaskShares


def task_shares(task: int, *, rpc: str = LOCAL_RPC, address_book: str | Path = LOCAL_ADDRESS_BOOK) -> TaskShares:
    """A task's terms of sale, the holders of its parts, and all that was ever paid to them.

    Raises Refused (TaskUnknown), ChainUnreachable, DeploymentInvalid.
    """
    from consilium_operators.selling import shares_of

    return shares_of(open_chain(rpc, address_book), task)


class Shares(Account):
    """The parts of models, as one account mints, pays and claims them. `task_shares` reads them without an account.

    Amounts are in the token's smallest unit.
    """

    def mint(
        self, task: int, *, artifacts: Sequence[str | Path], on_page: Callable[[int], None] = lambda page: None
    ) -> TaskShares:
        """Mints the parts of an ended task. Anybody may, once.

        `artifacts`: folders and URLs that have the task's file. `on_page` gets the number of each transaction of a
        large task. Raises OperatorError (NotForSale, TaskNotEnded), StoreMissing, Refused (NothingEarned).
        """
        from consilium_operators.selling import mint

        return mint(self._ledger, open_store(artifacts), task, on_page)

    def pay(self, task: int, amount: int) -> TaskShares:
        """Pays the holders of a task's parts. Raises Refused (NotMinted, AmountIsZero)."""
        from consilium_operators.selling import pay

        return pay(self._ledger, task, amount)

    def till(self, task: int, server: str | None = None) -> str:
        """The address to which buyers pay for predictions by the task's model. `server`: the account that serves it, by
        default this one. Raises NotPossible (AddressMalformed, AddressMistyped).
        """
        return self._ledger.shares.till_of(task, self._server(server))

    def split(self, task: int, server: str | None = None) -> tuple[int, int]:
        """Empties a till: the server gets its percent, and the parts' holders the rest. Anybody may. Returns the amount
        and the server's fee of it. Raises NotPossible (AddressMalformed, AddressMistyped), Refused (NotMinted,
        AmountIsZero).
        """
        return self._ledger.shares.split(task, self._server(server))

    def _server(self, given: str | None) -> str:
        return self.address if given is None else checked_address(given)

    def claim(self, task: int) -> int:
        """Pays out this account's money of a task, and returns it. Raises Refused (NothingToClaim)."""
        from consilium_operators.selling import claim

        return claim(self._ledger, task)

    def claim_for_nodes(self, task: int) -> int:
        """Hands the money of all nodes of a task over to their pools, where owner and delegators share it. Returns it.

        Anybody may.
        """
        from consilium_operators.selling import claim_for_nodes

        return claim_for_nodes(self._ledger, task)

    def close(self, task: int, server: str) -> None:
        """Begins to close this account's channel with a server, which then has a day to redeem. Raises NotPossible
        (AddressMalformed, AddressMistyped).
        """
        self._ledger.channels.close(task, checked_address(server))

    def withdraw(self, task: int, server: str) -> int:
        """Takes the rest of a channel, a day after `close`. Returns it. Raises Refused (ChannelOpen), NotPossible
        (AddressMalformed, AddressMistyped).
        """
        channels, chosen = self._ledger.channels, checked_address(server)
        channel = channels.of(task, chosen, self.address)
        channels.withdraw(task, chosen)
        return channel.deposited - channel.redeemed
