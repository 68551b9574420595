"""Payments on the wire, by x402 (version 2, github.com/coinbase/x402): status 402, and three headers of base64 JSON.

| header | of | content |
|---|---|---|
| `PAYMENT-REQUIRED` | an answer with status 402 | `accepts`: the ways to pay, with the amount |
| `PAYMENT-SIGNATURE` | a request | the signed payment |
| `PAYMENT-RESPONSE` | an answer with status 200 | the payment that was taken |
| `CONSILIUM-RECEIPT` | an answer with status 200 | the server's signed receipt |

There are two ways: x402's scheme `exact`, an ERC-3009 transfer to the server's till, one transaction for each request;
and `consilium-voucher`, a signed sum in a channel, without a transaction.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from consilium_chain.addresses import checked_address
from consilium_chain.errors import NotPossible
from consilium_chain.ledger.channels import MOST_AMOUNT, TOKEN_DOMAIN, Authorization, SaleReceipt, Voucher
from consilium_core.strict_json import parse_json
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from consilium_operators.market.errors import PaymentRefused

VERSION: Final = 2
REQUIRED, SIGNATURE, RESPONSE, RECEIPT = (
    "PAYMENT-REQUIRED", "PAYMENT-SIGNATURE", "PAYMENT-RESPONSE", "CONSILIUM-RECEIPT",
)  # fmt: skip
EXACT, VOUCHERS = "exact", "consilium-voucher"
MOST_HEADER: Final = 8_192  # characters
TRANSFER_SECONDS: Final = 120  # that an authorization must be valid
MOST_TIME: Final = 2**48


def _number(text: object) -> object:
    """JSON of wallets has integers as strings."""
    if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= 30:
        return int(text)
    return text


def _hex(text: object) -> object:
    if isinstance(text, str) and text.startswith("0x"):
        try:
            return binascii.unhexlify(text[2:])
        except (binascii.Error, ValueError):
            return text
    return text


def _checked(address: str) -> str:
    """Wallets write addresses in either case."""
    try:
        return checked_address(address)
    except NotPossible as error:
        raise ValueError(error.name) from None


Amount = Annotated[int, BeforeValidator(_number), Field(ge=0, le=MOST_AMOUNT, strict=True)]
Time = Annotated[int, BeforeValidator(_number), Field(ge=0, le=MOST_TIME, strict=True)]
Address = Annotated[str, Field(max_length=42), AfterValidator(_checked)]
Bytes32 = Annotated[bytes, BeforeValidator(_hex), Field(min_length=32, max_length=32, strict=True)]
Key65 = Annotated[bytes, BeforeValidator(_hex), Field(min_length=65, max_length=65, strict=True)]


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class _Transfer(_Plain):
    payer: Address = Field(alias="from")
    to: Address
    value: Amount
    valid_after: Time = Field(alias="validAfter")
    valid_before: Time = Field(alias="validBefore")
    nonce: Bytes32


class _Exact(_Plain):
    authorization: _Transfer
    signature: Key65


class _Voucher(_Plain):
    buyer: Address
    server: Address
    task: Annotated[int, BeforeValidator(_number), Field(ge=1, lt=2**64, strict=True, alias="taskId")]
    amount: Amount
    expires_at: Time = Field(alias="expiresAt")
    signature: Key65


class _Accepted(_Plain):
    scheme: Literal["exact", "consilium-voucher"]
    network: str


class _Signed(_Plain):
    version: Literal[2] = Field(alias="x402Version")
    accepted: _Accepted
    payload: dict[str, Any]


class _Receipt(_Plain):
    task: Annotated[int, BeforeValidator(_number), Field(ge=1, lt=2**64, strict=True, alias="taskId")]
    server: Address
    buyer: Address
    amount: Amount
    payment: Bytes32
    model: Bytes32
    request: Bytes32
    response: Bytes32
    signature: Key65


class _Deposit(_Plain):
    authorization: _Transfer
    salt: Bytes32
    signature: Key65


Payment = Voucher | Authorization


def network_of(chain_id: int) -> str:
    """CAIP-2."""
    return f"eip155:{chain_id}"


@dataclass(frozen=True)
class Terms:
    """A server's, of one request. `price`: of all its rows. `till`: where `exact` pays. `takes_transfers`: the price is
    worth a transaction.
    """

    chain_id: int
    token: str
    model_shares: str
    task: int
    server: str
    till: str
    price: int
    expires_after: int
    takes_transfers: bool

    @property
    def accepts(self) -> list[dict[str, Any]]:
        common = {
            "network": network_of(self.chain_id), "asset": self.token, "amount": str(self.price),
            "maxTimeoutSeconds": 2 * TRANSFER_SECONDS,
        }  # fmt: skip
        of_token = {"name": TOKEN_DOMAIN, "version": "1", "assetTransferMethod": "eip3009"}
        of_channel = {
            "taskId": str(self.task), "verifyingContract": self.model_shares, "expiresAfter": self.expires_after,
        }  # fmt: skip
        exact = {"scheme": EXACT, **common, "payTo": self.till, "extra": of_token}
        vouchers = {"scheme": VOUCHERS, **common, "payTo": self.server, "extra": of_channel}
        return [exact, vouchers] if self.takes_transfers else [vouchers]


def encoded(content: Mapping[str, Any]) -> str:
    """A header's value."""
    return base64.b64encode(json.dumps(content).encode()).decode()


