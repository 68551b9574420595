"""Stays in steps: the examples that nodes work with, and the grid that fills them from measurements in any order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from consilium_chain.tasks.series_schema import SeriesSchema
from numpy.typing import NDArray

from consilium_client.data.examples import Examples, Labels

Values = NDArray[np.float32]
STEPS = 4096  # of a variable's range in `contents`, coarse against the rounding of file formats, as for tables
MISSING = -1
MOST_VALUES = 1 << 29  # of all stays together; reading takes nine bytes for each
_PARTS = 2.0**32 - 2  # of a step: times within it are told apart by these


@dataclass(frozen=True)
class Stays(Examples):
    """Values float32 (n, variables, steps): u in [0, 1] of each variable's last measurement in a step; NaN in a step
    without one. `patients`: each stay's, or else the stay itself; they stay in memory.
    """

    values: Values = field(repr=False)
    labels: Labels = field(repr=False)
    patients: tuple[str, ...] = field(default=(), repr=False)

    def row_bytes(self) -> Iterator[bytes]:
        """After the label variables and steps, little-endian in 4 bytes each, then each value in 4 bytes, variable by
        variable, with one NaN and one zero.
        """
        shape = b"".join(side.to_bytes(4, "little") for side in self.values.shape[1:])
        for label, stay in zip(self.label_bytes, self.values, strict=True):
            canonical = np.where(stay == 0, np.float32(0), stay).astype("<f4")
            canonical[np.isnan(canonical)] = np.nan
            yield label + shape + canonical.tobytes()

    def contents(self) -> Iterator[bytes]:
        for stay in self.values:
            steps = np.where(np.isnan(stay), MISSING, np.rint(stay.astype(np.float64) * STEPS))
            yield steps.astype("<i2").tobytes()

    def units(self) -> Iterable[bytes]:
        return map(str.encode, self.patients) if self.patients else self.contents()

    def sums(self) -> NDArray[np.float64]:
        """The stays that have each variable, then sums of its mean u, then of its mean u², float64 (3 · variables,)."""
        found: NDArray[np.float64] = moments(self.values).sum(axis=1).ravel()
        return found


def moments(values: Values) -> NDArray[np.float64]:
    """Of each stay and variable (3, n, variables): 1 if it was measured, the mean u, the mean u²; 0 without one."""
    found = np.zeros((3, *values.shape[:2]))
    for at, stay in enumerate(values):  # one at a time, for memory
        known = ~np.isnan(stay)
        filled, counts = np.where(known, stay, 0.0).astype(np.float64), known.sum(axis=1)
        divisor = np.maximum(counts, 1)
        found[:, at] = counts > 0, filled.sum(axis=1) / divisor, (filled**2).sum(axis=1) / divisor
    return found


def ranges(schema: SeriesSchema) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Least and largest value of each variable, (variables,)."""
    low, high = np.array([(one.min, one.max) for one in schema.features]).T
    return low, high


def shares(values: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> Values:
    """u of values in the task's unit, clamped to their ranges, of shapes that fit."""
    return ((np.clip(values, low, high) - low) / (high - low)).astype(np.float32)


def carried(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each value (n, variables, steps) in all later steps until the next; NaN before the first."""
    found = values.copy()
    for step in range(1, values.shape[2]):
        gaps = np.isnan(found[:, :, step])
        found[:, :, step][gaps] = found[:, :, step - 1][gaps]
    return found


@dataclass
class Measured:
    """Measurements of the task's variables so far, each float64 (variables,): their number in the window, those outside
    the variable's range; sum, least and largest of them, in the task's unit. `before`, `after`: all those outside the
    window. `unlisted`: those of stays without an outcome. `twice`: dates in an hour that the clock showed twice.
    """

    count: NDArray[np.float64]
    outside: NDArray[np.float64]
    total: NDArray[np.float64]
    least: NDArray[np.float64]
    largest: NDArray[np.float64]
    before: int = 0
    after: int = 0
    unlisted: int = 0
    twice: int = 0

    @classmethod
    def none(cls, variables: int) -> Measured:
        count, outside, total = np.zeros((3, variables))
        return cls(count, outside, total, np.full(variables, np.inf), np.full(variables, -np.inf))


class Grid:
    """All stays in steps. The order of measurements changes nothing: of two at one time, the larger value counts.

    It takes nine bytes for each step of each variable, and no more for more measurements.
    """

    def __init__(self, stays: int, schema: SeriesSchema) -> None:
        self._schema, self._shape = schema, (stays, len(schema.features), schema.steps)
        self._low, self._high = ranges(schema)
        size = int(np.prod(self._shape))
        self._values = np.full(size, np.nan, np.float32)
        self._last = np.zeros(size, np.uint32)  # the last measurement's part of its step, from 1; 0 without one
        self._differ = np.zeros(size, np.bool_)  # values at one time
        self.measured = Measured.none(len(schema.features))

    def add(
        self, stays: NDArray[np.int64], times: NDArray[np.float64], variables: NDArray[np.int64],
        values: NDArray[np.float64],
    ) -> None:  # fmt: skip
        """Measurements, each (n,). `stays`: -1 without an outcome. `variables`: their indices in the schema."""
        steps, count = times / self._schema.step, self.measured
        listed, early, late = stays >= 0, times < 0, steps >= self._schema.steps
        count.unlisted += int((~listed).sum())
        count.before += int((listed & early).sum())
        count.after += int((listed & late).sum())
        chosen = listed & ~early & ~late
        stays, steps, variables, values = stays[chosen], steps[chosen], variables[chosen], values[chosen]
        self._count(variables, values)
        whole = np.floor(steps)
        kept = shares(values, self._low[variables], self._high[variables])
        flat = (stays * self._shape[1] + variables) * self._shape[2] + whole.astype(np.int64)
        self._keep_last(flat, (1 + np.floor((steps - whole) * _PARTS)).astype(np.uint32), kept)

    def _count(self, variables: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        count, many = self.measured, self._shape[1]
        beyond = (values < self._low[variables]) | (values > self._high[variables])
        count.count += np.bincount(variables, minlength=many)
        count.outside += np.bincount(variables, beyond, many)
        count.total += np.bincount(variables, values, many)
        np.minimum.at(count.least, variables, values)
        np.maximum.at(count.largest, variables, values)

    def _keep_last(self, flat: NDArray[np.int64], parts: NDArray[np.uint32], kept: Values) -> None:
        before = self._last[flat]
        np.maximum.at(self._last, flat, parts)
        last = self._last[flat]
        newer = flat[last > before]
        self._values[newer], self._differ[newer] = np.nan, False
        flat, kept = flat[parts == last], kept[parts == last]
        earlier = self._values[flat]
        np.fmax.at(self._values, flat, kept)
        largest = self._values[flat]
        self._differ[flat[(kept != largest) | ((earlier != largest) & ~np.isnan(earlier))]] = True

    @property
    def values(self) -> Values:
        return self._values.reshape(self._shape)

    @property
    def ambiguous(self) -> int:
        """Steps whose last time has several values."""
        return int(self._differ.sum())
