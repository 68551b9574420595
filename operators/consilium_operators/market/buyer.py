"""Buys predictions from a server, by vouchers, and checks each receipt before it believes an answer.

A request is repeated with the same voucher until its answer comes, so nothing is paid twice. The buyer keeps no books:
the server shows the last voucher, which only this account can have signed.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar
from urllib.parse import urlsplit

import httpx
from consilium_chain.ledger.channels import (
    MOST_AMOUNT,
    Authorization,
    SaleReceipt,
    Voucher,
    deposit_nonce,
    digest_of,
)
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.wallet_signatures import signer_of
from consilium_core.strict_json import parse_json
from consilium_core.visible_text import shown
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from consilium_operators.market import wire
from consilium_operators.market.errors import SaleError
from consilium_operators.market.receipts import Bought
from consilium_operators.model_folder import Digest

VOUCHER_SECONDS: Final = 7 * 86_400  # that a voucher is good
MOST_ANSWER: Final = 1 << 26  # bytes
RETRY_SECONDS: Final = 60.0
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


_Kind = TypeVar("_Kind", bound=BaseModel)


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class _Sale(_Plain):
    chain_id: int = Field(alias="chainId")
    task: wire.Amount = Field(alias="taskId")
    model_shares: wire.Address = Field(alias="modelShares")
    server: wire.Address
    price: wire.Amount
    expires_after: int = Field(alias="expiresAfter", ge=0, le=VOUCHER_SECONDS)
    least_deposit: wire.Amount = Field(alias="leastDeposit")


class _Predict(_Plain):
    most_rows: int = Field(ge=1)


class _Described(_Plain):
    sha256: Digest
    predict: _Predict
    columns: list[str]
    sale: _Sale


class _Last(_Plain):
    sold: wire.Amount
    expires_at: wire.Time | None = Field(alias="expiresAt")
    signature: wire.Key65 | None


class _Lost(Exception):
    """No answer came, or none yet: the request goes out again."""


@dataclass(frozen=True)
class Account:
    """The state of a channel, in the token's smallest unit. `left`: of the deposit, to spend."""

    sold: int
    deposited: int

    @property
    def left(self) -> int:
        return self.deposited - self.sold


