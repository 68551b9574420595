"""Questions at the terminal."""

from __future__ import annotations

import sys

import typer


def agrees(question: str) -> bool:
    """False without a terminal."""
    return sys.stdin.isatty() and typer.confirm(question)
