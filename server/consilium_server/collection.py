"""Asks a round's hospitals for their parts over Flower and gathers what comes back, without waiting for anyone.

All requests of a round are sent at once: a SuperNode takes up the next as soon as it has passed on the answer to the
one before. Which part of the round a reply is, it says itself (`consilium_chain.messages`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence

from consilium_chain.errors import SignedUpdateMalformed
from consilium_chain.journal import emit
from consilium_chain.messages import Part
from consilium_chain.views import members
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid

from consilium_server.errors import SecondReply, UploadInvalid
from consilium_server.uploads import Answer, Signed, Upload, parse_reply


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
        masked: bool,
    ) -> None:
        self._grid, self._nodes, self._addresses, self._blob_count = grid, nodes, addresses, blob_count
        self.round = round_
        self._place = {"contract": contract, "task": task, "round": round_}
        self._parts = [Part.SIGNED, Part.UPLOAD, *([Part.ANSWER] if masked else [])]
        self._asked = 0
        self._again: Counter[tuple[int, Part]] = Counter()
        self._waiting: dict[str, int] = {}
        self.signed: dict[int, Signed] = {}
        self.uploads: dict[int, Upload] = {}
        self.answers: dict[int, Answer] = {}

    @property
    def arrived(self) -> int:
        return sum(1 << index for index in self.uploads)

    @property
    def finished(self) -> int:
        """Who owes no reply: what it has not sent, it will not send."""
        return self._asked & ~sum(1 << index for index in set(self._waiting.values()))

    def ask(self, hospitals: int) -> bool:
        """Asks those of them who are online and not asked yet; whether all of them are asked now."""
        unsent = list(members(hospitals & ~self._asked))
        if not unsent:
            return True
        online = set(self._grid.get_node_ids())
        ready = [index for index in unsent if self._nodes[index] in online]
        if ready:
            self._asked |= sum(1 << index for index in ready)
            self._send([(index, Part.NEXT) for _ in self._parts for index in ready])
        return len(ready) == len(unsent)

    def _send(self, requests: Sequence[tuple[int, Part]]) -> None:
        messages = [
            Message(
                RecordDict({"request": ConfigRecord({**self._place, "part": int(part)})}),
                dst_node_id=self._nodes[index],
                message_type="train",
            )
            for index, part in requests
        ]
        for identifier, (index, _) in zip(list(self._grid.push_messages(messages)), requests, strict=True):
            if identifier:
                self._waiting[identifier] = index

    def receive(self) -> None:
        """Takes in what replies are there; asks those who answered everything for what did not come, once."""
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
            except (UploadInvalid, SignedUpdateMalformed, SecondReply) as error:
                emit("reply-refused", round=self.round, hospital=index, error=str(error))
            if index not in self._waiting.values():
                again += [(index, part) for part in self._missing(index)]
        if again:
            self._again.update(again)
            self._send(again)

    def _missing(self, index: int) -> list[Part]:
        """Of the parts that did not come, those that were not asked for again yet."""
        have: dict[Part, Container[int]] = {
            Part.SIGNED: self.signed, Part.UPLOAD: self.uploads, Part.ANSWER: self.answers
        }  # fmt: skip
        return [part for part in self._parts if index not in have[part] and not self._again[index, part]]

    def _take(self, index: int, reply: Signed | Upload | Answer) -> None:
        """Raises SecondReply."""
        match reply:
            case Upload():
                self.uploads[index] = reply
                emit("uploaded", round=self.round, hospital=index)
            case Signed():
                if self.signed.setdefault(index, reply) != reply:
                    raise SecondReply("signed update")
            case Answer():
                if self.answers.setdefault(index, reply) != reply:
                    raise SecondReply("answer")
