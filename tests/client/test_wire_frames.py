"""Frames between relay and node: what goes in comes out, and nothing else gets through."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from consilium_chain.messages import Part, ReplyCode
from consilium_client.errors import FrameError
from consilium_client.relay import app as relay
from consilium_client.relay.wire import (
    MAX_BLOBS,
    MAX_BODY,
    SOCKET_VARIABLE,
    RoundReply,
    RoundRequest,
    receive_reply,
    receive_request,
    send_reply,
)
from consilium_zk.constants import BYTES_PER_BLOB
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity
from hypothesis import given
from hypothesis import strategies as st
from raised_faults import raises_fault

REQUESTS = st.builds(
    RoundRequest,
    st.binary(min_size=20, max_size=20),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**32 - 1),
    st.sampled_from(Part),
)
Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


@given(REQUESTS)
def test_request_round_trips(request: RoundRequest) -> None:
    assert RoundRequest.parse(request.encode()) == request


@given(st.binary(max_size=64).filter(lambda raw: len(raw) != 33))
def test_request_of_another_length_is_malformed(raw: bytes) -> None:
    with raises_fault(FrameError, "FrameMalformed", match=f"not {len(raw)}$"):
        RoundRequest.parse(raw)


@pytest.mark.parametrize("part", [0, 4, 255])
def test_request_for_a_part_that_no_round_has_is_malformed(part: int) -> None:
    raw = RoundRequest(bytes(20), 1, 0, Part.SIGNED).encode()[:-1] + bytes([part])
    with raises_fault(FrameError, "FrameMalformed", match=f"{part} is not a part of a round"):
        RoundRequest.parse(raw)


def test_request_travels_in_pieces(pair: Pair) -> None:
    request = RoundRequest(bytes(range(20)), 7, 9, Part.UPLOAD)
    for byte in request.encode():
        pair[0].sendall(bytes([byte]))
    assert receive_request(pair[1]) == request


@pytest.mark.parametrize("code", list(ReplyCode))
@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("update", [b"", bytes(range(200))])
def test_reply_round_trips(pair: Pair, code: ReplyCode, count: int, update: bytes) -> None:
    blobs = [bytes([index + 1]) * BYTES_PER_BLOB for index in range(count)]
    sender = threading.Thread(target=send_reply, args=(pair[0], RoundReply(code, blobs, update)))
    sender.start()
    received = receive_reply(pair[1])
    sender.join()
    assert (received.code, list(received.blobs), received.body) == (code, blobs, update)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x00",
        struct.pack(">BII", 9, 0, 0),
        struct.pack(">BII", 255, 0, 0),
        struct.pack(">BII", 0, 0, MAX_BLOBS + 1),
        struct.pack(">BII", 0, 0, 2**32 - 1),
        struct.pack(">BII", 0, 0, 1),
        struct.pack(">BII", 0, 0, 1) + bytes(BYTES_PER_BLOB - 1),
        struct.pack(">BII", 4, MAX_BODY + 1, 0),
        struct.pack(">BII", 4, 2**32 - 1, 0),
        struct.pack(">BII", 4, 192, 0) + bytes(191),
    ],
    ids=[
        *("nothing", "one byte", "code 9", "code 255", "a blob too many", "4 billion blobs", "no blob", "cut blob"),
        *("an update too long", "an update of 4 GB", "cut update"),
    ],
)
def test_reply_that_is_no_frame_is_malformed(pair: Pair, raw: bytes) -> None:
    def send() -> None:
        pair[0].sendall(raw)
        pair[0].close()

    sender = threading.Thread(target=send)
    sender.start()
    with raises_fault(FrameError, "FrameMalformed"):
        receive_reply(pair[1])
    sender.join()


@pytest.mark.parametrize("sent", [0, 1, 31])
def test_request_cut_short_is_malformed(pair: Pair, sent: int) -> None:
    pair[0].sendall(bytes(sent))
    pair[0].close()
    with raises_fault(FrameError, "FrameMalformed", match=f"closed after {sent} of 33 bytes"):
        receive_request(pair[1])


# The relay's edge: whatever happens, a code leaves and no text.


@pytest.fixture(autouse=True)
def in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flower makes messages only in a process that has a task."""
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


