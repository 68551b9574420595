"""The SuperLink's own process: Flower's, with bounds on the data that hospitals can store (flwr 1.41.0, private API).

Flower's Fleet API lets every registered key store any number of replies until the run ends. It also accepts messages
to the aggregator and to other hospitals, and objects of any size and number. Here a node may store one reply to its
last message, and its reply to the message before is removed. Database and log have a maximum size. A node that
reconnects does not wait until its former connection times out.
"""

from __future__ import annotations

import io
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from logging import WARNING, StreamHandler
from pathlib import Path

from consilium_core.connectivity import TASK_HEADER
from fastapi import HTTPException
from flwr.common.constant import SUPERLINK_NODE_ID, Status
from flwr.proto.fleet_pb2 import (
    ActivateNodeRequest,
    ActivateNodeResponse,
    PushMessagesRequest,
    PushMessagesResponse,
    Reconnect,
)
from flwr.proto.message_pb2 import PushObjectRequest, PushObjectResponse
from flwr.proto.runtime_pb2 import PushAppMessagesRequest, PushAppMessagesResponse
from flwr.server.superlink.linkstate import LinkState
from flwr.server.superlink.utils import check_abort
from flwr.supercore import sql_mixin
from flwr.supercore.error import ApiErrorCode, FlowerError
from flwr.supercore.inflatable.inflatable_object import iterate_object_tree
from flwr.supercore.logger import FLOWER_LOGGER
from flwr.supercore.object_store.sql_object_store import SqlObjectStore
from flwr.superlink import main as superlink_app
from flwr.superlink.cli.flower_superlink import flower_superlink
from flwr.superlink.servicer.fleet import fleet_handlers
from flwr.superlink.servicer.runtime import runtime_handlers
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ROW = 2_048  # bytes of an object, or of a request to store some, in the database beside its content
OBJECT = 1 << 16  # bytes of a share for each object of a reply: Flower registers them one by one
PAGE = 4_096  # bytes, SQLite's own default
LARGEST_LOG = 16 << 20  # bytes, and as much again of the log before it
LONGEST_LINE = 2_000  # characters: errors quote what a hospital sent
# All hospitals upload in the second in which commitments close. On a busy machine Flower's five seconds for its
# database's lock are not enough: it answers 500, and a SuperNode then drops the message.
LOCK_TIMEOUT = 60_000  # ms
OF_HOSPITALS, OF_AGGREGATOR = "/v1/fleet/", "/v1/runtime/"
# No event log and no tracing is switched on: the environment has neither variable.
DOES_NOTHING_FOR: dict[str, tuple[str, ...]] = {  # by the class's name: other versions of Flower lack some
    **dict.fromkeys(
        (
            "ControlAuthenticationMiddleware", "ControlEventLogMiddleware", "ControlLicenseMiddleware",
            "ControlSensitiveResponseMiddleware", "FleetEventLogMiddleware", "RuntimeTracingMiddleware",
        ),
        (OF_HOSPITALS, OF_AGGREGATOR),
    ),
    "NodeAuthMiddleware": (OF_AGGREGATOR,),
}  # fmt: skip


