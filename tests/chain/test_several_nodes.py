"""A node goes on when its chain node dies: the next of `chain_url` is asked, if it is of the chain and not behind."""

from __future__ import annotations

import http.server
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from chain_driver import LocalChain, refused
from consilium_chain.errors import ChainUnreachable, DeploymentInvalid
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc import endpoint, several_nodes
from consilium_chain.rpc.cell_proofs import CellProver
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import CHAIN_ID, LocalNode, free_port
from consilium_chain.rpc.outgoing import Unsent
from consilium_chain.settings import AccountSettings, chain_urls, read_settings
from consilium_core.errors import ConfigInvalid
from consilium_core.logs import log_to
from consilium_zk.blobs import from_scalars
from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_typing import HexStr
from test_chain_sockets import running, waits

SECRET = "hush"
SOON = 20.0  # seconds
DEAD_AFTER_SENDING = "dead after sending"
Answer = Callable[[Any, dict[str, Any]], dict[str, Any]]


class Front:
    """A provider of a chain: hands requests on. `mode`: how it fails. `instead`: changes an answer, by method."""

    def __init__(self, upstream: str) -> None:
        self.upstream, self.port, self.mode = upstream, free_port(), ""
        self.instead: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.sent: list[str] = []
        self.released, self.mines = threading.Event(), False
        self._server: http.server.ThreadingHTTPServer | None = None
        self.start()

    @property
    def shown(self) -> str:
        return f"http://127.0.0.1:{self.port}/…"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{SECRET}"

    def start(self) -> None:
        front = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                front.handle(self, self.rfile.read(int(self.headers["Content-Length"])))

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def handle(self, handler: http.server.BaseHTTPRequestHandler, raw: bytes) -> None:
        request = json.loads(raw)
        self.asked.append(request["method"])
        if self.mode == "hangs":
            self.released.wait(SOON)
        if self.mode.isdigit():
            handler.send_error(int(self.mode))
            return
        if request["method"] == "eth_sendRawTransaction":
            self.sent.append(request["params"][0])
        answer = httpx.post(self.upstream, content=raw, headers={"Content-Type": "application/json"}).json()
        if request["method"] == "eth_sendRawTransaction" and self.mode == DEAD_AFTER_SENDING:
            self.mode = "503"
            if self.mines:
                httpx.post(self.upstream, json={"jsonrpc": "2.0", "id": 1, "method": "evm_mine", "params": []})
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        if change := self.instead.get(request["method"]):
            answer = change(request, answer)
        content = b"<html>" if self.mode == "a page" else json.dumps(answer).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)


@contextmanager
def fronts(chain: LocalChain, count: int = 2) -> Iterator[list[Front]]:
    with ExitStack() as stack:
        made = [Front(chain.node.url) for _ in range(count)]
        for one in made:
            stack.callback(one.stop)
            stack.callback(one.released.set)
        yield made


@contextmanager
def journal() -> Iterator[list[tuple[str, dict[str, object]]]]:
    told: list[tuple[str, dict[str, object]]] = []
    with log_to(lambda event, fields: told.append((event, dict(fields)))):
        yield told
    assert SECRET not in str(told)


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + SOON
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def behind(blocks: int) -> dict[str, Answer]:
    return {"eth_blockNumber": lambda _, answer: answer | {"result": hex(max(0, int(answer["result"], 16) - blocks))}}


def ledger_at(chain: LocalChain, *urls: str, account: LocalAccount | None = None) -> Ledger:
    return Ledger(Connection(urls, account), chain.deployment)


def funded(chain: LocalChain) -> LocalAccount:
    account: LocalAccount = Account.create()
    chain.rpc("anvil_setBalance", account.address, hex(10**19))
    return account


def transfer(account: LocalAccount) -> Unsent:
    return Unsent(HexStr("0x"), account.address, "transfer", 50_000, value=1)


def break_off(front: Front, mode: str) -> None:
    front.mode = mode
    if mode == "refuses":
        front.stop()


