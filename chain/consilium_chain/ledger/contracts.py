"""The deployed contracts, as one account's connection calls them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eth_abi.exceptions import EncodingError
from web3.contract.contract import ContractFunction

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.rpc.abi import ContractName
from consilium_chain.rpc.calls import NamedCall, named_call
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.event_logs import MALFORMED
from consilium_chain.rpc.outgoing import Receipt, Sending
from consilium_chain.rpc.reads import Read
from consilium_chain.sponsoring.batches import Call


class ContractClient:
    """One deployed contract, called by the names in its ABI.

    Every method raises web3's ABIFunctionNotFound for a name that the ABI lacks.
    """

    def __init__(self, connection: Connection, name: ContractName, address: str) -> None:
        self._connection = connection
        self.contract = connection.contract(name, address)
        self._reads: dict[str, Read] = {}

    def function(self, name: str, *arguments: Any) -> ContractFunction:
        return self.contract.functions[name](*arguments)

    def reading(self, name: str) -> Read:
        if name not in self._reads:
            self._reads[name] = Read(self.contract.functions[name].abi)
        return self._reads[name]

    def read(self, name: str, *arguments: Any, block: int | None = None) -> Any:
        """As of a block or the latest. Raises Refused, ChainUnreachable, DeploymentInvalid."""
        try:
            read = self.reading(name)
            answer = self._connection.answer(str(self.contract.address), read.data(arguments), block)
            return read.values(answer)
        except (EncodingError, *MALFORMED):
            # Wrong arguments, a revert, no contract, or no chain node: web3 tells them apart.
            return self._connection.call(self.function(name, *arguments), block)

    def send(self, name: str, *arguments: Any, gas: int | None = None, force: bool = False) -> Receipt:
        """Sends on these terms (`Sending`) and waits. Raises Refused, ChainUnreachable, TransactionRejected."""
        return self._connection.transactions.send(self.function(name, *arguments), Sending(gas, force=force))

    def encode(self, name: str, *arguments: Any) -> str:
        """The call's data, as hex."""
        return str(self.contract.encode_abi(name, args=list(arguments)))


class Contracts:
    def __init__(self, connection: Connection, deployment: Deployment) -> None:
        self.connection, self.deployment = connection, deployment
        self.token = ContractClient(connection, "ConsiliumToken", deployment.token)
        self.staking = ContractClient(connection, "Staking", deployment.staking)
        self.tasks = ContractClient(connection, "Tasks", deployment.tasks)
        self.model_shares = ContractClient(connection, "ModelShares", deployment.model_shares)

    @property
    def address(self) -> str:
        """This account's. Raises ValueError if the connection has none."""
        return str(self.connection.address)

    def named(self, calls: Sequence[Call]) -> list[NamedCall | None]:
        """Calls by name; None for a call of another contract or of an unknown function."""
        named = {"token": self.token, "staking": self.staking, "tasks": self.tasks, "model_shares": self.model_shares}
        by_address = {str(client.contract.address): (name, client.contract) for name, client in named.items()}
        return [named_call(*by_address[call.to], call.data) if call.to in by_address else None for call in calls]
