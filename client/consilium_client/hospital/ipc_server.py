"""The Unix socket on which a node answers its relay. It is its user's alone."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

from consilium_chain.errors import name_of
from consilium_chain.messages import ReplyCode
from consilium_core.logs import emit

from consilium_client.errors import AuditError, FrameError
from consilium_client.polling import ROUND_ERRORS
from consilium_client.relay.wire import RoundReply, RoundRequest, receive_request, send_reply


class Listener:
    """Answers the relay on a Unix socket, one request at a time, in a thread of its own."""

    def __init__(
        self,
        path: Path,
        answer: Callable[[RoundRequest], RoundReply],
        leaving: Callable[[RoundRequest, RoundReply], None],
    ) -> None:
        """`leaving` hears of each reply before it is sent. If it raises AuditError, nothing is sent."""
        path.unlink(missing_ok=True)
        self._path, self._answer, self._leaving = path, answer, leaving
        self._fault: BaseException | None = None
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        path.chmod(0o600)
        self._server.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def raise_fault(self) -> None:
        """Raises what ended the thread: a fault in this program, which must not look like a hospital at rest."""
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
