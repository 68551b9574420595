"""The commands of `consilium voter`, parsed before anything heavy is imported."""

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

app = typer.Typer(help="A voter's node: set up, register, judge whatever task its policy allows.", no_args_is_help=True)

HOME = Path("~/.consilium/voter")
HomeOption = Annotated[
    Path, typer.Option("--home", envvar="CONSILIUM_VOTER_HOME", help="folder with this voter's key and settings")
]


@app.command("init")
def init(
    home: HomeOption = HOME,
    chain_url: NewChainUrlOption = None,
    address_book: NewAddressBookOption = None,
    artifacts: NewArtifactsOption = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="rows that nobody trains on, CSV or Parquet, or a folder of texts or images; of several classes"
        ),
    ] = None,
    mapping: NewMappingOption = None,
    keystore: NewKeystoreOption = None,
    password_file: NewPasswordFileOption = None,
    operator: NewOperatorsOption = None,
    model: Annotated[
        list[str] | None, typer.Option(help='model family that may be judged, or "any"; may be given more than once')
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help='metric that may be judged by, or "any"; may be given more than once')
    ] = None,
    max_bond: Annotated[int | None, typer.Option(min=0, help="most that a task may lock, in whole tokens")] = None,
    max_tasks: Annotated[int | None, typer.Option(min=1, help="of how many tasks at once; by default 4")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="do not try the connections")] = False,
    like: LikeOption = None,
) -> None:
    """Makes a home: key, settings, policy. What no flag says is asked for."""
    from consilium_cli.voter import init as setting_up

    given = setting_up.Given(
        chain_url, address_book, artifacts, data, mapping, keystore, password_file, operator, model, metric, max_bond,
        max_tasks,
    )  # fmt: skip
    if like is not None:
        setting_up.init_like(home, like, given, offline)
    else:
        setting_up.init(home, given, offline)


@app.command("register")
def register(
    home: HomeOption = HOME,
    stake: Annotated[
        int | None, typer.Option(min=0, help="whole tokens at stake in the end, what is staked already included")
    ] = None,
    commission: Annotated[
        float | None, typer.Option(min=0, max=100, help="percent of its delegators' rewards that this voter keeps")
    ] = None,
    yes: YesOption = False,
) -> None:
    """Stakes, and registers the key that draws seats. Run again, it does what is missing, and nothing twice."""
    from consilium_cli.voter import registering

    registering.register(home, stake, commission, yes)


@app.command("tasks")
def tasks(
    home: HomeOption = HOME,
    every: Annotated[bool, typer.Option("--all", help="also those that can be joined no more")] = False,
) -> None:
    """Lists tasks, and whether the node would join them: by its policy, its table and its free stake."""
    from consilium_cli.voter import status as screens

    screens.show_tasks(screens.Visit.of(home), every)


@app.command("use-table")
def use_table(
    task: TaskArgument,
    data: Annotated[Path, typer.Option(help="table of held-out rows for this task")],
    home: HomeOption = HOME,
    mapping: Annotated[Path | None, typer.Option(help="how its columns become the task's, TOML (docs/data.md)")] = None,
) -> None:
    """Has one task judged on another table than the home's, which fits some tasks only."""
    from consilium_cli.voter import status as screens

    screens.use_table(screens.Visit.of(home), task, data, mapping)


@app.command("run")
def run(
    home: HomeOption = HOME,
    task: Annotated[int | None, typer.Option(min=1, help="only this one, until it ends")] = None,
) -> None:
    """Joins what the policy allows and the data fit, and judges; can be ended and started again at any time.

    Tells what happens: on a terminal in words, elsewhere as one JSON object a line.
    """
    from consilium_client.home import VoterHome
    from consilium_client.voter.judging import Voter
    from consilium_core.live import VOTER, told

    from consilium_cli.nodes.ending import ends_at_once

    with ends_at_once(), told(VOTER):  # judging takes long, and nobody waits for it
        voter = Voter(VoterHome.open(home))
        if task is None:
            voter.run()
        else:
            voter.run_one(task)


@app.command("status")
def status(home: HomeOption = HOME) -> None:
    """Account, connections, stake and rewards, and where each task stands."""
    from consilium_cli.voter import status as screens

    screens.show_status(home)


@app.command("claim")
def claim(home: HomeOption = HOME) -> None:
    """Collects rewards that have vested, and the bonds of tasks that have ended. A node that runs does so, too."""
    from consilium_cli.voter import registering

    registering.claim(home)


@app.command("unstake")
def unstake(
    whole_tokens: TokensArgument = None,
    home: HomeOption = HOME,
    yes: YesOption = False,
) -> None:
    """Sends stake home, which takes the unbonding period, and takes into the account what has arrived."""
    from consilium_chain.ledger.structs import Role
    from consilium_client.home import VoterHome

    from consilium_cli.nodes.unstaking import unstake as send_home

    send_home(VoterHome.open(home).settings.connect(), Role.VOTER, whole_tokens, yes)


@app.command("pause")
def pause(home: HomeOption = HOME) -> None:
    """Joins no further task, and takes no further seat; what is committed to is still revealed."""
    from consilium_client.home import VoterHome

    VoterHome.open(home).pause()
    typer.echo("paused: no task is joined and no seat taken until `consilium voter resume`; that is not slashed")


@app.command("resume")
def resume(home: HomeOption = HOME) -> None:
    """Joins tasks and takes seats again."""
    from consilium_client.home import VoterHome

    VoterHome.open(home).resume()
    typer.echo("resumed")
