"""Addresses of accounts, as people give them."""

from __future__ import annotations

from typing import Annotated

from eth_utils.address import (
    is_checksum_address,
    is_checksum_formatted_address,
    is_hex_address,
    to_checksum_address,
)
from pydantic import AfterValidator, Field

from consilium_chain.errors import NotPossible


def _checksummed(text: str) -> str:
    if to_checksum_address(text) != text:
        raise ValueError("its capital letters do not match the checksum (EIP-55)")
    return text


ExactAddress = Annotated[str, Field(pattern="^0x[0-9a-fA-F]{40}$"), AfterValidator(_checksummed)]
"""With capital letters as in EIP-55, so that two texts of one account are equal."""


def checked_address(text: str) -> str:
    """The address with capital letters as in EIP-55. Raises NotPossible (AddressMalformed, AddressMistyped)."""
    if not is_hex_address(text):
        raise NotPossible("AddressMalformed", address=text)
    if is_checksum_formatted_address(text) and not is_checksum_address(text):
        raise NotPossible("AddressMistyped", address=text)
    return str(to_checksum_address(text))
