"""The commands of `consilium hospital`. Imports nothing heavy at the start."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from consilium_core.defaults import USUAL_HOMES, Role

from consilium_cli.nodes.commands import add_shared_commands
from consilium_cli.options import (
    LikeOption,
    NewAddressBookOption,
    NewArtifactsOption,
    NewChainUrlOption,
    NewInviteOption,
    NewKeystoreOption,
    NewMappingOption,
    NewOperatorsOption,
    NewPasswordFileOption,
    NewReportToOption,
    NewWithdrawalAddressOption,
    SeedOption,
    ShareOption,
    TaskArgument,
    YesOption,
)

app = typer.Typer(help="A hospital's node: set it up, inspect tasks, consent, take part.", no_args_is_help=True)

USUAL_HOME = USUAL_HOMES[Role.HOSPITAL]
HomeOption = Annotated[
    Path, typer.Option("--home", envvar="CONSILIUM_HOSPITAL_HOME", help="folder with this hospital's key and settings")
]
DataOption = Annotated[
    Path | None,
    typer.Option(help="table, folder or a server's .url with the data for this task; by default that of the home"),
]
MappingOption = Annotated[
    Path | None,
    typer.Option(
        help="file that maps its columns to the task's columns, TOML (docs/data.md); by default that of the home"
    ),
]


@app.command("init")
def init(
    home: HomeOption = USUAL_HOME,
    invite: NewInviteOption = None,
    chain_url: NewChainUrlOption = None,
    address_book: NewAddressBookOption = None,
    artifacts: NewArtifactsOption = None,
    data: Annotated[
        Path | None, typer.Option(help="this hospital's table (CSV or Parquet), or its folder of texts or images")
    ] = None,
    mapping: NewMappingOption = None,
    report_to: NewReportToOption = None,
    withdrawal_address: NewWithdrawalAddressOption = None,
    keystore: NewKeystoreOption = None,
    password_file: NewPasswordFileOption = None,
    operator: NewOperatorsOption = None,
    model: Annotated[
        list[str] | None, typer.Option(help='model family that may be trained, or "any"; may be repeated')
    ] = None,
    column: Annotated[list[str] | None, typer.Option(help='column that may be used, or "any"; may be repeated')] = None,
    hours: Annotated[
        str | None, typer.Option(help='local time of day in which to train, such as "19:00-07:00"')
    ] = None,
    sponsor_url: Annotated[
        str | None, typer.Option(help="https://host:port of the sponsor that pays this hospital's gas")
    ] = None,
    sponsor_ca: Annotated[
        Path | None, typer.Option(help="certificate of the authority that signed the sponsor's, PEM")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="do not check the connections")] = False,
    like: LikeOption = None,
    yes: YesOption = False,
) -> None:
    """Makes a home with key, settings and policy. Asks for the values that neither an option nor an invite gives."""
    from consilium_cli.nodes.init import Answers, init_home

    answers = Answers(
        chain_url, address_book, artifacts, data, mapping, report_to, keystore, password_file, operator, model,
        columns=column, hours=hours, sponsor_url=sponsor_url, sponsor_ca=sponsor_ca, invite=invite, yes=yes,
        withdrawal_address=withdrawal_address,
    )  # fmt: skip
    init_home(Role.HOSPITAL, home, answers, offline, like)


add_shared_commands(app, Role.HOSPITAL)


@app.command("show")
def show(task: TaskArgument, home: HomeOption = USUAL_HOME) -> None:
    """Shows a task: its program, time, pay and costs, and if this hospital's policy allows it."""
    from consilium_cli.hospital import status as screens

    screens.show_task(home, task)


@app.command("check-data")
def check_data(
    task: Annotated[int | None, typer.Argument(min=1, metavar="[TASK]", help="number of a task on the chain")] = None,
    home: HomeOption = USUAL_HOME,
    task_file: Annotated[
        Path | None, typer.Option(help="use a task file instead, TOML; then no chain and no home are needed")
    ] = None,
    data: DataOption = None,
    mapping: MappingOption = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            help="also write histograms of columns, variables over time, or a few images as a model gets them, PNG, for"
            " you alone"
        ),
    ] = None,
) -> None:
    """Shows the data as a task reads them, and everything that a node would compute from them. Sends nothing."""
    from consilium_cli.hospital import data_check

    data_check.show_check(home, task, task_file, data, mapping, picture)


