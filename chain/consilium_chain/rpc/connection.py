"""The only door to web3: calls, transactions, events, and their errors by name."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

import requests
import rlp
from eth_abi.exceptions import DecodingError
from eth_account import Account
from eth_account.datastructures import SignedTransaction
from eth_account.signers.local import LocalAccount
from eth_account.typed_transactions import base as blob_transactions
from eth_typing import ChecksumAddress, HexStr
from hexbytes import HexBytes
from web3 import HTTPProvider, Web3
from web3.contract.contract import Contract, ContractFunction
from web3.exceptions import (
    BadFunctionCallOutput,
    BlockNotFound,
    ContractCustomError,
    ContractLogicError,
    TransactionNotFound,
    Web3Exception,
    Web3RPCError,
)
from web3.types import BlockData, RPCEndpoint, RPCResponse, TxParams, TxReceipt
from web3.utils import abi as abi_lookup

from consilium_chain.errors import ChainUnreachable, DeploymentInvalid, EtherMissing, Refused, TransactionRejected
from consilium_chain.ledger.structs import Event, Head
from consilium_chain.rpc.abi import ContractName, contract_artifact
from consilium_chain.rpc.cell_proofs import Sidecar
from consilium_chain.rpc.event_logs import NO_LOG, LogDecoder
from consilium_chain.rpc.reverts import message_of, refusal_from, refusal_of, refused
from consilium_chain.sponsoring.batches import Call, NamedCall, SignedBatch, authority_of, pointer_to

BLOCK_POLL = 0.1  # at first, then slower: a block every 12 seconds is not asked for ten times a second
SLOWEST_BLOCK_POLL = 1.0
RECEIPT_POLL = 0.03  # at first, then slower, as for blocks
RECEIPT_TIMEOUT = 120.0
LOOK_AGAIN = 5.0  # seconds between two looks whether a node still has what it was sent, and whether that offers enough
# The last of a phase pays for the phase's end, which an estimate may not have seen and a call's own bound leaves out.
GAS_MARGIN = 600_000
TIP = 10**9  # wei per gas
LEAST_TIP = TIP // 10  # that must be left of an offer, once the base fee is paid, for anybody to take it
ETHER_GAS = 50_000  # more than 21,000: an account that points to code has it run
MAX_BLOBS_PER_TRANSACTION = 6
BLOB_GAS = 131_072  # of one blob (EIP-4844)
BLOB_FEE = 10**10  # wei per blob gas: what is offered at least
BLOCKS_TIMED = 10
LONGEST_SPAN = 1 << 40  # blocks whose events are asked for at once, until a node wants fewer
# Bytes of a node's answer, unpacked: logs of some ten thousand events, or a block with all transactions several times.
LARGEST_ANSWER = 1 << 26
TRANSACTION_GAS_LIMIT = 16_777_216  # EIP-7825
# What geth, reth and anvil say where another process of the same account sent one of this number meanwhile: another
# transaction, or the very same.
_NONCE_SPENT, _ALREADY_THERE = "nonce too low", ("already known", "already imported")
_NONCE_TAKEN = (_NONCE_SPENT, "replacement transaction underpriced", *_ALREADY_THERE)
NONCE_TRIES, NONCE_PAUSE = 20, 0.1  # seconds
EXECUTE = "execute"  # of SponsoredAccount
MULTICALL = "multicall"  # of Tasks
# Of a transaction's trace what it returned, and no step. Without a tracer: with one, anvil (1.7.1) carries out the
# transaction again, and stops for good where a block is mined meanwhile.
_LAST_WORD = {"disableStorage": True, "disableStack": True, "enableMemory": False, "limit": 1}

# eth-account computes commitments and cell proofs while it signs, and loads the ceremony setup anew, two seconds, for
# each: it is handed those of the sidecars instead.
_signing: ContextVar[Mapping[bytes, Sidecar]] = ContextVar("sidecars of the transaction that is being signed")
blob_transactions.load_trusted_setup = lambda *_: None  # type: ignore[attr-defined]
blob_transactions.blob_to_kzg_commitment = lambda blob, _: _signing.get()[blob].commitment  # type: ignore[attr-defined]
blob_transactions.compute_cells_and_kzg_proofs = lambda blob, _: ([], _signing.get()[blob].proofs.result())  # type: ignore[attr-defined]


# web3 hashes every function of a contract at each call, to find two of the same selector: a quarter of a read's time.
# No compiler lets such a contract pass.
abi_lookup.validate_abi = lambda abi: None  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Receipt:
    transaction: str
    gas_used: int
    block: int
    call: str


@dataclass(frozen=True)
class Sent:
    """A transaction as the chain has it: who paid for it, whom it calls, with what. `to` is empty where it deploys."""

    sender: str
    to: str
    data: bytes


@dataclass(frozen=True)
class Sending:
    """How a call is sent.

    gas: what the call takes at most; without it the node estimates, which takes it many runs of the call. sidecars
    travel with it (EIP-4844): no node runs such a call before it is sent, so it needs a bound. With `force`, which
    needs one too, it is sent although it may be refused. name: what errors call it, by default the function's.
    """

    gas: int | None = None
    sidecars: Sequence[Sidecar] = ()
    force: bool = False
    name: str | None = None

    def __post_init__(self) -> None:
        if self.gas is None and self.untried:
            raise ValueError("a call that no node runs before it is sent needs a bound of its gas")

    @property
    def untried(self) -> bool:
        return self.force or bool(self.sidecars)


BY_ESTIMATE = Sending()


@dataclass(frozen=True)
class Unsent:
    """A transaction to be. `gas` is its limit, by default by an estimate, also where it is `tried` and does not do."""

    data: HexStr
    to: ChecksumAddress | None
    call: str
    gas: int | None = None
    tried: bool = False
    sidecars: Sequence[Sidecar] = ()
    value: int = 0
    authorizations: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Own:
    """A transaction that this account signed: of what, with which number and fees, and its bytes."""

    unsent: Unsent
    fields: Mapping[str, Any]
    signed: SignedTransaction


@dataclass(frozen=True)
class Pending:
    """A transaction that was sent and has no receipt yet. `own`: None where another account sent it."""

    digest: HexBytes
    call: str
    own: Own | None = None


class Witness(Protocol):
    """Writes down what of this account's is about to leave the process."""

    def leaving(self, kind: str, to: str, content: bytes, **what: str | int) -> None:
        """`content` is what leaves for `to`, byte by byte. Where this raises, it does not leave."""


