"""Events of contracts, read from a node in as many requests as it wants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from web3.contract.contract import Contract

from consilium_chain.errors import ChainUnreachable
from consilium_chain.rpc.blocks import Blocks
from consilium_chain.rpc.endpoint import Endpoint
from consilium_chain.rpc.event_logs import MALFORMED, Event, LogDecoder

LONGEST_SPAN = 1 << 40  # blocks in one request, until a node wants fewer


class Logs:
    """Decoded events. Remembers how many blocks the node takes in one request: providers' bounds differ."""

    def __init__(self, endpoint: Endpoint, blocks: Blocks) -> None:
        self._endpoint, self._blocks = endpoint, blocks
        self._span = LONGEST_SPAN
        self._decoders: dict[str, LogDecoder] = {}

    @property
    def bounds_spans(self) -> bool:
        """True if the node has refused to give the events of many blocks at once."""
        return self._span < LONGEST_SPAN

    def events(self, contract: Contract, first: int, last: int, name: str, **indexed: Any) -> Iterator[Event]:
        """A contract's events of this name in the blocks [first, last], in order, by the values of indexed fields.

        Makes as many requests as the node wants. Raises ChainUnreachable.
        """
        topics = self._decoder(contract).topics(name, indexed)
        while first <= last:
            end = min(last, first + self._span - 1)
            try:
                found = self._read([contract], first, end, topics)
            except ChainUnreachable:
                self._blocks.number()  # raises if the node does not answer at all
                if end == first:
                    raise
                self._span = (end - first + 1) // 2
                continue
            if end - first + 1 == self._span:
                self._span = min(self._span + self._span // 4 + 1, LONGEST_SPAN)
            yield from found
            first = end + 1

    def events_of(self, contracts: Sequence[Contract], first: int, last: int) -> list[Event]:
        """All events of contracts in the blocks [first, last], in order, by one request: of one state of the chain.

        Raises ChainUnreachable, also if the node refuses so many blocks at once.
        """
        return self._read(contracts, first, last, [])

    def _decoder(self, contract: Contract) -> LogDecoder:
        if contract.address not in self._decoders:
            self._decoders[contract.address] = LogDecoder(contract.abi, contract.address)
        return self._decoders[contract.address]

    def _read(self, contracts: Sequence[Contract], first: int, last: int, topics: list[str | None]) -> list[Event]:
        decoders = {contract.address.lower(): self._decoder(contract) for contract in contracts}
        request = {"address": list(decoders), "fromBlock": hex(first), "toBlock": hex(last), "topics": topics}
        answer = self._endpoint.ask("eth_getLogs", request)
        try:
            found = [decoders[log["address"].lower()].event(log) for log in answer]
        except MALFORMED as error:
            raise ChainUnreachable(self._endpoint.shown_url, "the server gives no logs") from error
        return sorted((one for one in found if one is not None), key=lambda one: (one.block, one.index))