def asked(fields: dict[str, object] | None) -> Message:
    content = RecordDict({} if fields is None else {"request": ConfigRecord(fields)})
    return Message(content, dst_node_id=1, message_type="train")


GOOD = {"contract": bytes(20), "task": 1, "round": 0, "part": 1}


def answered(message: Message) -> RoundReply:
    return relay._ask_node(message)


def failed(reply: RoundReply) -> bool:
    return (reply.code, list(reply.blobs)) == (ReplyCode.FAILED, [])


@pytest.mark.parametrize(
    "fields",
    [
        None,
        {},
        {"contract": bytes(20), "task": 1},
        GOOD | {"task": "one"},
        GOOD | {"contract": "0x00"},
        GOOD | {"contract": 2**40},
        GOOD | {"task": -1},
        GOOD | {"task": 2**63},
        GOOD | {"round": -1},
        GOOD | {"round": 2**40},
        GOOD | {"round": float("inf")},
        GOOD | {"round": float("nan")},
        GOOD | {"part": 0},
        GOOD | {"part": 4},
        GOOD | {"part": "upload"},
        {"contract": bytes(20), "task": 1, "round": 0},
    ],
)
def test_relay_answers_a_malformed_request_with_a_code(
    fields: dict[str, object] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s"
    monkeypatch.setenv(SOCKET_VARIABLE, str(path))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        server.settimeout(20)
        thread = threading.Thread(target=lambda: server.accept()[0].close())
        thread.start()
        try:
            assert failed(answered(asked(fields)))
        finally:
            with socket.socket(socket.AF_UNIX) as last:  # frees the thread where the relay never called
                last.connect(str(path))
            thread.join()


def test_relay_answers_with_a_code_when_the_node_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SOCKET_VARIABLE, str(tmp_path / "gone"))
    assert failed(answered(asked(dict(GOOD))))
    monkeypatch.delenv(SOCKET_VARIABLE)
    assert failed(answered(asked(dict(GOOD))))
    monkeypatch.setenv(SOCKET_VARIABLE, str(tmp_path / ("x" * 200)))  # longer than a socket's path may be
    assert failed(answered(asked(dict(GOOD))))


@pytest.mark.parametrize("raw", [b"", b"Doe, Jane", struct.pack(">BII", 0, 0, 1) + b"Doe, Jane", b"\xff" * 64])
def test_relay_answers_with_a_code_when_the_node_talks_nonsense(
    raw: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s"
    monkeypatch.setenv(SOCKET_VARIABLE, str(path))

    def node(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            receive_request(connection)
            connection.sendall(raw)

    with node_at(path, node):
        assert failed(answered(asked(dict(GOOD))))


@contextmanager
def node_at(path: Path, node: Callable[[socket.socket], None]) -> Iterator[None]:
    """A node at work on the socket."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        thread = threading.Thread(target=node, args=(server,))
        thread.start()
        yield
        thread.join()


def test_relay_app_passes_a_signed_update_on_as_it_is_and_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SOCKET_VARIABLE, str(tmp_path / "s"))
    update = b"\xff" * 200  # what it says is for the aggregator to judge

    def node(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            receive_request(connection)
            send_reply(connection, RoundReply(ReplyCode.SIGNED, body=update))

    context = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})
    with node_at(tmp_path / "s", node):
        reply = relay.app(asked(dict(GOOD)), context)
    assert {name: dict(record) for name, record in reply.content.items()} == {
        "status": {"code": int(ReplyCode.SIGNED), "body": update}
    }


def test_relay_app_sends_nothing_but_code_and_blobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SOCKET_VARIABLE, str(tmp_path / "gone"))
    context = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})
    message = asked(dict(GOOD))
    reply = relay.app(message, context)
    assert not reply.has_error()
    assert set(reply.content) == {"status", "blobs"}
    assert dict(reply.content["status"]) == {"code": int(ReplyCode.FAILED)}
    assert dict(reply.content["blobs"]) == {}
