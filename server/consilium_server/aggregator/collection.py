"""Requests hospitals' parts of a round over Flower, and receives the replies. No call waits for a hospital.

A request names one part. The next request follows as soon as the reply before is on disk here, because a SuperNode
does nothing else while its hospital waits for a part's time. So a restarted aggregator can request lost parts again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from consilium_chain.errors import SignedUpdateMalformed, name_of
from consilium_chain.ledger.structs import members
from consilium_chain.messages import Part
from consilium_core.logs import emit
from flwr.app import ConfigRecord, Message, RecordDict

from consilium_server.aggregator.reply_store import ReplyStore
from consilium_server.aggregator.uploads import Answer, Signed, Upload, parse_reply
from consilium_server.errors import ReplyRefused
from consilium_server.flower.internals import NODE_AWAY

TRIES = 2  # of each part that reached the node, which may have restarted
# Seconds after these tries until the next request for a part that a committed hospital owes. Without it a disk that is
# full for a moment would cost a hospital a slash.
REST = 5.0
OWED = (Part.UPLOAD, Part.ANSWER)


class Carrier(Protocol):
    """The part of Flower's grid that the aggregator uses. No call waits."""

    def get_node_ids(self) -> Iterable[int]:
        """Nodes that are online."""

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Returns an identifier for each message, in order; an empty one for a message that was not accepted."""

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Replies to these messages that have arrived, each once."""


class Collection:
    """A round's requests and the replies to them. Bit maps are over hospitals' indices, as are `addresses`."""

    def __init__(
        self,
        grid: Carrier,
        nodes: dict[int, int],
        addresses: Sequence[str],
        contract: bytes,
        task: int,
        round_: int,
        blob_count: int,
        masked: bool,
        kept: ReplyStore | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`kept`: stored replies, also of an earlier process; `clock`: a monotonic clock in seconds."""
        self._grid, self._nodes, self._addresses, self._blob_count = grid, nodes, addresses, blob_count
        self.round = round_
        self._request = {"contract": contract, "task": task, "round": round_}
        self._masked, self._kept, self._clock = masked, kept, clock
        self._asked = 0
        self._committed = 0
        self._tries: Counter[tuple[int, Part]] = Counter()
        self._waiting: dict[str, tuple[int, Part]] = {}
        self._away: set[int] = set()  # hospitals that the last request did not reach
        self._resting: dict[int, float] = {}  # end of the rest, by hospital
        self.signed: dict[int, Signed] = kept.signed(addresses, blob_count) if kept else {}
        self.uploads: dict[int, Upload] = kept.uploads(len(addresses), blob_count) if kept else {}
        self.answers: dict[int, Answer] = {}

    @property
    def arrived(self) -> int:
        """Bit map of the hospitals that uploaded."""
        return sum(1 << index for index in self.uploads)

    @property
    def finished(self) -> int:
        """Bit map of the hospitals that owe no reply, and so send nothing more."""
        return self._asked & ~sum(1 << index for index in self._owing | self._away | self._resting.keys())

    @property
    def _owing(self) -> set[int]:
        return {index for index, _ in self._waiting.values()}

    def ask(self, hospitals: int, committed: int = 0) -> bool:
        """Requests the next part of each of these hospitals that is online. Returns true if all are online.

        committed: bit map of hospitals whose commitment is on chain, from any sender.
        """
        self._committed |= committed
        owing = self._owing
        wanted = {index: part for index in members(hospitals) if index not in owing and (part := self._next(index))}
        if not wanted:
            return True
        online = set(self._grid.get_node_ids())
        ready = [(index, part) for index, part in wanted.items() if self._nodes.get(index) in online]
        if ready:
            self._send(ready)
        return len(ready) == len(wanted)

    def _next(self, index: int) -> Part | None:
        """The part that a hospital must send now; None if it sent all parts, failed too often, or rests."""
        if self._resting.get(index, 0.0) > self._clock():
            return None
        if index not in self.signed and not self._committed >> index & 1:
            part = Part.SIGNED
        elif index not in self.uploads:
            part = Part.UPLOAD
        elif self._masked and index not in self.answers:
            part = Part.ANSWER
        else:
            return None
        return part if self._tries[index, part] < TRIES else None

    def _send(self, requests: Sequence[tuple[int, Part]]) -> None:
        self._tries.update(requests)
        self._away.difference_update(index for index, _ in requests)
        for index, _ in requests:
            self._resting.pop(index, None)
        self._asked |= sum(1 << index for index, _ in requests)
        messages = [
            Message(
                RecordDict({"request": ConfigRecord({**self._request, "part": int(part)})}),
                dst_node_id=self._nodes[index],
                message_type="train",
            )
            for index, part in requests
        ]
        for identifier, request in zip(list(self._grid.push_messages(messages)), requests, strict=True):
            if identifier:
                self._waiting[identifier] = request

    def receive(self) -> None:
        """Receives the replies that have arrived, and requests the next part of their senders."""
        if not self._waiting:
            return
        answered = []
        for reply in self._grid.pull_messages(list(self._waiting)):
            request = self._waiting.pop(reply.metadata.reply_to_message_id, None)
            if request is None:
                continue
            index = request[0]
            if reply.has_error() and reply.error.code == NODE_AWAY:
                # Its node stopped or is lost. `ask` sends another request once it is online.
                self._tries[request] -= 1
                self._away.add(index)
                continue
            try:
                if reply.has_error():
                    raise ReplyRefused("PartFailed", why=f"Flower error {reply.error.code}")
                self._take(index, parse_reply(reply.content, self._addresses[index], self._blob_count))
            except (ReplyRefused, SignedUpdateMalformed) as error:
                emit("reply-refused", round=self.round, hospital=index, error=str(error))
                if name_of(error) == "PartFailed" and request[1] in OWED and self._tries[request] >= TRIES:
                    self._tries[request] -= 1
                    self._resting[index] = self._clock() + REST
            answered.append(index)
        if requests := [(index, part) for index in answered if (part := self._next(index))]:
            self._send(requests)

    def _take(self, index: int, reply: Signed | Upload | Answer) -> None:
        """Stores a reply. Raises ReplyRefused (SecondReply)."""
        match reply:
            case Upload():
                self._keep(index, reply)
                self.uploads[index] = reply
                emit("uploaded", round=self.round, hospital=index)
            case Signed():
                if self.signed.get(index, reply) != reply:
                    raise ReplyRefused("SecondReply", what="signed update")
                self._keep(index, reply)
                self.signed[index] = reply
            case Answer():
                if self.answers.setdefault(index, reply) != reply:
                    raise ReplyRefused("SecondReply", what="answer")
                emit("answered", round=self.round, hospital=index)

    def _keep(self, index: int, reply: Signed | Upload) -> None:
        if self._kept is not None:
            self._kept.keep(index, reply)
