"""`consilium doctor`, parsed before anything heavy is imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consilium_cli.doctor.role import Role
from consilium_cli.options import HOSPITAL_HOME, VOTER_HOME

if TYPE_CHECKING:
    from consilium_cli.doctor.findings import Findings
    from consilium_cli.doctor.roles import Asked


HOMES = {Role.HOSPITAL: HOSPITAL_HOME, Role.VOTER: VOTER_HOME}
PUBLIC = (Role.AGGREGATOR, Role.SPONSOR)


def doctor_command(
    role: Annotated[Role, typer.Argument(help="the role of this machine")],
    config: Annotated[Path | None, typer.Option("--config", help="a server's configuration file, TOML")] = None,
    home: Annotated[
        Path | None,
        typer.Option("--home", help="a hospital's or a voter's home; by default the one that its other commands take"),
    ] = None,
    public: Annotated[
        str | None,
        typer.Option(
            "--public",
            metavar="HOST:PORT",
            help="public address of an aggregator or a sponsor, by the proxy",
        ),
    ] = None,
    authority: Annotated[
        Path | None,
        typer.Option(help="certificate that signed the proxy's, PEM; by default those that the system trusts"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object instead of a table")] = False,
) -> None:
    """Checks that this machine is fit for a role, and names a remedy for each fault. Changes nothing.

    Ends with 1 if a fault keeps the role from its work, else with 0.
    """
    import json

    from consilium_client.errors import HomeError
    from consilium_core.errors import ConfigInvalid
    from consilium_core.faults import printed_name
    from consilium_server.errors import ServerError

    from consilium_cli.doctor.asking import ask
    from consilium_cli.doctor.findings import Finding, Level
    from consilium_cli.doctor.roles import checks_of, checks_without_settings

    asked = _asked(role, config, home, public, authority)
    found: Findings = []
    try:
        checks = checks_of(asked)
    except (ServerError, ConfigInvalid, HomeError) as error:
        name = printed_name(error)
        found.append(Finding("configuration", Level.FAULT, str(error), f"as it says ({name})"))
        checks = checks_without_settings(asked)
    found += ask(checks)
    is_fit = all(one.level is not Level.FAULT for one in found)
    if as_json:
        lines = [
            {"check": one.check, "level": one.level, "says": one.says, "remedy": one.remedy, "values": dict(one.values)}
            for one in found
        ]
        typer.echo(json.dumps({"role": role, "fit": is_fit, "findings": lines}))
    else:
        _show(found)
    if not is_fit:
        raise typer.Exit(1)


def _asked(role: Role, config: Path | None, home: Path | None, public: str | None, authority: Path | None) -> Asked:
    """Raises typer.BadParameter."""
    import os

    from consilium_core.connectivity import host_and_port

    from consilium_cli.doctor.roles import Asked

    if role in HOMES:
        if config is not None:
            raise typer.BadParameter(f"a {role}'s configuration is in its home: pass --home", param_hint="--config")
        told = os.environ.get(f"CONSILIUM_{role.upper()}_HOME")
        where = (home or Path(told or HOMES[role])).expanduser()
    elif config is None or home is not None:
        raise typer.BadParameter(f"pass the file that the {role} is started with, by --config", param_hint="--config")
    else:
        where = config
    if public is not None and role not in PUBLIC:
        raise typer.BadParameter(f"where a {role} is reached, its configuration says", param_hint="--public")
    try:
        address = None if public is None else host_and_port(public)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--public") from None
    if authority is not None and not authority.is_file():
        raise typer.BadParameter(f"there is no file {authority}", param_hint="--authority")
    return Asked(role, where, address, authority)


def _show(found: Findings) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from consilium_cli.doctor.findings import Level

    colours = {Level.OK: "green", Level.WARNING: "yellow", Level.FAULT: "bold red"}
    table = Table.grid(padding=(0, 2))
    for one in found:
        said = Text(one.says, overflow="fold")
        if one.remedy:
            said.append(f"\n→ {one.remedy}", style=colours[one.level])
        table.add_row(Text(one.level, colours[one.level]), one.check, said)
    Console(highlight=False).print(table)
    count = {level: sum(one.level is level for one in found) for level in Level}
    typer.echo(f"{count[Level.FAULT]} fault(s), {count[Level.WARNING]} warning(s), {count[Level.OK]} in order")
