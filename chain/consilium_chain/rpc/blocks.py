"""Blocks of a chain, its clock and its fees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, cast

import rlp
from hexbytes import HexBytes
from web3.contract.contract import Contract
from web3.exceptions import BlockNotFound
from web3.types import BlockData

from consilium_chain.errors import ChainUnreachable
from consilium_chain.rpc.calls import NamedCall, named_call
from consilium_chain.rpc.endpoint import Endpoint
from consilium_chain.rpc.heartbeat import Heartbeat
from consilium_chain.rpc.tip import tip

BLOCKS_TIMED = 10
BLOB_FEE = 10**10  # wei per blob gas: the least that is offered
MULTICALL = "multicall"  # of Tasks

_HEADER_FIELDS = (
    "parentHash", "sha3Uncles", "miner", "stateRoot", "transactionsRoot", "receiptsRoot", "logsBloom", "difficulty",
    "number", "gasLimit", "gasUsed", "timestamp", "extraData", "mixHash", "nonce", "baseFeePerGas", "withdrawalsRoot",
    "blobGasUsed", "excessBlobGas", "parentBeaconBlockRoot", "requestsHash",
)  # fmt: skip


@dataclass(frozen=True)
class Head:
    """A block by its number, its hash (32 bytes) and its time, in seconds since the epoch."""

    number: int
    hash: bytes
    time: int


class Blocks:
    """Reads blocks. Every method raises ChainUnreachable."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.heartbeat = Heartbeat(endpoint)
        self._stamps: dict[int, int] = {}

    def number(self) -> int:
        """The latest block's number."""
        with self._endpoint.reading():
            number = int(self._endpoint.web3.eth.block_number)
        self._endpoint.saw(number)
        return number

    def now(self) -> int:
        """The chain's clock: timestamp of the latest block, in seconds."""
        return self.time_of("latest")

    def time_of(self, which: Any) -> int:
        """A block's timestamp, in seconds."""
        block = self.get(which)
        with self._endpoint.reading():
            return int(block["timestamp"])

    def seconds(self) -> float:
        """The median time between two of the latest blocks, in seconds. A second call reads the blocks since the first
        one's: a reorganisation changes the median by little.
        """
        latest, known = self.number(), self._stamps
        range_ = range(max(0, latest - BLOCKS_TIMED), latest + 1)
        self._stamps = {number: known[number] if number in known else self.time_of(number) for number in range_}
        stamps = list(self._stamps.values())
        return float(median(b - a for a, b in pairwise(stamps))) if len(stamps) > 1 else 0.0

    def wait_after(self, seen: int, longest: float = 2.0) -> int:
        """Waits for a block after `seen`, at most `longest` seconds. Returns the newest known block's number."""
        return self.heartbeat.wait_after(seen, longest)

    def get(self, which: Any, full: bool = False) -> BlockData:
        """A block in web3's form. `full`: with its transactions instead of their hashes."""
        try:
            with self._endpoint.reading():
                return self._endpoint.web3.eth.get_block(which, full_transactions=full)
        except BlockNotFound as error:
            raise ChainUnreachable(self._endpoint.shown_url, f"the node has no block {which}") from error

    def hash_of(self, number: int) -> bytes:
        """32 bytes."""
        return bytes(self.get(number)["hash"])

    def head(self, number: int | None = None) -> Head | None:
        """A block, by default the latest; None for an unknown number."""
        try:
            with self._endpoint.reading():
                block = self._endpoint.web3.eth.get_block("latest" if number is None else number)
                found = Head(int(block["number"]), bytes(block["hash"]), int(block["timestamp"]))
        except BlockNotFound:
            return None
        if number is None:
            self._endpoint.saw(found.number)
        return found

    def header(self, number: int) -> bytes:
        """RLP of a block's header, whose keccak256 is the block's hash (yellow paper, 4.4)."""
        block = self.get(number)
        with self._endpoint.reading():
            header: bytes = rlp.encode([_header_field(block[name]) for name in _HEADER_FIELDS if name in block])  # type: ignore[literal-required]
        return header

    def calls_of(self, contract: Contract, first_block: int, last_block: int) -> Iterator[NamedCall]:
        """Calls of a contract by transactions in the blocks [first, last], with those in its `multicall` and failed
        ones. Calls by another contract are missing: transactions do not show them.
        """
        for number in range(first_block, last_block + 1):
            for sent in self.get(number, full=True)["transactions"]:
                transaction = cast(Mapping[str, Any], sent)
                if transaction.get("to") != contract.address:
                    continue
                call = named_call("", contract, transaction["input"])
                inner = call.arguments["data"] if call is not None and call.name == MULTICALL else []
                found = [call, *(named_call("", contract, data) for data in inner)]
                yield from (one for one in found if one is not None)


class Fees:
    """Prices of gas and blob gas, in wei. Every method raises ChainUnreachable."""

    def __init__(self, endpoint: Endpoint, blocks: Blocks) -> None:
        self._endpoint, self.blocks = endpoint, blocks

    def _base(self) -> int:
        base = self.blocks.get("latest").get("baseFeePerGas")
        if base is None:
            raise ChainUnreachable(self._endpoint.shown_url, "its blocks have no base fee (EIP-1559)")
        return int(base)

    def present(self) -> int:
        """About the price of gas for a transaction in the next block."""
        base = self._base()
        return base + tip(base)

    def highest(self) -> int:
        """The price of gas that a transaction sent now offers: usually it pays half to two thirds."""
        return self.offer()["maxFeePerGas"]

    def offer(self) -> dict[str, int]:
        """The fields of a transaction sent now that name its price of gas."""
        base = self._base()
        return {"maxPriorityFeePerGas": tip(base), "maxFeePerGas": 2 * base + tip(base)}

    def blob(self) -> int:
        """The price of blob gas now (EIP-7516)."""
        with self._endpoint.reading():
            return int(self._endpoint.web3.eth.blob_base_fee)

    def highest_blob(self) -> int:
        """The price of blob gas that a transaction sent now offers."""
        return max(2 * self.blob(), BLOB_FEE)

    def suffice(self, fields: Mapping[str, Any]) -> bool:
        """True if a block could take a transaction with these fields now."""
        base = self._base()
        by_gas = fields["maxFeePerGas"] >= base + tip(base) // 10  # block builders want a part of it
        return by_gas and ("maxFeePerBlobGas" not in fields or fields["maxFeePerBlobGas"] >= self.blob())


def _header_field(value: Any) -> bytes:
    if isinstance(value, int):
        return value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes(HexBytes(value))
