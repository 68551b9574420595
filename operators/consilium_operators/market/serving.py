"""`consilium serve`: a model's predictions for sale, over HTTPS or behind a proxy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvicorn
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc.local_node import require_free_port

from consilium_operators.ensembles.opening import opened
from consilium_operators.market.book import SalesBook
from consilium_operators.market.buyer import LOOPBACK
from consilium_operators.market.desk import SalesDesk, require_sellable
from consilium_operators.market.errors import SaleError
from consilium_operators.market.redeeming import Redeemer, Redeeming
from consilium_operators.market.service import service
from consilium_operators.model_server import MOST_AT_ONCE

REDEEM_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Serving:
    """Amounts are in the token's smallest unit. `price`: of one prediction. `least_sent`: as
    `SalesDesk` has it. `redeem_above`: that a redemption must
    bring. `url`: the service's own, to offer on the chain; None offers nothing. `certificate`, `key`: PEM files.
    """

    task: int
    folder: Path
    book: Path
    price: int
    least_sent: int
    redeem_above: int
    host: str
    port: int
    clamp: bool
    url: str | None
    certificate: Path | None
    key: Path | None
    redeem_seconds: float = REDEEM_SECONDS


def serve(ledger: Ledger, wanted: Serving, on_start: Callable[[str], None] = lambda url: None) -> None:
    """Sells until it is stopped, and then redeems. `on_start` gets the address that it listens on.

    Raises SaleError (CertificateMissing, BookOfAnother, ModelOfAnotherTask, ModelNotVerified, PartsNotMinted),
    OperatorError (NotForSale, ForetellsTokens, MarksPixels, ModelFolderInvalid), EnsembleError, ModelNotInstalled,
    LocalNodeError for a port in use, Refused, ChainUnreachable.
    """
    has_certificate = wanted.certificate is not None and wanted.key is not None
    if wanted.host not in LOOPBACK and not has_certificate:
        raise SaleError("CertificateMissing", host=wanted.host)
    predictor = opened(wanted.folder, wanted.clamp)
    require_sellable(ledger, predictor, wanted.task, wanted.folder)
    require_free_port(wanted.port, "the service")
    book = SalesBook(wanted.book, wanted.task, ledger.address, ledger.deployment.model_shares)
    desk = SalesDesk(ledger, predictor, book, wanted.price, wanted.least_sent)
    if wanted.url is not None:
        _offer(ledger, wanted.task, wanted.price, wanted.url)
    redeemer = Redeemer(ledger, book, wanted.task, wanted.redeem_above)
    redeeming = Redeeming(redeemer.redeem, wanted.redeem_seconds)
    redeeming.start()
    on_start(f"{'https' if has_certificate else 'http'}://{wanted.host}:{wanted.port}")
    try:
        uvicorn.run(
            service(desk), host=wanted.host, port=wanted.port, log_level="warning", access_log=False, ws="none",
            limit_concurrency=MOST_AT_ONCE, ssl_certfile=wanted.certificate, ssl_keyfile=wanted.key,
        )  # fmt: skip
    finally:
        redeeming.stop()
        book.close()


def _offer(ledger: Ledger, task: int, price: int, url: str) -> None:
    """Tells buyers on the chain, unless the last offer says the same."""
    found = [one for one in ledger.channels.offers(task) if one.server == ledger.address]
    if not any((one.price, one.url) == (price, url) for one in found):
        ledger.channels.offer(task, price, url)
