"""`consilium artifacts`: makes and checks copies of a task's public record. Imports nothing heavy at the start."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC

from consilium_cli.options import AddressBookOption, RpcOption, TaskArgument

if TYPE_CHECKING:
    from consilium_chain.artifacts.store import ArtifactStore
    from consilium_core.artifacts.backends import Place

app = typer.Typer(help="Copies of tasks' published artifacts: make one, or check one.", no_args_is_help=True)

_BATCH = 64  # blobs read and checked at once, few enough for a small memory
_Read = TypeVar("_Read")
_NAME = re.compile(r"(file|blob)-([0-9a-f]{64})")


def open_artifacts(given: Sequence[str]) -> ArtifactStore:
    """The store that `--artifacts` names, to read from. Faults of a mirror go to standard error.

    Raises MirrorUnsupported, typer.BadParameter.
    """
    from consilium_core.live import log_to_stderr

    log_to_stderr()
    return open_quietly(given)


def open_quietly(given: Sequence[str]) -> ArtifactStore:
    """The same, with a mirror's faults among the command's other events."""
    from consilium_chain.artifacts.store import ArtifactStore

    places = _places(given, "--artifacts")
    for place in places:
        if isinstance(place, Path) and not place.is_dir():
            raise typer.BadParameter(f"{place} is not a folder", param_hint="--artifacts")
    return ArtifactStore(places)


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
    from consilium_chain.artifacts.public_record import artifacts_of, shown_uploads
    from consilium_chain.artifacts.store import ArtifactStore
    from consilium_chain.deploying.address_book import Deployment
    from consilium_chain.ledger.ledger import Ledger
    from consilium_chain.rpc.connection import Connection
    from consilium_core.errors import StoreUnwritable
    from consilium_core.live import log_to_stderr

    log_to_stderr()
    copy = _Reading(ArtifactStore([to, *_places(sources, "--from")]))
    named = artifacts_of(Ledger(Connection(rpc), Deployment.read(address_book)), task)
    try:
        to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnwritable(str(to), error.strerror or type(error).__name__) from error
    files = dict.fromkeys(named.files)
    with _progress() as show_progress:
        for digest in named.files:
            found = copy.file(digest)
            if found is not None and digest in named.evidence:
                files |= dict.fromkeys(shown_uploads(found))
            show_progress(copy.sound, len(files) + len(named.blobs))
        for digest in list(files)[len(named.files) :]:
            copy.file(digest)
            show_progress(copy.sound, len(files) + len(named.blobs))
        for batch in _batches(named.blobs):
            copy.blobs(batch)
            show_progress(copy.sound, len(files) + len(named.blobs))
    if copy.store.not_kept is not None:
        raise copy.store.not_kept
    _conclude(f"{copy.sound} of {len(files) + len(named.blobs)} artifacts of task {task} are in {to}", copy.faults)


@app.command("check")
def check_command(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", exists=True, file_okay=False)],
) -> None:
    """Checks every artifact in folders: its name is the hash of its bytes. Ends with exit code 1 if one differs."""
    from consilium_chain.artifacts.store import ArtifactStore

    faults: list[str] = []
    sound = 0
    for folder in folders:
        copy = _Reading(ArtifactStore(folder))
        names = sorted(match.groups() for path in folder.iterdir() if (match := _NAME.fullmatch(path.name)))
        for kind, digest in names:
            if kind == "file":
                copy.file(bytes.fromhex(digest))
        for batch in _batches([bytes.fromhex(digest) for kind, digest in names if kind == "blob"]):
            copy.blobs(batch)
        sound, faults = sound + copy.sound, faults + copy.faults
    _conclude(f"{sound} of {sound + len(faults)} artifacts match their names", faults)


class _Reading:
    """Reads a store's artifacts. `sound`: the number of good ones. `faults`: the errors of the others, in words."""

    def __init__(self, store: ArtifactStore) -> None:
        self.store, self.sound = store, 0
        self.faults: list[str] = []

    def file(self, digest: bytes) -> bytes | None:
        """Raises StoreMissing if no back end answers: no other artifact can be read either."""
        return self._try(lambda: self.store.get_file(digest), self.faults)

    def blobs(self, digests: Sequence[bytes]) -> None:
        """Reads them together, and one by one if that fails. Raises as `file` does."""
        if self._try(lambda: self.store.get_blobs(digests), [], len(digests)) is None:
            for digest in digests:
                self._try(partial(self.store.get_blobs, [digest]), self.faults)

    def _try(self, read: Callable[[], _Read], faults: list[str], count: int = 1) -> _Read | None:
        from consilium_core.errors import ArtifactCorrupt, ArtifactMissing, StoreMissing
        from consilium_core.faults import printed_name

        try:
            found = read()
        except (ArtifactCorrupt, ArtifactMissing, StoreMissing) as error:
            if isinstance(error, StoreMissing):
                own, *mirrors = self.store.unreachable()
                if None not in (mirrors or [own]):
                    raise
            faults.append(f"{printed_name(error)}: {error}")
            return None
        self.sound += count
        return found


def _places(given: Sequence[str], flag: str) -> tuple[Place, ...]:
    from consilium_core.artifacts.backends import parse_places
    from consilium_core.errors import ConfigInvalid

    try:
        return parse_places(given)
    except ConfigInvalid as error:
        raise typer.BadParameter(str(error), param_hint=flag) from None


def _batches(blobs: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (blobs[start : start + _BATCH] for start in range(0, len(blobs), _BATCH))


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


def _conclude(words: str, faults: Sequence[str]) -> None:
    for fault in faults:
        typer.secho(fault, fg=typer.colors.RED, err=True)
    typer.echo(words)
    if faults:
        raise typer.Exit(1)
