"""`consilium demo`, `up` and `simulate economics`. Imports nothing heavy at the start."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer
from click.core import ParameterSource
from consilium_core.defaults import LOCAL_ADDRESS_BOOK
from consilium_lab.demo.options import (
    MIN_MASKED,
    OUTPUT,
    Cheat,
    DataSet,
    DemoOptions,
    TableOptions,
    check,
    needs_folder,
    parse_attack,
)
from consilium_lab.economics.options import PLOTS, RESULT, EconomicsOptions, Scenario
from consilium_lab.up.options import HOME, UpOptions

BROKER_VARIABLE, DATABASE_VARIABLE = "CONSILIUM_BROKER_URL", "CONSILIUM_DATABASE_URL"
DataDirOption = Annotated[
    Path | None, typer.Option(help="folder of the data set's files; `consilium data fetch` fills it")
]


def demo_command(
    data: Annotated[
        DataSet,
        typer.Option(
            help="wdbc (a table) comes with scikit-learn; heart (a table), medquad (texts) and pneumonia (images) need"
            " --data-dir; table is your own, and needs --file"
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
) -> None:
    """Runs a whole task on this machine, with a process for each party: training, proofs, judging and pay."""
    table = None if file is None else TableOptions(file, label, sites, tuple(leave_out or ()))
    if table is None and (label or sites or leave_out):
        raise typer.BadParameter("--label, --sites and --leave-out belong to --data table --file PATH: add them")
    try:
        options = DemoOptions(
            data, data_dir, hospitals, voters, rounds, cohorts, seats, seed,
            tuple(one for text in attack or [] for one in parse_attack(text)), cheat, kill_in_round,
            kill_aggregator_in_round, chain_port, digests, masks, output.resolve(), epsilon, table,
        )  # fmt: skip
        if table is not None and table.sites is not None:
            from consilium_lab.demo.run import sized

            options = sized(options)
        check(options)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None

    from consilium_lab.demo.run import run_demo

    raise typer.Exit(run_demo(options))


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
    if data is DataSet.TABLE:
        raise typer.BadParameter("--data table is for `consilium demo`: choose another data set")
    if data.needs and data_dir is None:
        raise typer.BadParameter(needs_folder(data))
    if data is DataSet.HEART and hospitals not in (None, 4):
        raise typer.BadParameter("--data heart has four hospitals: leave --hospitals at 4")
    count = hospitals or (3 if data is DataSet.MEDQUAD else 4)
    options = UpOptions(
        home.resolve(), address_book, data, data_dir, count, voters, rounds, task, port, chain_port, redis, database
    )

    from consilium_lab.up.run import run_up

    run_up(options)


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

    from consilium_lab.economics.run import run_economics

    run_economics(EconomicsOptions(rounds, seed, chosen, output, plots if draw else None))
