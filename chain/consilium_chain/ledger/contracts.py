"""The deployed contracts, as one account's connection calls them."""

from __future__ import annotations

from collections.abc import Sequence

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.rpc.calls import NamedCall, named_call
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.contract_client import ContractClient
from consilium_chain.sponsoring.batches import Call


class Contracts:
    def __init__(self, connection: Connection, deployment: Deployment) -> None:
        self.connection, self.deployment = connection, deployment
        self.token = ContractClient(connection, "ConsiliumToken", deployment.token)
        self.staking = ContractClient(connection, "Staking", deployment.staking)
        self.tasks = ContractClient(connection, "Tasks", deployment.tasks)

    @property
    def address(self) -> str:
        """This account's. Raises ValueError if the connection has none."""
        return str(self.connection.address)

    def named(self, calls: Sequence[Call]) -> list[NamedCall | None]:
        """Calls by name; None for a call of another contract, or of none of its functions."""
        named = {"token": self.token, "staking": self.staking, "tasks": self.tasks}
        by_address = {str(client.contract.address): (name, client.contract) for name, client in named.items()}
        return [named_call(*by_address[call.to], call.data) if call.to in by_address else None for call in calls]