FAULTS = {
    "refuses": "ConnectionError", "429": "HTTP 429", "503": "HTTP 503", "404": "HTTP 404", "a page": "InvalidJSONError",
    "hangs": "ReadTimeout",
}  # fmt: skip


@pytest.mark.parametrize("mode", FAULTS)
def test_reads_go_on_at_the_next_node(local_chain: LocalChain, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "TIMEOUT", 3.0)
    with fronts(local_chain) as (first, second), journal() as told:
        ledger = ledger_at(local_chain, first.url, second.url)
        supply, number = ledger.token.balance(local_chain.treasury.address), ledger.connection.blocks.number()
        assert second.asked == []
        break_off(first, mode)
        began = time.monotonic()
        assert ledger.token.balance(local_chain.treasury.address) == supply
        assert time.monotonic() - began < 15
        assert ledger.connection.blocks.number() >= number
        assert second.asked[:4] == ["eth_chainId", "eth_blockNumber", "eth_getCode", "eth_getCode"]
        assert told == [("chain-node-changed", {"node": second.shown, "before": first.shown, "error": FAULTS[mode]})]
        assert ledger.connection.shown_url == second.shown


def test_an_error_of_the_call_stays_at_its_node(local_chain: LocalChain) -> None:
    with fronts(local_chain) as (first, second), journal() as told:
        ledger = ledger_at(local_chain, first.url, second.url)
        with refused("TaskUnknown"):
            ledger.tasks.state(10**6)
        with pytest.raises(ChainUnreachable, match=r"(?i)method"):
            ledger.connection.endpoint.ask("eth_noSuchMethod")
        first.mode = "400"  # as of logs of too many blocks
        with pytest.raises(ChainUnreachable, match=first.shown):
            ledger.connection.blocks.number()
        assert (second.asked, told) == ([], [])


def test_all_dead_nodes_are_named_with_the_way_out(local_chain: LocalChain) -> None:
    with fronts(local_chain) as (first, second), journal() as told:
        ledger = ledger_at(local_chain, first.url, second.url)
        first.stop()
        second.mode = "503"
        for _ in range(2):
            with pytest.raises(ChainUnreachable, match=r"consilium chain local.*another URL") as caught:
                ledger.connection.blocks.number()
            assert f"{first.shown}, {second.shown} (ConnectionError, HTTP 503)" in str(caught.value)
            assert SECRET not in str(caught.value)
        assert told == [("chain-node-unused", {"node": second.shown, "error": "HTTP 503"})]
        second.mode = ""
        ledger.connection.blocks.number()
    with pytest.raises(ChainUnreachable, match="ConnectionError, ConnectionError"):
        Connection([first.url, second.url])


def test_a_node_is_asked_that_answers_at_the_start(local_chain: LocalChain) -> None:
    with fronts(local_chain) as (first, second), journal() as told:
        first.stop()
        assert ledger_at(local_chain, first.url, second.url).connection.shown_url == second.shown
        assert [event for event, _ in told] == ["chain-node-changed"]


@pytest.mark.parametrize("fault", ["ChainMismatch", "CodeMismatch"])
def test_a_node_of_another_chain_is_never_used(local_chain: LocalChain, fault: str) -> None:
    with fronts(local_chain) as (first, good), LocalNode() as stranger, journal() as told:
        node = Front(stranger.url)
        node.instead = behind(-1_000_000)  # its head is no reason against it
        other_id = CHAIN_ID + (fault == "ChainMismatch")
        request = {"jsonrpc": "2.0", "id": 1, "method": "anvil_setChainId", "params": [other_id]}
        assert "error" not in httpx.post(stranger.url, json=request, timeout=60).json()
        ledger = ledger_at(local_chain, first.url, node.url, good.url)
        first.stop()
        ledger.connection.blocks.number()
        assert ledger.connection.shown_url == good.shown
        assert told[0] == ("chain-node-unused", {"node": node.shown, "error": fault})
        good.stop()
        with pytest.raises(ChainUnreachable, match=fault):
            ledger.connection.blocks.number()
        with pytest.raises(DeploymentInvalid):
            ledger_at(local_chain, node.url, good.url)
        node.stop()


