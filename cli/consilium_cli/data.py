"""`consilium data`: fetches the demo's data sets. Imports nothing heavy at the start."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from consilium_lab.demo.options import DataSet

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
    from consilium_lab.data.fetching import fetch
    from consilium_lab.data.publishers import PUBLISHERS
    from consilium_lab.errors import LabError
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

    chosen = DataSet(name)
    publisher = PUBLISHERS[chosen]
    typer.echo(publisher.terms)
    if not yes and not (sys.stdin.isatty() and typer.confirm("Download it under this licence?")):
        raise LabError("LicenceNotAccepted")
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        shown: dict[str, TaskID] = {}

        def progress(file: str, size: int, whole: int | None) -> None:
            if file not in shown:
                shown[file] = bars.add_task(file)
            bars.update(shown[file], completed=size, total=whole)

        files = fetch(chosen, publisher, folder, progress)
    typer.echo(f"{len(files)} file(s), as they should be: {', '.join(map(str, files))}")
    typer.echo(f"Next: consilium demo --data {chosen} --data-dir {folder}")
