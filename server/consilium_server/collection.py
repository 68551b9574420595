"""Asks a round's hospitals for their updates over Flower and gathers what comes back, without waiting for anyone."""

from __future__ import annotations

from consilium_chain.journal import emit
from consilium_chain.views import members
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid

from consilium_server.errors import UploadInvalid
from consilium_server.uploads import Upload, parse_upload


class Collection:
    """One round's requests and uploads. Bit maps are over hospitals' indices."""

    def __init__(
        self, grid: Grid, nodes: dict[int, int], contract: bytes, task: int, round_: int, asked: int, blob_count: int
    ) -> None:
        self._grid, self._nodes, self._blob_count = grid, nodes, blob_count
        self._round = round_
        self._request = ConfigRecord({"contract": contract, "task": task, "round": round_})
        self._unsent = set(members(asked))
        self._waiting: dict[str, int] = {}
        self.uploads: dict[int, Upload] = {}
        self.failed = 0

    @property
    def arrived(self) -> int:
        return sum(1 << index for index in self.uploads)

    @property
    def incomplete(self) -> bool:
        """Whether a hospital has not been asked yet, because it is not online."""
        return bool(self._unsent)

    def send(self) -> None:
        """Asks the hospitals that have come online."""
        if not self._unsent:
            return
        online = set(self._grid.get_node_ids())
        ready = [index for index in sorted(self._unsent) if self._nodes[index] in online]
        messages = [
            Message(RecordDict({"request": self._request}), dst_node_id=self._nodes[index], message_type="train")
            for index in ready
        ]
        if messages:
            identifiers = list(self._grid.push_messages(messages))
            self._waiting |= {
                identifier: index for identifier, index in zip(identifiers, ready, strict=True) if identifier
            }
            self._unsent -= set(ready)

    def receive(self) -> None:
        """Takes in what replies are there."""
        if not self._waiting:
            return
        for reply in self._grid.pull_messages(list(self._waiting)):
            index = self._waiting.pop(reply.metadata.reply_to_message_id, None)
            if index is None:
                continue
            try:
                if reply.has_error():
                    raise UploadInvalid(f"Flower error {reply.error.code}")
                self.uploads[index] = parse_upload(reply.content, self._blob_count)
            except UploadInvalid as error:
                self.failed |= 1 << index
                emit("upload-refused", round=self._round, hospital=index, error=str(error))
