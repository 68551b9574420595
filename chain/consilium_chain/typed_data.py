"""EIP-712 typed data: the messages that accounts sign for contracts and for one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DOMAIN = {"name": "string", "version": "string", "chainId": "uint256", "verifyingContract": "address"}
Struct = Mapping[str, str]
"""A struct's fields in order: ABI types by name."""


def typed_data(
    domain: str, chain_id: int, contract: str, types: Mapping[str, Struct], values: Mapping[str, object]
) -> dict[str, Any]:
    """A message in version 1 of a domain. The last of `types` is the message's own."""
    structs = {"EIP712Domain": _DOMAIN, **types}
    return {
        "types": {
            name: [{"name": field, "type": kind} for field, kind in fields.items()] for name, fields in structs.items()
        },
        "primaryType": list(types)[-1],
        "domain": {"name": domain, "version": "1", "chainId": chain_id, "verifyingContract": contract},
        "message": dict(values),
    }
