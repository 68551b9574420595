"""`consilium voter init`: what is asked of a voter alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from consilium_client.consent import ANY, NEW_VOTER, VoterPolicy
from consilium_client.home import VoterHome

from consilium_cli.nodes import homes
from consilium_cli.voter.commands import HOME


@dataclass(frozen=True)
class Given(homes.Given):
    metrics: list[str] | None
    max_bond: int | None
    max_tasks: int | None


def init(home: Path, given: Given, offline: bool) -> None:
    """Nothing is written before everything is known."""
    home = homes.new_folder(home)
    typer.echo(f"A voter's home in {home}. Nothing is staked before you register, and no task joined before you run.\n")
    book, settings = homes.ask_settings(given, "This voter's table of held-out rows")
    made = homes.write_home(VoterHome, home, given, book, settings, _policy(given))
    if not offline:
        homes.try_home(made)
    typer.echo(f"\nNext: consilium voter register{homes.elsewhere(home, HOME)}")


def init_like(home: Path, like: Path, given: Given, offline: bool) -> None:
    """A home for other contracts."""
    homes.init_like(VoterHome, home, like, given, offline)
    typer.echo(f"\nNext: consilium voter register{homes.elsewhere(home, HOME)}")


def _policy(given: Given) -> dict[str, Any]:
    """Raises PolicyInvalid."""
    ask = homes.ask_names
    policy: dict[str, Any] = {
        "operators": ask(given.operators, "Operators whose tasks may be joined (addresses, or any)", "--operator"),
        "models": ask(given.models, "Model families that may be judged (names, or any)", "--model", ANY),
        "metrics": ask(given.metrics, "Metrics that may be judged by (names, or any)", "--metric", ANY),
        **NEW_VOTER,
    }
    limits = {"max_bond": given.max_bond, "max_tasks": given.max_tasks}
    return homes.checked_policy(policy | {k: v for k, v in limits.items() if v is not None}, VoterPolicy)
