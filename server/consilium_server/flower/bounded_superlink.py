"""The SuperLink's own process: Flower's, with bounds on the data that hospitals can store (flwr 1.41.0, private API).

Flower's Fleet API lets every registered key store any number of replies until the run ends. It also takes messages to
the aggregator and to other hospitals, and objects of any size and number. Here a node has room for one reply to its
last message, and its reply to the message before is removed. Database and log have a largest size. And a node that
reconnects does not wait for its former connection to time out.
"""

from __future__ import annotations

import io
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from logging import WARNING, StreamHandler
from pathlib import Path

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
from flwr.superlink.cli.flower_superlink import flower_superlink
from flwr.superlink.servicer.fleet import fleet_handlers
from flwr.superlink.servicer.runtime import runtime_handlers

ROW = 2_048  # bytes that an object, or a request to store some, takes in the database beside its content
OBJECT = 1 << 16  # bytes of a share for each object that it may be cut into: Flower registers them one by one
PAGE = 4_096  # bytes, SQLite's own default
LARGEST_LOG = 16 << 20  # bytes, and as much again of the log before it
LONGEST_LINE = 2_000  # characters: errors quote what a hospital sent
# All hospitals upload in the second in which commitments close. On a busy machine five seconds, Flower's patience with
# its database's lock, are too few: it answers 500, and a SuperNode drops a message that is answered so.
PATIENCE = 60_000  # ms


@dataclass
class _Node:
    """The last message to a hospital's node, and what the node has stored in reply."""

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
        self._nodes: dict[int, _Node] = defaultdict(_Node)  # of nodes that have shown their key, and so not too many
        self._send: Callable[..., PushAppMessagesResponse] = runtime_handlers.push_messages
        self._reply: Callable[..., PushMessagesResponse] = fleet_handlers.push_messages
        self._store: Callable[..., PushObjectResponse] = fleet_handlers.push_object
        self._activate: Callable[..., ActivateNodeResponse] = fleet_handlers.activate_node

    def send(self, request: PushAppMessagesRequest, state: LinkState, *more: object) -> PushAppMessagesResponse:
        """Makes room for the reply. The aggregator sends a node nothing while it waits for another reply of it."""
        for message in request.messages_list:
            node = self._nodes[message.metadata.dst_node_id]
            with node.lock:
                if message.metadata.message_id != node.message:  # else it is sent again, for want of an answer
                    _forget(node, state)
                    node.message = message.metadata.message_id
        return self._send(request, state, *more)

    def reply(self, request: PushMessagesRequest, state: LinkState) -> PushMessagesResponse:
        """Takes the announcement of one reply to the last message, within the node's share."""
        node = self._nodes[request.node.node_id]
        with node.lock:
            self._charge(request.node.node_id, request.ByteSize() + ROW)
            if len(request.messages_list) != 1 or len(request.message_object_trees) != 1:
                raise HTTPException(400, "one reply at a time, with its objects")
            said, tree = request.messages_list[0].metadata, request.message_object_trees[0]
            if _is_over(said.run_id, state):
                return self._reply(request, state)  # which refuses it in Flower's own words
            if (said.src_node_id, said.dst_node_id) != (request.node.node_id, SUPERLINK_NODE_ID):
                raise HTTPException(400, "a node speaks for itself, and to the aggregator")
            if not said.reply_to_message_id or said.message_id != tree.object_id:
                raise HTTPException(400, "it is no reply, or its objects are another's")
            if said.reply_to_message_id != node.message or node.reply not in ("", said.message_id):
                # Too late, or a second one: answered as Flower does what it does not store, and a SuperNode goes on.
                return PushMessagesResponse(reconnect=Reconnect(reconnect=5), results={said.message_id: 0})
            objects = sum(1 for _ in iterate_object_tree(tree))
            if objects > self._share // OBJECT:
                raise HTTPException(413, f"a reply of {objects} objects, of which {self._share // OBJECT} have room")
            self._charge(request.node.node_id, ROW * objects)
            node.reply = said.message_id
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
        """Activates a node, also one that ended without a word: killed, cut off, or with a wrong clock.

        Flower thinks such a node online for a minute and refuses it until then. It tells nobody what became of the
        node's message, or of a reply that was half sent. The node has shown its key, so it is the same one. Here its
        former connection ends as soon as it comes again, with every reply that is not whole. This attempt is still
        refused, so that those who wait for a reply hear of the loss before the next.
        """
        number = state.get_node_id_by_public_key(request.public_key)
        if number is not None:
            node = self._nodes[number]
            with node.lock:
                for session in node.sessions:  # of a reply that is here as a whole there is none any more
                    state._cleanup_push_session(session, cleanup_messages=True)
                node.sessions = []
        try:
            return self._activate(request, state)
        except FlowerError as error:
            is_refused = error.code == ApiErrorCode.FLEET_NODE_ACTIVATION_FAILED
            if is_refused and number is not None and state.deactivate_node(number):
                FLOWER_LOGGER.log(WARNING, "node %s comes again, and is let in at its next try", number)
            raise

    def _charge(self, number: int, size: int) -> None:
        """Counts bytes towards a node's share. Raises HTTPException, after which a SuperNode does not try again."""
        node = self._nodes[number]
        node.bytes += size
        if node.bytes > self._share:
            if not node.is_told:
                node.is_told = True
                FLOWER_LOGGER.log(WARNING, "node %s has sent more than its share of %s bytes", number, self._share)
            raise HTTPException(413, f"more than this node's share of {self._share} bytes in reply to one message")


def _forget(node: _Node, state: LinkState) -> None:
    """Removes the last message and all that was stored in reply. It is no error if they are gone already."""
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
    """A log of at most twice `largest` bytes: the file, which is rotated when it is full, and the one before it."""

    def __init__(self, path: Path, largest: int = LARGEST_LOG, takes_over: tuple[int, ...] = ()) -> None:
        """`takes_over`: descriptors of this process that are to lead into the file, too."""
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


def _end_with_parent() -> None:
    """Its input ends with the process that started it, however that ended: by then nobody else would end this one."""
    os.read(0, 1)
    os._exit(1)


def main() -> None:
    """Arguments: the log, a node's share and the database's largest size in bytes, then those of `flower-superlink`."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    log, share, database = Path(sys.argv.pop(1)), int(sys.argv.pop(1)), int(sys.argv.pop(1))
    sys.stdout = sys.stderr = said = BoundedLog(log, takes_over=(1, 2))
    for handler in FLOWER_LOGGER.handlers:
        if isinstance(handler, StreamHandler):
            handler.setStream(said)
    sql_mixin.SQLITE_PRAGMAS = (
        *sql_mixin.SQLITE_PRAGMAS, ("busy_timeout", str(PATIENCE)), ("max_page_count", str(database // PAGE)),
    )  # fmt: skip
    shares = Shares(share)
    runtime_handlers.push_messages = shares.send
    fleet_handlers.push_messages, fleet_handlers.push_object = shares.reply, shares.store
    fleet_handlers.activate_node = shares.activate
    flower_superlink()
