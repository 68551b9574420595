"""Questions at a terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import typer
from consilium_core.defaults import USUAL_HOMES, Role


def ask(given: object, question: str, flag: str, default: str | None = None) -> str:
    if given is not None:
        return str(given)
    if sys.stdin.isatty():
        return str(typer.prompt(question, default=default))
    if default is not None:
        return default
    raise typer.BadParameter("pass this option: there is no terminal to ask on", param_hint=flag)


def confirmed(agreed: bool, question: str) -> bool:
    """False without a terminal, unless an option agreed."""
    return agreed or (sys.stdin.isatty() and typer.confirm(question))


def elsewhere(role: Role, folder: Path) -> str:
    """The option that the next command needs for this home, or an empty text."""
    return "" if folder == USUAL_HOMES[role].expanduser() else f" --home {folder}"
