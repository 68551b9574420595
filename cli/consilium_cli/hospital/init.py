"""`consilium hospital init`: what is asked of a hospital alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from consilium_client.config import SponsoredSettings
from consilium_client.consent import ANY, NEW_HOSPITAL, Policy
from consilium_client.home import HospitalHome
from consilium_client.hospital.transport_key import make_transport_key
from pydantic import ValidationError

from consilium_cli.hospital.commands import HOME
from consilium_cli.nodes import homes


@dataclass(frozen=True)
class Given(homes.Given):
    columns: list[str] | None
    hours: str | None
    sponsor_url: str | None
    sponsor_ca: Path | None


def init(home: Path, given: Given, offline: bool) -> None:
    """Nothing is written before everything is known."""
    home = homes.new_folder(home)
    typer.echo(f"A hospital's home in {home}. Nothing leaves it before you have joined a task.\n")
    book, settings = homes.ask_settings(given, "This hospital's data, a file or a folder")
    policy = _policy(given)
    if given.sponsor_url is not None:
        settings["sponsor"] = _sponsor(given.sponsor_url, given.sponsor_ca)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    make_transport_key(home / "transport.key")
    made = homes.write_home(HospitalHome, home, given, book, settings, policy)
    if not offline:
        homes.try_home(made)
    typer.echo(f"\nNext: consilium hospital tasks{homes.elsewhere(home, HOME)}")


def _sponsor(url: str, authority: Path | None) -> dict[str, Any]:
    sponsor: dict[str, Any] = {"url": url}
    if authority is not None:
        sponsor["ca_certificate"] = str(authority.absolute())
    try:
        SponsoredSettings.model_validate(sponsor)
    except ValidationError as error:
        raise typer.BadParameter(error.errors()[0]["msg"], param_hint="--sponsor-url") from None
    return sponsor


def init_like(home: Path, like: Path, given: Given, offline: bool) -> None:
    """A home for other contracts."""
    homes.init_like(HospitalHome, home, like, given, offline)
    typer.echo(f"\nNext: consilium hospital tasks{homes.elsewhere(home, HOME)}")


def _policy(given: Given) -> dict[str, Any]:
    """Raises PolicyInvalid."""
    ask = homes.ask_names
    policy: dict[str, Any] = {
        "operators": ask(given.operators, "Operators whose tasks may be joined (addresses, or any)", "--operator"),
        "models": ask(given.models, "Model families that may be trained (names, or any)", "--model", ANY),
        "columns": ask(given.columns, "Columns that may be used (the task's names, or any)", "--column", ANY),
        **NEW_HOSPITAL,
    }
    if given.hours is not None:
        policy["hours"] = given.hours
    return homes.checked_policy(policy, Policy)
