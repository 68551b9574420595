"""Messages that accounts and node keys sign. They are computed here: a node must not sign what another names."""

from __future__ import annotations

from collections.abc import Sequence

from consilium_zk.kzg import Challenge, Commitment, challenge
from consilium_zk.secure_aggregation import context
from consilium_zk.tickets import SecretKey, prove_possession, ticket_message

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.rounds.statements import StatementSigning
from consilium_chain.rpc.connection import Connection
from consilium_chain.transport_keys import transport_message


class Messages:
    def __init__(self, connection: Connection, deployment: Deployment) -> None:
        self._connection, self._deployment = connection, deployment
        self._chain_id, self._tasks = connection.chain_id, _bytes20(deployment.tasks)

    @property
    def _account(self) -> bytes:
        return _bytes20(self._connection.address)

    def ticket(self, task: int, round_: int, seat_seed: bytes, voter: str | None = None) -> bytes:
        """The message of a ticket. `seat_seed`: 32 bytes; `voter`: by default this account."""
        account = _bytes20(voter) if voter else self._account
        return ticket_message(self._chain_id, self._tasks, task, round_, seat_seed, account)

    def transport(self, task: int, key: bytes) -> bytes:
        """The message that a hospital's node key signs so that this account joins by it."""
        return transport_message(self._chain_id, self._tasks, task, self._account, key)

    def challenge(self, task: int, round_: int, hospital: str, commitments: Sequence[Commitment]) -> Challenge:
        """The challenge that the KZG proof of a hospital's update answers (Fiat-Shamir)."""
        return challenge(self._chain_id, self._tasks, task, round_, _bytes20(hospital), commitments)

    def masking_context(self, task: int, round_: int) -> bytes:
        return context(self._chain_id, self._tasks, task, round_)

    def statements(self, task: int, round_: int) -> StatementSigning:
        """Signs and checks hospitals' statements on their uploads (`consilium_chain.rounds.statements`)."""
        return StatementSigning(self._chain_id, self._deployment.tasks, task, round_)

    def possession(self, key: SecretKey) -> bytes:
        """The proof that this account has a voter key, to register it."""
        return prove_possession(key, self._chain_id, _bytes20(self._deployment.staking), self._account)


def _bytes20(address: str) -> bytes:
    return bytes.fromhex(address.removeprefix("0x"))
