"""The command line of `consilium up`, parsed into one value before anything heavy is imported or started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer
from click.core import ParameterSource
from consilium_core.defaults import LOCAL_ADDRESS_BOOK

from consilium_lab.demo.options import MIN_MASKED, DataSet

HOME = Path(".consilium/up")
BROKER_VARIABLE, DATABASE_VARIABLE = "CONSILIUM_BROKER_URL", "CONSILIUM_DATABASE_URL"


@dataclass(frozen=True)
class UpOptions:
    home: Path
    address_book: Path
    data: DataSet
    data_dir: Path | None
    hospitals: int
    voters: int
    rounds: int
    task: bool
    port: int
    chain_port: int
    broker_url: str | None
    database_url: str | None


def up_command(
    context: typer.Context,
    home: Annotated[
        Path, typer.Option(help="folder for all of the network's files; emptied of an earlier one's")
    ] = HOME,
    address_book: Annotated[
        Path, typer.Option(help="where to write the contracts' addresses: by default where other commands look")
    ] = LOCAL_ADDRESS_BOOK,
    data: Annotated[
        DataSet, typer.Option(help="what hospitals and voters hold; all but wdbc need --data-dir")
    ] = DataSet.WDBC,
    data_dir: Annotated[Path | None, typer.Option(help="folder of the data set's files")] = None,
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
            envvar=BROKER_VARIABLE, help="redis://HOST:PORT/N for the jobs; by default they need none", metavar="URL"
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

    The first task is proposed at once; hospitals and voters also join every other that is proposed for its aggregator
    and fits their data. A URL with a password belongs into the variable, not on the command line.
    """
    for name, url in (("redis", redis), ("database", database)):
        on_line = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if url is not None and on_line and _has_password(url):
            variable = BROKER_VARIABLE if name == "redis" else DATABASE_VARIABLE
            raise typer.BadParameter(
                f"everybody on this machine can read a command line: put it into {variable}", param_hint=f"--{name}"
            )
    if data.needs and data_dir is None:
        raise typer.BadParameter(f"--data {data} needs --data-dir with {data.needs}")
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
        return True  # nobody knows
