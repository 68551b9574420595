"""Events of contracts, read from a node in as many requests as it wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hexbytes import HexBytes
from web3.contract.contract import Contract
from web3.types import RPCEndpoint

from consilium_chain.errors import ChainUnreachable
from consilium_chain.rpc.blocks import Blocks
from consilium_chain.rpc.endpoint import Endpoint
from consilium_chain.rpc.event_logs import NO_LOG, Event, LogDecoder
from consilium_chain.rpc.reverts import message_of

LONGEST_SPAN = 1 << 40  # blocks whose events are asked for at once, until a node wants fewer


class Logs:
    """Decoded events. Remembers how many blocks the node takes in one request: providers' bounds differ."""

    def __init__(self, endpoint: Endpoint, blocks: Blocks) -> None:
        self._endpoint, self._blocks = endpoint, blocks
        self._span = LONGEST_SPAN

    @property
    def bounds_spans(self) -> bool:
        """True if the node has refused to give the events of many blocks at once."""
        return self._span < LONGEST_SPAN

    def events(
        self, contract: Contract, first_block: int, last_block: int, name: str | None = None, **indexed: Any
    ) -> Iterator[Event]:
        """Decoded events of a contract in the blocks [first, last], in order.

        With `name` only that event's, and of these only those whose indexed fields have the given values, by as many
        requests as the node wants. Raises ChainUnreachable, without `name` also if the node refuses so many blocks.
        """
        if name is None:
            yield from self.events_of([contract], first_block, last_block)
            return
        event = contract.events[name]()

        def read(first: int, last: int) -> list[Any]:
            with self._endpoint.reading():
                return list(event.get_logs(indexed, from_block=first, to_block=last))

        for decoded in self._in_spans(read, first_block, last_block):
            yield _event(decoded, str(contract.address))

    def _in_spans(self, read: Callable[[int, int], list[Any]], first: int, last: int) -> Iterator[Any]:
        """All of the blocks [first, last], each time of as many as the node gives.

        Raises ChainUnreachable if it does not even give one block's.
        """
        while first <= last:
            end = min(last, first + self._span - 1)
            try:
                found = read(first, end)
            except ChainUnreachable:
                self._blocks.number()  # raises if it answers nothing at all
                if end == first:
                    raise
                self._span = (end - first + 1) // 2
                continue
            if end - first + 1 == self._span:
                self._span = min(self._span + self._span // 4 + 1, LONGEST_SPAN)
            yield from found
            first = end + 1

    def events_of(self, contracts: Sequence[Contract], first_block: int, last_block: int) -> list[Event]:
        """Decoded events of contracts in the blocks [first, last], in order, by one request: of one state of the chain.

        Raises ChainUnreachable, also if the node refuses so many blocks at once.
        """
        decoders = {contract.address.lower(): LogDecoder(contract.abi, contract.address) for contract in contracts}
        asked = {"address": list(decoders), "fromBlock": hex(first_block), "toBlock": hex(last_block)}
        with self._endpoint.reading():
            answer = self._endpoint.web3.provider.make_request(RPCEndpoint("eth_getLogs"), [asked])
        if "error" in answer:
            raise ChainUnreachable(self._endpoint.shown_url, message_of(answer))
        try:
            found = [decoders[log["address"].lower()].event(log) for log in answer["result"]]
        except NO_LOG as error:
            raise ChainUnreachable(self._endpoint.shown_url, "the server there gives no logs") from error
        return sorted((one for one in found if one is not None), key=lambda one: (one.block, one.index))


def _event(decoded: Any, contract: str) -> Event:
    return Event(
        name=decoded["event"],
        values=dict(decoded["args"]),
        block=decoded["blockNumber"],
        index=decoded["logIndex"],
        transaction=HexBytes(decoded["transactionHash"]).to_0x_hex(),
        contract=contract,
        block_hash=bytes(decoded["blockHash"]),
    )
