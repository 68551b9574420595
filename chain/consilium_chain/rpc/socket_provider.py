"""A chain node behind a WebSocket: web3's requests, and new blocks as the node tells them (`eth_subscribe`, newHeads).

web3's own provider for WebSockets is for asynchronous programs alone.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

import requests
from consilium_core.logs import emit
from consilium_core.visible_text import without_secrets
from web3.providers.base import JSONBaseProvider
from web3.types import RPCEndpoint, RPCResponse
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from consilium_chain.errors import name_of

SCHEMES = ("ws://", "wss://")
MOST_WAITING = 1_000  # requests of this process
LONGER = 1.0  # seconds: websockets' own limit of opening comes first, but does not count its search for a proxy


class SocketProvider(JSONBaseProvider):
    """Connects with the first request, and again with the next one after the connection broke.

    `heard`: called with the number of each new block once `follow` has subscribed, and with -1 when that ends; in the
    thread that answers come from, so it must ask for nothing.
    Raises requests' errors, as web3's provider for HTTP does.
    """

    def __init__(self, url: str, timeout: float, largest_answer: int) -> None:
        super().__init__()
        self._url, self._timeout, self._largest = url, timeout, largest_answer
        self._lock = threading.Lock()
        self._connection: ClientConnection | None = None
        self._waiting: dict[int, Future[RPCResponse]] = {}
        self._subscription: str | None = None  # of the present connection
        self._is_refused = False  # by the node, on the present connection
        self.heard: Callable[[int], None] = lambda number: None

    @property
    def is_told(self) -> bool:
        """True while the node tells new blocks."""
        return self._subscription is not None

    def follow(self) -> None:
        """Subscribes to new blocks, unless it is subscribed, or the node has refused that."""
        if self.is_told or self._is_refused:
            return
        connection = self._connected()
        answer = self.make_request(RPCEndpoint("eth_subscribe"), ["newHeads"])
        found = answer.get("result")
        is_told = isinstance(found, str)
        with self._lock:
            if self._connection is not connection:  # it ended meanwhile: the next call subscribes
                return
            self._subscription, self._is_refused = found if is_told else None, not is_told
        if is_told:
            emit("blocks-told", node=without_secrets(self._url))
        else:
            self._lose("SubscriptionRefused")

    def _lose(self, why: str) -> None:
        self.heard(-1)
        emit("blocks-polled", node=without_secrets(self._url), error=why)

    def close(self) -> None:
        """Ends the connection, which the next request opens again. Nothing is told any more."""
        with self._lock:
            connection, self._connection, self._is_refused = self._connection, None, False
            was_told, self._subscription = self.is_told, None
        if was_told:
            self.heard(-1)
        if connection is not None:
            connection.close()

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        encoded = self.encode_rpc_request(method, params)
        number, answer = int(json.loads(encoded)["id"]), Future[RPCResponse]()
        try:
            connection = self._connected()
            if len(self._waiting) >= MOST_WAITING:
                raise requests.exceptions.ConnectionError("too many requests wait for the node")
            self._waiting[number] = answer
            connection.send(encoded.decode())
            return answer.result(self._timeout)
        except FutureTimeout as error:
            raise requests.exceptions.ReadTimeout("the node does not answer") from error
        except (OSError, WebSocketException) as error:
            raise requests.exceptions.ConnectionError(name_of(error)) from error
        finally:
            self._waiting.pop(number, None)

    def _connected(self) -> ClientConnection:
        with self._lock:
            if self._connection is None:
                opened = Future[ClientConnection]()
                threading.Thread(target=self._listen, args=(opened,), name="chain node", daemon=True).start()
                try:
                    self._connection = opened.result(self._timeout + LONGER)
                except FutureTimeout:
                    if opened.cancel():
                        raise requests.exceptions.ConnectTimeout("the node does not answer") from None
                    self._connection = opened.result()
            return self._connection

    def _listen(self, opened: Future[ClientConnection]) -> None:
        """Until the connection ends: hands on answers and new blocks."""
        fault, is_open = requests.exceptions.ConnectionError("the connection ended"), False
        try:
            with connect(
                self._url, open_timeout=self._timeout, close_timeout=LONGER, max_size=self._largest
            ) as connection:
                if not opened.set_running_or_notify_cancel():
                    return
                opened.set_result(connection)
                is_open = True
                for message in connection:
                    self._take(json.loads(message))
        except Exception as error:  # an unknown one, too, as of a proxy that needs a package: requests wait for this
            fault = requests.exceptions.ConnectionError(name_of(error))
            if not is_open:
                if not opened.done() and opened.set_running_or_notify_cancel():
                    opened.set_exception(fault)
                return
        with self._lock:
            is_present, was_told = self._connection is connection, False
            if is_present:
                was_told, self._subscription = self.is_told, None
                self._connection, self._is_refused = None, False
            waiting = list(self._waiting.values())
        if was_told:  # until the next request connects and subscribes again
            self._lose("ConnectionLost")
        for one in waiting:
            if not one.done():
                one.set_exception(fault)

    def _take(self, message: object) -> None:
        """An answer, or a new block. Anything else is not for this program."""
        if not isinstance(message, Mapping):
            return
        if message.get("method") == "eth_subscription":
            number = _number_of(message.get("params"), self._subscription)
            if number is not None:
                self.heard(number)
        elif {"result", "error"} & message.keys() and type(number := message.get("id")) is int:
            waiting = self._waiting.get(number)
            if waiting is not None and not waiting.done():
                waiting.set_result(message)  # type: ignore[arg-type]


def _number_of(told: Any, subscription: str | None) -> int | None:
    """The number of a told block; None for what is not one."""
    try:
        return int(told["result"]["number"], 16) if told["subscription"] == subscription else None
    except (LookupError, TypeError, ValueError):
        return None
