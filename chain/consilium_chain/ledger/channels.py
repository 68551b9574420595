"""Channels and sales of models: a buyer's deposits and vouchers, payments by signature, and a server's receipts.

A voucher states all that a buyer owes in its channel since the first deposit (`IChannels.sol`). A payment by signature
is ERC-3009's `transferWithAuthorization` to the server's till, as x402's scheme `exact` has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from eth_account.messages import SignableMessage, encode_typed_data
from eth_account.signers.local import LocalAccount
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from consilium_chain.ledger.contracts import Contracts
from consilium_chain.ledger.shares import split_of
from consilium_chain.rpc.outgoing import Receipt as Sent
from consilium_chain.typed_data import Struct, typed_data
from consilium_chain.wallet_signatures import signer_of

DOMAIN: Final = "Consilium model shares"
TOKEN_DOMAIN: Final = "Consilium"
VOUCHER: Final[Struct] = {
    "buyer": "address", "server": "address", "taskId": "uint256", "amount": "uint256", "expiresAt": "uint256",
}  # fmt: skip
AUTHORIZATION: Final[Struct] = {
    "from": "address", "to": "address", "value": "uint256", "validAfter": "uint256", "validBefore": "uint256",
    "nonce": "bytes32",
}  # fmt: skip
RECEIPT: Final[Struct] = {
    "taskId": "uint256", "server": "address", "buyer": "address", "amount": "uint256", "payment": "bytes32",
    "model": "bytes32", "request": "bytes32", "response": "bytes32",
}  # fmt: skip
MOST_AMOUNT: Final = 2**96 - 1


@dataclass(frozen=True)
class Channel:
    """Amounts in the token's smallest unit. `closes_at`: unix time from which the buyer can withdraw; 0 while open."""

    deposited: int
    redeemed: int
    closes_at: int


@dataclass(frozen=True)
class Voucher:
    """`amount`: all that the buyer owes in this channel. `expires_at`: unix time. `signature`: 65 bytes."""

    task: int
    server: str
    buyer: str
    amount: int
    expires_at: int
    signature: bytes

    @property
    def on_chain(self) -> tuple[str, int, int, bytes]:
        """As the contract's struct."""
        return (self.buyer, self.amount, self.expires_at, self.signature)


@dataclass(frozen=True)
class Authorization:
    """A transfer that `payer` allows by its signature (ERC-3009). `nonce`: 32 bytes; times are unix times."""

    payer: str
    to: str
    value: int
    valid_after: int
    valid_before: int
    nonce: bytes
    signature: bytes

    @property
    def vrs(self) -> tuple[int, bytes, bytes]:
        return self.signature[64], self.signature[:32], self.signature[32:64]


@dataclass(frozen=True)
class SaleReceipt:
    """A server's word on one request. `amount`: its price. `payment`: the voucher's digest, or the authorization's
    nonce. `model`, `request`, `response`: SHA-256 of the parameters, and of the bytes of the two bodies.
    """

    task: int
    server: str
    buyer: str
    amount: int
    payment: bytes
    model: bytes
    request: bytes
    response: bytes

    @property
    def values(self) -> dict[str, Any]:
        """By the struct's names."""
        fields = (
            self.task, self.server, self.buyer, self.amount, self.payment, self.model, self.request, self.response,
        )  # fmt: skip
        return dict(zip(RECEIPT, fields, strict=True))


@dataclass(frozen=True)
class Offer:
    """`price`: of one prediction, in the token's smallest unit."""

    task: int
    server: str
    price: int
    url: str


class SaleMessages:
    """The messages of one deployment that buyers and servers sign. Pure."""

    def __init__(self, chain_id: int, model_shares: str, token: str) -> None:
        self._chain_id, self._shares, self._token = chain_id, model_shares, token

    def voucher(self, task: int, server: str, buyer: str, amount: int, expires_at: int) -> SignableMessage:
        values = (buyer, server, task, amount, expires_at)
        return self._message(DOMAIN, self._shares, "Voucher", VOUCHER, dict(zip(VOUCHER, values, strict=True)))

    def receipt(self, receipt: SaleReceipt) -> SignableMessage:
        return self._message(DOMAIN, self._shares, "Receipt", RECEIPT, receipt.values)

    def transfer(self, payment: Authorization) -> SignableMessage:
        """The consent to a transfer that anybody may send (`transferWithAuthorization`)."""
        return self._authorization("TransferWithAuthorization", payment)

    def deposit(self, payment: Authorization) -> SignableMessage:
        """The consent to a transfer that only its recipient may take (`receiveWithAuthorization`)."""
        return self._authorization("ReceiveWithAuthorization", payment)

    def _authorization(self, name: str, payment: Authorization) -> SignableMessage:
        values = (
            payment.payer, payment.to, payment.value, payment.valid_after, payment.valid_before, payment.nonce,
        )  # fmt: skip
        fields = dict(zip(AUTHORIZATION, values, strict=True))
        return self._message(TOKEN_DOMAIN, self._token, name, AUTHORIZATION, fields)

    def _message(
        self, domain: str, contract: str, name: str, struct: Struct, values: dict[str, Any]
    ) -> SignableMessage:
        return encode_typed_data(full_message=typed_data(domain, self._chain_id, contract, {name: struct}, values))

    def of_voucher(self, voucher: Voucher) -> SignableMessage:
        return self.voucher(voucher.task, voucher.server, voucher.buyer, voucher.amount, voucher.expires_at)

    def has_signed(self, voucher: Voucher) -> bool:
        """True if the buyer's key signed the voucher."""
        return signer_of(self.of_voucher(voucher), voucher.signature) == voucher.buyer

    def has_allowed_transfer(self, payment: Authorization) -> bool:
        """True if the payer's key signed the transfer."""
        return signer_of(self.transfer(payment), payment.signature) == payment.payer

    def has_allowed_deposit(self, payment: Authorization) -> bool:
        """True if the payer's key signed the deposit."""
        return signer_of(self.deposit(payment), payment.signature) == payment.payer


