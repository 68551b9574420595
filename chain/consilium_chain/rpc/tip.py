"""The tip of transactions. Pure."""

from __future__ import annotations

# Wei per gas: a tip is as high as the base fee within these bounds. On a rollup whose base fee is 0.005 gwei, the most
# would be 200 times the price.
LEAST_TIP, MOST_TIP = 10**6, 10**9


def tip(base: int) -> int:
    """The tip beside a base fee, both in wei per gas."""
    return min(max(base, LEAST_TIP), MOST_TIP)
