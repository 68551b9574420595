"""The local chain keeps to bounded memory and disk, and leaves no files behind."""

from __future__ import annotations

import time
from typing import Any

import httpx
import psutil
import pytest
from chain_driver import LocalChain
from consilium_chain.rpc import local_node
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import FAUCET_KEY, STANDING_BLOCK_TIME, LocalNode
from eth_account import Account

MIB = 2**20


# The state of a block holds the hashes of all blocks before it: each takes longer than the one before.
@pytest.mark.parametrize("blocks", [2_000, pytest.param(4_000, marks=pytest.mark.deep)])
def test_memory_reaches_a_plateau_and_stop_removes_the_states_on_disk(blocks: int) -> None:
    """Without a bound, 4,000 blocks take 1,100 MiB. A network mines as many in a quarter of an hour, also when idle."""
    with LocalChain() as chain:
        process, folder = psutil.Process(chain.node.process.pid), chain.node.states
        chain.mine(blocks)
        assert process.memory_info().rss < 500 * MIB
        assert any(path.is_file() for path in folder.rglob("*"))
    assert not folder.exists()


def test_standing_chain_mines_rarely_while_nobody_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_node, "STANDING_BLOCK_TIME", 0.02)
    monkeypatch.setattr(local_node, "BUSY_FOR", 10)
    monkeypatch.setattr(local_node, "IDLE_BLOCK_TIME", 20)
    asked: list[str] = []
    ask = LocalNode._request

    def noted(self: LocalNode, method: str, *parameters: int, timeout: float) -> Any:
        asked.append(method)
        return ask(self, method, *parameters, timeout=timeout)

    def mined_in(looks: int) -> int:
        """Blocks that the node has mined after so many looks: counted, since a busy machine is slow."""
        end = time.monotonic() + 60
        while asked.count("eth_blockNumber") - asked.count("evm_mine") < looks:
            assert time.monotonic() < end, asked
            time.sleep(0.01)
        return asked.count("evm_mine")

    monkeypatch.setattr(LocalNode, "_request", noted)
    with LocalNode(stands=True) as node:
        mined_in(looks=15)
        asked.clear()
        assert 1 <= mined_in(looks=40) <= 4
        asked.clear()
        Connection(node.url, Account.from_key(FAUCET_KEY)).transactions.send_ether(Account.create().address, 1)
        mined_in(looks=20)
        assert asked.count("evm_mine") >= 8


def test_standing_chain_writes_nothing_and_makes_its_blocks_until_it_stops() -> None:
    """With states on disk, 2,000 blocks leave 10 MB there, and each further block a larger file. With 1,500 states in
    memory, they take 400 MiB.
    """

    def ask(method: str, *params: object) -> object:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return httpx.post(node.url, json=body, timeout=30).raise_for_status().json()["result"]

    with LocalNode(stands=True) as node:
        for _ in range(4):
            ask("anvil_mine", hex(500))
        process = psutil.Process(node.process.pid)
        assert not any(path.is_file() for path in node.states.rglob("*"))
        assert process.memory_info().rss < 150 * MIB
        height = int(str(ask("eth_blockNumber")), 16)
        time.sleep(4 * STANDING_BLOCK_TIME)
        mined = int(str(ask("eth_blockNumber")), 16) - height
        assert 1 <= mined <= 6
    assert not process.is_running()
    assert not node.states.exists()
