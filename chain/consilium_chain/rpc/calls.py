"""Calls of contracts by their ABI's names, as in transactions and batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eth_abi.exceptions import DecodingError
from hexbytes import HexBytes
from web3.contract.contract import Contract
from web3.exceptions import Web3Exception


@dataclass(frozen=True)
class NamedCall:
    """A call of a known contract: the contract's name, the function's name and its arguments by name."""

    contract: str
    name: str
    arguments: dict[str, Any]


def named_call(name: str, contract: Contract, data: bytes) -> NamedCall | None:
    """A call of `contract` with the contract name `name`; None for an unknown function."""
    try:
        function, arguments = contract.decode_function_input(HexBytes(data))
    except (ValueError, Web3Exception, DecodingError):
        return None
    return NamedCall(name, function.fn_name, arguments)
