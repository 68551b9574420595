"""`consilium task`: drafts a task file, and explains its keys. Imports nothing heavy at the start."""

from __future__ import annotations

import math
import shlex
import sys
from pathlib import Path
from typing import Annotated

import consilium
import typer
from consilium.task import require_free

app = typer.Typer(help="Task files: draft one from a table, and look up their keys.", no_args_is_help=True)

NONE = "-"
FEW_ROWS = 5  # of a class that may be a slip of the pen


@app.command("new")
def new_command(
    table: Annotated[
        Path, typer.Option("--from", exists=True, dir_okay=False, help="a sample of the rows, CSV or Parquet")
    ],
    output: Annotated[Path, typer.Option(dir_okay=False, help="the task file; an existing one is not replaced")] = Path(
        "task.toml"
    ),
    label: Annotated[
        str | None, typer.Option(help="column that the model predicts; several of 0 and 1 with commas between them")
    ] = None,
    event: Annotated[
        str | None, typer.Option(help="column that has 1 if an event happened; the label is then the time until it")
    ] = None,
    text: Annotated[str | None, typer.Option(help="column of texts, which the model reads alone")] = None,
    metric: Annotated[str | None, typer.Option(help="the voters' metric  [default: the question's loss]")] = None,
    sites: Annotated[str | None, typer.Option(help="column that names the hospital; - for none")] = None,
    leave_out: Annotated[
        str | None, typer.Option(help="columns that are no measurements, with commas between them; - for none")
    ] = None,
    name: Annotated[str | None, typer.Option(help="the task's name, as others see it")] = None,
    epsilon: Annotated[
        str | None, typer.Option(help="the most that the whole task may cost a row's privacy; - for no bound")
    ] = None,
    arena: Annotated[
        int | None,
        typer.Option(min=2, max=64, help="an arena of at most so many hospitals: each trains alone, pay falls by rank"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="take the likely answers without asking")] = False,
) -> None:
    """Asks five questions about a table, and writes a task file with comments and the mapping that reads the table.

    Options answer the questions beforehand. Without a terminal, and with --yes, the likely answers count.
    """
    from consilium_cli.operator.estimate_screen import show

    require_free(output)
    output.parent.mkdir(parents=True, exist_ok=True)  # before questions, not after
    sample = consilium.Table.read(table)
    asks = sys.stdin.isatty() and not yes
    typer.echo(f"{table}: {sample.rows} rows, {len(sample.columns)} columns: {', '.join(sample.columns)}")
    given = None if label is None else _columns(label, sample)
    label = (
        ",".join(given)
        if given
        else _answer("1. Which column shall the model predict?", None, sample.likely_label, asks, sample)
    )
    labels = given or [label]
    sites = _answer(
        "2. Which column names the hospital? (- for none)", sites, sample.likely_sites or NONE, asks, sample
    )
    site = None if sites == NONE else sites
    used = {*labels, event, text}
    suspects = {name: why for name, why in sample.no_measurements(labels[0], site).items() if name not in used}
    for column, why in suspects.items():
        typer.echo(f"   {column}: {why}")
    left = _answer("3. Which columns are no measurements? (- for none)", leave_out, ",".join(suspects) or NONE, asks)
    columns = [] if left == NONE else [one.strip() for one in left.split(",") if one.strip()]
    title = _answer("4. What is the task's name?", name, f"{label} by {table.stem}"[:80], asks)
    bound = _answer("5. How much may the task cost a row's privacy, as epsilon? (- for no bound)", epsilon, NONE, asks)
    asked = labels[0] if len(labels) == 1 else labels
    drafted = consilium.draft(
        table,
        asked,
        site,
        columns,
        event=event,
        text=text,
        metric=metric,
        name=title,
        epsilon=_epsilon(bound),
        arena=arena,
    )
    written = drafted.write(output)
    for column, why in drafted.left_out.items():
        if column not in columns:
            typer.secho(f"left out {column}: {why}", fg=typer.colors.YELLOW)
    if drafted.counts:
        typer.echo(f"rows by class: {', '.join(f'{name} {count}' for name, count in drafted.counts.items())}")
    typer.echo(f"the model predicts {drafted.spec.data.asked.in_words}")
    if rare := [name for name, count in drafted.counts.items() if count < FEW_ROWS]:
        typer.secho(
            f"few rows of {', '.join(rare)}: if this is no class of its own, change its label in the table first",
            fg=typer.colors.YELLOW,
        )
    if drafted.unlabelled:
        typer.secho(f"{drafted.unlabelled} rows have no label: remove them", fg=typer.colors.YELLOW)
    typer.echo(f"written: {written}, and {written.with_suffix('.mapping.toml')}, which reads {table}\n")
    show(drafted, drafted.estimate())
    typer.secho(
        "warning (ranges): ranges, means and deviations are the table's, rounded, and become public with the task:"
        " replace them by values from the literature",
        fg=typer.colors.YELLOW,
    )
    if not drafted.spec.data.classes or text is not None:
        return  # the simulation and the demo deal a table's rows by class
    simulate = ["consilium", "simulate", str(output), "--table", str(table), "--sites", site or "4"]
    demo = ["consilium", "demo", "--data", "table", "--file", str(table), "--label", label]
    demo += [] if site is None else ["--sites", site]
    typer.echo(f"\nNext: {shlex.join(simulate)}\n      {shlex.join(demo)}")