@app.command("join")
def join(
    task: Annotated[
        int | None, typer.Argument(min=1, metavar="[TASK]", help="by default a task of the invite that has room")
    ] = None,
    home: HomeOption = USUAL_HOME,
    invite: Annotated[
        str | None, typer.Option(help="the operator's invite, a file or a link; by default that of the home")
    ] = None,
    superlink: Annotated[
        str | None, typer.Option(help="without an invite: host:port of the SuperLink, with /9100 behind a proxy")
    ] = None,
    ca_certificate: Annotated[
        Path | None, typer.Option(help="certificate of the authority that signed the SuperLink's, PEM")
    ] = None,
    data: DataOption = None,
    mapping: MappingOption = None,
    yes: YesOption = False,
) -> None:
    """Shows a task, asks, stores the approval, and joins the task on chain with this hospital's bond."""
    from consilium_cli.hospital import joining

    joining.join(home, task, invite, (superlink, ca_certificate), data, mapping, yes)


@app.command("approve")
def approve(
    task: TaskArgument,
    home: HomeOption = USUAL_HOME,
    output: Annotated[
        Path | None, typer.Option(help="new folder for the signer: statement, task file and policy")
    ] = None,
    signed: Annotated[Path | None, typer.Option(help="the signed file, which comes back")] = None,
) -> None:
    """Prepares the statement that an account of `[approval]` in policy.toml signs, or takes the signed one."""
    from consilium_cli.hospital import approving

    approving.approve(home, task, output, signed)


@app.command("sign-approval")
def sign_approval(
    folder: Annotated[Path, typer.Argument(help="folder that `consilium hospital approve` wrote")],
    output: Annotated[Path, typer.Option(dir_okay=False, help="file for the signed approval")],
    keystore: Annotated[Path | None, typer.Option(help="encrypted key file of the signer")] = None,
    password_file: Annotated[Path | None, typer.Option(help="file with its password, mode 600")] = None,
    signer: Annotated[
        str | None, typer.Option(help="account that signed statement.json (EIP-712) elsewhere, also a contract")
    ] = None,
    signature: Annotated[str | None, typer.Option(help="its signature, 0x and hexadecimal digits")] = None,
    yes: YesOption = False,
) -> None:
    """Shows a task and a policy, and signs that the hospital may join the task. Needs no home and no chain."""
    from consilium_cli.hospital import approving

    approving.sign(folder, output, (keystore, password_file), (signer, signature), yes)


@app.command("run")
def run(
    task: Annotated[
        int | None, typer.Argument(min=1, metavar="[TASK]", help="by default the only approved task")
    ] = None,
    home: HomeOption = USUAL_HOME,
) -> None:
    """Takes part in an approved task until the task ends. You can stop it and start it again at any time.

    Logs its events: in words on a terminal, otherwise one JSON object per line.
    """
    from consilium.client import Client
    from consilium_core.live import HOSPITAL, on_terminal

    with on_terminal(HOSPITAL):
        Client(home).run(task)


@app.command("evaluate")
def evaluate(
    task: TaskArgument,
    home: HomeOption = USUAL_HOME,
    share: ShareOption = None,
    alone: Annotated[
        bool,
        typer.Option(
            "--alone",
            help="also train a model on this hospital's other rows alone, to compare; --share gives its metrics, too,"
            " if no report of the task was signed before",
        ),
    ] = False,
    seed: SeedOption = 0,
) -> None:
    """Measures a task's model on the rows that this hospital kept out of its training (`held_out` in node.toml)."""
    from consilium.client import Client

    from consilium_cli.nodes.evaluating import show_own

    show_own(Client(home).evaluate(task, share=share, alone=alone, seed=seed), share)


@app.command("leave")
def leave(task: TaskArgument, home: HomeOption = USUAL_HOME, yes: YesOption = False) -> None:
    """Withdraws the approval of a task. If the task has ended, also takes back the bond and the rewards."""
    from consilium_cli.hospital import joining

    joining.leave(home, task, yes)


@app.command("export-audit")
def export_audit(output: Annotated[Path, typer.Option(help="file to write")], home: HomeOption = USUAL_HOME) -> None:
    """Writes this hospital's audit log to a file, signed by its key, for `consilium verify-audit`."""
    from consilium.client import Client

    client = Client(home)
    typer.echo(f"{client.export_audit(output)} entries, signed by {client.account}, in {output}")
