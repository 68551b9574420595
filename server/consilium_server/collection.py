"""Asks a round's hospitals for their updates over Flower and gathers what comes back, without waiting for anyone.

A hospital answers a round's first request with its signed update and the next one with its upload. Both requests are
sent at once: a SuperNode takes up the second as soon as it has passed on the answer to the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from consilium_chain.errors import SignedUpdateMalformed
from consilium_chain.journal import emit
from consilium_chain.relaying import SignedUpdate
from consilium_chain.views import members
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid

from consilium_server.errors import SecondUpdate, UploadInvalid
from consilium_server.uploads import Upload, parse_reply

REQUESTS = 2
MOST_REQUESTS = 3  # a hospital whose node started anew between request and upload is asked again


class Collection:
    """One round's requests and what they brought. Bit maps are over hospitals' indices, as are `addresses`."""

    def __init__(
        self,
        grid: Grid,
        nodes: dict[int, int],
        addresses: Sequence[str],
        contract: bytes,
        task: int,
        round_: int,
        blob_count: int,
    ) -> None:
        self._grid, self._nodes, self._addresses, self._blob_count = grid, nodes, addresses, blob_count
        self.round = round_
        self._request = ConfigRecord({"contract": contract, "task": task, "round": round_})
        self._asked: Counter[int] = Counter()  # how often
        self._waiting: dict[str, int] = {}
        self.updates: dict[int, SignedUpdate] = {}
        self.uploads: dict[int, Upload] = {}
        self.failed = 0

    @property
    def arrived(self) -> int:
        return sum(1 << index for index in self.uploads)

    def ask(self, hospitals: int) -> bool:
        """Asks those of them who are online and not asked yet; whether all of them are asked now."""
        unsent = [index for index in members(hospitals) if index not in self._asked]
        if not unsent:
            return True
        online = set(self._grid.get_node_ids())
        ready = [index for index in unsent if self._nodes[index] in online]
        if ready:
            self._send(ready * REQUESTS)
        return len(ready) == len(unsent)

    def _send(self, hospitals: list[int]) -> None:
        messages = [
            Message(RecordDict({"request": self._request}), dst_node_id=self._nodes[index], message_type="train")
            for index in hospitals
        ]
        for identifier, index in zip(list(self._grid.push_messages(messages)), hospitals, strict=True):
            self._asked[index] += 1
            if identifier:
                self._waiting[identifier] = index

    def receive(self) -> None:
        """Takes in what replies are there, and asks those again who answered everything and sent no upload."""
        if not self._waiting:
            return
        again = []
        for reply in self._grid.pull_messages(list(self._waiting)):
            index = self._waiting.pop(reply.metadata.reply_to_message_id, None)
            if index is None:
                continue
            try:
                if reply.has_error():
                    raise UploadInvalid(f"Flower error {reply.error.code}")
                self._take(index, parse_reply(reply.content, self._addresses[index], self._blob_count))
            except (UploadInvalid, SignedUpdateMalformed, SecondUpdate) as error:
                emit("reply-refused", round=self.round, hospital=index, error=str(error))
            if index in self.uploads or index in self._waiting.values():
                continue
            if self._asked[index] < MOST_REQUESTS:
                again.append(index)
            else:
                self.failed |= 1 << index
        if again:
            self._send(again)

    def _take(self, index: int, reply: SignedUpdate | Upload) -> None:
        """Raises SecondUpdate."""
        if isinstance(reply, Upload):
            self.uploads[index] = reply
            emit("uploaded", round=self.round, hospital=index)
        else:
            if self.updates.setdefault(index, reply) != reply:
                raise SecondUpdate
