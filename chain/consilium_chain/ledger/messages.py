"""Messages that accounts and node keys sign. A node computes them itself and signs no message of another party."""

from __future__ import annotations

from collections.abc import Sequence

from consilium_zk.encoding import round_words
from consilium_zk.kzg import Commitment, point_hashes
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
        """The message that a hospital's node key signs to join for this account."""
        return transport_message(self._chain_id, self._tasks, task, self._account, key)

    def point_hashes(self, task: int, round_: int, hospital: str, commitments: Sequence[Commitment]) -> list[bytes]:
        """The hashes by which a hospital commits to its points, one per blob."""
        return point_hashes(self._chain_id, self._tasks, task, round_, _bytes20(hospital), commitments)

    def masking_context(self, task: int, round_: int) -> bytes:
        return round_words(self._chain_id, self._tasks, task, round_)

    def statements(self, task: int, round_: int) -> StatementSigning:
        """Signs and checks hospitals' statements on their uploads."""
        return StatementSigning(self._chain_id, self._deployment.tasks, task, round_)

    def possession(self, key: SecretKey) -> bytes:
        """The proof that this account has a voter key, to register it."""
        return prove_possession(key, self._chain_id, _bytes20(self._deployment.staking), self._account)


def _bytes20(address: str) -> bytes:
    return bytes.fromhex(address.removeprefix("0x"))
