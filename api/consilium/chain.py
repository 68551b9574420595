"""Chains: a local one with the contracts deployed, its faucet, and the deployment to another one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC

if TYPE_CHECKING:
    from consilium_chain.deploying.address_book import Deployment
    from consilium_chain.deploying.faucet import Balances
    from consilium_chain.deploying.plan import Survey


class LocalChain:
    """A local chain with the contracts deployed, as a child process. Its account with all tokens needs no key file.

    Examples:
        with LocalChain(address_book="book.json") as chain:
            operator = Operator(chain.url, chain.address_book)
    """

    def __init__(self, port: int | None = None, address_book: str | Path = LOCAL_ADDRESS_BOOK) -> None:
        """`port`: on loopback, by default a free one. `address_book`: the file to write; its folder is made.

        Raises LocalNodeError.
        """
        from consilium_chain.deploying.address_book import deploy
        from consilium_chain.rpc.connection import Connection
        from consilium_chain.rpc.local_node import FAUCET_KEY, LocalNode
        from eth_account import Account

        self.address_book = Path(address_book)
        self._node = LocalNode(port, stands=True)
        try:
            deployment = deploy(Connection(self._node.url, Account.from_key(FAUCET_KEY)))
            self.address_book.parent.mkdir(parents=True, exist_ok=True)
            deployment.write(self.address_book)
        except BaseException:
            self.stop()
            raise
        self.url, self.chain_id = self._node.url, deployment.chain_id

    def fund(self, account: str, tokens: int, ether: int = 10) -> Balances:
        """As `fund_account`."""
        return fund_account(account, tokens, ether, rpc=self.url, address_book=self.address_book)

    def wait(self) -> None:
        """Until the process ends."""
        self._node.process.wait()

    def stop(self) -> None:
        """Ends the process. Its contents are lost."""
        self._node.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


def checked_address(text: str) -> str:
    """An account's address with capital letters as in EIP-55.

    Raises NotPossible (AddressMalformed; AddressMistyped, if its capital letters do not match).
    """
    from consilium_chain.addresses import checked_address

    return checked_address(text)


def fund_account(
    account: str,
    tokens: int,
    ether: int = 10,
    *,
    rpc: str = LOCAL_RPC,
    address_book: str | Path = LOCAL_ADDRESS_BOOK,
) -> Balances:
    """Sends whole tokens and ether from a local chain's faucet. Returns the account's balances, in the smallest units.

    Raises NotPossible (ChainNotLocal, FaucetShort, AddressMalformed, AddressMistyped), ChainUnreachable,
    DeploymentInvalid.
    """
    from consilium_chain.deploying import faucet
    from consilium_chain.deploying.address_book import Deployment
    from consilium_core.units import WEI_PER_ETHER

    giver = faucet.faucet_ledger(rpc, Deployment.read(Path(address_book)))
    return faucet.fund(giver, checked_address(account), tokens * WEI_PER_ETHER, ether * WEI_PER_ETHER)


def deploy(
    network: str,
    *,
    networks: str | Path | None = None,
    keystore: str | Path | None = None,
    password_file: str | Path | None = None,
    address_book: str | Path | None = None,
    verification_dir: str | Path | None = None,
    dry_run: bool = False,
    on_survey: Callable[[Survey], None] = lambda survey: None,
    confirm: Callable[[Survey], bool] = lambda survey: True,
    on_step: Callable[[str], None] = lambda step: None,
) -> Deployment | None:
    """Deploys the contracts, verifies them and writes the address book. A second call continues an interrupted one.

    `networks`: a file, by default the one that ships with this package. `keystore`, `password_file`: of the paying
    account; not needed on the local chain. `address_book`: by default `book_of(network)`. `verification_dir`: for the
    files by which block explorers verify sources. `on_survey` gets steps and cost; then `confirm` is asked, if anything
    is to be paid on another chain than the local one. A `dry_run` ends before, and returns None.

    Raises ConfigInvalid, KeystoreError, DeployFailed, Refused, TransactionRejected, ChainUnreachable.
    """
    from consilium_chain.deploying.faucet import given_account
    from consilium_chain.deploying.journal import locked
    from consilium_chain.deploying.networks import pick_network, read_networks
    from consilium_chain.deploying.node import DeployNode
    from consilium_chain.deploying.run import Deploying, write_sources
    from consilium_chain.errors import DeployFailed

    file, key, password = (None if path is None else Path(path) for path in (networks, keystore, password_file))
    terms = pick_network(read_networks(file), network)
    book = Path(address_book or book_of(network))
    node = DeployNode(terms.endpoint(), given_account("account to deploy from", key, password, terms.is_local))
    with locked(book.parent):
        deploying = Deploying.begin(node, network, terms, book)
        survey = deploying.survey()
        on_survey(survey)
        survey.check()
        if dry_run:
            return None
        if survey.gas and not terms.is_local and not confirm(survey):
            raise DeployFailed("NotConfirmed")
        deployment = deploying.carry_out(on_step)
        if verification_dir is not None:
            write_sources(Path(verification_dir), deploying)
        return deployment


def book_of(network: str) -> Path:
    """The usual address book of a network: .consilium/NETWORK.json."""
    return Path(".consilium") / f"{network}.json"
