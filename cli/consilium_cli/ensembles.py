"""`consilium ensemble`: finished models that answer together. Imports nothing heavy at the start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import consilium
import typer
from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC

from consilium_cli.options import AddressBookOption, KeystoreOption, PasswordFileOption, RpcOption

if TYPE_CHECKING:
    from consilium_chain.ledger.ensembles import Ensemble

app = typer.Typer(help="Ensembles of finished models: form them, show them, write them.", no_args_is_help=True)


@app.command("form")
def form(
    tasks: Annotated[list[int], typer.Argument(min=1, metavar="TASK…", help="2 to 16 tasks whose parts are minted")],
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
) -> None:
    """Makes an ensemble of tasks whose parts are minted. Anybody may."""
    found = consilium.Ensembles(rpc, address_book, keystore=keystore, password_file=password_file).form(tasks)
    _show([found])
    typer.echo(f"Next: consilium ensemble export {found.number} MODEL… --output FOLDER")


@app.command("show")
def show(
    number: Annotated[int | None, typer.Argument(metavar="[NUMBER]", min=1, help="of the ensemble; else all")] = None,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
) -> None:
    """Shows an ensemble's members and their weights, or all ensembles."""
    found = consilium.ensembles(number, rpc=rpc, address_book=address_book)
    _show(found)
    if not found:
        typer.echo("the chain has no ensembles; `consilium ensemble form TASK TASK` makes one")


@app.command("export")
def export(
    number: Annotated[int, typer.Argument(metavar="NUMBER", min=1, help="number of the ensemble")],
    models: Annotated[
        list[Path], typer.Argument(metavar="MODEL…", help="folder of each member that `operator download-model` wrote")
    ],
    *,
    output: Annotated[Path, typer.Option(help="new folder, to serve, and to check receipts")],
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    onnx: Annotated[bool, typer.Option(help="also write all members as one model.onnx")] = True,
) -> None:
    """Writes an ensemble as a folder, from its members' models."""
    found = consilium.export_ensemble(number, models, output, onnx=onnx, rpc=rpc, address_book=address_book)
    _show([found.ensemble])
    if found.difference is not None:
        typer.echo(f"{output / 'model.onnx'} differs by {found.difference:.1e} from PyTorch at most")
    typer.echo(f"{output}, SHA-256 {found.sha256}")
    typer.echo(f"Next: consilium serve {number} {output} --price TOKENS")


def _show(ensembles: list[Ensemble]) -> None:
    for ensemble in ensembles:
        typer.echo(f"ensemble {ensemble.number}")
        for member, weight in zip(ensemble.members, ensemble.weights, strict=True):
            typer.echo(f"  task {member.task}: weight {weight:.4f}, gain {member.gain / 1e6:.6f}")
