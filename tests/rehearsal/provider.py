"""Stands before a chain's node as a provider does that many share, and sees what everybody sends and asks.

It gives the logs of so many blocks at once and no more, traces nothing, and takes no other namespace than those that
providers offer. Whoever asks has a path of its own, by which requests are counted.
"""

from __future__ import annotations

import http.server
import json
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from eth_account import Account
from eth_utils.crypto import keccak

NAMESPACES = ("eth_", "net_", "web3_")
JSON = {"Content-Type": "application/json"}


@dataclass
class Provider:
    """`dropping`: how many transactions to come it says to have taken and forgets."""

    upstream: str
    logs_at_once: int | None = None
    url: str = ""
    dropping: int = 0
    asked: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    refused: Counter[str] = field(default_factory=Counter)
    sent: dict[str, bytes] = field(default_factory=dict)  # signed transactions by hash, as they came, blobs and all
    again: Counter[str] = field(default_factory=Counter)  # of these, how often each came after the first time
    seconds: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))  # requests in each
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _client: httpx.Client = field(
        default_factory=lambda: httpx.Client(timeout=60, limits=httpx.Limits(max_connections=None))
    )

    def of(self, who: str) -> str:
        return f"{self.url}/{who}"

    def ask(self, method: str, *arguments: Any, unless: str | None = None) -> Any:
        """Asks the node itself. None if its error has the words `unless`."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(arguments)}
        answer = self._client.post(self.upstream, json=request).raise_for_status().json()
        if "error" in answer and unless is not None and unless in answer["error"]["message"]:
            return None
        assert "error" not in answer, (method, answer)
        return answer.get("result")

    def answer(self, who: str, raw: bytes) -> bytes:
        request = json.loads(raw)
        method, given = request["method"], request.get("params") or []
        with self._lock:
            self.asked[who][method] += 1
            self.seconds[who][int(time.monotonic())] += 1
        if not method.startswith(NAMESPACES):
            return self._refusal(request, -32601, f"the method {method} is not available")
        if method == "eth_getLogs" and self.logs_at_once is not None:
            first, last = (int(given[0][name], 16) for name in ("fromBlock", "toBlock"))
            if last - first >= self.logs_at_once:
                return self._refusal(request, -32005, f"more than {self.logs_at_once} blocks at once")
        if method == "eth_sendRawTransaction":
            signed = bytes.fromhex(given[0].removeprefix("0x"))
            digest = hash_of(signed)
            with self._lock:
                if digest in self.sent:
                    self.again[digest] += 1
                self.sent[digest] = signed
                if self.dropping:
                    self.dropping -= 1
                    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": digest}).encode()
        return self._client.post(self.upstream, content=raw, headers=JSON).content

    def _refusal(self, request: dict[str, Any], code: int, message: str) -> bytes:
        with self._lock:
            self.refused[request["method"]] += 1
        return json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}}).encode()

    # What becomes of blocks

    def reorganise(self, depth: int, returning: bool, block_seconds: float, source: random.Random) -> list[str]:
        """Puts empty blocks into the place of the last `depth`; hashes of the transactions that were in them.

        `returning`: as nodes' pools do, they go back into the pool, of each sender in their order, but for those whose
        fee is too low. Otherwise their senders alone have them.
        """
        self.ask("evm_setIntervalMining", 0)  # no block meanwhile: what would be taken back is not clear then
        try:
            latest = int(self.ask("eth_blockNumber"), 16)
            gone = [
                (one["hash"], one["from"], int(one["nonce"], 16))
                for number in range(latest - depth + 1, latest + 1)
                for one in self.ask("eth_getBlockByNumber", hex(number), True)["transactions"]
            ]
            self.ask("anvil_reorg", depth, [])
            self.ask("evm_setTime", int(time.time()))  # it went on from the time of the block before
            if returning:
                order = list({sender for _, sender, _ in gone})
                source.shuffle(order)
                for sender in order:
                    for digest, _, _ in sorted((one for one in gone if one[1] == sender), key=lambda one: one[2]):
                        if digest in self.sent:
                            # anvil (1.7.1) still asks for the base fee of the block that is gone.
                            signed = "0x" + self.sent[digest].hex()
                            self.ask("eth_sendRawTransaction", signed, unless="less than block base fee")
        finally:
            self.ask("evm_setIntervalMining", block_seconds)
        return [digest for digest, _, _ in gone]


def hash_of(signed: bytes) -> str:
    """A transaction's, without what travels beside its blobs (EIP-4844)."""
    if signed[0] != 3:
        return "0x" + keccak(signed).hex()
    import rlp

    return "0x" + keccak(b"\x03" + rlp.encode(rlp.decode(signed[1:])[0])).hex()


def sender_of(signed: bytes) -> str:
    import rlp

    bare = signed if signed[0] != 3 else b"\x03" + rlp.encode(rlp.decode(signed[1:])[0])
    return str(Account.recover_transaction(bare))


def sidecars_of(signed: bytes) -> tuple[int, list[bytes], list[bytes], list[bytes]]:
    """Of a blob transaction: the wrapper's version, blobs, commitments, and all cells' proofs (EIP-7594)."""
    import rlp

    _, version, blobs, commitments, proofs = rlp.decode(signed[1:])
    return int.from_bytes(version, "big"), list(blobs), list(commitments), list(proofs)


@contextmanager
def provider(upstream: str, logs_at_once: int | None = None) -> Iterator[Provider]:
    found = Provider(upstream, logs_at_once)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            body = found.answer(self.path.strip("/") or "anybody", raw)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # who asked has gone

    server = Server(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        found._client.close()
