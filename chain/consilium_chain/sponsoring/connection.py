"""An account's connection whose transactions a sponsor pays for."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from consilium_core.tracing import span
from consilium_core.visible_text import without_secrets
from eth_account.signers.local import LocalAccount
from eth_typing import ChecksumAddress, HexStr
from hexbytes import HexBytes
from web3.contract.contract import ContractFunction
from web3.exceptions import TransactionNotFound

from consilium_chain.errors import SponsorFailed
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.outgoing import Pending, Receipt, Unsent
from consilium_chain.rpc.reverts import refusal_from
from consilium_chain.rpc.transactions import Transactions
from consilium_chain.sponsoring.batches import (
    NONCE_SLOT,
    Authorization,
    Call,
    RefusedBatch,
    SignedBatch,
    Sponsor,
    authorize,
    pointer_to,
    sign_batch,
)
from consilium_chain.sponsoring.carrier import EXECUTE, Carrier

LIFETIME = 600  # seconds of the chain's clock in which a sponsor may send a batch


class SponsoredTransactions(Transactions):
    """Signs batches for the sponsor; if that fails and the account has ether, it sends them itself.

    A batch is carried out at most once. Blobs are never sponsored: their sender pays.
    """

    def __init__(self, connection: Connection, code: str, sponsor: Sponsor) -> None:
        super().__init__(connection.endpoint, connection.signing, connection.fees)
        self._connection, self._code, self._sponsor = connection, code, sponsor
        self._carrier = Carrier(connection)

    def send_all(self, functions: Sequence[ContractFunction]) -> list[Receipt]:
        """Sends them as one batch, all or none. Its receipt counts for each."""
        calls = [(HexStr(function._encode_transaction_data()), function.address) for function in functions]
        receipt = self.receipt(self._have_carried_out(calls, " and ".join(f.fn_name for f in functions)))
        return [receipt] * len(functions)

    def submit_raw(self, unsent: Unsent) -> Pending:
        if unsent.to is None or unsent.sidecars or unsent.value or unsent.call == EXECUTE:
            return super().submit_raw(unsent)
        return self._have_carried_out([(unsent.data, unsent.to)], unsent.call)

    def _have_carried_out(self, calls: Sequence[tuple[HexStr, ChecksumAddress]], call: str) -> Pending:
        """Returns when it is on chain, where the next batch's nonce comes from. Raises SponsorFailed, Refused."""
        connection = self._connection
        batch = sign_batch(
            self.signing.signer, connection.chain_id, [Call(to=to, data=HexBytes(data)) for data, to in calls],
            self._done(), connection.blocks.now() + LIFETIME, self._authorization(own_transaction=False),
        )  # fmt: skip
        try:
            return self._ask(batch, call)
        except SponsorFailed:
            if not connection.ether():
                raise
        own = batch.model_copy(update={"authorization": self._authorization(own_transaction=True)})
        pending = replace(self._carrier.carry_out(own), call=call)
        self.receipt(pending)
        return pending

    def _ask(self, batch: SignedBatch, call: str) -> Pending:
        """Raises SponsorFailed; Refused with the contract's error that the sponsor reports."""
        to, data, _ = self._carrier.call_of(batch)
        if self.witness is not None:
            calldata = hashlib.sha256(HexBytes(data)).hexdigest()
            sponsor = without_secrets(self._sponsor.url)
            self.witness.leaving("batch", sponsor, batch.to_wire(), call=call, contract=to, calldata=calldata)
        with span(f"send {call}", call=call):
            answer = self._sponsor.carry_out(batch)
        if isinstance(answer, RefusedBatch):
            raise refusal_from(answer.data, call)
        pending = Pending(HexBytes(answer.transaction), call)
        try:
            sent = self._connection.web3.eth.get_transaction(pending.digest)
        except TransactionNotFound as error:
            raise SponsorFailed(
                self._sponsor.url, batch.account, "it names a transaction that the chain lacks"
            ) from error
        if (sent.get("to"), bytes(sent["input"])) != (to, bytes(HexBytes(data))):
            raise SponsorFailed(self._sponsor.url, batch.account, "it names another transaction")
        self.receipt(pending)
        if self._done() == batch.nonce:  # an account without code accepts any call
            raise SponsorFailed(self._sponsor.url, batch.account, "it left out this account's authorization")
        return pending

    def _done(self) -> int:
        """The number of this account's carried out batches."""
        return int.from_bytes(self._connection.web3.eth.get_storage_at(self.signing.address, NONCE_SLOT), "big")

    def _authorization(self, own_transaction: bool) -> Authorization | None:
        """None if the account points to the code already. Its own transaction counts before its authorization."""
        eth, signer = self._connection.web3.eth, self.signing.signer
        if bytes(eth.get_code(signer.address)) == pointer_to(self._code):
            return None
        nonce = eth.get_transaction_count(signer.address) + own_transaction
        return authorize(signer, self._connection.chain_id, self._code, nonce)


class SponsoredConnection(Connection):
    def __init__(self, url: str | Sequence[str], account: LocalAccount, code: str, sponsor: Sponsor) -> None:
        """`code`: the address of the deployed `SponsoredAccount`."""
        super().__init__(url, account)
        self.transactions = SponsoredTransactions(self, code, sponsor)
