"""The commands of `consilium operator`, parsed before anything heavy is imported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC

from consilium_cli.options import (
    AddressBookOption,
    ArtifactsOption,
    RpcOption,
    TaskArgument,
    YesOption,
)

app = typer.Typer(help="Tasks: what an operator asks for, and the model that comes of it.", no_args_is_help=True)

TaskFileArgument = Annotated[Path, typer.Argument(metavar="TASK.toml", help="a task file, TOML")]
KeystoreOption = Annotated[
    Path | None, typer.Option(help="encrypted key file of the operator's account; not needed on the local chain")
]
PasswordFileOption = Annotated[Path | None, typer.Option(help="file with the key file's password, mode 600")]
PORT = 8_600


@app.command("check")
def check(task: TaskFileArgument) -> None:
    """Says whether a task file holds, what it would cost, and what to think over; needs no chain."""
    from consilium_cli.operator import checking

    raw, spec = checking.read_task(task)
    checking.show(raw, spec)


@app.command("propose")
def propose(
    task: TaskFileArgument,
    *,
    artifacts: ArtifactsOption,
    aggregator: Annotated[
        str | None, typer.Option(help="account of who is to aggregate; not needed for a dry run")
    ] = None,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="show what it would be and cost, and send nothing")
    ] = False,
    yes: YesOption = False,
    not_private: Annotated[
        bool,
        typer.Option(
            "--not-private", help="propose a task without [privacy]: nothing bounds what its sums say of a row"
        ),
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="although an open task of this account is by the very same file")
    ] = False,
) -> None:
    """Shows what a task would cost, asks, puts its file into the store, and proposes it: its pool is paid at once."""
    from consilium_cli.operator import proposing

    account = proposing.Payer(keystore, password_file)
    said = proposing.Said(dry_run, yes, again, not_private)
    proposing.propose(task, artifacts, rpc, address_book, account, aggregator, said)


@app.command("fund")
def fund(
    task: TaskArgument,
    amount: Annotated[int, typer.Argument(min=1, metavar="TOKENS", help="whole tokens to add")],
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
    yes: YesOption = False,
) -> None:
    """Adds to a task's pool while others join: shows what rounds then pay, asks, and pays."""
    from consilium_cli.operator import proposing

    proposing.fund(task, amount, rpc, address_book, proposing.Payer(keystore, password_file), yes)


@app.command("stop")
def stop(
    task: TaskArgument,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
    yes: YesOption = False,
) -> None:
    """No further round of a task: the one under way is played and paid, then what is left of the pool comes back."""
    from consilium_cli.operator import proposing

    proposing.stop(task, rpc, address_book, proposing.Payer(keystore, password_file), yes)


@app.command("refund")
def refund(
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
) -> None:
    """Brings home what is left of ended tasks' pools."""
    from consilium_cli.operator import proposing

    proposing.refund(rpc, address_book, proposing.Payer(keystore, password_file))


@app.command("watch")
def watch(
    task: TaskArgument,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    once: Annotated[bool, typer.Option("--once", help="say where it stands, and end")] = False,
) -> None:
    """Tells what happens in a task from its proposal on, until it ends; can be ended and started at any time.

    On a terminal in words, elsewhere as one JSON object a line.
    """
    from consilium_core.live import told
    from consilium_operators.watching import WATCHED, Watcher, reader

    with told(WATCHED):
        watcher = Watcher(reader(rpc, address_book), task)
        if once:
            watcher.tell_status()
        else:
            watcher.run()


@app.command("download-model")
def download_model(
    task: TaskArgument,
    *,
    output: Annotated[Path, typer.Option(help="folder to be made, with the model and what is known of it")],
    artifacts: ArtifactsOption,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="write the model although checks fail, and say so in it")
    ] = False,
) -> None:
    """Derives a task's model from chain and artifacts, checks each round as `consilium verify` does, and writes it."""
    from consilium_cli.operator.downloading import download

    download(task, output, artifacts, rpc, address_book, unverified)


@app.command("serve-model")
def serve_model(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="what `download-model` wrote")],
    port: Annotated[int, typer.Option(min=1, max=65_535, help="port on loopback")] = PORT,
) -> None:
    """Answers with the model's probabilities for rows that are posted to it, on this machine alone, until Ctrl-C."""
    from consilium_operators.model_server import serve

    serve(folder, port)
