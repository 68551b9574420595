"""`consilium serve`, `buy` and `verify-receipt`: predictions for money. Imports nothing heavy at the start."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import consilium
import typer
from consilium.market import SALE_PORT, amount, in_words
from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC
from consilium_core.units import exact_tokens

from consilium_cli.options import (
    AddressBookOption,
    KeystoreOption,
    PasswordFileOption,
    RpcOption,
)
from consilium_cli.prediction import ClampOption, FinishedArgument

if TYPE_CHECKING:
    from consilium_operators.market.receipts import Bought


def serve_command(
    task: Annotated[int, typer.Argument(min=1, metavar="TASK", help="number of the task, or of the ensemble")],
    model: FinishedArgument,
    *,
    price: Annotated[str, typer.Option(metavar="TOKENS", help="of one prediction, such as 0.01")],
    url: Annotated[
        str | None, typer.Option(help="the service's https:// URL for buyers, which the chain then tells them")
    ] = None,
    book: Annotated[Path, typer.Option(dir_okay=False, help="file of the sales; keep it")] = Path("sales.sqlite"),
    host: Annotated[str, typer.Option(help="to listen on; beyond loopback it needs a certificate")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="port to listen on")] = SALE_PORT,
    certificate: Annotated[Path | None, typer.Option(help="PEM file with the certificate and its chain")] = None,
    key: Annotated[Path | None, typer.Option(help="PEM file with the certificate's key")] = None,
    least_sent: Annotated[
        str, typer.Option(metavar="TOKENS", help="smallest deposit or transfer that this account sends for a buyer")
    ] = "1",
    redeem_above: Annotated[
        str, typer.Option(metavar="TOKENS", help="redeem vouchers together once they bring this")
    ] = "1",
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
    clamp: ClampOption = False,
) -> None:
    """Sells a finished model's predictions over HTTP, until Ctrl-C."""
    seller = consilium.Seller(rpc, address_book, keystore=keystore, password_file=password_file)

    def on_start(listens: str) -> None:
        typer.echo(f"{in_words(task)} at {listens}, {price} tokens a prediction, paid to {seller.address}")
        typer.echo(f"Next, as a buyer: consilium buy {url or listens} ROWS.csv --output predictions.csv --deposit 1")

    seller.serve(
        task, model, price=amount(price), book=book, least_sent=amount(least_sent),
        redeem_above=amount(redeem_above), host=host, port=port, clamp=clamp, url=url, certificate=certificate, key=key,
        on_start=on_start,
    )  # fmt: skip


def buy_command(
    url: Annotated[str, typer.Argument(help="the server's URL; `consilium shares offers` lists some")],
    rows: Annotated[Path, typer.Argument(help='CSV file, or JSON {"rows": […]}; only the model\'s columns leave it')],
    *,
    output: Annotated[Path, typer.Option(dir_okay=False, help="new file for the predictions, CSV")],
    receipts: Annotated[Path | None, typer.Option(file_okay=False, help="folder for the receipts")] = None,
    deposit: Annotated[
        str | None, typer.Option(metavar="TOKENS", help="first deposit this; the server pays for the transaction")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
) -> None:
    """Buys a prediction for each row, and checks the receipt of each answer."""
    if output.exists():
        raise typer.BadParameter(f"{output} exists already", param_hint="--output")
    with consilium.Buyer(url, rpc, address_book, keystore=keystore, password_file=password_file) as buyer:
        found = buyer.read(rows)
        typer.echo(
            f"{in_words(buyer.task)}: {len(found):,} predictions for {exact_tokens(len(found) * buyer.price)} tokens;"
            f" the channel has {exact_tokens(buyer.account.left)}" + (f", and gets {deposit} more" if deposit else "")
        )
        added = 0 if deposit is None else amount(deposit)
        _buy(buyer, found, added, lambda: yes or (sys.stdin.isatty() and typer.confirm("buy them?")), output, receipts)


def _buy(
    buyer: consilium.Buyer, rows: list[dict[str, Any]], deposit: int, confirm: Callable[[], bool], output: Path,
    receipts: Path | None,
) -> None:  # fmt: skip
    """Writes all answers that came, even if a later one does not; and its receipt only of one that is wrong."""
    answers: list[Bought] = []

    def on_answer(bought: Bought) -> None:
        answers.append(bought)
        if receipts is not None:
            receipts.mkdir(parents=True, exist_ok=True)
            bought.write(receipts / f"receipt-{bought.receipt.payment.hex()[:16]}.json")

    try:
        buyer.predict(rows, deposit=deposit, confirm=confirm, on_answer=on_answer)
    except consilium.Fault as error:
        if error.name == "ReceiptWrong" and answers:
            answers.pop()
        raise
    finally:
        written = [one for bought in answers for one in bought.predictions]
        if written:
            _write(output, written)
            typer.echo(f"{output}: {len(written):,} predictions, {exact_tokens(buyer.account.left)} tokens left")


def _write(path: Path, predictions: list[dict[str, Any]]) -> None:
    """A table as `consilium predict` writes it: class and probabilities, or answers."""
    rows = [
        {**({"class": one["class"]} if "class" in one else {}), **one.get("probabilities", one.get("answers", {}))}
        for one in predictions
    ]
    with path.open("x", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def verify_receipt_command(
    receipt: Annotated[Path, typer.Argument(help="file that `consilium buy --receipts` or the dashboard wrote")],
    *,
    model: Annotated[
        Path | None, typer.Option(help="folder of the task's model or of the ensemble, to run it again")
    ] = None,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
) -> None:
    """Checks a receipt of predictions, without any connection. Ends with 1 if a check fails."""
    findings = consilium.check_receipt(receipt, model=model, address_book=address_book)
    for one in findings:
        word, colour = {True: ("holds", "green"), False: ("FAILS", "red"), None: ("not checked", None)}[one.holds]
        typer.secho(f"{one.name:12} {word:12} {one.detail}", fg=colour)
    if any(one.holds is False for one in findings):
        raise typer.Exit(1)
