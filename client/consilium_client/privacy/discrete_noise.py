"""Discrete Gaussian noise on counts, drawn exactly: by integers of the operating system's randomness, and no floats.

By Canonne, Kamath and Steinke, The Discrete Gaussian for Differential Privacy (NeurIPS 2020), algorithms 1 to 3. Floats
would leave out some values, and the others would show the count (Mironov, CCS 2012).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Below = Callable[[int], int]
"""Gives an integer from 0 to below a positive one, all equally likely."""


def noise(size: int, variance: int, below: Below = secrets.randbelow) -> NDArray[np.int64]:
    """Independent draws (size,) from the discrete Gaussian of mean 0 and this parameter σ², in rows; 0 for no noise."""
    return np.array([discrete_gaussian(variance, below) if variance else 0 for _ in range(size)], np.int64)


def discrete_gaussian(variance: int, below: Below = secrets.randbelow) -> int:
    """x with a chance proportional to exp(-x² / (2 · variance)); `variance` is a positive integer."""
    scale = math.isqrt(variance) + 1
    while True:
        drawn = discrete_laplace(scale, below)
        # exp(-(|x| - variance / scale)² / (2 · variance)), over one denominator
        if _happens_by_exp((abs(drawn) * scale - variance) ** 2, 2 * variance * scale**2, below):
            return drawn


def discrete_laplace(scale: int, below: Below = secrets.randbelow) -> int:
    """x with a chance proportional to exp(-|x| / scale); `scale` is a positive integer."""
    while True:
        rest = below(scale)
        if not _happens_by_exp(rest, scale, below):
            continue
        wholes = 0
        while _happens_by_exp(1, 1, below):
            wholes += 1
        size = rest + scale * wholes
        if below(2) == 0:
            return size
        if size:  # 0 would come twice
            return -size


def _happens_by_exp(over: int, under: int, below: Below) -> bool:
    """True with the chance exp(-over / under)."""
    while over > under:
        if not _happens_by_small_exp(1, 1, below):
            return False
        over -= under
    return _happens_by_small_exp(over, under, below)


def _happens_by_small_exp(over: int, under: int, below: Below) -> bool:
    """The same for a quotient from 0 to 1."""
    tries = 1
    while below(under * tries) < over:
        tries += 1
    return tries % 2 == 1
