"""Logs as a node's JSON-RPC gives them, decoded by a contract's ABI.

web3 decodes them too, in nine times the time: it normalises each value several times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

MALFORMED = (LookupError, TypeError, ValueError, AttributeError, OverflowError, DecodingError)
"""Errors of decoding an answer that is not what was asked for."""


@dataclass(frozen=True)
class Event:
    """A decoded log: its Solidity name, its values by name, and its position.

    `time`: its block's time, in seconds since the epoch, if the node gives it with the log.
    """

    name: str
    values: dict[str, Any]
    block: int
    index: int
    transaction: str
    contract: str
    block_hash: bytes = b""
    time: int | None = None


@dataclass(frozen=True)
class _Shape:
    name: str
    indexed: tuple[tuple[str, str], ...]  # name and ABI type
    plain: tuple[tuple[str, str], ...]


class LogDecoder:
    """Decodes logs of one contract, whose events have no indexed fields of dynamic length."""

    def __init__(self, abi: Sequence[Mapping[str, Any]], address: str) -> None:
        self.address = address
        self._shapes = {}
        for entry in abi:
            if entry["type"] == "event":
                fields = [(one["name"], one["type"], one["indexed"]) for one in entry["inputs"]]
                signature = f"{entry['name']}({','.join(kind for _, kind, _ in fields)})"
                parts = [tuple((name, kind) for name, kind, is_in in fields if is_in is side) for side in (True, False)]
                self._shapes["0x" + keccak(text=signature).hex()] = _Shape(entry["name"], *parts)

    def topics(self, name: str, indexed: Mapping[str, Any]) -> list[str | None]:
        """The filter of an event's logs by the values of its indexed fields. Raises LookupError for unknown names."""
        signature, shape = next((key, shape) for key, shape in self._shapes.items() if shape.name == name)
        if unknown := indexed.keys() - dict(shape.indexed).keys():
            raise LookupError(f"the event {name} has no indexed fields {sorted(unknown)}")
        values = (
            "0x" + encode([kind], [indexed[key]]).hex() if key in indexed else None for key, kind in shape.indexed
        )
        return [signature, *values]

    def event(self, log: Mapping[str, Any]) -> Event | None:
        """None for an event that the ABI lacks. Raises one of MALFORMED for an answer that is not a log."""
        shape = self._shapes.get(log["topics"][0])
        if shape is None:
            return None
        indexed = [kind for _, kind in shape.indexed]
        topics = b"".join(_bytes(topic) for topic in log["topics"][1:])
        # Anybody can emit a text that is not UTF-8. A decoder that refused it would end at this log.
        kinds = ["bytes" if kind == "string" else kind for _, kind in shape.plain]
        found = [*decode(indexed, topics), *decode(kinds, _bytes(log["data"]))]
        fields = [*shape.indexed, *shape.plain]
        stamp = log.get("blockTimestamp")  # not in Ethereum's API: many nodes give it, and some do not
        return Event(
            name=shape.name,
            values={name: _value(kind, value) for (name, kind), value in zip(fields, found, strict=True)},
            block=int(log["blockNumber"], 16),
            index=int(log["logIndex"], 16),
            transaction=log["transactionHash"],
            contract=self.address,
            block_hash=_bytes(log["blockHash"]),
            time=None if stamp is None else int(stamp, 16),
        )


def _value(kind: str, value: Any) -> Any:
    if kind == "string":
        return value.decode(errors="replace")
    return checksummed(value) if kind == "address" else value


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


@lru_cache(maxsize=10_000)
def checksummed(address: str) -> str:
    return str(to_checksum_address(address))
