"""Many calls, cut so that each part fits a transaction (EIP-7825)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def batches(items: Iterable[tuple[T, int]], limit: int) -> Iterator[list[T]]:
    """The items in order, in parts whose gas together is at most `limit`; one that takes more stands alone."""
    batch: list[T] = []
    used = 0
    for item, gas in items:
        if batch and used + gas > limit:
            yield batch
            batch, used = [], 0
        batch.append(item)
        used += gas
    if batch:
        yield batch
