"""Hospitals that try to fill the SuperLink's disk, with registered keys and Flower's own client, over TLS."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from consilium_chain.rpc.local_node import free_port
from consilium_chain.transport_keys import pem_of
from consilium_client.hospital.transport_key import make_transport_key, transport_public_key
from consilium_server.errors import SuperLinkFailed
from consilium_server.flower import internals
from consilium_server.flower.bounded_superlink import (
    DOES_NOTHING_FOR,
    LONGEST_LINE,
    OF_HOSPITALS,
    BoundedLog,
    Past,
    lean,
)
from consilium_server.flower.internals import NODE_AWAY, SMALL_PARTS, GradualGrid, SuperLink
from consilium_zk.constants import BYTES_PER_BLOB
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict
from flwr.common.constant import HEARTBEAT_DEFAULT_INTERVAL, SUPERLINK_NODE_ID, ErrorCode
from flwr.common.serde import message_to_proto
from flwr.proto.fab_pb2 import GetFabRequest
from flwr.proto.fleet_pb2 import ActivateNodeRequest, PullMessagesRequest, PushMessagesRequest, PushMessagesResponse
from flwr.proto.message_pb2 import Message as ProtoMessage
from flwr.proto.message_pb2 import ObjectTree, PushObjectRequest
from flwr.proto.node_pb2 import Node
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
from flwr.supercore.protobuf.translation import ProtobufTranslationMiddleware
from flwr.superlink import main as superlink_app
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

BLOBS, HOSPITALS = 1, 2
SHARE = 2 * BLOBS * BYTES_PER_BLOB + SMALL_PARTS
MIB = 1 << 20


@dataclass
class Hospital:
    """A node's key, and all requests that it allows."""

    client: FleetHttpClient
    number: int
    run: int

    @property
    def node(self) -> Node:
        return Node(node_id=self.number)

    def pull(self) -> str:
        """The id of the next message to the node; empty if there is none."""
        found = self.client.PullMessages(PullMessagesRequest(node=self.node)).messages_list
        return found[0].metadata.message_id if found else ""

    def announce(self, asked: str, tree: ObjectTree, **other: object) -> PushMessagesResponse:
        """A reply to `asked` with the objects of `tree`, or with `other` fields."""
        message = ProtoMessage()
        message.content.SetInParent()
        said = {
            "run_id": self.run, "message_id": tree.object_id, "src_node_id": self.number,
            "dst_node_id": SUPERLINK_NODE_ID, "reply_to_message_id": asked, "message_type": "train", "ttl": 600.0,
            "created_at": time.time(),
        } | other  # fmt: skip
        for name, value in said.items():
            setattr(message.metadata, name, value)
        request = PushMessagesRequest(node=self.node, messages_list=[message], message_object_trees=[tree])
        answer: PushMessagesResponse = self.client.PushMessages(request)
        return answer

    def push(self, session: str, content: bytes, name: str | None = None) -> bool:
        request = PushObjectRequest(
            node=self.node, run_id=self.run, session_id=session, object_content=content,
            object_id=hashlib.sha256(content).hexdigest() if name is None else name,
        )  # fmt: skip
        return bool(self.client.PushObject(request).stored)

    def answer(self, asked: str, blob: bytes) -> None:
        """Sends it like a SuperNode."""
        record = ArrayRecord({"0": Array(dtype="uint8", shape=(len(blob),), stype="raw", data=blob)})
        reply = Message(RecordDict({"blobs": record}), dst_node_id=SUPERLINK_NODE_ID, message_type="train")
        reply.metadata.__dict__["_message_id"] = reply.object_id
        assert message_to_proto(reply)
        told = self.announce(asked, get_object_tree(reply), message_id=reply.object_id)
        for name, one in get_all_nested_objects(reply).items():
            if name in told.objects_to_push:
                assert self.push(told.session_id, one.deflate(), name)


@dataclass
class Stand:
    home: Path
    superlink: SuperLink
    grid: GradualGrid
    hospitals: list[Hospital]

    def ask(self, hospital: Hospital, what: int = 0) -> str:
        content = RecordDict({"request": ConfigRecord({"part": what})})
        message = Message(content, dst_node_id=hospital.number, message_type="train")
        (asked,) = self.grid.push_messages([message])
        assert hospital.pull() == asked
        return asked

    @property
    def used(self) -> int:
        """Used bytes of the database."""
        with sqlite3.connect(f"file:{self.home / 'superlink.sqlite'}?mode=ro", uri=True) as database:
            pages, free = (
                database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count")
            )
        database.close()
        return int(pages - free) * 4_096

    def whole(self, asked: str) -> bytes:
        """The replies that the aggregator gets."""
        end = time.monotonic() + 20
        while not (found := self.grid.pull_messages([asked])):
            assert time.monotonic() < end
            time.sleep(0.05)
        return bytes(found[0].content.array_records["blobs"]["0"].data)