class _Provider(HTTPProvider):
    """Takes only what JSON-RPC 2.0 calls an answer to one request; web3 trips over all else in ways of its own."""

    @staticmethod
    def decode_rpc_response(raw_response: bytes) -> RPCResponse:
        try:
            answer: object = json.loads(raw_response)
        except (ValueError, RecursionError) as error:
            raise requests.exceptions.InvalidJSONError("the answer is not JSON") from error
        if not isinstance(answer, dict) or not {"result", "error"} & answer.keys():
            raise requests.exceptions.InvalidJSONError("the answer is no JSON-RPC answer")
        return cast(RPCResponse, answer)


def _within_bounds(answer: requests.Response, **_: object) -> None:
    """Reads an answer before requests does, which reads all there is: a few compressed bytes can become gigabytes."""
    content = bytearray()
    for part in answer.iter_content(1 << 16):
        content += part
        if len(content) > LARGEST_ANSWER:
            answer.close()
            raise requests.exceptions.ContentDecodingError(f"the answer has more than {LARGEST_ANSWER} bytes")
    answer._content = bytes(content)


def without_secrets(url: str) -> str:
    """Scheme, host and port of a URL: path, query and user hold the keys of RPC providers."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host:
        return "a URL without a host"
    shown = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{f':{port}' if port else ''}"
    return shown if shown == url.rstrip("/") else f"{shown}/…"


class Connection:
    """One account's connection to one node. Transactions of several threads go out one after another, and those of
    several processes each with a number that no other has.

    A `witness`, if one is set, is told of every transaction before it leaves, and of its calldata before the node is
    asked whether it would go through. Other reads name contracts, tasks, rounds and accounts: it is not told of these.
    """

    witness: Witness | None = None

    def __init__(self, url: str, account: LocalAccount | None = None) -> None:
        self.url = url
        self.account = account
        self._sending = threading.Lock()
        self._span = LONGEST_SPAN
        self._web3 = Web3(_Provider(url, request_kwargs={"timeout": 30, "hooks": {"response": _within_bounds}}))
        for costly in ("validation", "gas_estimate", "ens_name_to_address"):
            # They ask the node for its chain id, twice, before every call; addresses here are never names.
            self._web3.middleware_onion.remove(costly)
        try:
            self.chain_id: int = self._web3.eth.chain_id
        except (requests.exceptions.RequestException, ValueError, Web3Exception) as error:
            raise ChainUnreachable(self.shown_url, type(error).__name__) from error
        if type(self.chain_id) is not int:
            raise ChainUnreachable(self.shown_url, "what answers there names no chain")

    @property
    def shown_url(self) -> str:
        """The URL as errors and screens may show it."""
        return without_secrets(self.url)

    @property
    def address(self) -> ChecksumAddress:
        return self.signer.address

    @property
    def signer(self) -> LocalAccount:
        if self.account is None:
            raise ValueError("this connection has no account: it can read only")
        return self.account

    def contract(self, name: ContractName, address: str) -> Contract:
        artifact = contract_artifact(name)
        return self._web3.eth.contract(address=Web3.to_checksum_address(address), abi=artifact.abi)

    @staticmethod
    def named(call: Call, contracts: Mapping[str, Contract]) -> NamedCall | None:
        """What a call is of; None where it is of none of the contracts, or of none of their functions."""
        for name, contract in contracts.items():
            if contract.address == call.to:
                return _decoded(name, contract, call.data)
        return None

    def deploy(self, name: ContractName, *arguments: Any) -> str:
        """Deploys a contract; returns its address."""
        artifact = contract_artifact(name)
        factory = self._web3.eth.contract(abi=artifact.abi, bytecode=HexStr(artifact.bytecode))
        receipt = self.receipt(
            self._submit(Unsent(factory.constructor(*arguments).data_in_transaction, None, f"deploy {name}"))
        )
        return str(self._web3.eth.get_transaction_receipt(HexStr(receipt.transaction))["contractAddress"])

    def call(self, function: ContractFunction, block: int | None = None) -> Any:
        """Reads, as of a block or the latest. Raises Refused, ChainUnreachable, DeploymentInvalid where none is."""
        try:
            sender: TxParams = {"from": self.account.address} if self.account else {}
            function._encode_transaction_data()  # what cannot be asked is no fault of the node's
            with self._reading():
                return function.call(sender, block_identifier="latest" if block is None else block)
        except (ContractCustomError, ContractLogicError) as error:
            raise refused(error, function.fn_name) from error
        except BadFunctionCallOutput as error:
            raise DeploymentInvalid(
                f"no contract at {function.address} answers {function.fn_name}: the address book is of another chain"
                f" than {self.shown_url}, or of one that was started anew; deploy again or pass the one that fits"
            ) from error

    def send(self, function: ContractFunction, sending: Sending = BY_ESTIMATE) -> Receipt:
        """Sends a transaction and waits for it. Raises Refused with the contract's error, ChainUnreachable."""
        return self.receipt(self.submit(function, sending))

    def submit(self, function: ContractFunction, sending: Sending = BY_ESTIMATE) -> Pending:
        """Sends a transaction as `send` does, without waiting for it: one sent later is carried out later."""
        data, call = function._encode_transaction_data(), sending.name or function.fn_name
        if sending.gas is None:
            return self._submit(Unsent(data, function.address, call))
        limit = min(sending.gas + GAS_MARGIN, TRANSACTION_GAS_LIMIT)
        return self._submit(Unsent(data, function.address, call, limit, not sending.untried, sending.sidecars))

    def send_all(self, functions: Sequence[ContractFunction]) -> list[Receipt]:
        """Sends one after the other, each once the one before it is carried out. Raises as `send`."""
        return [self.send(function) for function in functions]

    def gas_to_carry_out(self, batch: SignedBatch) -> int:
        """An estimate. Raises Refused where a contract would refuse the batch now, ChainUnreachable."""
        to, data, authorizations = self._carrying(batch)
        with self._named_errors(EXECUTE):
            call: dict[str, Any] = {"from": self.address, "to": to, "data": data, "authorizationList": authorizations}
            return int(self._web3.eth.estimate_gas(cast(TxParams, {k: v for k, v in call.items() if v})))

    def carry_out(self, batch: SignedBatch) -> Pending:
        """Sends another account's batch, and pays for it. Raises Refused, ChainUnreachable, TransactionRejected."""
        to, data, authorizations = self._carrying(batch)
        return self._submit(Unsent(data, to, EXECUTE, authorizations=authorizations))

    def would_point_to(self, batch: SignedBatch, code: str) -> bool:
        """Whether the batch's account will have this code when its calls are made.

        Where not, carrying it out would do something else, or, for an account without code, cost gas and do nothing.
        """
        account = Web3.to_checksum_address(batch.account)
        signed = batch.authorization
        if signed is None:
            return bytes(self._web3.eth.get_code(account)) == pointer_to(code)
        wanted = (self.chain_id, code, self._web3.eth.get_transaction_count(account), account)
        return (signed.chain_id, signed.address, signed.nonce, authority_of(signed)) == wanted

    def _carrying(self, batch: SignedBatch) -> tuple[ChecksumAddress, HexStr, list[dict[str, Any]]]:
        account = self.contract("SponsoredAccount", batch.account)
        data = account.functions.execute(*batch.arguments())._encode_transaction_data()
        return account.address, data, [batch.authorization.to_chain()] if batch.authorization else []

    def receipt(self, pending: Pending) -> Receipt:
        """Waits for a transaction. What the node has forgotten, as after a reorganisation, is sent again; what offers
        less than fees have come to is replaced by the same at a higher offer. Raises Refused, TransactionRejected,
        ChainUnreachable, also where it cannot come onto the chain any more: its sender looks what is to be done then.
        """
        call, tries = pending.call, [pending]
        with self._named_errors(call):
            end, look = time.monotonic() + RECEIPT_TIMEOUT, time.monotonic() + LOOK_AGAIN
            pause, lost = RECEIPT_POLL, ""
            while (receipt := self._receipt_of(tries)) is None:
                now = time.monotonic()
                if now > end:
                    raise ChainUnreachable(self.shown_url, f"no receipt for {call} in {RECEIPT_TIMEOUT:.0f} s")
                if now > look:
                    before, lost = lost, self._insist(tries)
                    if lost and lost == before:
                        raise ChainUnreachable(self.shown_url, f"{call} {lost}")
                    look = now + LOOK_AGAIN
                time.sleep(pause)
                pause = min(1.5 * pause, SLOWEST_BLOCK_POLL)
            if receipt["status"] != 1:
                raise self._why_refused(receipt["transactionHash"], call)
            digest = receipt["transactionHash"].to_0x_hex()
            return Receipt(digest, receipt["gasUsed"], receipt["blockNumber"], call)

    def _receipt_of(self, tries: Sequence[Pending]) -> TxReceipt | None:
        """Of whichever of these, which have one number, is on the chain."""
        for one in tries:
            try:
                return self._web3.eth.get_transaction_receipt(one.digest)
            except TransactionNotFound:
                continue
        return None

    def _insist(self, tries: list[Pending]) -> str:
        """Sees to it that the last of these is, or can be, taken into a block; adds what replaces it. In words what
        keeps all of them from the chain, which have one number.
        """
        latest = tries[-1]
        if latest.own is None:
            return ""
        enough = self._offers_enough(latest.own.fields)
        if enough and self._knows(latest.digest):
            next_number = self._web3.eth.get_transaction_count(self.address, "pending")
            # Who had waited for the one before it has its receipt, and does not look after it any more.
            return "waits for a transaction that is gone" if next_number < latest.own.fields["nonce"] else ""
        again = latest.own if enough else self._raised(latest.own)
        self._witness_transaction(again)
        try:
            digest = self._web3.eth.send_raw_transaction(again.signed.raw_transaction)
        except Web3RPCError as error:
            said = refusal_of(error)
            if _NONCE_SPENT in said:
                return "is gone, and another transaction has its number"
            if enough and not any(words in said for words in _ALREADY_THERE):
                raise
            return ""  # there meanwhile, or more than this account can offer: what is there may be taken yet
        if not enough:
            tries.append(Pending(digest, latest.call, again))
        return ""

    def _knows(self, digest: HexBytes) -> bool:
        """Whether a transaction is on the chain or on its way."""
        try:
            self._web3.eth.get_transaction(digest)
        except TransactionNotFound:
            return False
        return True

    def _offers_enough(self, fields: Mapping[str, Any]) -> bool:
        """Whether a transaction of these fields could be taken into a block now."""
        base = int(self._block("latest")["baseFeePerGas"])
        by_gas = fields["maxFeePerGas"] >= base + LEAST_TIP
        return by_gas and ("maxFeePerBlobGas" not in fields or fields["maxFeePerBlobGas"] >= self.blob_fee())

    def _raised(self, own: Own) -> Own:
        """The same with twice the offer: pools take no less for what carries blobs, and a tenth more for all else."""
        fields = dict(own.fields)
        fields["maxPriorityFeePerGas"] *= 2
        fields["maxFeePerGas"] = max(2 * fields["maxFeePerGas"], self.highest_fee())
        if "maxFeePerBlobGas" in fields:
            fields["maxFeePerBlobGas"] = max(2 * fields["maxFeePerBlobGas"], self._highest_blob_fee())
        return Own(own.unsent, fields, self._signed(own.unsent, fields))

    def send_ether(self, recipient: str, amount: int) -> None:
        to = Web3.to_checksum_address(recipient)
        self.receipt(self._submit(Unsent(HexStr("0x"), to, "transfer", ETHER_GAS, value=amount)))

    def _submit(self, unsent: Unsent) -> Pending:
        try:
            return self._signed_and_sent(unsent)
        except TransactionRejected as error:
            balance, needed = self.ether(), self._most(unsent)
            if balance < needed:
                raise EtherMissing(unsent.call, self.address, self.shown_url, balance, needed) from error
            raise

    def _most(self, unsent: Unsent) -> int:
        """The most that a transaction sent now may cost, in wei. Raises Refused, ChainUnreachable."""
        gas = unsent.gas
        if gas is None:  # without a price: nodes let nobody estimate what it could not pay
            call = {"from": self.address, "to": unsent.to, "data": unsent.data}
            with self._named_errors(unsent.call):
                estimate = self._web3.eth.estimate_gas(cast(TxParams, {k: v for k, v in call.items() if v}))
            gas = _limit(estimate)
        blobs = len(unsent.sidecars) * BLOB_GAS * self._highest_blob_fee() if unsent.sidecars else 0
        return gas * self.highest_fee() + unsent.value + blobs

    def _signed_and_sent(self, unsent: Unsent) -> Pending:
        with self._sending, self._named_errors(unsent.call):
            gas = unsent.gas
            if gas is None or unsent.tried:
                self._witnessed("trial", bytes(HexBytes(unsent.data)), unsent)
            if gas is not None and unsent.tried and not self._suffices(unsent, gas):
                gas = None
            for left in reversed(range(NONCE_TRIES)):
                fields = self._transaction(unsent, gas)
                own = Own(unsent, fields, self._signed(unsent, fields))
                self._witness_transaction(own)
                try:
                    digest = self._web3.eth.send_raw_transaction(own.signed.raw_transaction)
                    return Pending(digest, unsent.call, own)
                except Web3RPCError as error:
                    if not left or not any(words in refusal_of(error) for words in _NONCE_TAKEN):
                        raise
                    time.sleep(NONCE_PAUSE)
            raise AssertionError("the last try ends it")

    def _signed(self, unsent: Unsent, fields: Mapping[str, Any]) -> SignedTransaction:
        token = _signing.set({sidecar.blob: sidecar for sidecar in unsent.sidecars})
        blobs = {"blobs": [sidecar.blob for sidecar in unsent.sidecars]} if unsent.sidecars else {}
        try:
            signed: SignedTransaction = Account.sign_transaction(dict(fields), self.signer.key, **blobs)
            return signed
        finally:
            _signing.reset(token)

    def _witness_transaction(self, own: Own) -> None:
        calldata = hashlib.sha256(HexBytes(own.unsent.data)).hexdigest()
        which = {"calldata": calldata, "transaction": own.signed.hash.to_0x_hex()}
        self._witnessed("transaction", bytes(own.signed.raw_transaction), own.unsent, **which)

    def _witnessed(self, kind: str, content: bytes, unsent: Unsent, **which: str) -> None:
        if self.witness is not None:
            contract = unsent.to or ""
            self.witness.leaving(kind, self.shown_url, content, call=unsent.call, contract=contract, **which)

    def _transaction(self, unsent: Unsent, gas: int | None) -> dict[str, Any]:
        transaction: dict[str, Any] = {
            "chainId": self.chain_id,
            "nonce": self._web3.eth.get_transaction_count(self.address, "pending"),
            "data": unsent.data,
            "value": unsent.value,
            "maxPriorityFeePerGas": TIP,
            "maxFeePerGas": self.highest_fee(),
        }
        if unsent.to is not None:
            transaction["to"] = unsent.to
        if unsent.sidecars:
            transaction |= {"type": 3, "maxFeePerBlobGas": self._highest_blob_fee()}
        if unsent.authorizations:
            transaction |= {"authorizationList": list(unsent.authorizations)}
        if gas is None:
            estimate = self._web3.eth.estimate_gas({**transaction, "from": self.address})  # type: ignore[typeddict-item]
            gas = _limit(estimate)
        return transaction | {"gas": gas}

    def _suffices(self, unsent: Unsent, gas: int) -> bool:
        """Whether the call goes through with so much gas. What keeps it from that, an estimate says: to find out whose
        of many updates is wrong takes the contract more than to find none wrong.
        """
        try:
            call = {"from": self.address, "to": unsent.to, "data": unsent.data, "gas": gas}
            self._web3.eth.call(cast(TxParams, call))
        except (ContractLogicError, Web3RPCError):
            return False
        return True

    @contextmanager
    def _named_errors(self, call: str) -> Iterator[None]:
        """What web3 raises, by this room's names."""
        try:
            yield
        except (ContractCustomError, ContractLogicError) as error:
            raise refused(error, call) from error
        except Web3RPCError as error:
            raise TransactionRejected(call, self.address, self.shown_url, refusal_of(error)) from error
        except requests.exceptions.RequestException as error:
            raise ChainUnreachable(self.shown_url, type(error).__name__) from error

    def _why_refused(self, digest: HexBytes, call: str) -> Refused:
        """The named error of a transaction that the chain carried and the contract refused."""
        trace = self._web3.provider.make_request("debug_traceTransaction", [digest.to_0x_hex(), _LAST_WORD])  # type: ignore[arg-type]
        if "result" not in trace:  # providers that many share trace nothing
            return self._refused_again(digest, call)
        result: dict[str, Any] = dict(trace["result"] or {})
        return refusal_from(bytes(HexBytes(str(result.get("returnValue", "0x")))), call)

    def _refused_again(self, digest: HexBytes, call: str) -> Refused:
        """What the contract says to the same call after the transaction's block, which most often is what it said."""
        sent = cast(Mapping[str, Any], self._web3.eth.get_transaction(digest))
        same = {name: sent[name] for name in ("from", "to", "value", "gas") if sent.get(name) is not None}
        try:
            self._web3.eth.call(cast(TxParams, same | {"data": sent["input"]}), block_identifier=sent["blockNumber"])
        except (ContractCustomError, ContractLogicError) as error:
            return refused(error, call)
        return refusal_from(b"", call)

    def now(self) -> int:
        """The chain's clock: timestamp of the latest block, in seconds."""
        return self._time_of("latest")

    def time_of(self, block: int) -> int:
        """A block's timestamp, in seconds. Raises ChainUnreachable."""
        return self._time_of(block)

    def _time_of(self, which: Any) -> int:
        block = self._block(which)
        with self._reading():
            return int(block["timestamp"])

    def highest_fee(self) -> int:
        """What a transaction sent now offers for gas, in wei: most often it pays half. Raises ChainUnreachable."""
        return 2 * int(self._block("latest")["baseFeePerGas"]) + TIP

    def _highest_blob_fee(self) -> int:
        """What a transaction sent now offers for blob gas, in wei. Raises ChainUnreachable."""
        return max(2 * self.blob_fee(), BLOB_FEE)

    def present_fee(self) -> int:
        """What a transaction in the next block would about pay for gas, in wei. Raises ChainUnreachable."""
        return int(self._block("latest")["baseFeePerGas"]) + TIP

    def blob_fee(self) -> int:
        """What blob gas costs, in wei (EIP-7516). Raises ChainUnreachable."""
        with self._reading():
            return int(self._web3.eth.blob_base_fee)

    def block_seconds(self) -> float:
        """The median distance of the latest blocks. Raises ChainUnreachable."""
        latest = self.block_number()
        stamps = [self.time_of(number) for number in range(max(0, latest - BLOCKS_TIMED), latest + 1)]
        return float(median(b - a for a, b in pairwise(stamps))) if len(stamps) > 1 else 0.0

    def block_number(self) -> int:
        """Raises ChainUnreachable."""
        with self._reading():
            return int(self._web3.eth.block_number)

    def ether(self) -> int:
        """What this account has to pay for gas, in wei. Raises ChainUnreachable."""
        return self.ether_of(self.address)

    def ether_of(self, account: str) -> int:
        """In wei. Raises ChainUnreachable."""
        with self._reading():
            return int(self._web3.eth.get_balance(Web3.to_checksum_address(account)))

    def next_block(self, seen: int, patience: float = 2.0) -> int:
        """Waits for a block after `seen`: nothing on chain changes without one. Returns the latest block's number.

        After `patience` seconds without one it returns all the same, so that the caller can look after other things.
        """
        end, pause = time.monotonic() + patience, BLOCK_POLL
        while True:
            number = self.block_number()
            if number > seen or time.monotonic() > end:
                return number
            time.sleep(pause)
            pause = min(1.5 * pause, SLOWEST_BLOCK_POLL)

    def _block(self, which: Any, full: bool = False) -> BlockData:
        """`full`: with its transactions, not only their hashes. Raises ChainUnreachable, also where there is none."""
        try:
            with self._reading():
                return self._web3.eth.get_block(which, full_transactions=full)
        except BlockNotFound as error:
            raise ChainUnreachable(self.shown_url, f"what answers there has no block {which}") from error

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """What gives no answer, refuses to (a rate limit), or answers in no form, raises ChainUnreachable."""
        try:
            yield
        except requests.exceptions.RequestException as error:
            raise ChainUnreachable(self.shown_url, type(error).__name__) from error
        except (BlockNotFound, TransactionNotFound, ContractLogicError, BadFunctionCallOutput):
            raise
        except Web3RPCError as error:
            raise ChainUnreachable(self.shown_url, refusal_of(error)) from error
        except (Web3Exception, *NO_LOG) as error:
            raise ChainUnreachable(self.shown_url, "what answers there answers something else") from error

    def block_hash(self, number: int) -> bytes:
        """32 bytes. Raises ChainUnreachable."""
        return bytes(self._block(number)["hash"])

    def head(self, number: int | None = None) -> Head | None:
        """A block, by default the latest; None where the chain has none of that number. Raises ChainUnreachable."""
        try:
            with self._reading():
                block = self._web3.eth.get_block("latest" if number is None else number)
                return Head(int(block["number"]), bytes(block["hash"]), int(block["timestamp"]))
        except BlockNotFound:
            return None

    def header(self, number: int) -> bytes:
        """RLP of a block's header, of which the block's hash is the keccak256."""
        block = self._block(number)
        with self._reading():
            header: bytes = rlp.encode([_header_field(block[name]) for name in _HEADER_FIELDS if name in block])  # type: ignore[literal-required]
        return header

    def events(
        self, contract: Contract, first_block: int, last_block: int, name: str | None = None, **indexed: Any
    ) -> Iterator[Event]:
        """Decoded events of a contract in the blocks [first, last], in order.

        With `name` only that event's, and of these only those whose indexed fields have the given values, by as many
        requests as the node wants. Raises ChainUnreachable, without `name` also where the node refuses so many blocks.
        """
        if name is None:
            yield from self.events_of([contract], first_block, last_block)
            return
        event = contract.events[name]()

        def read(first: int, last: int) -> list[Any]:
            with self._reading():
                return list(event.get_logs(indexed, from_block=first, to_block=last))

        for decoded in self._in_spans(read, first_block, last_block):
            yield _event(decoded, str(contract.address))

    @property
    def bounds_spans(self) -> bool:
        """Whether the node has refused to give the events of many blocks at once."""
        return self._span < LONGEST_SPAN

    def _in_spans(self, read: Callable[[int, int], list[Any]], first: int, last: int) -> Iterator[Any]:
        """All of the blocks [first, last], of as many at once as the node gives: providers bound that, each otherwise.

        Raises ChainUnreachable, where it does not even give one block's.
        """
        while first <= last:
            end = min(last, first + self._span - 1)
            try:
                found = read(first, end)
            except ChainUnreachable:
                self.block_number()  # raises where it answers nothing at all
                if end == first:
                    raise
                self._span = (end - first + 1) // 2
                continue
            if end - first + 1 == self._span:
                self._span = min(self._span + self._span // 4 + 1, LONGEST_SPAN)
            yield from found
            first = end + 1

    def events_of(self, contracts: Sequence[Contract], first_block: int, last_block: int) -> list[Event]:
        """Decoded events of contracts in the blocks [first, last], in order, by one request: of one state of the chain.

        Raises ChainUnreachable, also where the node refuses so many blocks at once.
        """
        decoders = {contract.address.lower(): LogDecoder(contract.abi, contract.address) for contract in contracts}
        asked = {"address": list(decoders), "fromBlock": hex(first_block), "toBlock": hex(last_block)}
        with self._reading():
            answer = self._web3.provider.make_request(RPCEndpoint("eth_getLogs"), [asked])
        if "error" in answer:
            raise ChainUnreachable(self.shown_url, message_of(answer))
        try:
            found = [decoders[log["address"].lower()].event(log) for log in answer["result"]]
        except NO_LOG as error:
            raise ChainUnreachable(self.shown_url, "what answers there gives no logs") from error
        return sorted((one for one in found if one is not None), key=lambda one: (one.block, one.index))

    def calls_of(self, contract: Contract, first_block: int, last_block: int) -> Iterator[NamedCall]:
        """Calls that transactions in the blocks [first, last] make of a contract, and those in its `multicall`; failed
        ones, too. Not what another contract called: no transaction shows it. Raises ChainUnreachable.
        """
        for number in range(first_block, last_block + 1):
            for sent in self._block(number, full=True)["transactions"]:
                transaction = cast(Mapping[str, Any], sent)
                if transaction.get("to") != contract.address:
                    continue
                call = _decoded("", contract, transaction["input"])
                inner = call.arguments["data"] if call is not None and call.name == MULTICALL else []
                yield from (one for one in [call, *(_decoded("", contract, data) for data in inner)] if one is not None)

    def sent(self, transaction: str) -> Sent:
        """A transaction on the chain. Raises ChainUnreachable, also where there is none."""
        try:
            with self._reading():
                found = cast(Mapping[str, Any], self._web3.eth.get_transaction(HexStr(transaction)))
        except TransactionNotFound as error:
            raise ChainUnreachable(self.shown_url, f"what answers there has no transaction {transaction}") from error
        return Sent(str(found["from"]), str(found.get("to") or ""), bytes(HexBytes(found["input"])))

    def gas_of(self, transaction: str) -> int:
        return int(self._web3.eth.get_transaction_receipt(HexStr(transaction))["gasUsed"])


def _limit(estimate: int) -> int:
    return min(estimate * 3 // 2 + GAS_MARGIN, TRANSACTION_GAS_LIMIT)


_HEADER_FIELDS = (
    "parentHash", "sha3Uncles", "miner", "stateRoot", "transactionsRoot", "receiptsRoot", "logsBloom", "difficulty",
    "number", "gasLimit", "gasUsed", "timestamp", "extraData", "mixHash", "nonce", "baseFeePerGas", "withdrawalsRoot",
    "blobGasUsed", "excessBlobGas", "parentBeaconBlockRoot", "requestsHash",
)  # fmt: skip


def _header_field(value: Any) -> bytes:
    if isinstance(value, int):
        return value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes(HexBytes(value))


def _event(decoded: Any, contract: str) -> Event:
    return Event(
        name=decoded["event"],
        values=dict(decoded["args"]),
        block=decoded["blockNumber"],
        index=decoded["logIndex"],
        transaction=HexBytes(decoded["transactionHash"]).to_0x_hex(),
        contract=contract,
        block_hash=bytes(decoded["blockHash"]),
    )


def _decoded(name: str, contract: Contract, data: bytes) -> NamedCall | None:
    """A call of `contract`, which the answer calls `name`; None where it is of none of its functions."""
    try:
        function, arguments = contract.decode_function_input(HexBytes(data))
    except (ValueError, Web3Exception, DecodingError):
        return None
    return NamedCall(name, function.fn_name, arguments)
