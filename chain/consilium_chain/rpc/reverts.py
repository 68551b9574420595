"""Refusals of contracts and nodes by name: a revert's data is one of the contracts' errors (Solidity ABI)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from eth_abi.exceptions import DecodingError
from eth_utils.abi import collapse_if_tuple
from hexbytes import HexBytes
from web3 import Web3
from web3.exceptions import ContractCustomError, ContractLogicError, Web3RPCError
from web3.types import RPCEndpoint, TxParams

from consilium_chain.errors import Refused
from consilium_chain.rpc.abi import CONTRACT_NAMES, contract_artifact

# A transaction's trace with its returned data and no step. Without a tracer: with one, anvil (1.7.1) carries out the
# transaction again, and stops for good if a block is mined meanwhile.
_RETURNED_DATA = {"disableStorage": True, "disableStack": True, "enableMemory": False, "limit": 1}


@dataclass(frozen=True)
class _NamedError:
    name: str
    inputs: list[str]
    types: list[str]


@cache
def _errors_by_selector() -> dict[str, _NamedError]:
    known = {}
    for name in CONTRACT_NAMES:
        for entry in contract_artifact(name).abi:
            if entry["type"] != "error":
                continue
            types = [collapse_if_tuple(i) for i in entry["inputs"]]
            selector = Web3.keccak(text=f"{entry['name']}({','.join(types)})")[:4].to_0x_hex()
            known[selector] = _NamedError(entry["name"], [i["name"] for i in entry["inputs"]], types)
    return known


def _decode_error(data: str) -> tuple[str, dict[str, Any]]:
    unnamed = "Unnamed", {"data": data[:74]}
    error = _errors_by_selector().get(data[:10])
    if error is None:
        return unnamed
    try:
        values = Web3().codec.decode(error.types, bytes.fromhex(data[10:]))
    except (DecodingError, ValueError):  # another contract's error of the same selector, or a node that makes one up
        return unnamed
    shown = [Web3.to_checksum_address(v) if t == "address" else v for t, v in zip(error.types, values, strict=True)]
    return error.name, dict(zip(error.inputs, shown, strict=True))


# Error texts of geth, reth and anvil if a nonce is used already, for another transaction or the same one.
NONCE_SPENT, ALREADY_THERE = "nonce too low", ("already known", "already imported")
_NONCE_TAKEN = (NONCE_SPENT, "replacement transaction underpriced", *ALREADY_THERE)


def is_nonce_taken(answer: Mapping[str, Any]) -> bool:
    """True for an error answer to a transaction whose nonce is used already."""
    return "error" in answer and any(words in message_of(answer) for words in _NONCE_TAKEN)


def refusal_of(error: Web3RPCError) -> str:
    """The node's error text."""
    return message_of(error.rpc_response or {})


def message_of(answer: Mapping[str, Any]) -> str:
    """The message in an error answer of JSON-RPC 2.0."""
    error = answer.get("error")
    return str(error.get("message", "no reason given")) if isinstance(error, dict) else "no reason given"


def refusal_from(data: bytes, call: str) -> Refused:
    """The named error in a revert's data."""
    name, values = _decode_error("0x" + data.hex())
    return Refused(name, values, call, data)


def refused(error: ContractLogicError, call: str) -> Refused:
    """The named error of web3's exception."""
    try:
        data = bytes(HexBytes(error.data)) if isinstance(error.data, str) else b""
    except ValueError:  # words of the node's, or web3's "no data"
        data = b""
    return refusal_from(data, call)


def refusal_on_chain(web3: Web3, digest: HexBytes, call: str) -> Refused:
    """The named error of a transaction that is on the chain and failed."""
    trace = web3.provider.make_request(RPCEndpoint("debug_traceTransaction"), [digest.to_0x_hex(), _RETURNED_DATA])
    if "result" not in trace:  # providers that many share trace nothing
        return _refused_again(web3, digest, call)
    result: dict[str, Any] = dict(trace["result"] or {})
    return refusal_from(bytes(HexBytes(str(result.get("returnValue", "0x")))), call)


def _refused_again(web3: Web3, digest: HexBytes, call: str) -> Refused:
    """The contract's answer to the same call after the transaction's block, which usually is the same."""
    sent = cast(Mapping[str, Any], web3.eth.get_transaction(digest))
    same = {name: sent[name] for name in ("from", "to", "value", "gas") if sent.get(name) is not None}
    try:
        web3.eth.call(cast(TxParams, same | {"data": sent["input"]}), block_identifier=sent["blockNumber"])
    except (ContractCustomError, ContractLogicError) as error:
        return refused(error, call)
    return refusal_from(b"", call)
