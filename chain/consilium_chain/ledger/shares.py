"""Parts of finished models: reads of the shares contract, and an account's transactions there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from consilium_chain.errors import DeploymentInvalid, Refused
from consilium_chain.ledger.contracts import Contracts
from consilium_chain.ledger.structs import Role
from consilium_chain.rpc.event_logs import Event
from consilium_chain.rpc.outgoing import Receipt
from consilium_chain.tasks.sale_spec import SaleSpec

WHOLE = 1 << 64  # parts of a task


def pool_holder(model_shares: str, node: str, role: Role) -> str:
    """The holder of a node's parts (`poolAddress`), computed without the chain. model_shares: the contract."""
    words = (bytes.fromhex(model_shares[2:]), bytes.fromhex(node[2:]), bytes([int(role)]))
    return to_checksum_address(keccak(b"".join(word.rjust(32, b"\0") for word in words))[12:])


class ModelShares:
    """Every method raises ChainUnreachable, DeploymentInvalid and Refused, with the contract's errors."""

    def __init__(self, contracts: Contracts) -> None:
        self._contracts, self._shares = contracts, contracts.model_shares

    def terms(self, task: int) -> SaleSpec | None:
        """As the contract knows them; None before anybody has shown it the task's file."""
        try:
            server, operator, trainers, voters = self._shares.read("termsOf", task)
        except Refused as error:
            if error.name == "TermsUnknown":
                return None
            raise
        return SaleSpec(
            server_percent=server, operator_percent=operator, trainers_percent=trainers, voters_percent=voters
        )

    def is_minted(self, task: int) -> bool:
        return bool(self._shares.read("minting", task)[0])

    def pool_address(self, node: str, role: Role) -> str:
        """The holder of a node's parts. No key belongs to it."""
        return to_checksum_address(self._shares.read("poolAddress", node, role))

    def parts(self, task: int, holder: str) -> int:
        """The holder's parts, of which a task has `WHOLE`."""
        return int(self._shares.read("balanceOf", holder, task))

    def claimable(self, task: int, holder: str) -> int:
        """In the token's smallest unit, rounded down."""
        return int(self._shares.read("claimable", task, holder))

    def paid(self, task: int) -> int:
        """All that was ever paid for the task's parts, in the token's smallest unit."""
        return int(self._shares.read("paid", task))

    def till_of(self, task: int, server: str) -> str:
        """The address to which buyers pay for predictions that this account serves. No key belongs to it."""
        return to_checksum_address(self._shares.read("tillOf", task, server))

    def show_terms(self, task: int, head: bytes, sale: SaleSpec) -> Receipt:
        """`head`: the task file's bytes before the lines of its section [sale]."""
        terms = (sale.server_percent, sale.operator_percent, sale.trainers_percent, sale.voters_percent)
        return self._shares.send("showTerms", task, head, terms)

    def mint(self, task: int, steps: int) -> Receipt:
        """One page of minting: at most so many rewards are read and parts given."""
        return self._shares.send("mint", task, steps)

    def pay(self, task: int, amount: int) -> Receipt:
        """Pays the holders of the task's parts, in the token's smallest unit."""
        self._contracts.token.send("approve", self._contracts.deployment.model_shares, amount)
        return self._shares.send("pay", task, amount)

    def split(self, task: int, server: str) -> tuple[int, int]:
        """Empties a server's till. Returns its amount and the server's fee of it, in the token's smallest unit."""
        receipt = self._shares.send("split", task, server)
        return split_of(self._contracts, receipt, task)

    def claim(self, task: int) -> Receipt:
        """Pays out this account's money."""
        return self._shares.send("claim", task)

    def claim_for_pool(self, tasks: Sequence[int], node: str, role: Role) -> Receipt:
        """Hands a node's money from these tasks over to its pool, where it vests."""
        return self._shares.send("claimForPool", list(tasks), node, role)


def split_of(contracts: Contracts, receipt: Receipt, task: int) -> tuple[int, int]:
    """A sale's amount and the server's fee of it, in the token's smallest unit. `task`: an ensemble's number, too: a
    sale of it has an event of the whole, and one for each member.

    Raises DeploymentInvalid.
    """
    values = event_of(contracts, receipt, "Split", taskId=task).values
    return int(values["amount"]), int(values["fee"])


def event_of(contracts: Contracts, receipt: Receipt, name: str, **indexed: Any) -> Event:
    """A transaction's event of this name in the shares contract, by values of indexed fields.

    Raises DeploymentInvalid.
    """
    contract, block = contracts.model_shares.contract, receipt.block
    for event in contracts.connection.logs.events(contract, block, block, name, **indexed):
        if event.transaction == receipt.transaction:
            return event
    address = contracts.deployment.model_shares
    raise DeploymentInvalid(
        f"the contract {address} took a transaction without the event {name}; check the address book"
    )
