"""The commands that `consilium hospital` and `consilium voter` share. Imports nothing heavy at the start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from consilium_core.defaults import USUAL_HOMES, Role

from consilium_cli.options import NewPasswordFileOption, TokensArgument, YesOption

if TYPE_CHECKING:
    from consilium.client import Client
    from consilium.voter import Voter

TASKS_LISTED = {
    Role.HOSPITAL: "Lists tasks, and says of each if this hospital's policy allows it.",
    Role.VOTER: "Lists tasks, and says of each if the node joins it. Policy, table and free stake decide.",
}
PAUSE = {
    Role.HOSPITAL: "Starts no new rounds from now on. An update that is already committed is still uploaded.",
    Role.VOTER: "Joins no more tasks, and takes no more seats. Scores that are already committed are still revealed.",
}
PAUSED = {
    Role.HOSPITAL: "no new round starts until `consilium hospital resume`; missed rounds are not paid, and not slashed",
    Role.VOTER: "this voter joins no task and takes no seat until `consilium voter resume`; that is not slashed",
}


def add_shared_commands(app: typer.Typer, role: Role) -> None:
    home_option: Any = typer.Option(
        USUAL_HOMES[role],
        "--home",
        envvar=f"CONSILIUM_{role.upper()}_HOME",
        help=f"folder with this {role}'s key and settings",
    )

    @app.command("tasks", help=TASKS_LISTED[role])
    def tasks(
        home: Path = home_option,
        every: Annotated[bool, typer.Option("--all", help="list also tasks that are over or closed")] = False,
    ) -> None:
        from consilium_cli.hospital.status import HOSPITAL
        from consilium_cli.nodes.status import show_tasks
        from consilium_cli.voter.status import VOTER

        show_tasks(_open(role, home).tasks(every), HOSPITAL if role is Role.HOSPITAL else VOTER)

    @app.command("status")
    def status(home: Path = home_option) -> None:
        """Shows the account, the connections, stake and rewards, and the state of each task."""
        from consilium_cli.hospital.status import show_hospital
        from consilium_cli.voter.status import show_voter

        (show_hospital if role is Role.HOSPITAL else show_voter)(home)

    @app.command("pause", help=PAUSE[role])
    def pause(home: Path = home_option) -> None:
        _open(role, home).pause()
        typer.echo(f"paused: {PAUSED[role]}")

    @app.command("resume")
    def resume(home: Path = home_option) -> None:
        """Takes part again from the next round on."""
        _open(role, home).resume()
        typer.echo("resumed")

    @app.command("set-profile")
    def set_profile(
        file: Annotated[Path, typer.Argument(metavar="FILE", help="name, institution, country, site, contact; TOML")],
        server: Annotated[str, typer.Option(help="URL of the server that is to show it")],
        home: Path = home_option,
    ) -> None:
        """Signs this node's public profile, and sends it to a server. A later one replaces it."""
        from consilium.profiles import publish_profile

        shown = publish_profile(_open(role, home), file, server)
        typer.echo(f"{server} shows this node as {shown.name}")
        if shown.verification_file:
            typer.echo(f"To verify the site, put {shown.account} on a line of {shown.verification_file}")

    @app.command("unstake")
    def unstake(whole_tokens: TokensArgument = None, home: Path = home_option, yes: YesOption = False) -> None:
        """Unstakes tokens, which are locked for the unbonding period, and withdraws those whose period is over."""
        from consilium_cli.nodes.staking import unstake

        unstake(_open(role, home), whole_tokens, yes)

    @app.command("withdrawal-address")
    def withdrawal_address(
        address: Annotated[
            str | None, typer.Argument(metavar="[ADDRESS]", help="account that is to be paid; by default it is shown")
        ] = None,
        cancel: Annotated[bool, typer.Option("--cancel", help="take back an announced change")] = False,
        keystore: Annotated[
            Path | None,
            typer.Option(help="encrypted key file of the present withdrawal address, which alone can change it"),
        ] = None,
        password_file: NewPasswordFileOption = None,
        home: Path = home_option,
        yes: YesOption = False,
    ) -> None:
        """Shows or sets the account to which this node's own stake and rewards are paid."""
        from consilium_cli.nodes.withdrawal import WithKey, change_or_show

        change_or_show(_open(role, home), address, cancel, WithKey(keystore, password_file), yes)


def _open(role: Role, folder: Path) -> Client | Voter:
    """Raises HomeMissing, ConfigInvalid."""
    from consilium_cli.nodes.status import opened_client, opened_voter

    return opened_client(folder) if role is Role.HOSPITAL else opened_voter(folder)
