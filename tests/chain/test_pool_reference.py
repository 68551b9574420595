"""The vectors are the reference's own, reach every case that matters, and the reference keeps its own books."""

from __future__ import annotations

from collections import Counter

import pytest
from pool_reference import ONE, VECTORS, Scenario, as_text, scenarios


def test_vectors_are_current() -> None:
    assert VECTORS.read_text(encoding="utf-8") == as_text(), "run `python tests/chain/pool_reference.py`"


def test_vectors_reach_every_operation_and_total_losses() -> None:
    steps = [step for scenario in scenarios() for step in scenario.steps]
    counts = Counter(step["op"] for step in steps)
    assert min(counts.values()) >= 5, counts
    assert len(counts) == 10
    assert any(step["op"] == "slash" and step["assets"] == "0" for step in steps)
    assert any(step["op"] == "withdraw" and step["result"] == "0" for step in steps)
    assert any(step["op"] == "delegate" and step["argument"] != step["result"] for step in steps)


@pytest.mark.parametrize("seed", range(20))
def test_reference_conserves_to_the_last_bit(seed: int) -> None:
    scenario = Scenario(f"conserved {seed}", 10 ** (seed + 1), 604_800, 0.05 * seed, 150)
    staking = scenario.staking
    assert staking.owed() == staking.balance * ONE
    for pool in staking.nodes:
        assert pool.locked <= pool.assets <= pool.shares
