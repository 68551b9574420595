"""Amounts of wei and of tokens, and metrics, as people read them."""

from __future__ import annotations

import math
import re

WEI_PER_ETHER = 10**18
WEI_PER_GWEI = 10**9
WEI_PER_SHOWN_DIGIT = 10**12


def ether(wei: int) -> str:
    """Rounded up to a millionth, so that no price is shown too low."""
    millionths = -(-wei // WEI_PER_SHOWN_DIGIT)
    return f"{millionths // 10**6:,}.{millionths % 10**6:06d}"


def tokens(amount: int) -> str:
    """An amount in whole tokens (18 decimals, as ether), rounded to two decimals."""
    sign, amount = ("-", -amount) if amount < 0 else ("", amount)
    hundredths = (amount * 100 + WEI_PER_ETHER // 2) // WEI_PER_ETHER
    return f"{sign}{hundredths // 100:,}.{hundredths % 100:02d}"


def exact_tokens(amount: int) -> str:
    """An amount in whole tokens with all its digits and a point, for other programs."""
    sign, amount = ("-", -amount) if amount < 0 else ("", amount)
    digits = f"{amount // WEI_PER_ETHER}.{amount % WEI_PER_ETHER:018d}"
    return sign + digits.rstrip("0").rstrip(".")


def parse_tokens(text: str) -> int:
    """An amount such as 0.01 in whole tokens, in the smallest unit. Raises ValueError."""
    found = re.fullmatch(r"([0-9]{1,12})(?:\.([0-9]{1,18}))?", text, re.ASCII)
    if found is None:
        raise ValueError("it is not digits, with a point and at most 18 digits behind it")
    return int(found[1]) * WEI_PER_ETHER + int((found[2] or "").ljust(18, "0"))


def decimals(value: float) -> str:
    """A metric with three decimals; a dash where it has no value (NaN)."""
    return f"{value:.3f}" if math.isfinite(value) else "–"
