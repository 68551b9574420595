"""Addresses of accounts on the command line. Imports nothing heavy at the start."""

from __future__ import annotations

import typer


def checked_address(text: str, parameter: str) -> str:
    """The address with capital letters as in EIP-55. Raises typer.BadParameter."""
    from eth_utils.address import (
        is_checksum_address,
        is_checksum_formatted_address,
        is_hex_address,
        to_checksum_address,
    )

    if not is_hex_address(text):
        raise typer.BadParameter("this is not an address: it needs 0x and 40 hexadecimal digits", param_hint=parameter)
    if is_checksum_formatted_address(text) and not is_checksum_address(text):
        raise typer.BadParameter(
            "mistyped: the capital letters do not match the checksum (EIP-55)", param_hint=parameter
        )
    return str(to_checksum_address(text))
