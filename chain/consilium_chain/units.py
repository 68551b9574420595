"""Amounts of wei as people read them."""

from __future__ import annotations

WEI_PER_ETHER = 10**18
WEI_PER_SHOWN_DIGIT = 10**12


def ether(wei: int) -> str:
    """Rounded up to a millionth: what is to be paid is never shown below what it is."""
    millionths = -(-wei // WEI_PER_SHOWN_DIGIT)
    return f"{millionths // 10**6:,}.{millionths % 10**6:06d}"
