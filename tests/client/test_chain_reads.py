"""Nodes ask their chain node no more than the chain's pace needs."""

from __future__ import annotations

from pathlib import Path

from slow_chain import DAY, hospital_requests, voter_requests

MOST = 10_000  # requests a day, with blocks of 12 seconds
LEARNING = 25  # requests until a process knows how long a block takes
BLOCK_SECONDS, BLOCKS = 12, 20  # of each phase: docs/testnet.md wants windows of at least so many


def test_a_hospital_asks_at_the_pace_of_blocks(tmp_path: Path) -> None:
    """A whole round, with its own transactions."""
    seconds = BLOCK_SECONDS * BLOCKS
    found = hospital_requests(tmp_path, BLOCK_SECONDS, seconds)
    assert all(sum(one.values()) >= BLOCKS - 2 for one in found.values()), found  # it sees every block
    assert sum(sum(one.values()) for one in found.values()) <= LEARNING + MOST * len(found) * seconds / DAY, found


def test_a_voter_asks_at_the_pace_of_blocks(tmp_path: Path) -> None:
    seconds = BLOCK_SECONDS * BLOCKS
    found = voter_requests(tmp_path, BLOCK_SECONDS, seconds)
    assert all(sum(one.values()) >= BLOCKS - 2 for one in found.values()), found
    assert sum(sum(one.values()) for one in found.values()) <= LEARNING + MOST * len(found) * seconds / DAY, found
