"""The commands of `consilium hospital`, parsed before anything heavy is imported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from consilium_cli.options import (
    HOSPITAL_HOME,
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

app = typer.Typer(help="A hospital's node: set up, inspect, consent, take part.", no_args_is_help=True)

HomeOption = Annotated[
    Path, typer.Option("--home", envvar="CONSILIUM_HOSPITAL_HOME", help="folder with this hospital's key and settings")
]
DataOption = Annotated[
    Path | None, typer.Option(help="a table, or a folder of texts or images, for this task; by default the home's")
]
MappingOption = Annotated[
    Path | None, typer.Option(help="mapping of its columns to the task's, TOML (docs/data.md); by default the home's")
]


@app.command("init")
def init(
    home: HomeOption = HOSPITAL_HOME,
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
        list[str] | None, typer.Option(help='model family that may be trained, or "any"; may be repeated')
    ] = None,
    column: Annotated[list[str] | None, typer.Option(help='column that may be used, or "any"; may be repeated')] = None,
    hours: Annotated[str | None, typer.Option(help='local time in which to train, as "19:00-07:00"')] = None,
    sponsor_url: Annotated[str | None, typer.Option(help="https://host:port of the sponsor that pays for gas")] = None,
    sponsor_ca: Annotated[Path | None, typer.Option(help="certificate that signed the sponsor's, PEM")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="do not try the connections")] = False,
    like: LikeOption = None,
) -> None:
    """Makes a home: key, settings, policy. It asks for the values that no flag gives."""
    from consilium_cli.nodes.init import HospitalGiven, init_hospital

    given = HospitalGiven(
        chain_url, address_book, artifacts, data, mapping, keystore, password_file, operator, model, column, hours,
        sponsor_url, sponsor_ca,
    )  # fmt: skip
    init_hospital(home, given, offline, like)


@app.command("tasks")
def tasks(
    home: HomeOption = HOSPITAL_HOME,
    every: Annotated[bool, typer.Option("--all", help="also those that have ended")] = False,
) -> None:
    """Lists tasks, and the verdict of this hospital's policy on each."""
    from consilium_cli.hospital import status as screens

    screens.show_tasks(screens.Visit.of(home), every)


@app.command("show")
def show(task: TaskArgument, home: HomeOption = HOSPITAL_HOME) -> None:
    """Shows a task: its program, its time, its pay and its costs, and the verdict of the policy."""
    from consilium_cli.hospital import status as screens

    screens.show_task(screens.Visit.of(home), task)


@app.command("check-data")
def check_data(
    task: Annotated[int | None, typer.Argument(min=1, metavar="[TASK]", help="number of a task on the chain")] = None,
    home: HomeOption = HOSPITAL_HOME,
    task_file: Annotated[
        Path | None, typer.Option(help="a task file instead, TOML: needs no chain and no home")
    ] = None,
    data: DataOption = None,
    mapping: MappingOption = None,
) -> None:
    """Shows data as a task reads them, and all that would be computed from them. Nothing leaves this machine."""
    from consilium_cli.hospital import data_check

    data_check.check_data(home, task, task_file, data, mapping)


@app.command("join")
def join(
    task: TaskArgument,
    superlink: Annotated[str, typer.Option(help="host:port of the aggregator's SuperLink")],
    ca_certificate: Annotated[Path, typer.Option(help="certificate that signed the SuperLink's, PEM")],
    home: HomeOption = HOSPITAL_HOME,
    data: DataOption = None,
    mapping: MappingOption = None,
    yes: YesOption = False,
) -> None:
    """Shows a task, asks, keeps the approval, and joins it on chain with this hospital's bond."""
    from consilium_cli.hospital import joining

    joining.join(home, task, joining.Place(superlink, ca_certificate, data, mapping), yes)


@app.command("run")
def run(
    task: Annotated[
        int | None, typer.Argument(min=1, metavar="[TASK]", help="by default the only one approved")
    ] = None,
    home: HomeOption = HOSPITAL_HOME,
) -> None:
    """Takes part in an approved task until it ends. It can be ended and started again at any time.

    Logs its events: on a terminal in words, elsewhere as one JSON object a line.
    """
    from consilium_client.home import HospitalHome
    from consilium_client.hospital.node import HospitalNode
    from consilium_core.live import HOSPITAL, on_terminal

    with on_terminal(HOSPITAL):
        HospitalNode(HospitalHome.open(home).approved_settings(task)).run()


@app.command("status")
def status(home: HomeOption = HOSPITAL_HOME) -> None:
    """Shows account, connections, and the state of each approved task."""
    from consilium_cli.hospital import status as screens

    screens.show_status(home)


@app.command("pause")
def pause(home: HomeOption = HOSPITAL_HOME) -> None:
    """Begins no further round of any task, from now on. An update that is committed is still handed over."""
    from consilium_client.home import HospitalHome

    HospitalHome.open(home).pause()
    typer.echo("paused: no round is begun until `consilium hospital resume`; that is not paid, and not slashed")


@app.command("resume")
def resume(home: HomeOption = HOSPITAL_HOME) -> None:
    """Takes part again, from the next round on."""
    from consilium_client.home import HospitalHome

    HospitalHome.open(home).resume()
    typer.echo("resumed")


@app.command("leave")
def leave(task: TaskArgument, home: HomeOption = HOSPITAL_HOME, yes: YesOption = False) -> None:
    """Withdraws the approval of a task; once the task has ended, also takes the bond and the rewards."""
    from consilium_cli.hospital import joining

    joining.leave(home, task, yes)


@app.command("unstake")
def unstake(
    whole_tokens: TokensArgument = None,
    home: HomeOption = HOSPITAL_HOME,
    yes: YesOption = False,
) -> None:
    """Unstakes tokens, which takes the unbonding period, and withdraws those whose period is over."""
    from consilium_chain.ledger.structs import Role

    from consilium_cli.hospital import joining
    from consilium_cli.nodes.staking import unstake as unstake_of

    unstake_of(joining.on_record(home), Role.HOSPITAL, whole_tokens, yes)


@app.command("export-audit")
def export_audit(
    output: Annotated[Path, typer.Option(help="file to write")],
    home: HomeOption = HOSPITAL_HOME,
) -> None:
    """Writes this hospital's audit log to a file, signed by its key, for `consilium verify-audit`."""
    from consilium_chain.deploying.address_book import Deployment
    from consilium_chain.keystore import open_keystore
    from consilium_client.home import HospitalHome
    from consilium_client.hospital.audit_log import AUDIT_FILE, export, read_log
    from consilium_core.private_files import write_private_file

    settings = HospitalHome.open(home).settings
    deployment = Deployment.read(settings.deployment)
    account = open_keystore(settings.keystore, settings.password_file)
    exported = export(read_log(settings.home / AUDIT_FILE), account, deployment.chain_id, deployment.tasks)
    write_private_file(output, exported)
    typer.echo(f"{len(exported.splitlines()) - 1} entries, signed by {account.address}, in {output}")
