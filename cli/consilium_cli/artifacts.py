"""`consilium artifacts`: makes and checks copies of a task's public record. Imports nothing heavy at the start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import consilium
import typer
from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC

from consilium_cli.options import AddressBookOption, RpcOption, TaskArgument

app = typer.Typer(help="Copies of tasks' published artifacts: make one, or check one.", no_args_is_help=True)


def locations_to_read(given: Sequence[str]) -> Sequence[str]:
    """The locations that `--artifacts` names. Faults of a mirror go to standard error. Raises typer.BadParameter."""
    from consilium_core.live import log_to_stderr

    log_to_stderr()
    return checked_locations(given)


def checked_locations(given: Sequence[str]) -> Sequence[str]:
    """The same, with a mirror's faults among the command's other events."""
    for location in _locations(given, "--artifacts"):
        if isinstance(location, Path) and not location.is_dir():
            raise typer.BadParameter(f"{location} is not a folder", param_hint="--artifacts")
    return given


@app.command("fetch")
def fetch_command(
    task: TaskArgument,
    *,
    sources: Annotated[list[str], typer.Option("--from", help="folder or URL to copy from; may be repeated")],
    to: Annotated[Path, typer.Option(help="folder for the copy; artifacts that it already has are not copied again")],
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
) -> None:
    """Copies and checks all artifacts of a task that the chain names. If you run it again, it continues.

    Ends with exit code 1 if one is missing.
    """
    from consilium_core.live import log_to_stderr

    log_to_stderr()
    _locations(sources, "--from")
    with _progress() as show:
        found = consilium.fetch_artifacts(
            task, to, sources=sources, rpc=rpc, address_book=address_book, on_progress=show
        )
    _conclude(f"{found.sound} of {found.wanted} artifacts of task {task} are in {to}", found.faults)


@app.command("check")
def check_command(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", exists=True, file_okay=False, help="artifact stores")
    ],
) -> None:
    """Checks every artifact in folders: its name is the hash of its bytes. Ends with exit code 1 if one differs."""
    found = [consilium.check_artifacts(folder) for folder in folders]
    sound, wanted = sum(one.sound for one in found), sum(one.wanted for one in found)
    _conclude(f"{sound} of {wanted} artifacts match their names", [fault for one in found for fault in one.faults])


@app.command("put")
def put_command(
    file: Annotated[
        Path, typer.Argument(exists=True, help="weights of a model, safetensors; or the folder of an exported program")
    ],
    artifacts: Annotated[
        list[str], typer.Option(help="folder or URL of the store; may be repeated: the first is written to")
    ],
    keystore: Annotated[
        Path | None, typer.Option(help="encrypted key file of a program's author, whose account signs it")
    ] = None,
    password_file: Annotated[Path | None, typer.Option(help="file with the key file's password, mode 600")] = None,
) -> None:
    """Puts weights or a program into the artifact store, and prints the lines of a task file that uses them."""
    locations = locations_to_read(artifacts)
    section = consilium.store_weights(file, artifacts=locations, keystore=keystore, password_file=password_file)
    typer.echo(section, nl=False)


def _locations(given: Sequence[str], flag: str) -> Sequence[object]:
    """Folders' paths, and URLs. Raises typer.BadParameter."""
    from consilium_core.artifacts.backends import parse_locations
    from consilium_core.errors import ConfigInvalid

    try:
        return parse_locations(given)
    except ConfigInvalid as error:
        raise typer.BadParameter(str(error), param_hint=flag) from None


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal, otherwise nothing."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, of: None
        return
    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), console=console) as progress:
        bar = progress.add_task("artifacts")
        yield lambda done, of: progress.update(bar, completed=done, total=of)


def _conclude(words: str, faults: Sequence[Exception]) -> None:
    from consilium_core.faults import printed_name

    for fault in faults:
        typer.secho(f"{printed_name(fault)}: {fault}", fg=typer.colors.RED, err=True)
    typer.echo(words)
    if faults:
        raise typer.Exit(1)
