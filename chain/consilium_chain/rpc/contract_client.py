"""One deployed contract, called by the names in its ABI."""

from __future__ import annotations

from typing import Any

from web3.contract.contract import ContractFunction

from consilium_chain.rpc.abi import ContractName
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.outgoing import Receipt, Sending


class ContractClient:
    """Every method raises web3's ABIFunctionNotFound for a name that the ABI lacks."""

    def __init__(self, connection: Connection, name: ContractName, address: str) -> None:
        self._connection = connection
        self.contract = connection.contract(name, address)

    def function(self, name: str, *arguments: Any) -> ContractFunction:
        return self.contract.functions[name](*arguments)

    def read(self, name: str, *arguments: Any, block: int | None = None) -> Any:
        """As of a block or the latest. Raises Refused, ChainUnreachable, DeploymentInvalid."""
        return self._connection.call(self.function(name, *arguments), block)

    def send(self, name: str, *arguments: Any, gas: int | None = None, force: bool = False) -> Receipt:
        """Sends on these terms (`Sending`) and waits. Raises Refused, ChainUnreachable, TransactionRejected."""
        return self._connection.transactions.send(self.function(name, *arguments), Sending(gas, force=force))

    def encode(self, name: str, *arguments: Any) -> str:
        """The call's data, as hex."""
        return str(self.contract.encode_abi(name, args=list(arguments)))
