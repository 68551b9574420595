"""Transactions of one account: sent, awaited, and sent again if they are lost."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import requests
from consilium_core.tracing import span
from eth_typing import HexStr
from hexbytes import HexBytes
from web3 import Web3
from web3.contract.contract import ContractFunction
from web3.exceptions import ContractCustomError, ContractLogicError, TransactionNotFound, Web3RPCError
from web3.types import TxParams, TxReceipt

from consilium_chain.errors import ChainUnreachable, EtherMissing, TransactionRejected
from consilium_chain.rpc.abi import ContractName, contract_artifact
from consilium_chain.rpc.blocks import Fees
from consilium_chain.rpc.endpoint import Endpoint
from consilium_chain.rpc.outgoing import (
    BY_ESTIMATE,
    GAS_MARGIN,
    Own,
    Pending,
    Receipt,
    Sending,
    Sent,
    Unsent,
    Witness,
    bounded_gas,
)
from consilium_chain.rpc.pace import GROWTH, LONGEST_PAUSE
from consilium_chain.rpc.reverts import (
    ALREADY_THERE,
    NONCE_SPENT,
    is_nonce_taken,
    refusal_of,
    refusal_on_chain,
    refused,
)
from consilium_chain.rpc.signing import Signing

RECEIPT_POLL = 0.03  # seconds, at first, then slower; on a chain that is not fast once a block
RECEIPT_TIMEOUT = 120.0
LOOK_AGAIN = (
    5.0  # seconds between two checks that the node still has the transaction, and that its offer is high enough
)
ETHER_GAS = 50_000  # more than 21,000, for an account may point to code, which runs
NONCE_TRIES, NONCE_PAUSE = 20, 0.1  # seconds: another process of the account may use a nonce meanwhile


class Transactions:
    """Sends an account's transactions: those of several threads one after another, those of several processes with
    distinct nonces.

    A `witness` sees every transaction before it leaves, and calldata before a trial run. It does not see reads, which
    name only contracts, tasks, rounds and accounts.
    """

    witness: Witness | None = None

    def __init__(self, endpoint: Endpoint, signing: Signing, fees: Fees) -> None:
        self.endpoint, self.signing, self._fees = endpoint, signing, fees
        self._eth = endpoint.web3.eth
        self._sending = threading.Lock()

    def send(self, function: ContractFunction, sending: Sending = BY_ESTIMATE) -> Receipt:
        """Sends a transaction and waits for it. Raises Refused with the contract's error, ChainUnreachable."""
        return self.receipt(self.submit(function, sending))

    def submit(self, function: ContractFunction, sending: Sending = BY_ESTIMATE) -> Pending:
        """Sends a transaction as `send`, without waiting. A later one is carried out later."""
        data, call = function._encode_transaction_data(), sending.name or function.fn_name
        if sending.gas is None:
            return self.submit_raw(Unsent(data, function.address, call))
        with self.named_errors(call):
            limit = bounded_gas(sending.gas + GAS_MARGIN, self.signing.l1_gas(function.address, data))
        return self.submit_raw(Unsent(data, function.address, call, limit, not sending.untried, sending.sidecars))

    def send_all(self, functions: Sequence[ContractFunction]) -> list[Receipt]:
        """Sends one after the other, each after the one before is carried out. Raises as `send`."""
        return [self.send(function) for function in functions]

    def deploy(self, name: ContractName, *arguments: Any) -> str:
        """Deploys a contract; returns its address."""
        artifact = contract_artifact(name)
        factory = self._eth.contract(abi=artifact.abi, bytecode=HexStr(artifact.bytecode))
        data = factory.constructor(*arguments).data_in_transaction
        receipt = self.receipt(self.submit_raw(Unsent(data, None, f"deploy {name}")))
        return str(self._eth.get_transaction_receipt(HexStr(receipt.transaction))["contractAddress"])

    def send_ether(self, recipient: str, amount: int) -> None:
        """`amount` in wei."""
        to = Web3.to_checksum_address(recipient)
        self.receipt(self.submit_raw(Unsent(HexStr("0x"), to, "transfer", ETHER_GAS, value=amount)))

    def sent(self, transaction: str) -> Sent:
        """A transaction on the chain. Raises ChainUnreachable, also for an unknown one."""
        try:
            with self.endpoint.reading():
                found = cast(Mapping[str, Any], self._eth.get_transaction(HexStr(transaction)))
        except TransactionNotFound as error:
            why = f"the node has no transaction {transaction}"
            raise ChainUnreachable(self.endpoint.shown_url, why) from error
        return Sent(str(found["from"]), str(found.get("to") or ""), bytes(HexBytes(found["input"])))

    def gas_of(self, transaction: str) -> int:
        return int(self._eth.get_transaction_receipt(HexStr(transaction))["gasUsed"])

    def receipt(self, pending: Pending) -> Receipt:
        """Waits for a transaction. Sends it again if the node forgets it, as after a reorganisation, and replaces it by
        a higher offer if fees rise above its own. Raises Refused, TransactionRejected, ChainUnreachable, also if it can
        no longer come onto the chain: then its sender decides.
        """
        call, tries = pending.call, [pending]
        with span(f"await {call}", call=call) as facts, self.named_errors(call):
            heartbeat, pause, lost = self._fees.blocks.heartbeat, RECEIPT_POLL, ""
            block_seconds = heartbeat.pace.block_seconds or 0.0
            look_again = max(LOOK_AGAIN, block_seconds)
            end, look = time.monotonic() + RECEIPT_TIMEOUT, time.monotonic() + look_again
            while (receipt := self._receipt_of(tries)) is None:
                now = time.monotonic()
                if now > end:
                    raise ChainUnreachable(self.endpoint.shown_url, f"no receipt for {call} in {RECEIPT_TIMEOUT:.0f} s")
                if now > look:
                    before, lost = lost, self._insist(tries)
                    if lost and lost == before:
                        raise ChainUnreachable(self.endpoint.shown_url, f"{call} {lost}")
                    look = now + look_again
                if heartbeat.pace.is_fast:
                    time.sleep(pause)
                    pause = min(GROWTH * pause, LONGEST_PAUSE)
                else:
                    heartbeat.wait_after(heartbeat.pace.number, block_seconds)
            heartbeat.reach(receipt["blockNumber"])
            facts["transaction"] = receipt["transactionHash"].to_0x_hex()
            facts["gas"], facts["block"] = receipt["gasUsed"], receipt["blockNumber"]
            if receipt["status"] != 1:
                raise refusal_on_chain(self.endpoint.web3, receipt["transactionHash"], call)
            digest = receipt["transactionHash"].to_0x_hex()
            return Receipt(digest, receipt["gasUsed"], receipt["blockNumber"], call)

    def _receipt_of(self, tries: Sequence[Pending]) -> TxReceipt | None:
        """The receipt of the one of these, all with one nonce, that is on the chain."""
        for one in tries:
            try:
                return self._eth.get_transaction_receipt(one.digest)
            except TransactionNotFound:
                continue
        return None

    def _insist(self, tries: list[Pending]) -> str:
        """Makes sure that the last of these, all with one nonce, can get into a block; appends its replacement. Returns
        the reason why none of them can, or "".
        """
        latest = tries[-1]
        if latest.own is None:
            return ""
        enough = self._fees.suffice(latest.own.fields)
        if enough and self.knows(latest.digest):
            next_number = self._eth.get_transaction_count(self.signing.address, "pending")
            # The transaction before it had its receipt, and nobody watches it now.
            return "waits for a transaction that no longer exists" if next_number < latest.own.fields["nonce"] else ""
        again = latest.own if enough else self.signing.raised(latest.own)
        self._witness_transaction(again)
        try:
            digest = self._eth.send_raw_transaction(again.signed.raw_transaction)
        except Web3RPCError as error:
            said = refusal_of(error)
            if NONCE_SPENT in said:
                return "was replaced by another transaction with its number"
            if enough and not any(words in said for words in ALREADY_THERE):
                raise
            return ""  # it arrived meanwhile, or the account cannot offer more: the earlier one may still be taken
        if not enough:
            tries.append(Pending(digest, latest.call, again))
        return ""

    def knows(self, digest: HexBytes) -> bool:
        """True if a transaction is on the chain or on its way."""
        try:
            self._eth.get_transaction(digest)
        except TransactionNotFound:
            return False
        return True

    def submit_raw(self, unsent: Unsent) -> Pending:
        """Raises EtherMissing, and all other errors of `send`."""
        try:
            with span(f"send {unsent.call}", call=unsent.call):
                return self._signed_and_sent(unsent)
        except TransactionRejected as error:
            account = self.signing.address
            with self.endpoint.reading():
                balance = int(self._eth.get_balance(account))
            with self.named_errors(unsent.call):
                needed = self.signing.most(unsent)
            if balance < needed:
                raise EtherMissing(unsent.call, account, self.endpoint.shown_url, balance, needed) from error
            raise

    def _signed_and_sent(self, unsent: Unsent) -> Pending:
        with self._sending, self.named_errors(unsent.call):
            gas = unsent.gas
            if gas is None or unsent.tried:
                self._witnessed("trial", bytes(HexBytes(unsent.data)), unsent)
            if gas is not None and unsent.tried and not self._suffices(unsent, gas):
                gas = None
            for left in reversed(range(NONCE_TRIES)):
                own = self.signing.sign(unsent, self.signing.fields(unsent, gas))
                self._witness_transaction(own)
                try:
                    digest = self._eth.send_raw_transaction(own.signed.raw_transaction)
                    return Pending(digest, unsent.call, own)
                except Web3RPCError as error:
                    if not left or not is_nonce_taken(error.rpc_response or {}):
                        raise
                    time.sleep(NONCE_PAUSE)
            raise AssertionError("the last try ends it")

    def _suffices(self, unsent: Unsent, gas: int) -> bool:
        """True if the call succeeds with this much gas. Otherwise an estimate gives the reason: the contract needs more
        gas to name a wrong update than to find none.
        """
        call = {"from": self.signing.address, "to": unsent.to, "data": unsent.data, "gas": gas}
        try:
            self._eth.call(cast(TxParams, call))
        except (ContractLogicError, Web3RPCError):
            return False
        return True

    def _witness_transaction(self, own: Own) -> None:
        calldata = hashlib.sha256(HexBytes(own.unsent.data)).hexdigest()
        which = {"calldata": calldata, "transaction": own.signed.hash.to_0x_hex()}
        self._witnessed("transaction", bytes(own.signed.raw_transaction), own.unsent, **which)

    def _witnessed(self, kind: str, content: bytes, unsent: Unsent, **which: str) -> None:
        if self.witness is not None:
            to, contract = self.endpoint.shown_urls, unsent.to or ""
            self.witness.leaving(kind, to, content, call=unsent.call, contract=contract, **which)

    @contextmanager
    def named_errors(self, call: str) -> Iterator[None]:
        """Raises web3's errors as this room's."""
        url = self.endpoint.shown_url
        try:
            yield
        except (ContractCustomError, ContractLogicError) as error:
            raise refused(error, call) from error
        except Web3RPCError as error:
            raise TransactionRejected(call, self.signing.address, url, refusal_of(error)) from error
        except requests.exceptions.RequestException as error:
            raise ChainUnreachable(url, type(error).__name__) from error