def digest_of(message: SignableMessage) -> bytes:
    """The 32 bytes that are signed (EIP-712)."""
    return keccak(b"\x19" + message.version + message.header + message.body)


def deposit_nonce(task: int, server: str, salt: bytes) -> bytes:
    """The nonce of a deposit by signature, which binds it to one channel. `salt`: 32 bytes."""
    return keccak(task.to_bytes(32, "big") + bytes.fromhex(server[2:]).rjust(32, b"\0") + salt)


class Channels:
    """Every method raises ChainUnreachable, DeploymentInvalid and Refused, with the contract's errors."""

    def __init__(self, contracts: Contracts) -> None:
        self._contracts, self._shares, self._token = contracts, contracts.model_shares, contracts.token
        deployment = contracts.deployment
        self.messages = SaleMessages(deployment.chain_id, deployment.model_shares, deployment.token)

    @property
    def account(self) -> LocalAccount:
        """This account, to sign vouchers and receipts."""
        return self._contracts.connection.signer

    def of(self, task: int, server: str, buyer: str) -> Channel:
        return Channel(*self._shares.read("channel", task, server, buyer))

    def offers(self, task: int | None = None) -> list[Offer]:
        """The last offer of each server and task, without those that are withdrawn."""
        connection, first = self._contracts.connection, self._contracts.deployment.first_block
        indexed = {} if task is None else {"taskId": task}
        found: dict[tuple[int, str], Offer] = {}
        logs = connection.logs.events(self._shares.contract, first, connection.blocks.number(), "Offered", **indexed)
        for event in logs:
            values = event.values
            offer = Offer(int(values["taskId"]), str(values["server"]), int(values["price"]), str(values["url"]))
            found[offer.task, offer.server] = offer
        return [offer for offer in found.values() if offer.price]

    def offer(self, task: int, price: int, url: str) -> Sent:
        """Tells buyers of this account's service."""
        return self._shares.send("offer", task, price, url)

    def voucher(self, task: int, server: str, amount: int, expires_at: int) -> Voucher:
        """Signed by this account."""
        signed = self.account.sign_message(
            self.messages.voucher(task, server, self.account.address, amount, expires_at)
        )
        return Voucher(task, server, self.account.address, amount, expires_at, bytes(signed.signature))

    def deposit(self, task: int, server: str, amount: int) -> Sent:
        self._token.send("approve", self._contracts.deployment.model_shares, amount)
        return self._shares.send("deposit", task, server, amount)

    def deposit_for(self, task: int, server: str, payment: Authorization, salt: bytes) -> Sent:
        """Sends a buyer's deposit, which its signature allows."""
        v, r, s = payment.vrs
        consent = (payment.valid_after, payment.valid_before, salt, v, r, s)
        return self._shares.send("depositFor", payment.payer, task, server, payment.value, consent)

    def redeem(self, vouchers: Sequence[Voucher]) -> tuple[int, int]:
        """Redeems vouchers of one task and server. Returns the sum, and the server's fee of it."""
        first = vouchers[0]
        receipt = self._shares.send("redeem", first.task, first.server, [one.on_chain for one in vouchers])
        return split_of(self._contracts, receipt, first.task)

    def close(self, task: int, server: str) -> Sent:
        """Begins to close this account's channel. A day later it can withdraw."""
        return self._shares.send("close", task, server)

    def withdraw(self, task: int, server: str) -> Sent:
        return self._shares.send("withdraw", task, server)

    def transfer(self, payment: Authorization) -> Sent:
        """Sends a payer's transfer, which its signature allows."""
        return self._token.send("transferWithAuthorization", *_arguments(payment))

    def is_used(self, payment: Authorization) -> bool:
        """True once the authorization has moved its money, or is cancelled."""
        return bool(self._token.read("authorizationState", payment.payer, payment.nonce))

    def has_arrived(self, payment: Authorization, first_block: int) -> bool:
        """True if a transaction from this block on used the authorization, and moved its whole amount to `to`."""
        connection = self._contracts.connection
        contract, last = self._token.contract, connection.blocks.number()
        logs = connection.logs
        for used in logs.events(contract, first_block, last, "AuthorizationUsed", authorizer=payment.payer):
            if bytes(used.values["nonce"]) != payment.nonce:
                continue
            moved = logs.events(contract, used.block, used.block, "Transfer", **{"from": payment.payer})
            return any(
                one.transaction == used.transaction
                and one.values["to"] == to_checksum_address(payment.to)
                and one.values["value"] == payment.value
                for one in moved
            )
        return False

    def block(self) -> int:
        """The latest block's number."""
        return self._contracts.connection.blocks.number()


def _arguments(payment: Authorization) -> tuple[Any, ...]:
    times = (payment.valid_after, payment.valid_before)
    return (payment.payer, payment.to, payment.value, *times, payment.nonce, *payment.vrs)
