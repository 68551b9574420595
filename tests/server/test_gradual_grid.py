"""Replies come as soon as they are whole: one that is announced and never sent holds nobody up."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from consilium_server.flower_internals import GradualGrid
from flwr.app import Array, ArrayRecord, Message, RecordDict
from flwr.common.constant import ErrorCode
from flwr.common.serde import message_to_proto
from flwr.proto.message_pb2 import PullObjectResponse
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree
from flwr.supercore.task_identity import TaskIdentity


class FakeRuntime:
    """Flower's runtime API as far as the grid asks it; it hands out each announcement once, as the SuperLink does."""

    def __init__(self) -> None:
        self.announced: dict[str, Message] = {}
        self.objects: dict[str, bytes] = {}
        self.lost: set[str] = set()
        self.confirmed: list[str] = []
        self.asked: list[set[str]] = []

    def announce(self, question: str, content: bytes) -> Callable[[], None]:
        """A reply to `question`; what is returned sends its objects."""
        record = ArrayRecord({"0": Array(dtype="uint8", shape=(len(content),), stype="raw", data=content)})
        message = Message(RecordDict({"blobs": record}), dst_node_id=1, message_type="train")
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


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> FakeRuntime:
    for name in ("_task_id", "_run_id", "_node_id"):  # Flower makes messages only in a process that has a task
        monkeypatch.setattr(TaskIdentity, name, 1)
    return FakeRuntime()


def contents(messages: list[Message]) -> dict[str, bytes]:
    return {m.metadata.reply_to_message_id: m.content.array_records["blobs"]["0"].data for m in messages}


def test_pull_messages_brings_the_whole_ones_past_one_that_is_missing(runtime: FakeRuntime) -> None:
    grid = Grid(runtime)
    send_first = runtime.announce("a", b"first")
    runtime.announce("b", b"second")()
    assert contents(grid.pull_messages(["a", "b", "c"])) == {"b": b"second"}
    assert grid.pull_messages(["a", "c"]) == []
    send_first()
    runtime.announce("c", b"third")()
    assert contents(grid.pull_messages(["a", "c"])) == {"a": b"first", "c": b"third"}
    assert len(runtime.confirmed) == 3
    assert runtime.asked == [{"a", "b", "c"}, {"c"}, {"c"}]  # the SuperLink forgets what it has handed out


def test_pull_messages_says_which_reply_is_lost(runtime: FakeRuntime) -> None:
    grid = Grid(runtime)
    runtime.announce("a", b"first")
    assert grid.pull_messages(["a"]) == []
    runtime.lost.add("a")  # its time to be sent is over
    (message,) = grid.pull_messages(["a"])
    assert message.has_error()
    assert (message.metadata.reply_to_message_id, message.error.code) == ("a", ErrorCode.MESSAGE_UNAVAILABLE)
    assert runtime.confirmed == []
