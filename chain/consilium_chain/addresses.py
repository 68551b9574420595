"""Addresses of accounts, as people give them."""

from __future__ import annotations

from eth_utils.address import (
    is_checksum_address,
    is_checksum_formatted_address,
    is_hex_address,
    to_checksum_address,
)

from consilium_chain.errors import NotPossible


def checked_address(text: str) -> str:
    """The address with capital letters as in EIP-55. Raises NotPossible (AddressMalformed, AddressMistyped)."""
    if not is_hex_address(text):
        raise NotPossible("AddressMalformed", address=text)
    if is_checksum_formatted_address(text) and not is_checksum_address(text):
        raise NotPossible("AddressMistyped", address=text)
    return str(to_checksum_address(text))
