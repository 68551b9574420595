"""Nodes ask their chain node no more than the chain's pace needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from slow_chain import START, a_day, hospital_requests, voter_requests

MOST = 10_000  # requests a day, with blocks of 12 seconds
LEARNING = 48  # requests until a process knows how long a block takes
BLOCK_SECONDS, BLOCKS = 12, 20  # of each phase: docs/testnet.md wants windows of at least so many


@pytest.mark.parametrize("requests", [hospital_requests, voter_requests])
def test_a_node_asks_at_the_pace_of_blocks(
    tmp_path: Path, requests: Callable[[Path, float, float], dict[str, Counter[str]]]
) -> None:
    """A hospital in a whole round, with its own transactions; a voter until there is something to score."""
    seconds = BLOCK_SECONDS * BLOCKS
    found = requests(tmp_path, BLOCK_SECONDS, seconds)
    assert all(one.total() >= BLOCKS - 2 for phase, one in found.items() if phase != START), found  # it sees each block
    assert sum(a_day(found, seconds).values()) <= MOST, found
    assert found[START].total() <= LEARNING, found
