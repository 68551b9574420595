"""Batches of calls that each fit into a transaction (EIP-7825)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def batches(items: Iterable[tuple[T, int]], limit: int) -> Iterator[list[T]]:
    """The items in order, in batches of at most `limit` gas; an item above the limit is a batch of its own."""
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
