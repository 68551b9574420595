"""Flower's runtime API as far as the aggregator's grid asks it, without a SuperLink."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from consilium_server.flower.internals import GradualGrid
from flwr.app import Array, ArrayRecord, Message, RecordDict
from flwr.common.serde import message_to_proto
from flwr.proto.message_pb2 import PullObjectResponse
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree


class FakeRuntime:
    """It hands out each announcement once, as the SuperLink does."""

    def __init__(self) -> None:
        self.announced: dict[str, Message] = {}
        self.objects: dict[str, bytes] = {}
        self.lost: set[str] = set()
        self.confirmed: list[str] = []
        self.asked: list[set[str]] = []

    def announce(self, question: str, content: bytes) -> Callable[[], None]:
        """A reply to `question`; what is returned sends its objects."""
        record = ArrayRecord({"0": Array(dtype="uint8", shape=(len(content),), stype="raw", data=content)})
        return self.announce_message(
            question, Message(RecordDict({"blobs": record}), dst_node_id=1, message_type="train")
        )

    def announce_message(self, question: str, message: Message) -> Callable[[], None]:
        message.metadata.__dict__["_reply_to_message_id"] = question
        message.metadata.__dict__["_message_id"] = message.object_id
        self.announced[question] = message
        objects = {name: one.deflate() for name, one in get_all_nested_objects(message).items()}
        return lambda: self.objects.update(objects)

    def PullMessages(self, request: Any) -> Any:
        self.asked.append(set(request.message_ids))
        found = [self.announced.pop(question) for question in request.message_ids if question in self.announced]
        return SimpleNamespace(
            messages_list=[message_to_proto(message) for message in found],
            message_object_trees=[get_object_tree(message) for message in found],
        )

    def PullObject(self, request: Any) -> PullObjectResponse:
        content = self.objects.get(request.object_id)
        return PullObjectResponse(
            object_found=not self.lost, object_available=content is not None, object_content=content or b""
        )

    def ConfirmMessageReceived(self, request: Any) -> None:
        self.confirmed.append(request.message_object_id)


class Grid(GradualGrid):
    def __init__(self, runtime: FakeRuntime) -> None:
        super().__init__("127.0.0.1:1", b"", "token")
        self._run = SimpleNamespace(run_id=1)
        self.runtime = runtime

    @property
    def _runtime_client(self) -> FakeRuntime:
        return self.runtime