class Buyer:
    """One account at one server. Every method raises SaleError (ServerUnreachable, ServerMalformed, ServerRefused)."""

    def __init__(
        self,
        ledger: Ledger,
        url: str,
        clock: Callable[[], float] = time.time,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        """Raises SaleError also for UrlNotEncrypted, and BookLies."""
        parts = urlsplit(url)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
            raise SaleError("UrlNotEncrypted", url=shown(url))
        self.url, self._ledger, self._clock, self._retry_seconds = url.rstrip("/"), ledger, clock, retry_seconds
        self._http = httpx.Client(timeout=httpx.Timeout(60, connect=10), follow_redirects=False)
        self._channels = ledger.channels
        try:
            self._begin()
        except SaleError:
            self._http.close()
            raise

    def _begin(self) -> None:
        described = self._parsed(_Described, self._ask("GET", "/")[0])
        self._sale, self.columns = described.sale, described.columns
        self.most_rows = described.predict.most_rows
        self._model = bytes.fromhex(described.sha256)
        deployment = self._ledger.deployment
        if (self._sale.chain_id, self._sale.model_shares) != (deployment.chain_id, deployment.model_shares):
            raise SaleError("ServerMalformed", url=self.url, why="it sells on another chain or deployment")
        self._sold = self._read_sold()

    @property
    def address(self) -> str:
        """This buyer's account."""
        return self._ledger.address

    @property
    def price(self) -> int:
        """The price of one prediction, in the token's smallest unit."""
        return self._sale.price

    @property
    def task(self) -> int:
        return self._sale.task

    @property
    def server(self) -> str:
        return self._sale.server

    @property
    def account(self) -> Account:
        """As the chain and the vouchers have it now."""
        return Account(self._sold, self._channels.of(self.task, self.server, self._ledger.address).deposited)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def _read_sold(self) -> int:
        """All that is owed in the channel. A server that claims more must have this account's voucher."""
        address = self._ledger.address
        last = self._parsed(_Last, self._ask("GET", f"/channels/{address}")[0])
        redeemed = self._channels.of(self.task, self.server, address).redeemed
        if last.sold > redeemed:
            voucher = Voucher(self.task, self.server, address, last.sold, last.expires_at or 0, last.signature or b"")
            if not self._channels.messages.has_signed(voucher):
                raise SaleError("BookLies", sold=last.sold)
        return max(last.sold, redeemed)

    def deposit(self, amount: int) -> None:
        """Deposits by a signature, which the server sends: this account needs no ether."""
        salt, now = secrets.token_bytes(32), int(self._clock())
        nonce = deposit_nonce(self.task, self.server, salt)
        to, address = self._sale.model_shares, self._ledger.address
        unsigned = Authorization(address, to, amount, 0, now + 3_600, nonce, b"")
        signature = self._channels.account.sign_message(self._channels.messages.deposit(unsigned)).signature
        content = {
            "authorization": wire.shown_transfer(unsigned),
            "salt": "0x" + salt.hex(),
            "signature": "0x" + signature.hex(),
        }
        try:
            self._ask("POST", "/deposits", json=content)
        except SaleError:
            if not self._channels.is_used(unsigned):  # an earlier try may have arrived, and its answer not
                raise

    def predict(self, body: bytes, rows: int, on_answer: Callable[[Bought], None] = lambda bought: None) -> Bought:
        """Pays for a request and gets its answer. `body`: {"rows": […]}. `rows`: their number. `on_answer` gets the
        answer before its check, to keep a wrong one as evidence.

        Raises SaleError also for ReceiptWrong.
        """
        cost = self.price * rows
        amount = self._sold + cost
        if amount > MOST_AMOUNT:
            raise SaleError("ServerMalformed", url=self.url, why="its price is larger than any amount")
        expires_at = int(self._clock()) + VOUCHER_SECONDS
        voucher = self._channels.voucher(self.task, self.server, amount, expires_at)
        signed = {
            "x402Version": wire.VERSION,
            "accepted": {"scheme": wire.VOUCHERS, "network": wire.network_of(self._sale.chain_id)},
            "payload": wire.shown_payment(voucher),
        }
        headers = {"content-type": "application/json", wire.SIGNATURE: wire.encoded(signed)}
        answer, answered = self._ask("POST", "/predict", content=body, headers=headers)
        self._sold = amount
        mark = digest_of(self._channels.messages.of_voucher(voucher))
        hashes = (hashlib.sha256(body).digest(), hashlib.sha256(answer).digest())
        wanted = SaleReceipt(self.task, self.server, voucher.buyer, cost, mark, self._model, *hashes)
        return self._checked(answered, wanted, body, answer, on_answer)

    def _checked(
        self,
        headers: httpx.Headers,
        wanted: SaleReceipt,
        body: bytes,
        answer: bytes,
        on_answer: Callable[[Bought], None],
    ) -> Bought:
        try:
            receipt, signature = wire.parse_receipt(wire.decoded(headers.get(wire.RECEIPT, "")))
        except ValueError as error:
            raise SaleError("ReceiptWrong", failed=f"the receipt cannot be read: {error}") from None
        bought = Bought(receipt, signature, body, answer)
        on_answer(bought)
        failed = [name for name, value in wanted.values.items() if receipt.values[name] != value]
        if signer_of(self._channels.messages.receipt(receipt), signature) != self.server:
            failed.append("signature")
        if failed:
            raise SaleError("ReceiptWrong", failed=", ".join(failed))
        return bought

    def _ask(self, method: str, path: str, **more: Any) -> tuple[bytes, httpx.Headers]:
        """Until an answer comes. The same request gets the same answer."""

        def give_up(state: RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome else None
            raise SaleError("ServerUnreachable", url=self.url, why=error)

        retrying = Retrying(
            retry=retry_if_exception_type(_Lost), stop=stop_after_delay(self._retry_seconds),
            wait=wait_exponential(0.1, max=3), retry_error_callback=give_up,
        )  # fmt: skip
        found: tuple[bytes, httpx.Headers] = retrying(self._once, method, path, **more)
        return found

    def _once(self, method: str, path: str, **more: Any) -> tuple[bytes, httpx.Headers]:
        raw = bytearray()
        try:
            with self._http.stream(method, self.url + path, **more) as answer:
                for part in answer.iter_bytes():
                    raw += part
                    if len(raw) > MOST_ANSWER:
                        raise SaleError("ServerMalformed", url=self.url, why=f"more than {MOST_ANSWER:,} bytes")
        except httpx.HTTPError as error:
            raise _Lost(type(error).__name__) from error
        if answer.status_code in (502, 503, 504):
            raise _Lost(f"status {answer.status_code}")
        if answer.status_code != 200:
            raise SaleError("ServerRefused", why=_detail(bytes(raw), answer.status_code))
        return bytes(raw), answer.headers

    def _parsed(self, kind: type[_Kind], raw: bytes) -> _Kind:
        try:
            return kind.model_validate(parse_json(raw))
        except ValidationError as error:
            why = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"])
            raise SaleError("ServerMalformed", url=self.url, why=f"its field {why} is wrong or missing") from None
        except ValueError as error:
            raise SaleError("ServerMalformed", url=self.url, why=error) from None


def _detail(raw: bytes, status: int) -> str:
    """The server's own word, as visible text."""
    try:
        content = parse_json(raw)
    except ValueError:
        content = None
    if isinstance(content, dict) and "title" in content:
        return shown(f"{content['title']}: {content.get('detail', '')}", 300)
    return f"status {status}"
