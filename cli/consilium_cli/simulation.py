"""`consilium simulate TASK.toml`: a task's rounds on one's own rows, in this process. Loads nothing heavy at first."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import consilium
import typer
from consilium_core.units import decimals, tokens
from typer.core import TyperGroup

from consilium_cli.simulation_grid import Wanted, play_grid

if TYPE_CHECKING:
    from consilium_lab.simulation.run import PlayedRound

SITES_OPTION = "NAME=PATH of a hospital's table, or of its folder of texts or images; one for each hospital"
VOTERS = 5
NAMED = 16  # hospitals whose rows are shown by name
TABLES = (".csv", ".tsv", ".parquet", ".xlsx", ".xls")


class TaskByDefault(TyperGroup):
    """`consilium simulate FILE …` is `consilium simulate task FILE …`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        known = args[0] in self.commands or not Path(args[0]).suffix
        return super().resolve_command(ctx, args if known else ["task", *args])


def simulate_task_command(
    task: Annotated[Path, typer.Argument(help="task file, TOML (docs/operator.md)")],
    site: Annotated[list[str] | None, typer.Option(help=SITES_OPTION)] = None,
    voter: Annotated[
        list[str] | None, typer.Option(help="NAME=PATH of a voter's held-out data; one for each voter")
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="one table with all rows, instead of --site and --voter"),
    ] = None,
    sites: Annotated[
        str | None, typer.Option(help="its column that names the hospital, or a number of hospitals to deal it to")
    ] = None,
    voters: Annotated[
        int, typer.Option(min=1, max=64, help="voters that get a third of its rows, from each hospital")
    ] = VOTERS,
    mapping: Annotated[
        list[str] | None,
        typer.Option(
            help="PATH of a mapping for the table (by default TASK.mapping.toml, if it is there), or NAME=PATH for the"
            " data of a site or voter (docs/data.md)"
        ),
    ] = None,
    artifacts: Annotated[
        list[str] | None,
        typer.Option(help="folder or URL of the artifact store, if the task has a program or starts from a file"),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="seed of the split, of cohorts, of training and of decoys, as in the demo")
    ] = 0,
    output: Annotated[Path | None, typer.Option(dir_okay=False, help="file for the result, JSON")] = None,
    page: Annotated[Path | None, typer.Option(dir_okay=False, help="file for a report with pictures, HTML")] = None,
    dropouts: Annotated[
        float, typer.Option(help="chance of each hospital to miss a round, such as 0.1 (by the contract's rules)")
    ] = 0.0,
    grid: Annotated[
        str | None,
        typer.Option(
            help="simulate the task in several forms: a list, with commas, of codec, outer, epochs, bits, epsilon,"
            " hospitals, dropouts"
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="with --grid: seeds that play each form, from --seed on; figures are means")
    ] = None,
    gas_price: Annotated[
        float | None, typer.Option(min=0, help="with --grid: gwei for a unit of gas; a quiet day's by default")
    ] = None,
    blob_gas_price: Annotated[
        float | None, typer.Option(min=0, help="with --grid: gwei for a unit of blob gas")
    ] = None,
    block_seconds: Annotated[float | None, typer.Option(min=0, help="with --grid: seconds between blocks")] = None,
    proposed: Annotated[
        Path | None, typer.Option(dir_okay=False, help="with --grid: file for the task file that costs least")
    ] = None,
) -> None:
    """Plays a task's rounds on your own data in this process: training, sums, judging and pay. Nothing leaves it."""
    from rich.console import Console

    if task.suffix.lower() in TABLES:
        raise click.BadParameter(
            f"{task} is a table, and a task file belongs here: `consilium task new --from {task}` writes one; pass the"
            " table with --table",
            param_hint="TASK",
        )
    read = consilium.Task.read(task)
    where = (
        _by_name(site or [], voter or [], mapping or [])
        if table is None
        else _in_table(task, table, sites, voters, mapping or [], bool(site or voter))
    )
    console, spec = Console(), read.spec
    prices = {"gas_price": gas_price, "blob_gas_price": blob_gas_price, "block_seconds": block_seconds}
    wanted = Wanted.of(grid, dropouts, {"seeds": seeds, **prices}, output, page, proposed)

    def on_start(hospitals: dict[str, int], held_out: dict[str, int]) -> None:
        rows = ", ".join(f"{name} {count}" for name, count in hospitals.items())
        if len(hospitals) > NAMED:
            rows = f"{len(hospitals)} hospitals, {min(hospitals.values())} to {max(hospitals.values())} each"
        console.print(f"{spec.name}: {spec.in_words.size}; rows: {rows}; held out:"
                      f" {sum(held_out.values())}", highlight=False)  # fmt: skip

    where |= {"seed": seed, "on_start": on_start, "artifacts": artifacts or (), "dropouts": dropouts}
    if wanted is not None:
        play_grid(console, read, where, wanted)
        return
    with console.status("reading the rows") as status:

        def on_round(played: PlayedRound) -> None:
            done = played.number == spec.rounds.rounds
            status.update("reference trainings" if done else f"round {played.number + 1} of {spec.rounds.rounds}")

        result = consilium.simulate(read, **where, on_round=on_round)
    _show(console, result)
    for path in (output, page):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
    if output is not None:
        output.write_text(json.dumps(result.as_json(), indent=1, allow_nan=False) + "\n")
    if page is not None:
        result.write_page(page)
    for path in (output, page):
        if path is not None:
            console.print(f"written: {path}", highlight=False, soft_wrap=True)
    check, demo = ["consilium", "operator", "check", str(task)], ["consilium", "demo"]
    if table is not None:
        demo += ["--data", "table", "--file", str(table), "--label", spec.data.label]
        demo += ["--sites", sites] if sites and not sites.isdigit() else []
    console.print(f"\nNext: {shlex.join(check)}   # its costs and risks\n"
                  f"      {shlex.join(demo)}   # with a chain, and a process for each party",
                  highlight=False, soft_wrap=True)  # fmt: skip


