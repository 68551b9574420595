"""Asks a round's hospitals for their updates over Flower and gathers what comes back, without waiting for anyone."""

from __future__ import annotations

from consilium_chain.journal import emit
from consilium_chain.views import members
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid

from consilium_server.errors import UploadInvalid
from consilium_server.uploads import Upload, parse_upload

ATTEMPTS = 2  # a hospital whose node started anew between request and upload is asked again


class Collection:
    """One round's requests and uploads. Bit maps are over hospitals' indices."""

    def __init__(
        self, grid: Grid, nodes: dict[int, int], contract: bytes, task: int, round_: int, blob_count: int
    ) -> None:
        self._grid, self._nodes, self._blob_count = grid, nodes, blob_count
        self._round = round_
        self._request = ConfigRecord({"contract": contract, "task": task, "round": round_})
        self._asked: dict[int, int] = {}  # how often
        self._waiting: dict[str, int] = {}
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
            self._send(ready)
        return len(ready) == len(unsent)

    def _send(self, hospitals: list[int]) -> None:
        messages = [
            Message(RecordDict({"request": self._request}), dst_node_id=self._nodes[index], message_type="train")
            for index in hospitals
        ]
        for identifier, index in zip(list(self._grid.push_messages(messages)), hospitals, strict=True):
            self._asked[index] = self._asked.get(index, 0) + 1
            if identifier:
                self._waiting[identifier] = index

    def receive(self) -> None:
        """Takes in what replies are there, and asks those again whose first reply was no upload."""
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
                self.uploads[index] = parse_upload(reply.content, self._blob_count)
                emit("uploaded", round=self._round, hospital=index)
            except UploadInvalid as error:
                emit("upload-refused", round=self._round, hospital=index, error=str(error))
                if self._asked[index] < ATTEMPTS:
                    again.append(index)
                else:
                    self.failed |= 1 << index
        if again:
            self._send(again)