def known(superlink: SuperLink, folder: Path, run: int) -> Hospital:
    make_transport_key(folder)
    superlink.register(transport_public_key(folder))
    return activated(superlink, folder, run)


def activated(superlink: SuperLink, folder: Path, run: int) -> Hospital:
    """Raises httpx.HTTPStatusError."""
    public = transport_public_key(folder)
    key = serialization.load_ssh_private_key(folder.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    client = FleetHttpClient.from_server_address(
        superlink.address, False, superlink.certificates.authority.read_bytes(),
        interceptors=[
            RuntimeVersionHttpInterceptor(component_name="SuperNode"), NodeAuthHttpInterceptor(key, key.public_key())
        ],
    )  # fmt: skip
    request = ActivateNodeRequest(public_key=pem_of(public), heartbeat_interval=HEARTBEAT_DEFAULT_INTERVAL)
    try:
        return Hospital(client, client.ActivateNode(request).node_id, run)
    except httpx.HTTPStatusError:
        client.close()
        raise


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    home = tmp_path_factory.mktemp("bounded")
    with SuperLink(home, free_port(), BLOBS, HOSPITALS) as superlink:
        superlink.wait_until_up()
        with superlink.run() as (grid, _):
            run = grid.run.run_id
            hospitals = [known(superlink, home / f"{index}.key", run) for index in range(HOSPITALS)]
            yield Stand(home, superlink, grid, hospitals)
            for hospital in hospitals:
                hospital.client.close()


def refusal(attempt: Callable[[], object]) -> int:
    with pytest.raises(httpx.HTTPStatusError) as refused:
        attempt()
    return int(refused.value.response.status_code)


def chunk(size: int) -> bytes:
    """An object that Flower accepts."""
    return b"ArrayChunk  %d\0" % size + os.urandom(size)


def tree(*contents: bytes, root: str | None = None) -> ObjectTree:
    """The announcement of a message that never comes, with these objects."""
    below = [ObjectTree(object_id=hashlib.sha256(content).hexdigest()) for content in contents]
    return ObjectTree(object_id=root or os.urandom(32).hex(), children=below)


def fill(hospital: Hospital, asked: str) -> int:
    """Stores as much as possible in reply; returns the number of bytes."""
    contents = [chunk(MIB // 2) for _ in range(2 * SHARE // MIB + 4)]
    session, stored = hospital.announce(asked, tree(*contents)).session_id, 0
    for content in contents:
        try:
            assert hospital.push(session, content)
        except httpx.HTTPStatusError:
            break
        stored += len(content)
    return stored


def test_a_hospital_stores_its_share_and_no_more_and_others_theirs(stand: Stand) -> None:
    greedy, honest = stand.hospitals
    asked, blob = stand.ask(greedy), os.urandom(BYTES_PER_BLOB)
    before = stand.used
    assert SHARE // 2 < fill(greedy, asked) <= SHARE
    assert refusal(lambda: greedy.push("", chunk(1))) == 413
    assert refusal(lambda: greedy.announce(asked, tree())) == 413
    log = (stand.home / "superlink.log").read_text()
    assert log.count(f"node {greedy.number} has sent more than its share of {SHARE} bytes") == 1
    assert stand.used - before <= 1.1 * SHARE
    other = stand.ask(honest)
    honest.answer(other, blob)
    assert stand.whole(other) == blob


def test_what_is_never_taken_goes_with_the_next_question(stand: Stand) -> None:
    """Several rounds, each with as much data as possible."""
    greedy = stand.hospitals[0]
    fill(greedy, stand.ask(greedy, 1))
    after_one = stand.used
    for what in range(2, 4):
        fill(greedy, stand.ask(greedy, what))
    assert stand.used <= after_one + 256 * 1_024
    asked = stand.ask(greedy, 4)
    assert stand.used <= after_one - SHARE // 2
    blob = os.urandom(BYTES_PER_BLOB)
    greedy.answer(asked, blob)  # who was refused once is not refused for ever
    assert stand.whole(asked) == blob


def test_only_the_last_question_has_room_for_a_reply(stand: Stand) -> None:
    greedy = stand.hospitals[0]
    late, asked = stand.ask(greedy, 10), stand.ask(greedy, 11)
    first = greedy.announce(asked, tree(chunk(10)))
    assert first.session_id
    for told in (greedy.announce(late, tree(chunk(10))), greedy.announce(asked, tree(chunk(10)))):
        assert (told.session_id, list(told.objects_to_push)) == ("", [])  # a SuperNode takes it for sent
    (nothing,) = stand.grid.pull_messages([late])
    assert nothing.has_error()


@pytest.mark.parametrize(
    "other",
    [
        {"reply_to_message_id": "", "src_node_id": SUPERLINK_NODE_ID},  # an order to the aggregator's own process
        {"reply_to_message_id": "", "src_node_id": SUPERLINK_NODE_ID, "dst_node_id": 0},  # to the other hospital
        {"reply_to_message_id": ""},
        {"src_node_id": 0},  # in its name
        {"message_id": "00" * 32},  # with objects of which nobody knows whose they are
    ],
    ids=["order", "order-to-another", "unasked", "in-anothers-name", "stray-objects"],
)  # fmt: skip
def test_a_hospital_replies_and_does_nothing_else(stand: Stand, other: dict[str, object]) -> None:
    greedy, honest = stand.hospitals
    asked = stand.ask(greedy, 20)
    before = stand.used
    meant = {name: honest.number if value == 0 else value for name, value in other.items()}
    assert refusal(lambda: greedy.announce(asked, tree(chunk(10)), **meant)) == 400
    assert honest.pull() == ""
    assert stand.used <= before + 64 * 1_024


def test_a_reply_is_not_cut_into_any_number_of_objects(stand: Stand) -> None:
    """Flower registers each object separately, and blocks all other writers."""
    greedy = stand.hospitals[0]
    asked = stand.ask(greedy, 30)
    many = ObjectTree(object_id="ab" * 32, children=[ObjectTree(object_id=f"{n:064x}") for n in range(10_000)])
    assert refusal(lambda: greedy.announce(asked, many)) == 413
    assert greedy.announce(asked, tree(chunk(10))).session_id


def test_what_a_hospital_sends_is_not_in_the_log(stand: Stand) -> None:
    """Flower's errors quote the data."""
    greedy, log = stand.hospitals[0], stand.home / "superlink.log"
    before = log.stat().st_size
    for _ in range(3):
        refusal(lambda: greedy.client.GetFab(GetFabRequest(node=greedy.node, run_id=greedy.run, hash_str="x" * MIB)))
    assert before < log.stat().st_size < before + 10 * LONGEST_LINE
    assert "x" * 1_000 in log.read_text()


def test_a_node_that_ended_without_a_word_is_let_in_at_its_second_try(stand: Stand) -> None:
    """Flower would wait a minute for the former connection, and not report its message."""
    lost, folder = stand.hospitals[1], stand.home / "1.key"
    asked = stand.ask(lost, 40)
    assert stand.grid.pull_messages([asked]) == []
    assert refusal(lambda: activated(stand.superlink, folder, lost.run)) == 412
    (reply,) = stand.grid.pull_messages([asked])
    assert reply.error.code == NODE_AWAY
    again = activated(stand.superlink, folder, lost.run)
    assert again.number == lost.number
    blob = os.urandom(BYTES_PER_BLOB)
    asked = stand.ask(again, 41)
    again.answer(asked, blob)
    assert stand.whole(asked) == blob
    again.client.close()


@pytest.mark.parametrize("is_taken", [True, False], ids=["seen", "unseen"])
def test_what_a_node_had_begun_to_send_is_lost_with_it(stand: Stand, is_taken: bool) -> None:
    """Flower reports an announced reply as on its way for minutes, also after its node has left."""
    lost, folder = stand.hospitals[1], stand.home / "1.key"
    asked, sent, unsent = stand.ask(lost, 50 + is_taken), chunk(10), chunk(11)
    told = lost.announce(asked, tree(sent, unsent))
    assert lost.push(told.session_id, sent)
    if is_taken:
        assert stand.grid.pull_messages([asked]) == []
    assert refusal(lambda: activated(stand.superlink, folder, lost.run)) == 412
    (reply,) = stand.grid.pull_messages([asked])
    assert reply.error.code == (ErrorCode.MESSAGE_UNAVAILABLE if is_taken else NODE_AWAY)
    again = activated(stand.superlink, folder, lost.run)
    asked, blob = stand.ask(again, 52 + is_taken), os.urandom(BYTES_PER_BLOB)
    again.answer(asked, blob)
    assert stand.whole(asked) == blob
    again.client.close()


def test_what_a_node_had_sent_whole_outlives_it(stand: Stand) -> None:
    lost, folder = stand.hospitals[1], stand.home / "1.key"
    asked, blob = stand.ask(lost, 60), os.urandom(BYTES_PER_BLOB)
    lost.answer(asked, blob)
    refusal(lambda: activated(stand.superlink, folder, lost.run))
    activated(stand.superlink, folder, lost.run).client.close()
    assert stand.whole(asked) == blob


def test_a_node_without_its_key_is_told_nothing(stand: Stand) -> None:
    """The middleware that proves keys is none of those that requests go past."""
    client = FleetHttpClient.from_server_address(
        stand.superlink.address, False, stand.superlink.certificates.authority.read_bytes(),
        interceptors=[RuntimeVersionHttpInterceptor(component_name="SuperNode")],
    )  # fmt: skip
    assert refusal(lambda: client.PullMessages(PullMessagesRequest(node=stand.hospitals[0].node))) == 401
    client.close()


@pytest.mark.parametrize(
    ("kind", "path", "goes_past"),
    [
        ("http", "/v1/fleet/pull-messages", True),
        ("http", "/v1/fleet/../control/list-runs", True),  # no route has such a path
        ("http", "/v1/control/list-runs", False),
        ("http", "/v1/control/v1/fleet/", False),
        ("http", "//v1/fleet/pull-messages", False),
        ("http", "/v1/fleet", False),
        ("lifespan", "/v1/fleet/", False),
    ],
)
def test_only_requests_of_another_api_go_past_a_middleware(kind: str, path: str, goes_past: bool) -> None:
    seen = []

    class Noting:
        def __init__(self, app: ASGIApp) -> None:
            self._app = app

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            seen.append("middleware")
            await self._app(scope, receive, send)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append("app")

    nothing: Any = None
    asyncio.run(Past(app, Middleware(Noting), (OF_HOSPITALS,))({"type": kind, "path": path}, nothing, nothing))
    assert seen == (["app"] if goes_past else ["middleware", "app"])


def test_flower_still_has_the_middlewares_that_requests_go_past() -> None:
    whole = superlink_app._get_middleware()
    assert {getattr(entry.cls, "__name__", "") for entry in whole} > DOES_NOTHING_FOR.keys()
    kept = {entry.cls for entry in lean(whole)} - {Past}
    assert kept == {BaseHTTPMiddleware, ProtobufTranslationMiddleware}


def test_a_full_log_begins_anew(tmp_path: Path) -> None:
    with BoundedLog(tmp_path / "log", largest=10_000) as log:
        for number in range(1_500):
            log.write(f"line {number:04}\n")
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert sizes.keys() == {"log", "log.1"}
    assert max(sizes.values()) <= 10_000
    assert (tmp_path / "log").read_text().endswith("line 1499\n")


@pytest.mark.deep
def test_a_full_database_is_not_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database keeps its maximum size. The data of a run is deleted with it, so that the next one has room."""
    monkeypatch.setattr(internals, "SMALL_PARTS", 32 * MIB)
    monkeypatch.setattr(internals, "FLOWERS_OWN", 6 * MIB - 2 * 32 * MIB)  # six in all
    with SuperLink(tmp_path, free_port(), 0, 1) as superlink:
        superlink.wait_until_up()
        with pytest.raises(SuperLinkFailed), superlink.run() as (grid, _):  # noqa: PT012
            greedy = known(superlink, tmp_path / "key", grid.run.run_id)
            full = Stand(tmp_path, superlink, grid, [greedy])
            asked = full.ask(greedy)
            contents = [chunk(MIB) for _ in range(12)]
            session = greedy.announce(asked, tree(*contents)).session_id
            stored = [greedy.push(session, content) for content in contents]
            assert stored[0]
            assert not stored[-1]
            assert sum(path.stat().st_size for path in tmp_path.glob("superlink.sqlite*")) < 20 * MIB
            greedy.client.close()
            raise SuperLinkFailed("SuperLinkFailed", why="it is full")
        with superlink.run() as (grid, _):
            spared = known(superlink, tmp_path / "other", grid.run.run_id)
            again = Stand(tmp_path, superlink, grid, [spared])
            asked, blob = again.ask(spared), os.urandom(BYTES_PER_BLOB)
            spared.answer(asked, blob)
            assert again.whole(asked) == blob
            spared.client.close()
