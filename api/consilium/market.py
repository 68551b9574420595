"""Predictions for money: a server that sells them, buyers, and their receipts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC
from consilium_core.units import WEI_PER_ETHER, parse_tokens

from consilium.account import Account
from consilium.sources import open_chain

if TYPE_CHECKING:
    from consilium_chain.ledger.channels import Offer
    from consilium_operators.market.buyer import Account as BuyerAccount
    from consilium_operators.market.receipts import Bought, Finding

SALE_PORT = 8_700


def amount(text: str) -> int:
    """An amount such as 0.01 tokens in the smallest unit. Raises SaleError (AmountMalformed)."""
    from consilium_operators.market.errors import SaleError

    try:
        return parse_tokens(text)
    except ValueError as error:
        raise SaleError("AmountMalformed", text=text, why=error) from None


def in_words(number: int) -> str:
    """A task or an ensemble that is for sale, by its number."""
    from consilium_chain.ledger.ensembles import is_ensemble

    return f"{'ensemble' if is_ensemble(number) else 'task'} {number}"


def offers(
    task: int | None = None, *, rpc: str = LOCAL_RPC, address_book: str | Path = LOCAL_ADDRESS_BOOK
) -> list[Offer]:
    """The services that servers announce on the chain, of a task or of all. Raises ChainUnreachable."""
    return open_chain(rpc, address_book).channels.offers(task)


def check_receipt(
    path: str | Path, *, model: str | Path | None = None, address_book: str | Path = LOCAL_ADDRESS_BOOK
) -> list[Finding]:
    """Checks a receipt's file, without any connection. `model`: folder of the task's model or of the ensemble, to
    run it again.

    Raises SaleError (ReceiptMalformed), DeploymentInvalid, OperatorError (ModelFolderInvalid), EnsembleError
    (EnsembleFolderInvalid).
    """
    from consilium_chain.deploying.address_book import Deployment
    from consilium_chain.ledger.channels import SaleMessages
    from consilium_operators.ensembles.opening import opened
    from consilium_operators.market.receipts import check_receipt, read_receipt

    deployment = Deployment.read(Path(address_book))
    messages = SaleMessages(deployment.chain_id, deployment.model_shares, deployment.token)
    return check_receipt(read_receipt(Path(path)), messages, None if model is None else opened(Path(model)))


class Seller(Account):
    """An account that serves models. Amounts are in the token's smallest unit."""

    def serve(
        self,
        task: int,
        model: str | Path,
        *,
        price: int,
        book: str | Path = "sales.sqlite",
        least_sent: int = WEI_PER_ETHER,
        redeem_above: int = WEI_PER_ETHER,
        host: str = "127.0.0.1",
        port: int = SALE_PORT,
        clamp: bool = False,
        url: str | None = None,
        certificate: str | Path | None = None,
        key: str | Path | None = None,
        on_start: Callable[[str], None] = lambda url: None,
    ) -> None:
        """Sells a finished model's predictions until the process is interrupted.

        `task`: its number, or an ensemble's. `model`: folder that `download_model` or `export_ensemble` wrote. `price`:
        of one prediction. `least_sent`: the smallest deposit or transfer whose transaction this account sends. `book`:
        file of the sales. `url`: the service's own, which the chain then tells buyers. `certificate`, `key`: PEM files,
        for HTTPS. Vouchers are redeemed together, once they bring `redeem_above`. `on_start` gets the address that it
        listens on.

        Raises SaleError, EnsembleError, OperatorError (NotForSale, ModelFolderInvalid), LocalNodeError for a port in
        use.
        """
        from consilium_operators.market.errors import SaleError
        from consilium_operators.market.serving import Serving, serve

        if price < 1:
            raise SaleError("PriceIsZero")
        wanted = Serving(
            task=task, folder=Path(model), book=Path(book), price=price, least_sent=least_sent,
            redeem_above=redeem_above, host=host, port=port, clamp=clamp, url=url, certificate=_path(certificate),
            key=_path(key),
        )  # fmt: skip
        serve(self._ledger, wanted, on_start)


class Buyer(Account):
    """An account that buys predictions at one server, for use in `with`. Amounts are in the token's smallest unit."""

    def __init__(
        self,
        url: str,
        rpc: str = LOCAL_RPC,
        address_book: str | Path = LOCAL_ADDRESS_BOOK,
        *,
        keystore: str | Path | None = None,
        password_file: str | Path | None = None,
    ) -> None:
        """As `Account`. Raises SaleError (UrlNotEncrypted, ServerUnreachable, ServerMalformed, BookLies)."""
        from consilium_operators.market.buyer import Buyer as AtServer

        super().__init__(rpc, address_book, keystore=keystore, password_file=password_file)
        self._server = AtServer(self._ledger, url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.__exit__()

    @property
    def task(self) -> int:
        """The task of the model, or the ensemble's number."""
        return self._server.task

    @property
    def price(self) -> int:
        """The price of one prediction."""
        return self._server.price

    @property
    def account(self) -> BuyerAccount:
        """Everything that this buyer owes and deposited."""
        return self._server.account

    def read(self, path: str | Path) -> list[dict[str, Any]]:
        """Rows of a CSV or JSON file, with the model's columns alone. Raises SaleError (RowsUnreadable)."""
        from consilium_operators.market.rows import read_rows

        return read_rows(Path(path), self._server.columns)

    def deposit(self, amount: int) -> None:
        """Deposits by signature: the server sends it, so this account needs no ether. Raises SaleError
        (ServerRefused).
        """
        self._server.deposit(amount)

    def predict(
        self,
        rows: Sequence[Mapping[str, Any]],
        *,
        deposit: int = 0,
        confirm: Callable[[], bool] = lambda: True,
        on_answer: Callable[[Bought], None] = lambda bought: None,
    ) -> list[Bought]:
        """Buys predictions of rows, in one request or several, and checks each receipt. `confirm` is asked first.
        `deposit`: before the first request. `on_answer` gets each answer as it comes, before its check: keep a wrong
        one as evidence.

        Raises SaleError (NotBought, ServerRefused, ServerUnreachable, ReceiptWrong).
        """
        from consilium_operators.market.errors import SaleError
        from consilium_operators.market.rows import requests_of

        if not confirm():
            raise SaleError("NotBought")
        if deposit:
            self.deposit(deposit)
        return [
            self._server.predict(body, count, on_answer) for body, count in requests_of(rows, self._server.most_rows)
        ]


def _path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)
