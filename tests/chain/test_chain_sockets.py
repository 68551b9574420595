"""A chain node behind a WebSocket: it tells new blocks, and is polled where it does not."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from chain_driver import LocalChain, TaskDriver
from consilium_chain.errors import ChainUnreachable
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Role
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.endpoint import LARGEST_ANSWER, Endpoint
from consilium_chain.rpc.local_node import free_port
from consilium_chain.rpc.socket_provider import SocketProvider
from consilium_core.logs import log_to
from eth_account import Account
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import Server, ServerConnection, serve


@dataclass
class SocketNode:
    """Hands requests on to a node, but for those that it answers itself: `instead`, the answer's fields by method."""

    upstream: str
    instead: dict[str, dict[str, object]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    open: list[ServerConnection] = field(default_factory=list)
    url: str = ""

    def handle(self, connection: ServerConnection) -> None:
        self.open.append(connection)
        with suppress(ConnectionClosed), connect(self.upstream.replace("http", "ws"), max_size=None) as upstream:
            threading.Thread(target=self._back, args=(upstream, connection), daemon=True).start()
            for raw in connection:
                request = json.loads(raw)
                self.asked[request["method"]] += 1
                if request["method"] in self.instead:
                    connection.send(json.dumps({"id": request["id"], **self.instead[request["method"]]}))
                else:
                    upstream.send(raw)

    @staticmethod
    def _back(upstream: ClientConnection, connection: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            for raw in upstream:
                connection.send(raw)

    def cut(self) -> None:
        for connection in self.open:
            connection.close()
        self.open.clear()


@contextmanager
def running(upstream: str, **instead: dict[str, object]) -> Iterator[SocketNode]:
    node = SocketNode(upstream, instead)
    server: Server
    with serve(node.handle, "127.0.0.1", 0, max_size=None) as server:
        node.url = f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield node
        finally:
            node.cut()
            server.shutdown()
            thread.join()


@contextmanager
def journal() -> Iterator[list[str]]:
    told: list[str] = []
    with log_to(lambda event, fields: told.append(event)):
        yield told


def waits(ledger: Ledger, blocks: int) -> None:
    seen = ledger.connection.blocks.wait_after(-1)
    for _ in range(blocks):
        now = ledger.connection.blocks.wait_after(seen, 30)
        assert now > seen
        seen = now


def test_a_node_behind_a_socket_reads_sends_and_is_told_blocks(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain)
    with running(local_chain.node.url) as node, journal() as told:
        account = Account.create()
        local_chain.rpc("anvil_setBalance", account.address, hex(10**19))
        ledger = Ledger(Connection(node.url, account), local_chain.deployment)
        ledger.connection.transactions.send_ether(account.address, 1)
        assert ledger.snapshots.of(task.task, Role.HOSPITAL).state == task.operator.tasks.state(task.task)
        node.asked.clear()
        waits(ledger, 6)
    assert told.count("blocks-told") == 1
    assert node.asked["eth_subscribe"] == 1
    assert 6 <= node.asked["eth_call"] <= 8  # one for each block


def test_a_lost_socket_is_said_and_opened_again(local_chain: LocalChain) -> None:
    with running(local_chain.node.url) as node, journal() as told:
        ledger = Ledger(Connection(node.url), local_chain.deployment)
        waits(ledger, 2)
        node.cut()
        end = time.monotonic() + 30
        while "blocks-polled" not in told:
            assert time.monotonic() < end
            time.sleep(0.01)
        waits(ledger, 2)
        assert [one for one in told if one.startswith("blocks-")] == ["blocks-told", "blocks-polled", "blocks-told"]


def test_a_node_that_tells_no_blocks_is_polled(local_chain: LocalChain) -> None:
    refusal: dict[str, object] = {"error": {"code": -32601, "message": "no subscriptions"}}
    with running(local_chain.node.url, eth_subscribe=refusal) as node, journal() as told:
        waits(Ledger(Connection(node.url), local_chain.deployment), 3)
        assert (told, node.asked["eth_subscribe"]) == (["blocks-polled"], 1)


@pytest.mark.parametrize(
    "answer", [{"result": 7}, {"result": "zz"}, {"neither": 1}, {"result": "x" * (LARGEST_ANSWER + 1)}]
)
def test_a_hostile_socket_is_refused(local_chain: LocalChain, answer: dict[str, object]) -> None:
    with running(local_chain.node.url, eth_chainId=answer) as node, pytest.raises(ChainUnreachable, match=node.url):
        Endpoint(node.url, timeout=2)


def test_a_dead_socket_is_named() -> None:
    url = f"ws://127.0.0.1:{free_port()}"
    with pytest.raises(ChainUnreachable, match=url):
        Connection(url)


def test_an_unknown_error_of_connecting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a SOCKS proxy without python-socks."""

    def fail(*_: object, **__: object) -> None:
        raise ImportError

    monkeypatch.setattr("consilium_chain.rpc.socket_provider.connect", fail)
    with pytest.raises(ChainUnreachable):
        Endpoint(f"ws://127.0.0.1:{free_port()}", timeout=2)


def test_a_connection_that_ends_after_its_answer_is_not_told(
    local_chain: LocalChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(local_chain.node.url) as node, journal() as told:
        provider = SocketProvider(node.url, 10, LARGEST_ANSWER)
        ask = provider.make_request

        def ask_and_lose(*given: Any) -> Any:
            answer = ask(*given)
            node.cut()
            end = time.monotonic() + 10
            while provider._connection is not None:
                assert time.monotonic() < end
                time.sleep(0.01)
            return answer

        with monkeypatch.context() as patch:
            patch.setattr(provider, "make_request", ask_and_lose)
            provider.follow()
        assert not provider.is_told
        provider.follow()
        assert provider.is_told
        assert told == ["blocks-told"]
