"""The commands of `consilium voter`. Imports nothing heavy at the start."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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

app = typer.Typer(
    help="A voter's node: set it up, register, judge the tasks that its policy allows.", no_args_is_help=True
)

USUAL_HOME = USUAL_HOMES[Role.VOTER]
HomeOption = Annotated[
    Path, typer.Option("--home", envvar="CONSILIUM_VOTER_HOME", help="folder with this voter's key and settings")
]


@app.command("init")
def init(
    home: HomeOption = USUAL_HOME,
    invite: NewInviteOption = None,
    chain_url: NewChainUrlOption = None,
    address_book: NewAddressBookOption = None,
    artifacts: NewArtifactsOption = None,
    data: Annotated[
        Path | None,
        typer.Option(help="held-out rows of several classes (CSV or Parquet), or a folder of texts or images"),
    ] = None,
    mapping: NewMappingOption = None,
    report_to: NewReportToOption = None,
    withdrawal_address: NewWithdrawalAddressOption = None,
    keystore: NewKeystoreOption = None,
    password_file: NewPasswordFileOption = None,
    operator: NewOperatorsOption = None,
    model: Annotated[
        list[str] | None, typer.Option(help='model family that may be judged, or "any"; may be repeated')
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help='metric by which tasks may be judged, or "any"; may be repeated')
    ] = None,
    max_bond: Annotated[
        int | None, typer.Option(min=0, help="largest bond that a task may lock, in whole tokens")
    ] = None,
    max_tasks: Annotated[int | None, typer.Option(min=1, help="largest number of tasks at once; by default 4")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="do not check the connections")] = False,
    like: LikeOption = None,
    yes: YesOption = False,
) -> None:
    """Makes a home with key, settings and policy. Asks for the values that neither an option nor an invite gives."""
    from consilium_cli.nodes.init import Answers, init_home

    answers = Answers(
        chain_url, address_book, artifacts, data, mapping, report_to, keystore, password_file, operator, model,
        metrics=metric, max_bond=max_bond, max_tasks=max_tasks, invite=invite, yes=yes,
        withdrawal_address=withdrawal_address,
    )  # fmt: skip
    init_home(Role.VOTER, home, answers, offline, like)


add_shared_commands(app, Role.VOTER)


@app.command("register")
def register(
    home: HomeOption = USUAL_HOME,
    stake: Annotated[
        int | None, typer.Option(min=0, help="whole tokens that are to be staked in total, with the present stake")
    ] = None,
    commission: Annotated[
        float | None, typer.Option(min=0, max=100, help="percentage of its delegators' rewards that this voter keeps")
    ] = None,
    yes: YesOption = False,
) -> None:
    """Stakes tokens, and registers the key that draws seats. If you run it again, it does only the missing steps."""
    from consilium_cli.nodes import staking

    staking.register(home, stake, commission, yes)


@app.command("use-table")
def use_table(
    task: TaskArgument,
    data: Annotated[Path, typer.Option(help="table of held-out rows for this task")],
    home: HomeOption = USUAL_HOME,
    mapping: Annotated[
        Path | None, typer.Option(help="file that maps its columns to the task's columns, TOML (docs/data.md)")
    ] = None,
) -> None:
    """Sets a table for one task, which is used instead of the home's."""
    from consilium_cli.voter import status as screens

    screens.use_table(home, task, data, mapping)


@contextmanager
def ends_at_once() -> Iterator[None]:
    """Ends the process when it is told to stop (SystemExit, KeyboardInterrupt), as soon as the block is unwound.

    Python's own exit ends each daemon thread as it returns from native code, and C++ then aborts the process (CPython's
    gh-87135; from 3.14 on such threads hang instead).
    """
    try:
        yield
    except (SystemExit, KeyboardInterrupt) as stop:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(130 if isinstance(stop, KeyboardInterrupt) else int(stop.code or 0))


@app.command("run")
def run(
    home: HomeOption = USUAL_HOME,
    task: Annotated[int | None, typer.Option(min=1, help="judge only this task, until it ends")] = None,
) -> None:
    """Joins the tasks that policy and data allow, and judges them. You can stop it and start it again at any time.

    Logs its events: in words on a terminal, otherwise one JSON object per line.
    """
    from consilium.voter import Voter
    from consilium_core.live import VOTER, on_terminal

    with ends_at_once(), on_terminal(VOTER):  # judging takes long, and the end need not wait for it
        Voter(home).run(task)


@app.command("claim")
def claim(home: HomeOption = USUAL_HOME) -> None:
    """Transfers vested rewards and the bonds of ended tasks to the account. A running node does the same."""
    from consilium_cli.nodes import staking

    staking.claim(home)


@app.command("evaluate")
def evaluate(
    task: TaskArgument, home: HomeOption = USUAL_HOME, share: ShareOption = None, seed: SeedOption = 0
) -> None:
    """Measures a task's model on this voter's rows: metrics with 95 % intervals, subgroups, importance, calibration."""
    from consilium.voter import Voter

    from consilium_cli.nodes.evaluating import show_own

    show_own(Voter(home).evaluate(task, share=share, seed=seed), share)


@app.command("disclose-evaluation")
def disclose_evaluation(
    task: TaskArgument,
    round_: Annotated[int, typer.Argument(metavar="ROUND", min=1, help="round of a ballot that this node revealed")],
    *,
    home: HomeOption = USUAL_HOME,
    out: Annotated[Path, typer.Option(help="file for the auditor; it is as confidential as the rows")],
) -> None:
    """Writes evidence for an auditor who has this voter's rows: that the node evaluated them as drawn."""
    from consilium.voter import Voter

    disclosure = Voter(home).disclose_evaluation(task, round_, out)
    typer.echo(
        f"{len(disclosure.batches)} batches of round {round_} are in {out}: give them only to the auditor who has these"
        " rows"
    )
