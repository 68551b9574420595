"""Gas limits on Arbitrum, whose estimates also count a transaction's bytes on L1: the bound of a transaction is one of
its computation alone.
"""

from __future__ import annotations

import http.server
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import rlp
from consilium_chain.errors import TransactionRejected
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.outgoing import GAS_MARGIN, TRANSACTION_GAS_LIMIT, Sending, Unsent
from consilium_chain.rpc.signing import ARBITRUM, NODE_INTERFACE
from eth_abi.abi import decode, encode
from eth_account import Account
from eth_utils.crypto import keccak
from hexbytes import HexBytes

ACCOUNT = Account.from_key("0x" + "11" * 32)
TO = "0x" + "22" * 20
COMPUTING = 10_000_000
MOST_COMPUTING = 32_000_000  # of a transaction (docs.arbitrum.io, chain parameters)
GWEI = 10**9
BLOCK = {"number": "0x1", "hash": "0x" + "00" * 32, "timestamp": "0x1", "baseFeePerGas": hex(GWEI // 50)}
# Of NodeInterface.sol: to, whether it creates a contract, calldata; gas, L2's base fee, L1's.
ASKS, TELLS = ("address", "bool", "bytes"), ("uint64", "uint256", "uint256")


@dataclass
class Node:
    """As Nitro's: a transaction pays for its bytes on L1 first, and computes with the rest of its gas.

    `l1_gas`: of the next transaction. `tells`: the node has NodeInterface.
    """

    chain_id: int
    l1_gas: int
    tells: bool = True
    asked: Counter[str] = field(default_factory=Counter)
    limits: list[int] = field(default_factory=list)

    def answer(self, method: str, given: list[Any]) -> Any:
        self.asked[method] += 1
        needed = COMPUTING + self.l1_gas
        if method == "eth_call" and given[0]["to"] == NODE_INTERFACE:
            self.asked["NodeInterface"] += 1
            data = bytes(HexBytes(given[0]["data"]))
            assert data[:4] == keccak(text=f"gasEstimateL1Component({','.join(ASKS)})")[:4]
            assert decode(ASKS, data[4:]) == (TO, False, b"\xab" * 100)
            return "0x" + encode(TELLS, [self.l1_gas, GWEI // 50, GWEI]).hex() if self.tells else "0x"
        if method == "eth_call" and int(given[0]["gas"], 16) < needed:
            raise ValueError("intrinsic gas too low")
        if method == "eth_sendRawTransaction":
            raw = bytes(HexBytes(given[0]))
            self.limits.append(int.from_bytes(rlp.decode(raw[1:])[4], "big"))
            if self.limits[-1] < needed:
                raise ValueError("intrinsic gas too low")
            return "0x" + keccak(raw).hex()
        return {
            "eth_chainId": hex(self.chain_id), "eth_estimateGas": hex(needed), "eth_getTransactionCount": "0x0",
            "eth_getBlockByNumber": BLOCK, "eth_call": "0x", "eth_getBalance": hex(10**24),
        }[method]  # fmt: skip


@contextmanager
def connected(node: Node) -> Iterator[Connection]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found: dict[str, Any]
            try:
                found = {"result": node.answer(request["method"], request["params"])}
            except ValueError as error:
                found = {"error": {"code": -32_000, "message": str(error)}}
            body = json.dumps({"jsonrpc": "2.0", "id": request["id"], **found}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Connection(f"http://127.0.0.1:{server.server_port}", ACCOUNT)
    finally:
        server.shutdown()
        server.server_close()


def sent(connection: Connection, gas: int | None) -> None:
    """By an estimate, or by a bound of our own, which counts what the contracts compute."""
    data = "0x" + "ab" * 100
    if gas is None:
        connection.transactions.submit_raw(Unsent(data, TO, "commitUpdates"))  # type: ignore[arg-type]
        return
    function: Any = type("Function", (), {"address": TO, "fn_name": "commitUpdates"})()
    function._encode_transaction_data = lambda: data
    connection.transactions.submit(function, Sending(gas))


@pytest.mark.parametrize("gas", [None, COMPUTING], ids=["estimated", "bounded"])
@pytest.mark.parametrize("chain_id", ARBITRUM)
@pytest.mark.parametrize(
    "l1_gas", [0, 1, TRANSACTION_GAS_LIMIT - COMPUTING, TRANSACTION_GAS_LIMIT - COMPUTING + 1, 80_000_000, 2**40]
)
def test_bytes_on_l1_leave_computation_its_gas(chain_id: int, l1_gas: int, gas: int | None) -> None:
    """A hundred kilobytes at 1 gwei on L1 and 0.02 gwei here are 80 million gas: more than five times our bound."""
    node = Node(chain_id, l1_gas)
    with connected(node) as connection:
        sent(connection, gas)
    (limit,) = node.limits
    assert COMPUTING + l1_gas <= limit
    assert limit - l1_gas * 3 // 2 <= TRANSACTION_GAS_LIMIT < MOST_COMPUTING
    assert node.asked["eth_estimateGas"] == (gas is None)  # a bound of our own is not tried in vain


def test_l1_s_price_may_rise_by_a_half_before_the_transaction_is_taken() -> None:
    node = Node(ARBITRUM[0], 90_000_000)
    with connected(node) as connection:
        fields = connection.signing.fields(Unsent("0x" + "ab" * 100, TO, "commitUpdates"), None)  # type: ignore[arg-type]
    assert fields["gas"] == COMPUTING * 3 // 2 + GAS_MARGIN + 135_000_000


@pytest.mark.parametrize("gas", [None, COMPUTING], ids=["estimated", "bounded"])
def test_other_chains_are_asked_no_more_and_keep_their_bound(gas: int | None) -> None:
    node = Node(8_453, 0)
    with connected(node) as connection:
        sent(connection, gas)
    assert node.limits == [min((COMPUTING if gas else COMPUTING * 3 // 2) + GAS_MARGIN, TRANSACTION_GAS_LIMIT)]
    assert node.asked["NodeInterface"] == 0


def test_a_node_without_the_interface_has_no_such_part() -> None:
    """A fork of the chain on a desk: no part of its estimates is L1's."""
    node = Node(ARBITRUM[0], 0, tells=False)
    with connected(node) as connection:
        sent(connection, None)
    assert node.limits == [COMPUTING * 3 // 2 + GAS_MARGIN]


def test_another_chain_with_such_a_part_refuses_by_name() -> None:
    """The client does not know it, and keeps the bound of Ethereum."""
    node = Node(1, 80_000_000)
    with connected(node) as connection, pytest.raises(TransactionRejected, match="intrinsic gas too low"):
        sent(connection, None)
    assert node.limits == [TRANSACTION_GAS_LIMIT]
