"""All hospitals' counts in round 0 as people read them: columns with mean and quartiles.

They follow from the published sum alone, so everybody computes the same. With noise a count can be negative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from consilium_zk.blobs import Blob
from consilium_zk.packing import unpack
from consilium_zk.quantise import Quantiser
from numpy.typing import NDArray

from consilium_chain.tasks.summary_spec import Part
from consilium_chain.tasks.task_spec import STATISTICS_BITS, STATISTICS_RANGE, TaskSpec

QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Column:
    """One column's counts over all hospitals, int64 (counts,)."""

    part: Part
    counts: NDArray[np.int64]

    @property
    def known(self) -> NDArray[np.int64]:
        """Without missing values; a noisy count below 0 is 0."""
        edges = self.part.edges
        return np.maximum(self.counts[: len(edges) - 1] if edges else self.counts, 0)

    @property
    def mean(self) -> float | None:
        """A histogram's mean, with each value in the middle of its range: at most half a range away. None of nothing,
        or without a histogram.
        """
        if not self.part.edges or not self.known.any():
            return None
        edges = np.array(self.part.edges)
        return float(self.known @ ((edges[1:] + edges[:-1]) / 2) / self.known.sum())

    def quantile(self, share: float) -> float | None:
        """A histogram's quantile, with values evenly spread within each range: at most a range away. None as `mean`."""
        if not self.part.edges or not self.known.any():
            return None
        below = np.concatenate([[0], np.cumsum(self.known)])
        wanted = share * below[-1]
        at = int(np.clip(np.searchsorted(below, wanted, side="right") - 1, 0, len(self.known) - 1))
        while not self.known[at]:
            at -= 1
        low, high = self.part.edges[at : at + 2]
        return float(low + (high - low) * min((wanted - below[at]) / self.known[at], 1.0))


def columns_of(counts: NDArray[np.int64], spec: TaskSpec) -> list[Column]:
    """The parts of a sum of counts (spec.summary_values,)."""
    parts = spec.summary_parts
    ends = np.cumsum([len(part.counts) for part in parts])
    return [Column(part, own) for part, own in zip(parts, np.split(counts, ends[:-1]), strict=True)]


@dataclass(frozen=True)
class SummaryColumn:
    """`counts`: rows by range, code or answer; noise can make them negative. `values`: rows with one, from two counts
    and so with less noise than all counts' sum; None if a row can be in several. `missing`: None if no value can be.
    `mean` and `quartiles` are of a histogram alone, with values spread evenly in each range: a quartile is at most
    `width` away, the widest range, and the mean half of it.
    """

    name: str
    is_answer: bool
    counts: tuple[tuple[str, int], ...]
    values: int | None
    missing: int | None
    edges: tuple[float, ...]
    mean: float | None
    quartiles: tuple[float, ...] | None
    width: float | None


@dataclass(frozen=True, kw_only=True)
class Summary:
    """`hospitals`: the number of those that gave counts. `deviation`: standard deviation of the noise in each count
    over all hospitals, in rows; 0 without noise.
    """

    hospitals: int
    rows: int
    deviation: float
    columns: tuple[SummaryColumn, ...]


def summed_counts(sums: NDArray[np.float64], spec: TaskSpec) -> NDArray[np.int64]:
    """The summary's counts over all hospitals (spec.summary_values,), from round 0's sums (spec.statistics_values,)."""
    start = spec.data.statistics_values
    return np.rint(sums[start : start + spec.summary_values]).astype(np.int64)  # whole numbers before they were rounded


def published_counts(blobs: Sequence[Blob], hospitals: int, spec: TaskSpec) -> NDArray[np.int64]:
    """The same counts, from the blobs of the sum that so many hospitals' counts add up to. Raises ZkError."""
    lanes = unpack(blobs, spec.statistics_values, spec.statistics_layout, hospitals)
    return summed_counts(Quantiser(STATISTICS_BITS, STATISTICS_RANGE).dequantise_sum(lanes, hospitals), spec)


def summary_from(counts: NDArray[np.int64], hospitals: int, spec: TaskSpec) -> Summary:
    """`counts`: of a task with a summary, over so many hospitals (spec.summary_values,)."""
    rows, *columns = columns_of(counts, spec)
    deviation = math.sqrt(hospitals * spec.summary_variance)
    count = int(rows.counts[0])
    shown = tuple(_column(one, count) for one in columns)
    return Summary(hospitals=hospitals, rows=count, deviation=deviation, columns=shown)


def _column(found: Column, rows: int) -> SummaryColumn:
    part, quartiles = found.part, [found.quantile(share) for share in QUARTILES]
    counts = tuple(zip(part.counts, map(int, found.counts), strict=True))
    missing = None
    if part.has_missing:
        *known, (_, missing) = counts
        counts = tuple(known)
    placed = tuple(one for one in quartiles if one is not None)
    return SummaryColumn(
        part.column, part.answers, counts, rows - (missing or 0) if part.changed == 1 else None, missing,
        part.edges, found.mean, placed or None, max((b - a for a, b in pairwise(part.edges)), default=None),
    )  # fmt: skip