def test_a_node_that_is_behind_is_not_used(local_chain: LocalChain) -> None:
    with fronts(local_chain) as (first, second), journal() as told:
        local_chain.mine(20)
        ledger = ledger_at(local_chain, first.url, second.url)
        number = ledger.connection.blocks.number()
        frozen = hex(number - several_nodes.MOST_BEHIND - 1)  # however many blocks come meanwhile
        second.instead = {"eth_blockNumber": lambda _, answer: answer | {"result": frozen}}
        first.stop()
        with pytest.raises(ChainUnreachable, match="Behind"):
            ledger.connection.blocks.number()
        assert told == [("chain-node-unused", {"node": second.shown, "error": "Behind"})]
        second.instead = {}
        assert ledger.connection.blocks.number() >= number


def test_a_node_that_lacks_a_block_is_used_once_it_has_it(local_chain: LocalChain) -> None:
    with fronts(local_chain) as (first, second), journal() as told:
        local_chain.mine(5)
        blocks = ledger_at(local_chain, first.url, second.url).connection.blocks
        number = blocks.number()
        frozen = hex(number - 1)
        second.instead = {"eth_blockNumber": lambda _, answer: answer | {"result": frozen}}
        first.stop()
        threading.Timer(1.0, second.instead.clear).start()
        assert blocks.number() >= number
        assert [event for event, _ in told] == ["chain-node-changed"]


def test_a_node_that_falls_behind_is_left_and_a_reorganisation_is_believed(local_chain: LocalChain) -> None:
    with fronts(local_chain) as (first, second), journal() as told:
        local_chain.mine(20)
        blocks = ledger_at(local_chain, first.url, second.url).connection.blocks
        number = blocks.number()
        first.instead = behind(10)
        with pytest.raises(ChainUnreachable, match="blocks behind"):
            blocks.number()
        assert blocks.number() >= number
        second.instead = behind(10)
        assert blocks.number() < number
        assert blocks.number() < number
        changes = [fields["error"] for event, fields in told if event == "chain-node-changed"]
        assert changes == ["Behind"]


def test_a_node_whose_blocks_stand_still_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(several_nodes, "STILL", 0.0)
    monkeypatch.setattr(several_nodes, "LOOK_EVERY", 0.1)
    with LocalChain() as chain, fronts(chain) as (first, second), journal() as told:
        chain.rpc("evm_setIntervalMining", 0)  # its own: no block comes by itself
        connection = ledger_at(chain, first.url, second.url).connection
        number = connection.blocks.number()
        first.instead = {"eth_blockNumber": lambda _, answer: answer | {"result": hex(number)}}
        chain.mine(several_nodes.MOST_BEHIND)
        time.sleep(0.2)
        assert connection.blocks.number() == number
        chain.mine(5)
        until(lambda: connection.blocks.number() > number)
        assert ("chain-node-changed", {"node": second.shown, "before": first.shown, "error": "StandsStill"}) in told


