"""`consilium demo`, `up` and `simulate economics`. Imports nothing heavy at the start."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import consilium
import typer
from click.core import ParameterSource
from consilium.lab import (
    HOME,
    MIN_MASKED,
    OUTPUT,
    PLOTS,
    RESULT,
    Cheat,
    DataSet,
    DemoOptions,
    EconomicsOptions,
    Scenario,
    TableOptions,
    UpOptions,
    fitted,
    needs_folder,
    parse_attack,
    parse_codec,
)
from consilium_core.defaults import LOCAL_ADDRESS_BOOK

if TYPE_CHECKING:
    from consilium_lab.economics.run import EconomicsResult
    from rich.console import Console

BROKER_VARIABLE, DATABASE_VARIABLE = "CONSILIUM_BROKER_URL", "CONSILIUM_DATABASE_URL"
DataDirOption = Annotated[
    Path | None, typer.Option(help="folder of the data set's files; `consilium data fetch` fills it")
]


def demo_command(
    data: Annotated[
        DataSet,
        typer.Option(
            help="wdbc (a table) comes with scikit-learn; recurrence (times) is generated; heart (a table),"
            " medquad (texts) and pneumonia (images) need --data-dir; table is your own, and needs --file"
        ),
    ] = DataSet.WDBC,
    data_dir: DataDirOption = None,
    file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="your own table, CSV or Parquet (--data table)")
    ] = None,
    label: Annotated[str | None, typer.Option(help="its label's column  [default: the likeliest]")] = None,
    sites: Annotated[
        str | None, typer.Option(help="its column that names the hospital  [default: rows are dealt evenly]")
    ] = None,
    leave_out: Annotated[
        list[str] | None, typer.Option(help="a column of it that is no measurement; may be repeated")
    ] = None,
    hospitals: Annotated[
        int | None, typer.Option(min=2, max=64, help="hospitals that train  [default: 6; heart: 4; medquad: 3]")
    ] = None,
    voters: Annotated[int, typer.Option(min=1, max=64, help="voters that may be drawn")] = 5,
    rounds: Annotated[
        int | None, typer.Option(min=1, max=1000, help="training rounds  [default: 5; heart: 10]")
    ] = None,
    cohorts: Annotated[
        int | None, typer.Option(min=1, max=64, help="cohorts per round  [default: 2, or 1 if masks need it]")
    ] = None,
    seats: Annotated[
        int | None, typer.Option(min=1, max=64, help="expected size of the committee  [default: voters - 1]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="seed of the split of rows, and of the reference trainings")] = 0,
    attack: Annotated[
        list[str] | None,
        typer.Option(
            help="KIND[:COUNT], may be repeated: sign-flip, label-flip, noise, false-upload (hospitals);"
            " lazy, silent (voters); stranger (two more accounts that join, and try every call with bad values)"
        ),
    ] = None,
    cheat: Annotated[Cheat | None, typer.Option(help="let the aggregator cheat in one round, in this way")] = None,
    kill_in_round: Annotated[
        int | None, typer.Option(min=0, help="kill one hospital (-9) in this round, after its commitment")
    ] = None,
    kill_aggregator_in_round: Annotated[
        int | None,
        typer.Option(min=0, help="kill the aggregator (-9) in this round, while hospitals upload; then start it again"),
    ] = None,
    chain_port: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="port of the local chain  [default: a free one]")
    ] = None,
    digests: Annotated[bool, typer.Option("--digests", help="publish digests, as on a chain without blobs")] = False,
    masks: Annotated[
        bool, typer.Option("--masks/--no-masks", help="hide hospitals' updates from the aggregator")
    ] = True,
    output: Annotated[Path, typer.Option(help="folder for the report; files of an earlier demo are removed")] = OUTPUT,
    epsilon: Annotated[
        float | None,
        typer.Option(
            min=0.2,
            max=100,
            help="train with differential privacy: all rounds together cost a row at most this epsilon",
        ),
    ] = None,
    codec: Annotated[
        str | None,
        typer.Option(help="hash:BUCKETS, lowrank:RANK, dct:KEPT or sketch:COLUMNS: send fewer numbers than parameters"),
    ] = None,
    program: Annotated[
        Path | None,
        typer.Option(help="folder of a model that consilium.export wrote, instead of the data set's model"),
    ] = None,
    sell: Annotated[
        int,
        typer.Option(
            min=0, metavar="PREDICTIONS", help="at the end, sell so many of the model, and kill the server twice"
        ),
    ] = 0,
) -> None:
    """Runs a whole task on this machine, with a process for each party: training, proofs, judging and pay."""
    table = None if file is None else TableOptions(file, label, sites, tuple(leave_out or ()))
    if table is None and (label or sites or leave_out):
        raise typer.BadParameter("--label, --sites and --leave-out belong to --data table --file PATH: add them")
    try:
        options = fitted(
            DemoOptions(
                data, data_dir, hospitals, voters, rounds, cohorts, seats, seed,
                tuple(one for text in attack or [] for one in parse_attack(text)), cheat, kill_in_round,
                kill_aggregator_in_round, chain_port, digests, masks, output.resolve(), epsilon, table,
                None if codec is None else parse_codec(codec), program, sell,
            )
        )  # fmt: skip
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    from rich.console import Console

    raise typer.Exit(0 if consilium.demo(options, Console()).sound else 1)


def up_command(
    context: typer.Context,
    home: Annotated[
        Path, typer.Option(help="folder for all files of the network; files of an earlier network are removed")
    ] = HOME,
    address_book: Annotated[
        Path, typer.Option(help="file for the contracts' addresses; by default the one that other commands read")
    ] = LOCAL_ADDRESS_BOOK,
    data: Annotated[
        DataSet, typer.Option(help="data set of hospitals and voters; all but wdbc need --data-dir")
    ] = DataSet.WDBC,
    data_dir: DataDirOption = None,
    hospitals: Annotated[
        int | None, typer.Option(min=MIN_MASKED, max=64, help="hospitals  [default: 4; medquad: 3]")
    ] = None,
    voters: Annotated[int, typer.Option(min=1, max=64, help="voters")] = 3,
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="training rounds of the first task")] = 5,
    task: Annotated[bool, typer.Option("--task/--no-task", help="propose a first task")] = True,
    port: Annotated[int, typer.Option(min=1, max=65_535, help="port of the API")] = 8080,
    chain_port: Annotated[int, typer.Option(min=1, max=65_535, help="port of the local chain")] = 8545,
    redis: Annotated[
        str | None,
        typer.Option(
            envvar=BROKER_VARIABLE,
            help="redis://HOST:PORT/N for the jobs; by default jobs run without Redis",
            metavar="URL",
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            envvar=DATABASE_VARIABLE, help="postgresql://HOST:PORT/NAME; by default a SQLite file", metavar="URL"
        ),
    ] = None,
) -> None:
    """Runs a whole network on this machine until Ctrl-C: chain, API, jobs, aggregator, hospitals, voters.

    Proposes a first task at once. Hospitals and voters also join every later task that names this network's
    aggregator and fits their data. Put a URL with a password into its variable, not on the command line.
    """
    for name, variable, url in (("redis", BROKER_VARIABLE, redis), ("database", DATABASE_VARIABLE, database)):
        on_line = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if url is not None and on_line and _has_password(url):
            raise typer.BadParameter(
                f"all users of this machine can read a command line: put the URL into {variable}",
                param_hint=f"--{name}",
            )
    if data in (DataSet.TABLE, DataSet.MEDQUAD_TEXTS):
        raise typer.BadParameter(f"--data {data} is for `consilium demo`: choose another data set")
    if data.needs and data_dir is None:
        raise typer.BadParameter(needs_folder(data))
    if data is DataSet.HEART and hospitals not in (None, 4):
        raise typer.BadParameter("--data heart has four hospitals: leave --hospitals at 4")
    count = hospitals or (3 if data is DataSet.MEDQUAD else 4)
    options = UpOptions(
        home.resolve(), address_book, data, data_dir, count, voters, rounds, task, port, chain_port, redis, database
    )
    from rich.console import Console

    consilium.up(options, Console(highlight=False))


def _has_password(url: str) -> bool:
    try:
        return bool(urlsplit(url).password) or "password" in urlsplit(url).query
    except ValueError:
        return True  # it may have one


def economics_command(
    rounds: Annotated[int, typer.Option(min=5, max=100_000, help="rounds of each scenario")] = 1_000,
    seed: Annotated[int, typer.Option(min=0, help="seed of all chance; the same seed gives the same file")] = 0,
    scenario: Annotated[
        list[Scenario] | None, typer.Option(help="play only this scenario; may be repeated  [default: all]")
    ] = None,
    output: Annotated[
        Path, typer.Option(dir_okay=False, help="file for the result, JSON; all rows go into the folder raw beside it")
    ] = RESULT,
    plots: Annotated[Path, typer.Option(file_okay=False, help="folder of the pictures, SVG")] = PLOTS,
    draw: Annotated[
        bool, typer.Option("--plot/--no-plot", help="draw the pictures for which the scenarios suffice")
    ] = True,
) -> None:
    """Does honesty pay? Simulates thousands of rounds of scoring and settlement with dishonest players."""
    chosen = tuple(dict.fromkeys(scenario or Scenario))
    from rich.console import Console

    started, console = time.monotonic(), Console()
    with _progress(console) as show:
        found = consilium.simulate_economics(
            EconomicsOptions(rounds, seed, chosen, output, plots if draw else None), show
        )
    _show_economics(console, found.details)
    written = ", ".join(map(str, found.details.written))
    console.print(f"{time.monotonic() - started:.1f} s. {len(found.details.rows)} rows; wrote {written}")


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each kind of step, by its first word."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    columns = (TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bars: dict[str, TaskID] = {}

        def show(step: str, done: int, of: int) -> None:
            kind = step.partition(" ")[0]
            if kind not in bars:
                bars[kind] = progress.add_task(step, total=of)
            progress.update(bars[kind], description=step, completed=done)

        yield show


def _show_economics(console: Console, found: EconomicsResult) -> None:
    from rich.table import Table

    table = Table("scenario", "terms", "honest", "deviant", "if honest", "gain", "per", box=None, pad_edge=False)
    for row in found.usual:
        amounts = (row.honest_mean, row.deviant_mean, row.if_honest, row.gain)
        table.add_row(row.scenario, row.terms, *(f"{amount:.2f}" for amount in amounts), row.unit)
    console.print(table)
