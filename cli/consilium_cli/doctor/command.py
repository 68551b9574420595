"""`consilium doctor`, parsed before anything heavy is imported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from consilium_core.defaults import USUAL_HOMES, Role

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
        typer.Option(
            "--public",
            metavar="ADDRESS",
            help="an aggregator's or a sponsor's at the proxy: host:port, or host:port/9100",
        ),
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

    from consilium.machine import Level, doctor
    from consilium_core.live import log_to_stderr

    from consilium_cli.doctor.screen import show_findings

    log_to_stderr()
    where = _where(role, config, home)
    _require_address(role, public)
    if authority is not None and not authority.is_file():
        raise typer.BadParameter(f"the file {authority} does not exist", param_hint="--authority")
    found = doctor(role, where, public=public, authority=authority)
    if as_json:
        fields = ("check", "level", "says", "remedy", "values")
        lines = [{name: getattr(one, name) for name in fields} for one in found.findings]
        typer.echo(json.dumps({"role": role, "fit": found.fit, "findings": lines}))
    else:
        show_findings(found.findings)
        faults, warnings, good = map(found.count, (Level.FAULT, Level.WARNING, Level.OK))
        typer.echo(f"{faults} fault(s), {warnings} warning(s), {good} in order")
    if not found.fit:
        raise typer.Exit(1)


def _where(role: Role, config: Path | None, home: Path | None) -> Path:
    """A configuration file, or a node's home. Raises typer.BadParameter."""
    import os

    if role in USUAL_HOMES:
        if config is not None:
            raise typer.BadParameter(f"a {role}'s configuration is in its home: pass --home", param_hint="--config")
        return home or Path(os.environ.get(f"CONSILIUM_{role.upper()}_HOME") or USUAL_HOMES[role])
    if config is None or home is not None:
        raise typer.BadParameter(f"pass the {role}'s configuration file with --config", param_hint="--config")
    return config


def _require_address(role: Role, public: str | None) -> None:
    """Raises typer.BadParameter."""
    from consilium_core.connectivity import fleet_address, host_and_port

    if public is not None and role not in PUBLIC:
        raise typer.BadParameter(f"leave it out: the configuration has the address of a {role}", param_hint="--public")
    try:
        if public is not None:
            (fleet_address if role is Role.AGGREGATOR else host_and_port)(public)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--public") from None
