"""A hospital node's link to its relay: requests come over a socket, and each reply is on record before it leaves."""

from __future__ import annotations

import hashlib
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from consilium_chain.errors import name_of
from consilium_chain.messages import ReplyCode
from consilium_core.connectivity import fleet_address, why_shut_out
from consilium_core.logs import emit
from consilium_zk.disputes import upload_digest
from eth_utils.address import to_checksum_address

from consilium_client.errors import AuditError, FrameError, TransportKeyError
from consilium_client.hospital.context import Context
from consilium_client.hospital.transport_key import transport_public_key
from consilium_client.membership import ROUND_ERRORS
from consilium_client.relay.process import RelayProcess
from consilium_client.relay.wire import RoundReply, RoundRequest, receive_request, send_reply, socket_address

CHECK_INTERVAL = 20.0  # seconds between two checks of a SuperLink that asks for nothing


class Listener:
    """Answers the relay on a Unix socket that is its user's alone, one request at a time, in a thread of its own."""

    def __init__(
        self,
        path: Path,
        answer: Callable[[RoundRequest], RoundReply],
        leaving: Callable[[RoundRequest, RoundReply], None],
    ) -> None:
        """Calls `leaving` before it sends a reply. If that raises AuditError, nothing is sent."""
        path.unlink(missing_ok=True)
        self._path, self._answer, self._leaving = path, answer, leaving
        self._fault: BaseException | None = None
        self._server = socket.socket(socket.AF_UNIX)
        with socket_address(path) as address:
            self._server.bind(address)
        path.chmod(0o600)
        self._server.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def raise_fault(self) -> None:
        """Raises the error that ended the thread. A fault in this program must not look like an idle hospital."""
        if self._fault is not None:
            raise self._fault

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:  # closed: the node is leaving
                return
            try:
                with connection:
                    self._handle(connection)
            except BaseException as fault:
                self._fault = fault
                self._server.close()  # so that the next request is refused at once
                raise

    def _handle(self, connection: socket.socket) -> None:
        try:
            request = receive_request(connection)
            try:
                reply = self._answer(request)
            except ROUND_ERRORS as error:
                emit("round-failed", round=request.round, error=name_of(error))
                reply = RoundReply(ReplyCode.FAILED)
            self._leaving(request, reply)
            send_reply(connection, reply)
        except AuditError as error:
            emit("not-recorded", error=name_of(error))
        except (OSError, FrameError) as error:
            emit("relay-lost", error=name_of(error))

    def __enter__(self) -> Listener:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()
        self._path.unlink(missing_ok=True)


class RelayLink:
    """`reached`: the aggregator's first request has arrived. `requested`: the latest round of a request. `unreachable`:
    the reason why the SuperLink cannot be reached, as logged; empty if it can.
    """

    def __init__(self, context: Context, answer: Callable[[RoundRequest], RoundReply]) -> None:
        self._context, self._answer = context, answer
        self._task_key = context.ledger.folder_name(context.task.number)
        self.settings = context.settings
        self.reached, self.requested = threading.Event(), -1
        self.unreachable, self._checked_at = "", -CHECK_INTERVAL
        self._open = ExitStack()

    def __enter__(self) -> RelayLink:
        socket_path = self.settings.runtime / "node.sock"
        self._listener = self._open.enter_context(Listener(socket_path, self._answer, self.write_down))
        self._relay = self._open.enter_context(RelayProcess(self.settings, socket_path))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def raise_fault(self) -> None:
        """Raises the fault that ended the listener."""
        self._listener.raise_fault()

    def keep_running(self) -> None:
        status = self._relay.keep_running()
        if status is not None:
            emit("relay-ended", status=status, log=str(self._relay.log))

    def note(self, request: RoundRequest) -> None:
        self.reached.set()
        self.requested = max(self.requested, request.round)

    def write_down(self, request: RoundRequest, reply: RoundReply) -> None:
        """Records a reply before it is handed to the relay. Raises AuditError."""
        frame, size = hashlib.sha256(), 0
        for part in reply.encode():
            frame.update(part)
            size += len(part)
        self._context.audit.record(
            "reply", to=self.settings.flower.superlink, bytes=size, sha256=frame.hexdigest(), code=reply.code.name,
            contract=to_checksum_address(request.contract), task=request.task, round=request.round,
            blobs=len(reply.blobs), upload=upload_digest(reply.blobs).hex(),
        )  # fmt: skip

    def check(self, now: float | None = None) -> None:
        """Logs why the aggregator's SuperLink cannot be reached, and when it can. Flower connects by itself.

        `now`: seconds of any monotonic clock; None for this machine's.
        """
        now = time.monotonic() if now is None else now
        if now - self._checked_at < CHECK_INTERVAL:
            return
        self._checked_at = now
        superlink, authority = self.settings.flower.superlink, self.settings.flower.ca_certificate
        why = self._why_unknown() or why_shut_out(fleet_address(superlink), authority, self._task_key) or ""
        if why and why != self.unreachable:
            emit("superlink-unreachable", superlink=superlink, why=why)
        elif self.unreachable and not why:
            emit("superlink-reached", superlink=superlink)
        self.unreachable = why

    def _why_unknown(self) -> str | None:
        """The reason why the SuperLink would refuse this node, in words."""
        path, context = self.settings.flower.transport_key, self._context
        try:
            own = transport_public_key(path)
        except TransportKeyError as error:
            return str(error)
        if context.ledger.record.transport_keys(context.task.number).get(context.membership.index, own) == own:
            return None
        return f"{path} is not the node key that this hospital announced when it joined; restore it from a backup"
