"""The local chain keeps to a bounded memory and leaves no files behind."""

from __future__ import annotations

import psutil
from chain_driver import LocalChain

MIB = 2**20


def test_memory_reaches_a_plateau_and_stop_removes_the_states_on_disk() -> None:
    """Without a bound, 4,000 blocks take 1,100 MiB. A network mines as many in a quarter of an hour, also when idle."""
    with LocalChain() as chain:
        process, folder = psutil.Process(chain.node.process.pid), chain.node.states
        chain.mine(4_000)
        assert process.memory_info().rss < 500 * MIB
        assert any(path.is_file() for path in folder.rglob("*"))
    assert not folder.exists()