def test_the_first_node_is_asked_again_once_it_answers(
    local_chain: LocalChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fronts(local_chain) as (first, second), journal() as told:
        connection = ledger_at(local_chain, first.url, second.url).connection
        monkeypatch.setattr(several_nodes, "LOOK_EVERY", 0.2)
        first.stop()
        for _ in range(20):
            connection.blocks.number()
            time.sleep(0.02)
        assert connection.shown_url == second.shown
        first.start()
        until(lambda: connection.blocks.number() and connection.shown_url == first.shown)
        changes = [fields["error"] for event, fields in told if event == "chain-node-changed"]
        assert changes == ["ConnectionError", "AnswersAgain"]


@pytest.mark.parametrize("is_mined", [True, False])
def test_a_transaction_whose_answer_is_lost_is_sent_once(local_chain: LocalChain, is_mined: bool) -> None:
    """The dying node handed it on: the next one has it on the chain already, or in its pool."""
    account = funded(local_chain)
    with fronts(local_chain) as (first, second), journal() as told:
        connection = ledger_at(local_chain, first.url, second.url, account=account).connection
        first.mode, first.mines = DEAD_AFTER_SENDING, is_mined
        pending = connection.transactions.submit_raw(transfer(account))
        assert pending.own is not None
        assert pending.digest == pending.own.signed.hash
        assert connection.transactions.receipt(pending).transaction == pending.digest.to_0x_hex()
        assert connection.web3.eth.get_transaction_count(account.address) == 1
        assert set(first.sent) == set(second.sent)
        assert [event for event, _ in told] == ["chain-node-changed"]


def test_a_transaction_that_died_with_its_node_goes_to_the_next(local_chain: LocalChain) -> None:
    """Its node took it and told nobody. The next transaction takes the next nonce."""
    account = funded(local_chain)
    with fronts(local_chain) as (first, second), journal():
        connection = ledger_at(local_chain, first.url, second.url, account=account).connection
        unsent = transfer(account)
        own = connection.signing.sign(unsent, connection.signing.fields(unsent, 50_000))
        swallow = {"jsonrpc": "2.0", "id": 1, "result": own.signed.hash.to_0x_hex()}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(httpx, "post", lambda *_, **__: httpx.Response(200, json=swallow))
            digest = connection.web3.eth.send_raw_transaction(own.signed.raw_transaction)
        assert digest == own.signed.hash
        assert not connection.transactions.knows(digest)
        first.stop()
        connection.transactions.send_ether(account.address, 1)
        assert connection.web3.eth.get_transaction_count(account.address) == 2
        assert second.sent[0] == first.sent[0] == own.signed.raw_transaction.to_0x_hex()


def test_a_transaction_with_blobs_whose_answer_is_lost_is_sent_once(local_chain: LocalChain) -> None:
    account, blob = funded(local_chain), from_scalars([1] * 4096)
    with fronts(local_chain) as (first, second), journal():
        connection = ledger_at(local_chain, first.url, second.url, account=account).connection
        first.mode = DEAD_AFTER_SENDING
        sidecars = [CellProver(0).sidecar(blob)]
        pending = connection.transactions.submit_raw(replace(transfer(account), value=0, sidecars=sidecars))
        assert connection.transactions.receipt(pending).transaction == pending.digest.to_0x_hex()
        assert connection.web3.eth.get_transaction_count(account.address) == 1


def test_blocks_are_told_by_the_next_node(local_chain: LocalChain) -> None:
    with running(local_chain.node.url) as second, journal() as told:
        with running(local_chain.node.url) as first:
            ledger = Ledger(Connection([first.url, second.url]), local_chain.deployment)
            waits(ledger, 2)
            assert second.asked.total() == 0
        waits(ledger, 3)
        assert ledger.connection.endpoint.is_told
        assert second.asked["eth_subscribe"] == 1
        assert [fields["node"] for event, fields in told if event == "blocks-told"] == [first.url, second.url]


def test_one_node_is_asked_as_before(local_chain: LocalChain) -> None:
    with fronts(local_chain, 1) as (only,):
        Ledger(Connection(only.url), local_chain.deployment)
        alone = list(only.asked)
        only.asked.clear()
        ledger_at(local_chain, only.url)
        assert only.asked == alone
        assert "eth_getCode" not in alone


def test_settings_name_one_node_or_several(tmp_path: Path) -> None:
    rest = 'home = "h"\ndeployment = "d"\nkeystore = "k"\npassword_file = "p"\n'
    file = tmp_path / "node.toml"
    for written, expected in (('"https://a"', ("https://a",)), ('["https://a", "wss://b"]', ("https://a", "wss://b"))):
        file.write_text(f"chain_url = {written}\n{rest}")
        assert chain_urls(read_settings(file, AccountSettings).chain_url) == expected
    for wrong in ("[]", "7", '""', '["https://a", ""]'):
        file.write_text(f"chain_url = {wrong}\n{rest}")
        with pytest.raises(ConfigInvalid, match="chain_url"):
            read_settings(file, AccountSettings)
