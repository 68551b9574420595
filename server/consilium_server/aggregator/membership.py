"""Maps a task's hospitals to Flower's nodes, and notices where a reorganisation moves them."""

from __future__ import annotations

from collections.abc import Callable

from consilium_chain.errors import TransportKeyMalformed
from consilium_core.logs import emit

from consilium_server.aggregator.task import AggregatedTask


class Membership:
    """`register` makes a Flower node of a transport key; None until a SuperLink is up."""

    def __init__(self, task: AggregatedTask) -> None:
        self._task = task
        self._order: list[str] | None = None  # hospitals', as their nodes were registered
        self.register: Callable[[bytes], int] | None = None

    def nodes(self) -> dict[int, int]:
        """Registers every hospital's key, and returns Flower node ids by hospitals' indices. Raises SuperLinkFailed.

        A hospital whose key is unusable is absent, and the others take part.
        """
        order = self._task.addresses()
        keys = self._task.ledger.transport_keys(self._task.number)
        self._order = order if len(keys) == len(order) else None  # where blocks were taken back between the two
        register, nodes = self.register, dict[int, int]()
        if register is None:
            return nodes
        for index, key in sorted(keys.items()):
            try:
                node = register(key)
            except TransportKeyMalformed as error:
                emit("transport-key-unusable", hospital=index, why=str(error))
                continue
            if node in nodes.values():
                emit("transport-key-repeated", hospital=index)
                continue
            nodes[index] = node
        return nodes

    def has_moved(self) -> bool:
        """True if hospitals stand in another order than when their nodes were registered."""
        return self.register is not None and self._order != self._task.addresses()
