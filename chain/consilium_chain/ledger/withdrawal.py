"""The accounts to which the staking contract pays what it owes to nodes' owners."""

from __future__ import annotations

from dataclasses import dataclass

from consilium_chain.ledger.contracts import Contracts
from consilium_chain.ledger.staking import NO_COMMISSION, NOBODY, Staking
from consilium_chain.ledger.structs import Role


@dataclass(frozen=True)
class WithdrawalAddress:
    """`current`: the account that is paid; None if that is the node. `next` takes its place at `next_at`, in seconds of
    the chain; None if no change is announced.
    """

    current: str | None
    next: str | None
    next_at: int


class WithdrawalAddresses:
    def __init__(self, contracts: Contracts, staking: Staking) -> None:
        self._contracts, self._staking, self._nodes = contracts, contracts.staking, staking

    def of(self, node: str, role: Role) -> WithdrawalAddress:
        current, next_at, next_ = self._staking.read("withdrawalAddressOf", node, role)
        return WithdrawalAddress(_known(current), _known(next_), next_at)

    def payee(self, node: str, role: Role) -> str:
        """The account that gets the node's own stake and rewards now."""
        return self.of(node, role).current or node

    def set(self, node: str, role: Role, to: str) -> None:
        """Sets a node's first address, which counts at once, or announces a change. The present address takes back an
        announced change. A first address of this account registers it as a node, if it is none.

        Raises Refused (OnlyWithdrawalAddress, WithdrawalAddressInvalid, NodeUnknown).
        """
        calls = [self._staking.function("setWithdrawalAddress", node, role, to)]
        if node == self._contracts.address and not self._nodes.is_registered(node, role):
            calls.insert(0, self._staking.function("register", role, NO_COMMISSION, 0))
        self._contracts.connection.transactions.send_all(calls)


def _known(address: str) -> str | None:
    return None if address == NOBODY else address
