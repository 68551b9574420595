"""`consilium data`: fetches the demo's data sets. Imports nothing heavy at the start."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import consilium
import typer
from consilium.lab import DataSet

from consilium_cli.asking import agrees
from consilium_cli.options import YesOption

app = typer.Typer(help="Data sets for the demo, from their publishers.", no_args_is_help=True)


class Published(StrEnum):
    """The data sets that have files to fetch."""

    HEART = DataSet.HEART
    PNEUMONIA = DataSet.PNEUMONIA
    MEDQUAD = DataSet.MEDQUAD


@app.callback()
def data() -> None:
    """Data sets for the demo, from their publishers."""


@app.command("fetch")
def fetch_command(
    name: Annotated[Published, typer.Argument(metavar="heart|pneumonia|medquad", help="the data set")],
    folder: Annotated[Path, typer.Option("--to", help="folder for its files")],
    yes: YesOption = False,
) -> None:
    """Shows the licence, asks, downloads the files, checks their SHA-256, and builds what `--data-dir` needs.

    Files that are there and right stay. If it is interrupted, run it again: it continues.
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

    def accept(licence: str) -> bool:
        typer.echo(licence)
        return yes or agrees("Download it under this licence?")

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    bars, shown = Progress(*columns, console=Console(stderr=True)), dict[str, TaskID]()

    def progress(file: str, size: int, whole: int | None) -> None:
        bars.start()  # after the question
        if file not in shown:
            shown[file] = bars.add_task(file)
        bars.update(shown[file], completed=size, total=whole)

    try:
        files = consilium.fetch_data(name, folder, accept=accept, on_progress=progress)
    finally:
        bars.stop()
    typer.echo(f"{len(files)} file(s), as they should be: {', '.join(map(str, files))}")
    typer.echo(f"Next: consilium demo --data {name} --data-dir {folder}")
