"""Replies come as soon as they are complete: an announced reply that never arrives does not delay others."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from consilium_server.flower import internals
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.common.constant import ErrorCode
from flwr.supercore.task_identity import TaskIdentity
from grid_driver import FakeRuntime, Grid


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


# A hospital makes its objects itself; the SuperLink holds their heads against their hashes, and nothing else.


def replaced(runtime: FakeRuntime, kind: str, body: bytes) -> None:
    """Replaces the body of an object of this kind, under its announced name."""
    (name,) = [name for name, content in runtime.objects.items() if content.startswith(kind.encode() + b" ")]
    head = runtime.objects[name].partition(b"\0")[0].rpartition(b" ")[0]
    runtime.objects[name] = head + b" %d" % len(body) + b"\0" + body


def one_part_a_million_times(runtime: FakeRuntime) -> None:
    meta = {"dtype": "uint8", "shape": [1], "stype": "raw", "arraychunk_ids": [0] * 1_000_000}
    replaced(runtime, "Array", json.dumps(meta).encode())


def another_object_first(runtime: FakeRuntime) -> None:
    """A message whose content is no RecordDict."""
    (record,) = [name for name, content in runtime.objects.items() if content.startswith(b"RecordDict ")]
    runtime.objects[record] = b"ArrayChunk  1\0x"


NO_MESSAGE: dict[str, Callable[[FakeRuntime], object]] = {
    "no protobuf": lambda runtime: replaced(runtime, "Message", b"\xff" * 20),
    "no JSON": lambda runtime: replaced(runtime, "RecordDict", b"{"),
    "deeply nested JSON": lambda runtime: replaced(runtime, "ArrayRecord", b"[" * 100_000),
    "an array of nothing": lambda runtime: replaced(runtime, "Array", b"{}"),
    "one part a million times": one_part_a_million_times,
    "a chunk for a record": another_object_first,
}


@pytest.mark.parametrize("case", NO_MESSAGE)
def test_a_reply_that_is_no_message_is_lost_and_takes_nobody_along(runtime: FakeRuntime, case: str) -> None:
    """An error here would end the aggregator, and cost its bond."""
    grid = Grid(runtime)
    runtime.announce("a", b"first" * 1_000)()
    NO_MESSAGE[case](runtime)
    runtime.announce("b", b"second")()
    lost, whole = sorted(grid.pull_messages(["a", "b"]), key=lambda message: message.metadata.reply_to_message_id)
    assert (lost.has_error(), lost.metadata.reply_to_message_id) == (True, "a")
    assert lost.error.code == ErrorCode.MESSAGE_UNAVAILABLE
    assert contents([whole]) == {"b": b"second"}


@pytest.mark.parametrize("bound", ["MOST_BYTES", "MOST_OBJECTS"])
def test_a_reply_longer_than_any_is_not_taken_in(
    runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(internals, bound, {"MOST_BYTES": 4_000, "MOST_OBJECTS": 4}[bound])
    runtime.announce("a", b"first" * 1_000)()
    (message,) = Grid(runtime).pull_messages(["a"])
    assert message.has_error()
    assert runtime.confirmed == []


def test_a_reply_answers_what_the_superlink_says_and_not_what_it_says_itself(
    runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a hospital could answer a request to another one."""
    theirs = Message(RecordDict({"status": ConfigRecord({"code": 0})}), dst_node_id=1, message_type="train")
    runtime.announce_message("another's", theirs)()
    runtime.announced["mine"] = runtime.announced.pop("another's")
    grid = Grid(runtime)
    pulled = runtime.PullMessages

    def announce_truly(request: object) -> object:
        answer = pulled(request)
        for proto in answer.messages_list:
            proto.metadata.reply_to_message_id = "mine"
        return answer

    monkeypatch.setattr(runtime, "PullMessages", announce_truly)
    (message,) = grid.pull_messages(["mine"])
    assert message.metadata.reply_to_message_id == "mine"
