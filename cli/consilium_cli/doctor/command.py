"""`consilium doctor`, parsed before anything heavy is imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consilium_cli.options import USUAL_HOMES, Role

if TYPE_CHECKING:
    from consilium_cli.doctor.roles import Machine

PUBLIC = (Role.AGGREGATOR, Role.SPONSOR)


def doctor_command(
    role: Annotated[Role, typer.Argument(help="the role of this machine")],
    config: Annotated[Path | None, typer.Option("--config", help="a server's configuration file, TOML")] = None,
    home: Annotated[
        Path | None,
        typer.Option("--home", help="a hospital's or a voter's home; by default that of its other commands"),
    ] = None,
    public: Annotated[
        str | None,
        typer.Option("--public", metavar="HOST:PORT", help="public address of an aggregator or a sponsor (the proxy)"),
    ] = None,
    authority: Annotated[
        Path | None,
        typer.Option(help="certificate of the authority that signed the proxy's, PEM; by default the system's"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object instead of a table")] = False,
) -> None:
    """Checks that this machine is fit for a role, and names a remedy for each fault. Changes nothing.

    Ends with exit code 1 if a fault stops the role from working, otherwise with 0.
    """
    import json

    from consilium_client.errors import HomeError
    from consilium_core.errors import ConfigInvalid
    from consilium_core.faults import printed_name
    from consilium_server.errors import ServerError

    from consilium_cli.doctor.checks import run_checks, show_findings
    from consilium_cli.doctor.findings import Finding, Findings, Level
    from consilium_cli.doctor.roles import checks_of, checks_without_settings

    machine = _machine(role, config, home, public, authority)
    found: Findings = []
    try:
        checks = checks_of(machine)
    except (ServerError, ConfigInvalid, HomeError) as error:
        found.append(Finding("configuration", Level.FAULT, str(error), f"do as it says ({printed_name(error)})"))
        checks = checks_without_settings(machine)
    found += run_checks(checks)
    count = {level: sum(one.level is level for one in found) for level in Level}
    if as_json:
        fields = ("check", "level", "says", "remedy", "values")
        lines = [{name: getattr(one, name) for name in fields} for one in found]
        typer.echo(json.dumps({"role": role, "fit": count[Level.FAULT] == 0, "findings": lines}))
    else:
        show_findings(found)
        typer.echo(f"{count[Level.FAULT]} fault(s), {count[Level.WARNING]} warning(s), {count[Level.OK]} in order")
    if count[Level.FAULT]:
        raise typer.Exit(1)


def _machine(role: Role, config: Path | None, home: Path | None, public: str | None, authority: Path | None) -> Machine:
    """Raises typer.BadParameter."""
    import os

    from consilium_core.connectivity import host_and_port

    from consilium_cli.doctor.roles import Machine

    if role in USUAL_HOMES:
        if config is not None:
            raise typer.BadParameter(f"a {role}'s configuration is in its home: pass --home", param_hint="--config")
        usual = os.environ.get(f"CONSILIUM_{role.upper()}_HOME")
        where = (home or Path(usual or USUAL_HOMES[role])).expanduser()
    elif config is None or home is not None:
        raise typer.BadParameter(f"pass the {role}'s configuration file with --config", param_hint="--config")
    else:
        where = config
    if public is not None and role not in PUBLIC:
        raise typer.BadParameter(f"leave it out: the configuration has the address of a {role}", param_hint="--public")
    try:
        address = None if public is None else host_and_port(public)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--public") from None
    if authority is not None and not authority.is_file():
        raise typer.BadParameter(f"the file {authority} does not exist", param_hint="--authority")
    return Machine(role, where, address, authority)
