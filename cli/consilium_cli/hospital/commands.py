"""The commands of `consilium hospital`, parsed before anything heavy is imported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from consilium_cli.options import (
    LikeOption,
    NewAddressBookOption,
    NewArtifactsOption,
    NewChainUrlOption,
    NewKeystoreOption,
    NewMappingOption,
    NewOperatorsOption,
    NewPasswordFileOption,
    TaskArgument,
    TokensArgument,
    YesOption,
)

app = typer.Typer(help="A hospital's node: set up, look, consent, take part.", no_args_is_help=True)

HOME = Path("~/.consilium/hospital")
HomeOption = Annotated[
    Path, typer.Option("--home", envvar="CONSILIUM_HOSPITAL_HOME", help="folder with this hospital's key and settings")
]
DataOption = Annotated[
    Path | None, typer.Option(help="a table, or a folder of texts or images, for this task; by default the home's")
]
MappingOption = Annotated[
    Path | None, typer.Option(help="how its columns become the task's, TOML (docs/data.md); by default the home's")
]


@app.command("init")
def init(
    home: HomeOption = HOME,
    chain_url: NewChainUrlOption = None,
    address_book: NewAddressBookOption = None,
    artifacts: NewArtifactsOption = None,
    data: Annotated[
        Path | None, typer.Option(help="this hospital's table, CSV or Parquet, or its folder of texts or images")
    ] = None,
    mapping: NewMappingOption = None,
    keystore: NewKeystoreOption = None,
    password_file: NewPasswordFileOption = None,
    operator: NewOperatorsOption = None,
    model: Annotated[
        list[str] | None, typer.Option(help='model family that may be trained, or "any"; may be given more than once')
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(help='column that may be used, or "any"; may be given more than once')
    ] = None,
    hours: Annotated[str | None, typer.Option(help='local time in which to train, as "19:00-07:00"')] = None,
    sponsor_url: Annotated[str | None, typer.Option(help="https://host:port of who pays for gas")] = None,
    sponsor_ca: Annotated[Path | None, typer.Option(help="certificate that signed the sponsor's")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="do not try the connections")] = False,
    like: LikeOption = None,
) -> None:
    """Makes a home: key, settings, policy. What no flag says is asked for."""
    from consilium_cli.hospital import init as setting_up

    given = setting_up.Given(
        chain_url, address_book, artifacts, data, mapping, keystore, password_file, operator, model, column, hours,
        sponsor_url, sponsor_ca,
    )  # fmt: skip
    if like is not None:
        setting_up.init_like(home, like, given, offline)
    else:
        setting_up.init(home, given, offline)


@app.command("tasks")
def tasks(
    home: HomeOption = HOME,
    every: Annotated[bool, typer.Option("--all", help="also those that have ended")] = False,
) -> None:
    """Lists tasks, and whether this hospital's policy allows them."""
    from consilium_cli.hospital import status as screens

    screens.show_tasks(screens.Visit.of(home), every)


@app.command("show")
def show(task: TaskArgument, home: HomeOption = HOME) -> None:
    """What a task would run here, for how long, what it pays and costs, and what the policy says to it."""
    from consilium_cli.hospital import status as screens

    screens.show_task(screens.Visit.of(home), task)


@app.command("check-data")
def check_data(
    task: Annotated[int | None, typer.Argument(min=1, metavar="[TASK]", help="number of a task on the chain")] = None,
    home: HomeOption = HOME,
    task_file: Annotated[
        Path | None, typer.Option(help="a task file instead, TOML: needs no chain and no home")
    ] = None,
    data: DataOption = None,
    mapping: MappingOption = None,
) -> None:
    """What data look like to a task, and exactly what would be computed from them. Nothing leaves this machine."""
    from consilium_cli.hospital import checking

    checking.check_data(home, task, task_file, data, mapping)


@app.command("join")
def join(
    task: TaskArgument,
    superlink: Annotated[str, typer.Option(help="host:port of the aggregator's SuperLink")],
    ca_certificate: Annotated[Path, typer.Option(help="certificate that signed the SuperLink's, PEM")],
    home: HomeOption = HOME,
    data: DataOption = None,
    mapping: MappingOption = None,
    yes: YesOption = False,
) -> None:
    """Shows a task, asks, remembers the yes, and joins it on chain with this hospital's bond."""
    from consilium_cli.hospital import joining

    joining.join(home, task, joining.Place(superlink, ca_certificate, data, mapping), yes)


@app.command("run")
def run(
    task: Annotated[
        int | None, typer.Argument(min=1, metavar="[TASK]", help="by default the only one approved")
    ] = None,
    home: HomeOption = HOME,
) -> None:
    """Takes part in an approved task until it ends; can be ended and started again at any time.

    Tells what happens: on a terminal in words, elsewhere as one JSON object a line.
    """
    from consilium_client.home import HospitalHome
    from consilium_client.hospital.node import HospitalNode
    from consilium_core.live import HOSPITAL, told

    with told(HOSPITAL):
        HospitalNode(HospitalHome.open(home).approved_settings(task)).run()


@app.command("status")
def status(home: HomeOption = HOME) -> None:
    """Account, connections, and where each approved task stands."""
    from consilium_cli.hospital import status as screens

    screens.show_status(home)


@app.command("pause")
def pause(home: HomeOption = HOME) -> None:
    """Begins no further round of any task; what is committed to is still handed over. Takes effect at once."""
    from consilium_client.home import HospitalHome

    HospitalHome.open(home).pause()
    typer.echo("paused: no round is begun until `consilium hospital resume`; who sits out is not paid, and not slashed")


@app.command("resume")
def resume(home: HomeOption = HOME) -> None:
    """Takes part again, from the next round on."""
    from consilium_client.home import HospitalHome

    HospitalHome.open(home).resume()
    typer.echo("resumed")


@app.command("leave")
def leave(task: TaskArgument, home: HomeOption = HOME, yes: YesOption = False) -> None:
    """Takes the yes to a task back; once it has ended, also the bond and the rewards."""
    from consilium_cli.hospital import joining

    joining.leave(home, task, yes)


@app.command("unstake")
def unstake(
    whole_tokens: TokensArgument = None,
    home: HomeOption = HOME,
    yes: YesOption = False,
) -> None:
    """Sends stake home, which takes the unbonding period, and takes into the account what has arrived."""
    from consilium_chain.ledger.structs import Role

    from consilium_cli.hospital import joining
    from consilium_cli.nodes.unstaking import unstake as send_home

    send_home(joining.on_record(home), Role.HOSPITAL, whole_tokens, yes)