def decoded(value: str) -> object:
    """Raises ValueError."""
    if len(value) > MOST_HEADER:
        raise ValueError(f"it has more than {MOST_HEADER} characters")
    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("it is not base64") from None
    return parse_json(raw)


def parse_payment(value: str, chain_id: int) -> Payment:
    """Raises PaymentRefused (PaymentMalformed, PaymentForeign)."""
    try:
        signed = _Signed.model_validate(decoded(value))
        if signed.accepted.network != network_of(chain_id):
            raise PaymentRefused("PaymentForeign", what="another chain")
        if signed.accepted.scheme == EXACT:
            exact = _Exact.model_validate(signed.payload)
            return authorization_of(exact.authorization, exact.signature)
        voucher = _Voucher.model_validate(signed.payload)
    except ValidationError as error:
        raise PaymentRefused("PaymentMalformed", why=_first(error)) from None
    except ValueError as error:
        raise PaymentRefused("PaymentMalformed", why=error) from None
    return Voucher(**voucher.model_dump())


def authorization_of(transfer: _Transfer, signature: bytes) -> Authorization:
    return Authorization(**transfer.model_dump(), signature=signature)


def parse_deposit(raw: bytes) -> tuple[Authorization, bytes]:
    """A deposit by signature, and its salt. Raises PaymentRefused (PaymentMalformed)."""
    try:
        found = _Deposit.model_validate(parse_json(raw))
    except ValidationError as error:
        raise PaymentRefused("PaymentMalformed", why=_first(error)) from None
    except ValueError as error:
        raise PaymentRefused("PaymentMalformed", why=error) from None
    return authorization_of(found.authorization, found.signature), found.salt


def _first(error: ValidationError) -> str:
    fault = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"


def shown_payment(payment: Payment) -> dict[str, Any]:
    """x402's `payload`."""
    if isinstance(payment, Voucher):
        return {
            "buyer": payment.buyer, "server": payment.server, "taskId": str(payment.task),
            "amount": str(payment.amount), "expiresAt": str(payment.expires_at),
            "signature": "0x" + payment.signature.hex(),
        }  # fmt: skip
    return {"authorization": shown_transfer(payment), "signature": "0x" + payment.signature.hex()}


def shown_transfer(payment: Authorization) -> dict[str, str]:
    return {
        "from": payment.payer, "to": payment.to, "value": str(payment.value), "validAfter": str(payment.valid_after),
        "validBefore": str(payment.valid_before), "nonce": "0x" + payment.nonce.hex(),
    }  # fmt: skip


def shown_receipt(receipt: SaleReceipt, signature: bytes) -> dict[str, str]:
    """With bytes as hex, and integers as strings."""
    shown = {
        name: f"0x{value.hex()}" if isinstance(value, bytes) else str(value) for name, value in receipt.values.items()
    }
    return {**shown, "signature": f"0x{signature.hex()}"}


def parse_receipt(content: object) -> tuple[SaleReceipt, bytes]:
    """A receipt and its signature. Raises ValueError."""
    try:
        found = _Receipt.model_validate(content)
    except ValidationError as error:
        raise ValueError(_first(error)) from None
    return SaleReceipt(**found.model_dump(exclude={"signature"})), found.signature
