"""An account's connection whose transactions a sponsor pays for."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from eth_account.signers.local import LocalAccount
from eth_typing import ChecksumAddress, HexStr
from hexbytes import HexBytes
from web3.contract.contract import ContractFunction
from web3.exceptions import TransactionNotFound

from consilium_chain.errors import SponsorFailed
from consilium_chain.rpc.connection import EXECUTE, Connection, Pending, Receipt, Unsent, without_secrets
from consilium_chain.rpc.reverts import refusal_from
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

LIFETIME = 600  # seconds of the chain's clock for which a sponsor may carry out what was signed


class SponsoredConnection(Connection):
    """Signs what it would send, and has it carried out; without the sponsor by itself, if the account has ether.

    Whoever carries a batch out, it is done once. Blobs are never sponsored: what sends them pays for itself.
    """

    def __init__(self, url: str, account: LocalAccount, code: str, sponsor: Sponsor) -> None:
        """`code` is the address of the deployed `SponsoredAccount`."""
        super().__init__(url, account)
        self._signer, self._code, self._sponsor = account, code, sponsor

    def send_all(self, functions: Sequence[ContractFunction]) -> list[Receipt]:
        """Sends them as one batch, all or none, whose receipt is each one's."""
        calls = [(HexStr(function._encode_transaction_data()), function.address) for function in functions]
        receipt = self.receipt(self._have_carried_out(calls, " and ".join(f.fn_name for f in functions)))
        return [receipt] * len(functions)

    def _submit(self, unsent: Unsent) -> Pending:
        if unsent.to is None or unsent.sidecars or unsent.value or unsent.call == EXECUTE:
            return super()._submit(unsent)
        return self._have_carried_out([(unsent.data, unsent.to)], unsent.call)

    def _have_carried_out(self, calls: Sequence[tuple[HexStr, ChecksumAddress]], call: str) -> Pending:
        """Returns once it is on chain, for the next batch's nonce is read from there. Raises SponsorFailed, Refused."""
        batch = sign_batch(
            self._signer, self.chain_id, [Call(to=to, data=HexBytes(data)) for data, to in calls], self._done(),
            self.now() + LIFETIME, self._authorization(own_transaction=False),
        )  # fmt: skip
        try:
            return self._ask(batch, call)
        except SponsorFailed:
            if not self.ether():
                raise
        own = batch.model_copy(update={"authorization": self._authorization(own_transaction=True)})
        pending = replace(self.carry_out(own), call=call)
        self.receipt(pending)
        return pending

    def _ask(self, batch: SignedBatch, call: str) -> Pending:
        """Raises SponsorFailed; Refused with what the sponsor says that a contract says."""
        to, data, _ = self._carrying(batch)
        if self.witness is not None:
            calldata = hashlib.sha256(HexBytes(data)).hexdigest()
            sponsor = without_secrets(self._sponsor.url)
            self.witness.leaving("batch", sponsor, batch.to_wire(), call=call, contract=to, calldata=calldata)
        answer = self._sponsor.carry_out(batch)
        if isinstance(answer, RefusedBatch):
            raise refusal_from(answer.data, call)
        pending = Pending(HexBytes(answer.transaction), call)
        try:
            sent = self._web3.eth.get_transaction(pending.digest)
        except TransactionNotFound as error:
            raise SponsorFailed(self._sponsor.url, batch.account, "it names a transaction that is not there") from error
        if (sent.get("to"), bytes(sent["input"])) != (to, bytes(HexBytes(data))):
            raise SponsorFailed(self._sponsor.url, batch.account, "it names a transaction of something else")
        self.receipt(pending)
        if self._done() == batch.nonce:  # without the authorization, an account without code takes any call
            raise SponsorFailed(self._sponsor.url, batch.account, "it left out this account's authorization")
        return pending

    def _done(self) -> int:
        """How many batches of this account were carried out."""
        return int.from_bytes(self._web3.eth.get_storage_at(self.address, NONCE_SLOT), "big")

    def _authorization(self, own_transaction: bool) -> Authorization | None:
        """None where the account points to the code already. Its own transaction counts before its authorization."""
        if bytes(self._web3.eth.get_code(self.address)) == pointer_to(self._code):
            return None
        nonce = self._web3.eth.get_transaction_count(self.address) + own_transaction
        return authorize(self._signer, self.chain_id, self._code, nonce)
