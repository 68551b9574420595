"""One account's connection to one chain node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eth_account.signers.local import LocalAccount
from eth_typing import ChecksumAddress
from web3 import Web3
from web3.contract.contract import Contract, ContractFunction
from web3.exceptions import BadFunctionCallOutput, ContractCustomError, ContractLogicError
from web3.types import TxParams

from consilium_chain.errors import DeploymentInvalid
from consilium_chain.rpc.abi import ContractName, contract_artifact
from consilium_chain.rpc.blocks import Blocks, Fees
from consilium_chain.rpc.endpoint import Endpoint
from consilium_chain.rpc.logs import Logs
from consilium_chain.rpc.reverts import refused
from consilium_chain.rpc.signing import Signing
from consilium_chain.rpc.transactions import Transactions


class Connection:
    """Reads contracts and balances; its parts read blocks, fees and events, and send transactions.

    Without an account it can only read.
    """

    def __init__(self, url: str | Sequence[str], account: LocalAccount | None = None) -> None:
        """`url`: as an Endpoint's. Raises ChainUnreachable."""
        self.account = account
        self.endpoint = Endpoint(url)
        self.blocks = Blocks(self.endpoint)
        self.fees = Fees(self.endpoint, self.blocks)
        self.logs = Logs(self.endpoint, self.blocks)
        self.signing = Signing(self.endpoint, account, self.fees)
        self.transactions = Transactions(self.endpoint, self.signing, self.fees)

    @property
    def web3(self) -> Web3:
        return self.endpoint.web3

    @property
    def chain_id(self) -> int:
        return self.endpoint.chain_id

    @property
    def shown_url(self) -> str:
        """The URL as errors and screens may show it."""
        return self.endpoint.shown_url

    @property
    def address(self) -> ChecksumAddress:
        return self.signing.address

    @property
    def signer(self) -> LocalAccount:
        return self.signing.signer

    def contract(self, name: ContractName, address: str) -> Contract:
        artifact = contract_artifact(name)
        return self.web3.eth.contract(address=Web3.to_checksum_address(address), abi=artifact.abi)

    def call(self, function: ContractFunction, block: int | None = None) -> Any:
        """Reads, as of a block or the latest.

        Raises Refused, ChainUnreachable, DeploymentInvalid if no such contract is there.
        """
        try:
            sender: TxParams = {"from": self.account.address} if self.account else {}
            function._encode_transaction_data()  # raises for wrong arguments, which are not the node's fault
            with self.endpoint.reading():
                return function.call(sender, block_identifier="latest" if block is None else block)
        except (ContractCustomError, ContractLogicError) as error:
            raise refused(error, function.fn_name) from error
        except BadFunctionCallOutput as error:
            raise DeploymentInvalid(
                f"no contract at {function.address} answers {function.fn_name}: the address book is not of the chain at"
                f" {self.shown_url}, or that chain was started anew; deploy again, or pass the right address book"
            ) from error

    def answer(self, contract: str, data: str, block: int | None = None) -> object:
        """A contract's answer to a read, undecoded; None for a revert. Raises ChainUnreachable."""
        request = {"to": contract, "data": data} | ({"from": self.account.address} if self.account else {})
        return self.endpoint.answer("eth_call", request, "latest" if block is None else hex(block)).get("result")

    def ether(self) -> int:
        """This account's balance, in wei. Raises ChainUnreachable."""
        return self.ether_of(self.address)

    def ether_of(self, account: str) -> int:
        """An account's balance, in wei. Raises ChainUnreachable."""
        with self.endpoint.reading():
            return int(self.web3.eth.get_balance(Web3.to_checksum_address(account)))