@app.command("reference")
def reference_command(
    section: Annotated[str | None, typer.Argument(help="only this section, such as judging  [default: all]")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="print the whole reference as a page")] = False,
) -> None:
    """Shows every key of a task file: its kind, unit, bounds, default and meaning; and the shortest files."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    found = consilium.task_reference()
    if markdown:
        typer.echo(found.markdown, nl=False)
        return
    parts = found.parts
    known = list(dict.fromkeys(part.section.split(".")[0] for part in parts if part.section))
    if section is not None and section not in known:
        raise typer.BadParameter(f"{section!r} is none of {', '.join(known)}", param_hint="SECTION")
    console = Console(highlight=False, markup=False)
    for part in parts:
        if section is not None and part.section.split(".")[0] != section:
            continue
        console.print(f"\n{part.title}", style="bold")
        for note in part.notes:
            console.print(note)
        table = Table("key", "kind", "default", "meaning", box=box.SIMPLE_HEAD)
        for key in part.keys:
            table.add_row(key.name, key.kind, "needed" if key.default is None else key.default, key.meaning)
        if part.keys:
            console.print(table)
    if section is None:
        for kind, text in found.examples.items():
            console.print(f"\nThe shortest file for {kind}", style="bold")
            console.print(text)


def _answer(question: str, given: str | None, likely: str, asks: bool, sample: consilium.Table | None = None) -> str:
    """`sample`: the answer is one of its columns. Asks again until it is. Raises OperatorError (ColumnUnknown)."""
    if given is None and not asks:
        typer.echo(f"{question} {likely}")
    while True:
        answer = given if given is not None else typer.prompt(question, likely) if asks else likely
        try:
            if sample is not None and answer != NONE:
                sample.require(answer)
        except consilium.Fault as error:
            if given is not None or not asks:
                raise
            typer.secho(str(error), fg=typer.colors.YELLOW)
        else:
            return str(answer)


def _columns(label: str, sample: consilium.Table) -> list[str]:
    """One column, whose name may have commas, or several. Raises OperatorError (ColumnUnknown)."""
    found = [label] if label in sample.columns else [one.strip() for one in label.split(",")]
    for one in found:
        sample.require(one)
    return found


def _epsilon(text: str) -> float | None:
    """Raises typer.BadParameter."""
    if text == NONE:
        return None
    try:
        bound = float(text)
    except ValueError:
        bound = math.nan
    if not 0 < bound < math.inf:
        raise typer.BadParameter(f"{text!r} is no number above 0: write one such as 8, or -", param_hint="--epsilon")
    return bound
