"""The desk of a server: it takes a payment, predicts, and signs a receipt. No HTTP."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from consilium_chain.errors import Refused
from consilium_chain.ledger.channels import Authorization, Channel, SaleReceipt, Voucher, deposit_nonce, digest_of
from consilium_chain.ledger.ledger import Ledger
from consilium_client.voter.fingerprints import fingerprint

from consilium_operators.ensembles.predictor import EnsemblePredictor
from consilium_operators.ensembles.sellable import require_ensemble_sellable
from consilium_operators.errors import OperatorError
from consilium_operators.market.book import SalesBook
from consilium_operators.market.errors import PaymentRefused, SaleError
from consilium_operators.market.wire import (
    TRANSFER_SECONDS,
    Payment,
    Terms,
    shown_receipt,
)
from consilium_operators.prediction import Answering, Predictor, named, requested, rows_of

CHANNEL_SECONDS: Final = 60  # a channel's state is read again after this time: closing takes a day
VOUCHER_SECONDS: Final = 2 * 86_400  # that a voucher must still be good, so that it is redeemed in time


@dataclass(frozen=True)
class Sold:
    """The answer's body, and the receipt as JSON has it."""

    body: bytes
    receipt: dict[str, str]


class SalesDesk:
    """One task's model, or an ensemble, sold by the ledger's account. `price`: of one prediction, in the token's
    smallest unit. `least_sent`: the smallest payment whose transaction this account sends; else strangers could burn
    its ether.
    """

    def __init__(
        self,
        ledger: Ledger,
        predictor: Answering,
        book: SalesBook,
        price: int,
        least_sent: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._ledger, self.predictor, self._book, self._clock = ledger, predictor, book, clock
        self.price, self.least_sent = price, least_sent
        self.task, self.server = predictor.task, ledger.address
        self.till = ledger.shares.till_of(self.task, self.server)
        self._model = bytes.fromhex(predictor.sha256)
        self._channels = ledger.channels
        self._seen: dict[str, tuple[float, Channel]] = {}
        self._alone = threading.Lock()  # one sale at a time: models set torch's threads for the whole process
        self._sending = threading.Lock()  # transfers take a block, and vouchers need not wait for them

    def terms(self, rows: int) -> Terms:
        deployment, price = self._ledger.deployment, self.price * rows
        return Terms(
            deployment.chain_id, deployment.token, deployment.model_shares, self.task, self.server, self.till, price,
            VOUCHER_SECONDS, price >= self.least_sent,
        )  # fmt: skip

    def rows_in(self, body: bytes) -> int:
        """The number of rows of a request. Raises RowsInvalid."""
        return len(rows_of(body, self.predictor.schema, self.predictor.most_rows))

    def sell(self, body: bytes, payment: Payment) -> Sold:
        """Takes the payment and answers. The same request with the same payment gets the same answer again.

        Raises RowsInvalid, the client room's DataErrors and RangeError (nothing is charged then), PaymentRefused,
        ChainUnreachable.
        """
        rows, request = self.rows_in(body), hashlib.sha256(body).digest()
        cost = self.price * rows
        if isinstance(payment, Voucher):
            answer = self._sell_for_voucher(body, payment, request, cost, rows)
        else:
            self._check_transfer(payment, request, cost)
            with self._alone:
                answer = self._answer(body)
            with self._sending:
                self._collect(payment, request, rows)
        return Sold(answer, self._receipt(payment, cost, request, answer))

    # Vouchers.

    def _sell_for_voucher(self, body: bytes, voucher: Voucher, request: bytes, cost: int, rows: int) -> bytes:
        if (voucher.task, voucher.server) != (self.task, self.server):
            raise PaymentRefused("PaymentForeign", what="another task or server")
        if not self._channels.messages.has_signed(voucher):
            raise PaymentRefused("VoucherForged", buyer=voucher.buyer)
        channel = self._channel(voucher.buyer, voucher.amount)
        with self._alone:
            is_new = self._check_voucher(voucher, channel, request, cost)
            answer = self._answer(body)
            if is_new:
                self._book.take(voucher, request, cost, rows)
        return answer

    def _check_voucher(self, voucher: Voucher, channel: Channel, request: bytes, cost: int) -> bool:
        """False if this very request was paid by it before."""
        last = self._book.last(voucher.buyer)
        if last is not None and voucher.amount == last.voucher.amount and request == last.request:
            return False
        sold = channel.redeemed if last is None else last.voucher.amount
        if voucher.amount <= sold:
            raise PaymentRefused("VoucherSpent", buyer=voucher.buyer, sold=sold)
        if voucher.amount != sold + cost:
            raise PaymentRefused("AmountWrong", amount=voucher.amount, wanted=sold + cost)
        least = int(self._clock()) + VOUCHER_SECONDS
        if voucher.expires_at < least:
            raise PaymentRefused("VoucherExpires", expires_at=voucher.expires_at, least=least)
        if channel.closes_at:
            raise PaymentRefused("ChannelClosing", buyer=voucher.buyer)
        if voucher.amount > channel.deposited:
            raise PaymentRefused(
                "DepositTooSmall", buyer=voucher.buyer, amount=voucher.amount, deposited=channel.deposited
            )
        return True

    def _channel(self, buyer: str, amount: int) -> Channel:
        """Read again once it is old, or too small."""
        now = self._clock()
        at, found = self._seen.get(buyer, (0.0, Channel(0, 0, 0)))
        if now - at >= CHANNEL_SECONDS or found.deposited < amount or found.closes_at:
            found = self._channels.of(self.task, self.server, buyer)
            if found.deposited:  # strangers without money leave nothing in memory
                self._seen[buyer] = (now, found)
        return found

    def sold_to(self, buyer: str) -> tuple[int, Voucher | None]:
        """All that a buyer owes in its channel, and its last voucher."""
        last = self._book.last(buyer)
        if last is not None:
            return last.voucher.amount, last.voucher
        return self._channels.of(self.task, self.server, buyer).redeemed, None

    def deposit(self, payment: Authorization, salt: bytes) -> str:
        """Sends a buyer's deposit. Returns the transaction's hash. Raises PaymentRefused, ChainUnreachable."""
        wanted = self._ledger.deployment.model_shares
        if payment.to != wanted or payment.nonce != deposit_nonce(self.task, self.server, salt):
            raise PaymentRefused("AuthorizationWrong", wanted=f"a deposit in {wanted} for this task and server")
        if payment.value < self.least_sent:
            raise PaymentRefused("DepositSmall", least=self.least_sent)
        self._check_times(payment)
        if not self._channels.messages.has_allowed_deposit(payment):
            raise PaymentRefused("AuthorizationForged", payer=payment.payer)
        try:
            with self._sending:
                sent = self._channels.deposit_for(self.task, self.server, payment, salt)
            return sent.transaction
        except Refused as error:
            raise PaymentRefused("TransferFailed", why=error.name) from error

    # Transfers (x402's scheme `exact`).

    def _check_transfer(self, payment: Authorization, request: bytes, cost: int) -> None:
        """Raises PaymentRefused unless the transfer is this request's, and is unused or was taken for it."""
        if cost < self.least_sent:
            raise PaymentRefused("TransferSmall", least=self.least_sent)
        if (payment.to, payment.value) != (self.till, cost):
            raise PaymentRefused("AuthorizationWrong", wanted=f"{cost} to {self.till}")
        if not self._channels.messages.has_allowed_transfer(payment):
            raise PaymentRefused("AuthorizationForged", payer=payment.payer)
        begun = self._book.transfer(payment)
        if begun is not None:
            if begun.request != request:
                raise PaymentRefused("AuthorizationUsed")
            return
        self._check_times(payment)
        if self._channels.is_used(payment):
            raise PaymentRefused("AuthorizationUsed")

    def _check_times(self, payment: Authorization) -> None:
        now = int(self._clock())
        if payment.valid_after > now or payment.valid_before < now + TRANSFER_SECONDS // 2:
            raise PaymentRefused("AuthorizationExpires", seconds=TRANSFER_SECONDS // 2)

    def _collect(self, payment: Authorization, request: bytes, rows: int) -> None:
        """Sends the transfer, unless it has arrived. A kill at any moment leaves a book that says how to go on."""
        begun = self._book.transfer(payment)
        if begun is not None and begun.is_settled:
            return
        if begun is None:
            first = self._channels.block()
            self._book.begin(payment, request, first)
        else:
            first = begun.block
        if not (begun is not None and self._channels.is_used(payment)):
            try:
                self._channels.transfer(payment)
            except Refused as error:
                if not self._channels.has_arrived(payment, first):
                    self._book.forget(payment)
                    raise PaymentRefused("TransferFailed", why=error.name) from error
        if not self._channels.has_arrived(payment, first):
            raise PaymentRefused("AuthorizationUsed")
        self._book.settle(payment, rows)

    # Answers.

    def _answer(self, body: bytes) -> bytes:
        return answer_of(self.predictor, body)

    def _receipt(self, payment: Payment, cost: int, request: bytes, answer: bytes) -> dict[str, str]:
        if isinstance(payment, Voucher):
            buyer, mark = payment.buyer, digest_of(self._channels.messages.of_voucher(payment))
        else:
            buyer, mark = payment.payer, payment.nonce
        response = hashlib.sha256(answer).digest()
        receipt = SaleReceipt(self.task, self.server, buyer, cost, mark, self._model, request, response)
        signed = self._channels.account.sign_message(self._channels.messages.receipt(receipt))
        return shown_receipt(receipt, bytes(signed.signature))

    @property
    def totals(self) -> tuple[int, int]:
        """As `SalesBook.totals`."""
        return self._book.totals()


def answer_of(predictor: Answering, body: bytes) -> bytes:
    """The body of an answer: predictions, the fingerprint of each model's activations on all rows, and `clamp`."""
    found = predictor.answered(requested(predictor, body))
    shown = b"".join(map(fingerprint, found.activations))
    content = {
        "predictions": named(found.predictions, predictor),
        "fingerprint": base64.b64encode(shown).decode(),
        "clamp": predictor.clamp,
    }
    return json.dumps(content).encode()


def require_sellable(ledger: Ledger, predictor: Predictor | EnsemblePredictor, task: int, path: Path) -> None:
    """`task`: its number, or the ensemble's. Raises SaleError (ModelOfAnotherTask, ModelNotVerified, PartsNotMinted),
    OperatorError (NotForSale, ForetellsTokens, MarksPixels), and as `require_ensemble_sellable` does.
    """
    if isinstance(predictor, EnsemblePredictor):
        require_ensemble_sellable(ledger, predictor.saved, task, path)
        return
    index = predictor.saved.index
    deployment = ledger.deployment
    if (index.task, index.chain_id, index.contract) != (task, deployment.chain_id, deployment.tasks):
        raise SaleError("ModelOfAnotherTask", path=path, found=index.task, chain=index.chain_id, task=task)
    if not index.verified:
        raise SaleError("ModelNotVerified")
    predictor.require_answers()
    if predictor.saved.spec.sale is None:
        raise OperatorError("NotForSale", task=task)
    if not ledger.shares.is_minted(task):
        raise SaleError("PartsNotMinted", task=task)
