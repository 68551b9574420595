"""The account to which a node's own stake and rewards are paid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consilium_chain.addresses import checked_address
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.deploying.faucet import given_account
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.withdrawal import WithdrawalAddress
from consilium_chain.rpc.connection import Connection
from consilium_client.errors import ConsentError

from consilium.node import Node
from consilium.node_results import agree

__all__ = ["Change", "WithdrawalAddress", "set_withdrawal_address", "withdrawal_address"]


@dataclass(frozen=True)
class Change:
    """The address that is to be paid, that of now, and the seconds until a change of it counts; 0 for the first."""

    address: str
    present: WithdrawalAddress
    delay: int


def withdrawal_address(node: Node[Any]) -> WithdrawalAddress:
    return node._ledger.withdrawal.of(node.account, node._home.role)


def set_withdrawal_address(
    node: Node[Any],
    address: str,
    *,
    keystore: str | Path | None = None,
    password_file: str | Path | None = None,
    confirm: Callable[[Change], bool] = agree,
) -> WithdrawalAddress:
    """Sets the account that gets this node's own stake and rewards. The first counts at once, and for good: afterwards
    only that account changes it, after the unbonding period. The present address takes back an announced change.

    `keystore`, `password_file`: of the present withdrawal address; not needed for the first one. Raises ConsentError
    (NotConfirmed), NotPossible (AddressMalformed, AddressMistyped), KeystoreError, Refused (OnlyWithdrawalAddress,
    WithdrawalAddressInvalid).
    """
    to, role, present = checked_address(address), node._home.role, withdrawal_address(node)
    delay = 0 if present.current in (None, to) else node._ledger.staking.unbonding_period()
    if not confirm(Change(to, present, delay)):
        raise ConsentError("NotConfirmed", about="this node's withdrawal address")
    ledger = node._signing
    if keystore is not None:
        own = node.settings
        key, password = Path(keystore), None if password_file is None else Path(password_file)
        account = given_account("key of the withdrawal address", key, password, is_local=False)
        ledger = Ledger(Connection(own.chain_url, account), Deployment.read(own.deployment), own.relays)
    ledger.withdrawal.set(node.account, role, to)
    return withdrawal_address(node)
