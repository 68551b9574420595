"""The commands of `consilium voter`, parsed before anything heavy is imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from consilium_cli.options import (
    VOTER_HOME,
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

app = typer.Typer(
    help="A voter's node: set up, register, judge the tasks that its policy allows.", no_args_is_help=True
)

HomeOption = Annotated[
    Path, typer.Option("--home", envvar="CONSILIUM_VOTER_HOME", help="folder with this voter's key and settings")
]


@app.command("init")
def init(
    home: HomeOption = VOTER_HOME,
    chain_url: NewChainUrlOption = None,
    address_book: NewAddressBookOption = None,
    artifacts: NewArtifactsOption = None,
    data: Annotated[
        Path | None,
        typer.Option(help="held-out rows of several classes, CSV or Parquet, or a folder of texts or images"),
    ] = None,
    mapping: NewMappingOption = None,
    keystore: NewKeystoreOption = None,
    password_file: NewPasswordFileOption = None,
    operator: NewOperatorsOption = None,
    model: Annotated[
        list[str] | None, typer.Option(help='model family that may be judged, or "any"; may be repeated')
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help='metric that may be judged by, or "any"; may be repeated')
    ] = None,
    max_bond: Annotated[int | None, typer.Option(min=0, help="most that a task may lock, in whole tokens")] = None,
    max_tasks: Annotated[int | None, typer.Option(min=1, help="most tasks at once; by default 4")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="do not try the connections")] = False,
    like: LikeOption = None,
) -> None:
    """Makes a home: key, settings, policy. It asks for the values that no flag gives."""
    from consilium_cli.nodes.init import VoterGiven, init_voter

    given = VoterGiven(
        chain_url, address_book, artifacts, data, mapping, keystore, password_file, operator, model, metric, max_bond,
        max_tasks,
    )  # fmt: skip
    init_voter(home, given, offline, like)


@app.command("register")
def register(
    home: HomeOption = VOTER_HOME,
    stake: Annotated[
        int | None, typer.Option(min=0, help="whole tokens at stake in the end, present stake included")
    ] = None,
    commission: Annotated[
        float | None, typer.Option(min=0, max=100, help="percent of its delegators' rewards that this voter keeps")
    ] = None,
    yes: YesOption = False,
) -> None:
    """Stakes, and registers the key that draws seats. Run again, it does the missing steps, and none twice."""
    from consilium_cli.nodes import staking

    staking.register(home, stake, commission, yes)


@app.command("tasks")
def tasks(
    home: HomeOption = VOTER_HOME,
    every: Annotated[bool, typer.Option("--all", help="also those that can be joined no more")] = False,
) -> None:
    """Lists tasks, and says of each if the node joins it: by its policy, its table and its free stake."""
    from consilium_cli.voter import status as screens

    screens.show_tasks(screens.Visit.of(home), every)


@app.command("use-table")
def use_table(
    task: TaskArgument,
    data: Annotated[Path, typer.Option(help="table of held-out rows for this task")],
    home: HomeOption = VOTER_HOME,
    mapping: Annotated[
        Path | None, typer.Option(help="mapping of its columns to the task's, TOML (docs/data.md)")
    ] = None,
) -> None:
    """Sets another table than the home's for one task."""
    from consilium_cli.voter import status as screens

    screens.use_table(screens.Visit.of(home), task, data, mapping)


@contextmanager
def ends_at_once() -> Iterator[None]:
    """Told to stop (SystemExit, KeyboardInterrupt), the process ends as soon as all inside has been unwound.

    Python's own end would wait for no daemon thread, but end each as it comes back from native code, which C++ answers
    by aborting the process (CPython's gh-87135; from 3.14 on such threads hang instead).
    """
    try:
        yield
    except (SystemExit, KeyboardInterrupt) as told:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(130 if isinstance(told, KeyboardInterrupt) else int(told.code or 0))


@app.command("run")
def run(
    home: HomeOption = VOTER_HOME,
    task: Annotated[int | None, typer.Option(min=1, help="judge this task alone, until it ends")] = None,
) -> None:
    """Joins the tasks that policy and data allow, and judges. It can be ended and started again at any time.

    Logs its events: on a terminal in words, elsewhere as one JSON object a line.
    """
    from consilium_client.home import VoterHome
    from consilium_client.voter.judging import Voter
    from consilium_core.live import VOTER, on_terminal

    with ends_at_once(), on_terminal(VOTER):  # judging takes long, and nobody waits for it
        voter = Voter(VoterHome.open(home))
        if task is None:
            voter.run()
        else:
            voter.run_one(task)


@app.command("status")
def status(home: HomeOption = VOTER_HOME) -> None:
    """Shows account, connections, stake and rewards, and the state of each task."""
    from consilium_cli.voter import status as screens

    screens.show_status(home)


@app.command("claim")
def claim(home: HomeOption = VOTER_HOME) -> None:
    """Takes vested rewards and the bonds of ended tasks into the account. A running node does so, too."""
    from consilium_cli.nodes import staking

    staking.claim(home)


@app.command("unstake")
def unstake(
    whole_tokens: TokensArgument = None,
    home: HomeOption = VOTER_HOME,
    yes: YesOption = False,
) -> None:
    """Unstakes tokens, which takes the unbonding period, and withdraws those whose period is over."""
    from consilium_chain.ledger.structs import Role
    from consilium_client.home import VoterHome

    from consilium_cli.nodes.staking import unstake as unstake_of

    unstake_of(VoterHome.open(home).settings.connect(), Role.VOTER, whole_tokens, yes)


@app.command("pause")
def pause(home: HomeOption = VOTER_HOME) -> None:
    """Joins no further task, and takes no further seat. Scores that are committed are still revealed."""
    from consilium_client.home import VoterHome

    VoterHome.open(home).pause()
    typer.echo("paused: no task is joined and no seat taken until `consilium voter resume`; that is not slashed")


@app.command("resume")
def resume(home: HomeOption = VOTER_HOME) -> None:
    """Joins tasks and takes seats again."""
    from consilium_client.home import VoterHome

    VoterHome.open(home).resume()
    typer.echo("resumed")


@app.command("open-evaluation")
def open_evaluation(
    task: TaskArgument,
    round_: Annotated[int, typer.Argument(metavar="ROUND", min=1, help="of a ballot that this node revealed")],
    *,
    home: HomeOption = VOTER_HOME,
    out: Annotated[Path, typer.Option(help="file for the auditor; as confidential as the rows")],
) -> None:
    """Writes the evidence by which an auditor with this voter's rows sees that they were evaluated as drawn."""
    from consilium_client.home import VoterHome
    from consilium_client.voter.ballots import Ballot, ballot_path, kept_held_out_secret
    from consilium_client.voter.disclosure import opened
    from consilium_core.private_files import write_private_file

    visited = VoterHome.open(home)
    ledger = visited.settings.connect()
    folder, place = visited.folder, ledger.folder_name(task)
    path = ballot_path(folder, place, round_, ledger.tasks.round_state(task, round_).seat_seed)
    opening = opened(ledger, task, Ballot.kept(path, round_), kept_held_out_secret(folder, place))
    write_private_file(out, opening.model_dump_json(indent=1))
    typer.echo(
        f"{len(opening.batches)} batches of round {round_} in {out}: show them to no one but the auditor with"
        " these rows"
    )