@dataclass
class _Node:
    """The last message to a hospital's node, and the data that the node stored in reply."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    message: str = ""
    reply: str = ""
    sessions: list[str] = field(default_factory=list)
    bytes: int = 0
    is_told: bool = False


class Shares:
    """Wraps Flower's handlers: `send` is for the aggregator, the others are for hospitals."""

    def __init__(self, share: int) -> None:
        """`share`: bytes that a node may send in reply to one message, everything counted."""
        self._share = share
        self._nodes: dict[int, _Node] = defaultdict(_Node)  # only of nodes that proved their key
        self._send: Callable[..., PushAppMessagesResponse] = runtime_handlers.push_messages
        self._reply: Callable[..., PushMessagesResponse] = fleet_handlers.push_messages
        self._store: Callable[..., PushObjectResponse] = fleet_handlers.push_object
        self._activate: Callable[..., ActivateNodeResponse] = fleet_handlers.activate_node

    def send(self, request: PushAppMessagesRequest, state: LinkState, *more: object) -> PushAppMessagesResponse:
        """Makes room for the reply. The aggregator sends a node nothing while it waits for its reply."""
        for message in request.messages_list:
            node = self._nodes[message.metadata.dst_node_id]
            with node.lock:
                if message.metadata.message_id != node.message:  # else it is a repetition after a lost answer
                    _forget(node, state)
                    node.message = message.metadata.message_id
        return self._send(request, state, *more)

    def reply(self, request: PushMessagesRequest, state: LinkState) -> PushMessagesResponse:
        """Accepts the announcement of one reply to the last message, within the node's share."""
        node = self._nodes[request.node.node_id]
        with node.lock:
            self._charge(request.node.node_id, request.ByteSize() + ROW)
            if len(request.messages_list) != 1 or len(request.message_object_trees) != 1:
                raise HTTPException(400, "send one reply at a time, with its objects")
            announced, tree = request.messages_list[0].metadata, request.message_object_trees[0]
            if _is_over(announced.run_id, state):
                return self._reply(request, state)  # refuses it with Flower's own message
            if (announced.src_node_id, announced.dst_node_id) != (request.node.node_id, SUPERLINK_NODE_ID):
                raise HTTPException(400, "a node may only send its own messages to the aggregator")
            if not announced.reply_to_message_id or announced.message_id != tree.object_id:
                raise HTTPException(400, "the message is not a reply, or its objects belong to another message")
            if announced.reply_to_message_id != node.message or node.reply not in ("", announced.message_id):
                # Too late, or a second one: with Flower's answer for a message that it drops, a SuperNode continues.
                return PushMessagesResponse(reconnect=Reconnect(reconnect=5), results={announced.message_id: 0})
            objects = sum(1 for _ in iterate_object_tree(tree))
            if objects > self._share // OBJECT:
                raise HTTPException(413, f"the reply has {objects} objects; the limit is {self._share // OBJECT}")
            self._charge(request.node.node_id, ROW * objects)
            node.reply = announced.message_id
            answer = self._reply(request, state)
            node.sessions.append(answer.session_id)
            return answer

    def store(self, request: PushObjectRequest, state: LinkState) -> PushObjectResponse:
        """Stores an object of a reply, within the node's share."""
        node = self._nodes[request.node.node_id]
        with node.lock:
            self._charge(request.node.node_id, request.ByteSize() + ROW)
        return self._store(request, state)

    def activate(self, request: ActivateNodeRequest, state: LinkState) -> ActivateNodeResponse:
        """Activates a node, also one that ended without a message: killed, cut off, or with a wrong clock.

        Flower takes such a node for online for a minute, and refuses it until then. It reports neither the node's lost
        message nor an incomplete reply. The node has proved its key, so it is the same node. Here its former
        connection ends when it reconnects, with every incomplete reply. This attempt is still refused, so that the
        aggregator learns of the lost reply before the next attempt.
        """
        number = state.get_node_id_by_public_key(request.public_key)
        if number is not None:
            node = self._nodes[number]
            with node.lock:
                for session in node.sessions:  # a complete reply has none
                    state._cleanup_push_session(session, cleanup_messages=True)
                node.sessions = []
        try:
            return self._activate(request, state)
        except FlowerError as error:
            is_refused = error.code == ApiErrorCode.FLEET_NODE_ACTIVATION_FAILED
            if is_refused and number is not None and state.deactivate_node(number):
                FLOWER_LOGGER.log(WARNING, "node %s reconnects, and is accepted at its next attempt", number)
            raise

    def _charge(self, number: int, size: int) -> None:
        """Counts bytes towards a node's share. Raises HTTPException, after which a SuperNode does not retry."""
        node = self._nodes[number]
        node.bytes += size
        if node.bytes > self._share:
            if not node.is_told:
                node.is_told = True
                FLOWER_LOGGER.log(WARNING, "node %s has sent more than its share of %s bytes", number, self._share)
            raise HTTPException(413, f"the reply exceeds this node's share of {self._share} bytes for one message")


def _forget(node: _Node, state: LinkState) -> None:
    """Removes the last message and the data stored in reply. They may be gone already."""
    if node.message:
        with state.session():  # one transaction: there are many hospitals
            for session in node.sessions:
                state._cleanup_push_session(session, cleanup_messages=False)
            for root in filter(None, (node.reply, node.message)):
                state.object_store.delete(root)
            state.delete_messages({node.message})
    node.message, node.reply, node.sessions, node.bytes, node.is_told = "", "", [], 0, False


def _is_over(run_id: int, state: LinkState) -> bool:
    return check_abort(run_id, [Status.PENDING, Status.STARTING, Status.FINISHED], state) is not None


