"""`consilium shares`: parts of finished models, and their money. Imports nothing heavy at the start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import consilium
import typer
from consilium.market import in_words
from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC
from consilium_core.units import WEI_PER_ETHER, exact_tokens, tokens
from consilium_core.visible_text import shown

from consilium_cli.artifacts import locations_to_read
from consilium_cli.options import (
    AddressBookOption,
    ArtifactsOption,
    KeystoreOption,
    PasswordFileOption,
    RpcOption,
    TaskArgument,
)

if TYPE_CHECKING:
    from consilium_operators.selling import TaskShares

ServerArgument = Annotated[str, typer.Argument(metavar="SERVER", help="the account that serves the model")]

app = typer.Typer(help="Parts of finished models: mint them, pay their holders, claim.", no_args_is_help=True)


@app.command("show")
def show(
    task: TaskArgument,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
) -> None:
    """Shows a task's terms of sale, the holders of its parts, and the money that they can claim."""
    _show(consilium.task_shares(task, rpc=rpc, address_book=address_book))


@app.command("mint")
def mint(
    task: TaskArgument,
    *,
    artifacts: ArtifactsOption,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
) -> None:
    """Mints the parts of an ended task, by what each party earned in it. Anybody may, once."""
    shares = consilium.Shares(rpc, address_book, keystore=keystore, password_file=password_file)
    locations = locations_to_read(artifacts)
    _show(shares.mint(task, artifacts=locations, on_page=lambda page: typer.echo(f"transaction {page} is done")))


@app.command("pay")
def pay(
    task: TaskArgument,
    amount: Annotated[int, typer.Argument(min=1, metavar="TOKENS", help="whole tokens to pay")],
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
) -> None:
    """Pays the holders of a task's parts, in whole tokens."""
    shares = consilium.Shares(rpc, address_book, keystore=keystore, password_file=password_file)
    _show(shares.pay(task, amount * WEI_PER_ETHER))


@app.command("till")
def till(
    task: TaskArgument,
    server: ServerArgument,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
    splits: Annotated[
        bool, typer.Option("--split", help="empty it: the server gets its percent, and the holders the rest")
    ] = False,
) -> None:
    """Shows the address to which buyers pay for predictions of a server, or empties it."""
    shares = consilium.Shares(rpc, address_book, keystore=keystore, password_file=password_file)
    if not splits:
        typer.echo(shares.till(task, server))
        return
    amount, fee = shares.split(task, server)
    typer.echo(
        f"the till had {tokens(amount)} tokens: the server got {tokens(fee)}, the holders {tokens(amount - fee)}"
    )


@app.command("offers")
def offers(
    task: Annotated[int | None, typer.Argument(metavar="[TASK]", min=1, help="of this task; else of all")] = None,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
) -> None:
    """Lists servers that sell predictions, of a task or of all, with the price of one."""
    found = consilium.offers(task, rpc=rpc, address_book=address_book)
    for one in found:
        typer.echo(f"{in_words(one.task)}: {exact_tokens(one.price)} tokens at {shown(one.url)}, by {one.server}")
    if not found:
        typer.echo("no server offers predictions there; `consilium serve TASK MODEL --url URL` does")


@app.command("close")
def close(
    task: TaskArgument,
    server: ServerArgument,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
) -> None:
    """Begins to close this account's channel with a server of predictions."""
    consilium.Shares(rpc, address_book, keystore=keystore, password_file=password_file).close(task, server)
    typer.echo(f"the channel closes. Next, in a day: consilium shares withdraw {task} {server}")


@app.command("withdraw")
def withdraw(
    task: TaskArgument,
    server: ServerArgument,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
) -> None:
    """Takes the rest of this account's channel, a day after `close`."""
    shares = consilium.Shares(rpc, address_book, keystore=keystore, password_file=password_file)
    typer.echo(f"{exact_tokens(shares.withdraw(task, server))} tokens came back")


@app.command("claim")
def claim(
    task: TaskArgument,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
    for_nodes: Annotated[
        bool,
        typer.Option("--for-nodes", help="hand the money of all nodes over to their pools, for owners and delegators"),
    ] = False,
) -> None:
    """Pays out this account's money from a task's parts, or hands the nodes' over to their pools."""
    shares = consilium.Shares(rpc, address_book, keystore=keystore, password_file=password_file)
    if for_nodes:
        typer.echo(f"{tokens(shares.claim_for_nodes(task))} tokens now vest in the nodes' pools")
    else:
        typer.echo(f"{tokens(shares.claim(task))} tokens are paid out")


def _show(found: TaskShares) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True)
    if found.terms is None:
        console.print(
            f"task {found.task}: no terms of sale are on the chain. If its file has a section \\[sale], `consilium"
            " shares mint` shows them once the task has ended"
        )
        return
    console.print(f"task {found.task}: {found.terms.in_words}")
    if not found.is_minted:
        console.print("its parts are not minted: `consilium shares mint` does it once the task has ended")
        return
    console.print(f"{tokens(found.paid)} tokens were paid to its holders")
    table = Table("account", "role", "parts", "claimable")
    for one in found.holdings:
        table.add_row(one.account, one.role, f"{one.percent:.2f} %", tokens(one.claimable))
    console.print(table)
