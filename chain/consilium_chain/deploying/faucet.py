"""The faucet of a local chain: an account with a public key that holds all tokens and ether."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from consilium_core.errors import KeystoreError
from eth_account import Account
from eth_account.signers.local import LocalAccount

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.errors import NotPossible
from consilium_chain.keystore import open_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import CHAIN_ID, FAUCET_KEY
from consilium_chain.tasks.money_spec import TOKEN

GAS_RESERVE = 10**18  # wei that the faucet keeps for gas


@dataclass(frozen=True)
class Balances:
    """`tokens` and `wei` in the smallest units."""

    tokens: int
    wei: int


def given_account(what: str, keystore: Path | None, password_file: Path | None, is_local: bool) -> LocalAccount:
    """The account of a key file; without one on a local chain, the faucet. `what`: for the error.

    Raises KeystoreError.
    """
    if keystore is not None and password_file is not None:
        return open_keystore(keystore, password_file)
    if not is_local or keystore is not None or password_file is not None:
        raise KeystoreError(f"no {what}: pass both --keystore and --password-file")
    account: LocalAccount = Account.from_key(FAUCET_KEY)
    return account


def faucet_ledger(url: str, deployment: Deployment) -> Ledger:
    """The contracts' client of the faucet. Raises ChainUnreachable, DeploymentInvalid and NotPossible (ChainNotLocal)
    for every chain that is not local.
    """
    connection = Connection(url, Account.from_key(FAUCET_KEY))
    if connection.chain_id != CHAIN_ID:
        raise NotPossible("ChainNotLocal", chain_id=connection.chain_id, local=CHAIN_ID)
    return Ledger(connection, deployment)


def fund(faucet: Ledger, account: str, tokens: int, wei: int) -> Balances:
    """Sends amounts in the smallest units, and returns the account's new balances.

    Raises NotPossible (FaucetShort): nothing is sent then.
    """
    held = Balances(faucet.token.balance(faucet.address), max(0, faucet.connection.ether() - GAS_RESERVE))
    if tokens > held.tokens or wei > held.wei:
        raise NotPossible("FaucetShort", tokens=held.tokens // TOKEN, ether=held.wei // TOKEN)
    if tokens:
        faucet.token.transfer(account, tokens)
    if wei:
        faucet.connection.transactions.send_ether(account, wei)
    return Balances(faucet.token.balance(account), faucet.connection.ether_of(account))