class BoundedLog(io.TextIOBase):
    """A log of at most twice `largest` bytes: the file, which is rotated when it is full, and its predecessor."""

    def __init__(self, path: Path, largest: int = LARGEST_LOG, takes_over: tuple[int, ...] = ()) -> None:
        """`takes_over`: descriptors of this process that are redirected into the file."""
        self._path, self._largest, self._takes_over = path, largest, takes_over
        self._lock = threading.RLock()
        self._open()

    def _open(self) -> None:
        self._file = self._path.open("ab")
        self._size = self._file.tell()
        for descriptor in self._takes_over:
            os.dup2(self._file.fileno(), descriptor)

    def write(self, text: str) -> int:
        """Writes the text, cut to the longest line."""
        cut = text if len(text) <= LONGEST_LINE else text[:LONGEST_LINE] + "…\n"
        raw = cut.encode(errors="backslashreplace")
        with self._lock:
            if self._size + len(raw) > self._largest:
                self._file.close()
                self._path.replace(self._path.with_name(self._path.name + ".1"))
                self._open()
            self._file.write(raw)
            self._file.flush()
            self._size += len(raw)
        return len(text)

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()


class Past:
    """A middleware of Flower's, which requests of other APIs go past."""

    def __init__(self, app: ASGIApp, entry: Middleware, apis: tuple[str, ...]) -> None:
        self._app, self._apis = app, apis
        self._middleware: ASGIApp = entry.cls(app, *entry.args, **entry.kwargs)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        goes_past = scope["type"] == "http" and scope["path"].startswith(self._apis)
        await (self._app if goes_past else self._middleware)(scope, receive, send)


class Named:
    """Names the task in each answer: a hospital whose address leads to another task's SuperLink then says so."""

    def __init__(self, app: ASGIApp, task_key: str) -> None:
        self._app, self._header = app, (TASK_HEADER.lower().encode(), task_key.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), self._header]
            await send(message)

        await self._app(scope, receive, named if scope["type"] == "http" else send)


def lean(middleware: list[Middleware]) -> list[Middleware]:
    """The same, but requests go past those that do nothing for them: a hospital's meet three of nine."""
    apis = [DOES_NOTHING_FOR.get(getattr(entry.cls, "__name__", ""), ()) for entry in middleware]
    return [
        Middleware(Past, entry=entry, apis=past) if past else entry
        for entry, past in zip(middleware, apis, strict=True)
    ]


def _migrate(database: str) -> None:
    """Brings the tables to Flower's version in a process of its own, whose 25 MB end with it.

    If that fails, Flower does it again in this process, and tells why.
    """
    child = os.fork()
    if not child:
        with suppress(Exception):
            store = SqlObjectStore(database)
            store.initialize()
            store._engine.dispose()
            os._exit(0)
        os._exit(1)
    if os.waitpid(child, 0)[1] == 0:
        sql_mixin.run_migrations = lambda engine: None


def _end_with_parent() -> None:
    """Ends this process when its input ends, which happens at any end of the process that started it."""
    os.read(0, 1)
    os._exit(1)


def main() -> None:
    """Arguments: the log, a node's share and the database's largest size in bytes, the task's name, which may be empty,
    then those of `flower-superlink`.
    """
    log, share, database, task_key = Path(sys.argv.pop(1)), int(sys.argv.pop(1)), int(sys.argv.pop(1)), sys.argv.pop(1)
    sys.stdout = sys.stderr = stream = BoundedLog(log, takes_over=(1, 2))
    for handler in FLOWER_LOGGER.handlers:
        if isinstance(handler, StreamHandler):
            handler.setStream(stream)
    sql_mixin.SQLITE_PRAGMAS = (
        *sql_mixin.SQLITE_PRAGMAS, ("busy_timeout", str(LOCK_TIMEOUT)), ("max_page_count", str(database // PAGE)),
    )  # fmt: skip
    _migrate(sys.argv[sys.argv.index("--database") + 1])
    threading.Thread(target=_end_with_parent, daemon=True).start()
    shares = Shares(share)
    runtime_handlers.push_messages = shares.send
    fleet_handlers.push_messages, fleet_handlers.push_object = shares.reply, shares.store
    fleet_handlers.activate_node = shares.activate
    of_flower = superlink_app._get_middleware
    naming = [Middleware(Named, task_key=task_key)] if task_key else []
    superlink_app._get_middleware = lambda: [*naming, *lean(of_flower())]
    flower_superlink()


if __name__ == "__main__":
    main()
