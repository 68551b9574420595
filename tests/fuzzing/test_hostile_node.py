"""A chain node that answers with whatever it likes: who asks it gets a value, or an error that names it."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator

import pytest
from consilium_chain.errors import ChainUnreachable, DeploymentInvalid, Refused
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.endpoint import LARGEST_ANSWER
from eth_account import Account
from hypothesis import given, settings
from mutations import bounded, json_like
from parsers import BOOK, logs
from test_hostile_bytes import PLAIN

WORD = "0x" + "00" * 31 + "05"
BLOCK = {
    "number": "0x5",
    "hash": "0x" + "ab" * 32,
    "parentHash": "0x" + "cd" * 32,
    "timestamp": "0x65",
    "gasLimit": "0x5",
    "gasUsed": "0x1",
    "baseFeePerGas": "0x7",
    "nonce": "0x0000000000000000",
    "difficulty": "0x0",
    "extraData": "0x",
    "logsBloom": "0x" + "00" * 256,
    "miner": "0x" + "00" * 20,
    "mixHash": "0x" + "00" * 32,
    "sha3Uncles": "0x" + "00" * 32,
    "size": "0x5",
    "stateRoot": "0x" + "00" * 32,
    "receiptsRoot": "0x" + "00" * 32,
    "transactionsRoot": "0x" + "00" * 32,
    "transactions": [],
    "uncles": [],
}
ASKED: dict[str, tuple[Callable[[Ledger], object], object]] = {
    "its latest block's number": (lambda ledger: ledger.connection.blocks.number(), "0x5"),
    "a block": (lambda ledger: (ledger.connection.blocks.head(5), ledger.connection.blocks.now()), BLOCK),
    "a header": (lambda ledger: ledger.connection.blocks.header(5), BLOCK),
    "a balance": (lambda ledger: ledger.connection.ether(), "0x5"),
    "logs": (lambda ledger: ledger.logs.between(0, 9), [json.loads(raw) for raw in logs()[:4]]),
    "a number that a contract says": (lambda ledger: ledger.tasks.count(), WORD),
    "what would happen": (
        lambda ledger: ledger.tasks.count(),
        {"error": {"code": 3, "message": "execution reverted", "data": "0x08c379a0" + "00" * 64}},
    ),
}


class Answers(http.server.BaseHTTPRequestHandler):
    body, coding = b"", ""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        if self.coding:
            self.send_header("Content-Encoding", self.coding)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        try:
            self.wfile.write(self.body)
        except OSError:  # whoever asked has heard enough
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def ledger() -> Iterator[Ledger]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    Answers.body = b'{"jsonrpc":"2.0","id":0,"result":"0x7a69"}'
    connection = Connection(f"http://127.0.0.1:{server.server_port}", Account.from_key(b"\x11" * 32))
    yield Ledger(connection, BOOK)
    server.shutdown()
    thread.join()
    server.server_close()


def whole(result: object) -> bytes:
    answer = result if isinstance(result, dict) and "error" in result else {"result": result}
    return json.dumps({"jsonrpc": "2.0", "id": 0, **answer}).encode()


def try_node(ledger: Ledger, what: str, examples: int) -> None:
    ask, valid = ASKED[what]

    @given(json_like([whole(valid)]))
    @settings(PLAIN, max_examples=examples)
    def run(body: bytes) -> None:
        Answers.body = body
        with bounded(192):
            try:
                ask(ledger)
            except (ChainUnreachable, DeploymentInvalid, Refused) as error:
                str(error)

    run()


@pytest.mark.parametrize("what", ASKED)
def test_a_node_that_lies_in_form_is_named(ledger: Ledger, what: str) -> None:
    try_node(ledger, what, 25)


@pytest.mark.deep
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("what", ASKED)
def test_a_node_that_lies_in_many_forms_is_named(ledger: Ledger, what: str) -> None:
    try_node(ledger, what, 2_000)


@pytest.mark.parametrize("kind", ["nested", "long", "packed"])
def test_no_answer_takes_all_memory_or_the_process(ledger: Ledger, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    long = b'{"jsonrpc":"2.0","id":0,"result":"0x' + b"0" * (3 * LARGEST_ANSWER) + b'"}'
    bodies = {"nested": b'{"result":' + b"[" * 2_000_000, "long": long, "packed": gzip.compress(long, 1)}
    monkeypatch.setattr(Answers, "body", bodies[kind])
    monkeypatch.setattr(Answers, "coding", "gzip" if kind == "packed" else "")
    with bounded(450), pytest.raises(ChainUnreachable):
        ledger.connection.blocks.number()