def _by_name(site: list[str], voter: list[str], mapping: list[str]) -> dict[str, Any]:
    """The arguments of `consilium.simulate` for a file for each party. Raises BadParameter."""
    if not site or not voter:
        raise click.BadParameter(
            "pass a --site and a --voter for each, or one --table with --sites", param_hint="--site"
        )
    sites, voters, mappings = (
        _named(given, what) for given, what in ((site, "--site"), (voter, "--voter"), (mapping, "--mapping"))
    )
    if unknown := [name for name in mappings if name not in sites | voters]:
        raise click.BadParameter(f"{unknown[0]} is neither a site nor a voter", param_hint="--mapping")
    if both := sorted(sites.keys() & voters.keys()):
        raise click.BadParameter(f"{both[0]} is a site, too; give it another name", param_hint="--voter")
    return {"sites": sites, "voters": voters, "mappings": mappings}


def _in_table(
    task: Path, table: Path, sites: str | None, voters: int, mapping: list[str], named: bool
) -> dict[str, Any]:
    """The arguments for one table. Raises BadParameter."""
    if named:
        raise click.BadParameter("has all rows: leave out --site and --voter", param_hint="--table")
    if sites is None:
        raise click.BadParameter(
            "pass the column of --table that names the hospital, or a number of hospitals", param_hint="--sites"
        )
    if len(mapping) > 1:
        raise click.BadParameter("a table has one mapping", param_hint="--mapping")
    beside = task.with_suffix(".mapping.toml")
    chosen = Path(mapping[0]) if mapping else beside if beside.exists() else None
    return {"table": table, "sites": int(sites) if sites.isdigit() else sites, "voters": voters, "mapping": chosen}


def _named(given: list[str], option: str) -> dict[str, Path]:
    """Paths by name. Raises BadParameter."""
    found: dict[str, Path] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise click.BadParameter(
                f"{text!r} is not NAME=PATH: write it as {Path(text).stem or 'name'}={text}", param_hint=option
            )
        if name in found:
            raise click.BadParameter(f"the name {name!r} is given twice", param_hint=option)
        if not Path(path).exists():
            raise click.BadParameter(f"{path} does not exist", param_hint=option)
        found[name] = Path(path)
    return found


def _show(console: Any, found: consilium.SimulationResult) -> None:
    from consilium.metrics import TITLES
    from rich import box
    from rich.table import Table

    result, beside, spent = found.details, found.details.references, found.costs
    metric = result.metric
    rounds = Table(box=box.SIMPLE_HEAD)
    for title in ("round", *(TITLES[name] for name in result.spec.data.asked.shown)):
        rounds.add_column(title, justify="right")
    rounds.add_column("improvement by cohort, as the voters' median")
    rounds.add_row("0", *(decimals(result.start[name]) for name in found.shown), "")
    for played in result.rounds:
        metrics = (decimals(played.metrics[name]) for name in found.shown)
        rounds.add_row(str(played.number), *metrics, found.verdict(played))
    console.print(rounds)
    money = Table(box=box.SIMPLE_HEAD)
    for title in ("party", "rows", "paid", "slashed", f"{TITLES[metric]} alone"):
        money.add_column(title, justify="left" if title == "party" else "right")
    for name, paid in result.paid.items():
        alone = f"{beside.alone[name][metric]:.3f}" if name in beside.alone else ""
        money.add_row(name, str(result.rows.get(name, "")), tokens(paid), tokens(result.slashed[name]), alone)
    console.print(money)
    for words in found.pay:
        console.print(words, highlight=False)
    last = result.rounds[-1].metrics if result.rounds else result.start
    plain = "" if result.spec.privacy is None else ", without noise,"
    console.print(f"together {last[metric]:.3f}; all rows in one place{plain} {beside.pooled[metric]:.3f};"
                  f" plain FedAvg{plain} {beside.averaged[metric]:.3f};"
                  f" {TITLES[metric]} on the voters' rows", highlight=False)  # fmt: skip
    console.print(f"on a chain, at most about: {spent['gas']:,} gas of all parties; {spent['chain_blobs']} blobs;"
                  f" {spent['hospital_upload_bytes'] / 1e6:,.1f} MB uploaded by a hospital",
                  highlight=False)  # fmt: skip
    if found.early_end:
        console.print(found.early_end, style="yellow")
    if result.spec.privacy is not None:
        epsilon, delta = result.spec.privacy.epsilon, result.spec.privacy.delta
        console.print(f"all rounds together cost a row at most epsilon {epsilon:g} at delta {delta:g}", highlight=False)
