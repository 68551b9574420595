"""`consilium plugin`: installed plug-ins and the test suite of their contract. Imports nothing heavy at the start."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import consilium
import typer
from consilium_core.visible_text import shown

app = typer.Typer(
    help="Plug-ins: installed code of models, metrics and readers of data. Tasks never install one.",
    no_args_is_help=True,
)


@app.command("list")
def list_command() -> None:
    """Lists installed plug-ins with their digests, and checks their files. None of their code runs."""
    found = consilium.plugins()
    for one in found:
        typer.echo(f"{one.distribution} {one.version}".rstrip())
        if one.digest:
            groups = (("models", one.models), ("metrics", one.metrics), ("readers", one.readers))
            for group, names in ((group, names) for group, names in groups if names):
                typer.echo(f"  {group:7} {', '.join(names)}")
            typer.echo(f"  digest  {one.digest}")
        if one.fault:
            typer.secho(f"  unfit   {shown(one.fault)}", fg=typer.colors.RED)
    if not found:
        typer.echo("no plug-in is installed here: docs/models.md explains how to write one")


@app.command("digest")
def digest_command(
    wheel: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="a wheel's file, .whl")],
) -> None:
    """Prints the digest of a wheel before it is installed: compare it with the task's."""
    found = consilium.plugin_digest(wheel)
    typer.echo(f"{found.distribution} {found.version}\n{found.digest}")


@app.command("test")
def try_command(
    name: Annotated[str, typer.Argument(help="name of an installed distribution", metavar="NAME")],
    entry: Annotated[str | None, typer.Option(help="name of its entry point, if it has several")] = None,
    task_file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="task file, any model: its [data] is taken")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(exists=True, help="file or folder for a reader, beside --task-file")
    ] = None,
    columns: Annotated[int, typer.Option(min=1, max=10_000, help="of a drawn table, without a task file")] = 4,
    classes: Annotated[int, typer.Option(min=2, max=100, help="of a drawn table, without a task file")] = 2,
    argument: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="for the plug-in, as in TOML; may be repeated")
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(help="new file for its start (safetensors); `consilium artifacts put` stores it")
    ] = None,
) -> None:
    """Tests a plug-in's contract on drawn rows, or a reader's on data; prints its section of a task file or mapping.

    Ends with exit code 1 if a check fails.
    """
    if weights is not None and weights.exists():
        raise typer.BadParameter(f"{weights} exists already", param_hint="--weights")
    task = None if task_file is None else consilium.Task.read(task_file)
    try:
        found = consilium.check_plugin(
            name, entry=entry, task=task, columns=columns, classes=classes, arguments=_arguments(argument or []),
            data=data,
        )  # fmt: skip
    except ValueError as error:
        told, given = shown(str(error).splitlines()[0]), "--argument, --task-file or --data"
        raise typer.BadParameter(told, param_hint=given) from None
    for check in found.checks:
        mark = typer.style("holds", fg=typer.colors.GREEN) if check.holds else typer.style("FAILS", fg=typer.colors.RED)
        typer.echo(f"{mark}  {check.name}" + (f": {shown(check.why)}" if check.why else ""))
    if not found.holds:
        raise typer.Exit(1)
    for note in found.notes:
        typer.secho(f"please check  {shown(note)}", fg=typer.colors.YELLOW)
    if weights is not None and found.start is not None:
        found.write_start(weights)
        typer.echo(f"\n{weights} has its start: `consilium artifacts put {weights} --artifacts DIR` stores it.")
    typer.echo(f"\n{found.section}", nl=False)


def _arguments(given: Sequence[str]) -> dict[str, Any]:
    """Raises typer.BadParameter."""
    found: dict[str, Any] = {}
    for one in given:
        try:
            found |= tomllib.loads(one)
        except tomllib.TOMLDecodeError:
            raise typer.BadParameter(f"{one} is not KEY=VALUE as in TOML", param_hint="--argument") from None
    return found
