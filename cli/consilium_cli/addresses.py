"""Addresses of accounts on the command line. Imports nothing heavy at the start."""

from __future__ import annotations

import consilium
import typer


def checked_address(text: str, parameter: str) -> str:
    """The address with capital letters as in EIP-55. Raises typer.BadParameter."""
    try:
        return consilium.checked_address(text)
    except consilium.Fault as error:
        raise typer.BadParameter(str(error), param_hint=parameter) from None
