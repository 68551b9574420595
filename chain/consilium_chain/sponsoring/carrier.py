"""Sends batches that another account signed, and pays for them."""

from __future__ import annotations

from typing import Any

from eth_typing import ChecksumAddress, HexStr
from web3 import Web3

from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.outgoing import Pending, Unsent
from consilium_chain.sponsoring.batches import SignedBatch, authority_of, pointer_to

EXECUTE = "execute"  # of SponsoredAccount


class Carrier:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def gas_of(self, batch: SignedBatch) -> int:
        """An estimate. Raises Refused if a contract would refuse the batch now; ChainUnreachable."""
        to, data, authorizations = self.call_of(batch)
        with self._connection.transactions.named_errors(EXECUTE):
            return self._connection.signing.estimate({"to": to, "data": data, "authorizationList": authorizations})

    def carry_out(self, batch: SignedBatch) -> Pending:
        """Raises Refused, ChainUnreachable, TransactionRejected."""
        to, data, authorizations = self.call_of(batch)
        return self._connection.transactions.submit_raw(Unsent(data, to, EXECUTE, authorizations=authorizations))

    def would_point_to(self, batch: SignedBatch, code: str) -> bool:
        """True if the batch's account will have this code when its calls are made.

        Otherwise its transaction would have another effect, or cost gas without any.
        """
        eth, account = self._connection.web3.eth, Web3.to_checksum_address(batch.account)
        signed = batch.authorization
        if signed is None:
            return bytes(eth.get_code(account)) == pointer_to(code)
        wanted = (self._connection.chain_id, code, eth.get_transaction_count(account), account)
        return (signed.chain_id, signed.address, signed.nonce, authority_of(signed)) == wanted

    def call_of(self, batch: SignedBatch) -> tuple[ChecksumAddress, HexStr, list[dict[str, Any]]]:
        """The account, the data and the authorizations of a batch's transaction."""
        account = self._connection.contract("SponsoredAccount", batch.account)
        data = account.functions.execute(*batch.arguments())._encode_transaction_data()
        return account.address, data, [batch.authorization.to_chain()] if batch.authorization else []
