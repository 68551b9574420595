"""The contract's own limits, and units, as task files and those who read the chain need them."""

from __future__ import annotations

# The contract's own limits (`TaskRules.sol`), repeated so that a file is refused before anybody pays for it.
MAX_BLOBS = 128
TICKS_PER_ROUND, BOUNTIES_BPS = 4, 100  # all bounties that a task can come to pay, in basis points of its pool
GRACE_BPS = 5_000  # by how much of its window the aggregator may overrun a phase, without its fee
# Settling goes in pages, bounded by the highest cost of their steps (`Settling.sol`).
PAGE_GAS, GAS_PER_NODE, GAS_PER_SCORE = 9_000_000, 90_000, 4_000
MICRO = 1_000_000  # scores are integers in millionths
DAY = 86_400  # seconds
# The contract's own limits again.
MAX_DAYS = 180  # that a task may last at worst
BEACON_DAYS = 7  # without the beacon's value, after which a task ends
LEAST_HARM = 0.01  # how far below zero `harmful_below` lies at least


def settle_gas(nodes: int, scores: int) -> int:
    """The most gas for settling a round, by its hospitals and voters and by the scores on their ballots, which are read
    twice: to judge cohorts, and to pay voters.
    """
    return nodes * GAS_PER_NODE + 2 * scores * GAS_PER_SCORE


def grace(window: int) -> int:
    """Seconds by which the aggregator may overrun a phase of this window."""
    return window * GRACE_BPS // 10_000
