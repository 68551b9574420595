"""Floats to small non-negative integers and back.

Every operation on a value is one correctly rounded IEEE 754 operation (division, addition, floor, multiplication),
never a reduction whose order a library may choose: every machine gets the same bits. `clip_norm` is the exception,
before a hospital commits to anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .constants import MAX_BITS, MIN_BITS
from .errors import ArgumentInvalid, ShapeWrong, UpdateInvalid

# Values handled at a time: the working set of a chunk stays in a core's second-level cache.
_CHUNK = 1 << 15
FINE = 1 << 16
"""Units of a step, for what error feedback leaves unsent."""
_EXACT = 2.0**52  # units: float64 has all integers up to it


@dataclass(frozen=True)
class Quantiser:
    """Uniform quantiser of values in [-value_range, value_range] to integers in [0, 2^bits - 2].

    bits: 2 to 40. value_range: positive and finite, in the values' unit; values outside are clamped. Raises
    ArgumentInvalid.
    """

    bits: int
    value_range: float

    def __post_init__(self) -> None:
        if not MIN_BITS <= self.bits <= MAX_BITS:
            raise ArgumentInvalid("bits", self.bits, f"in [{MIN_BITS}, {MAX_BITS}]")
        if not (math.isfinite(self.value_range) and self.step > 0 and math.isfinite(1 / self.step)):
            raise ArgumentInvalid("value_range", self.value_range, "positive, finite and not vanishingly small")

    @property
    def offset(self) -> int:
        """The integer that stands for 0.0; also the number of steps from 0.0 to `value_range`."""
        return (1 << (self.bits - 1)) - 1

    @property
    def step(self) -> float:
        """Distance between neighbouring integers, in the unit of the values."""
        return self.value_range / self.offset

    def quantise(
        self, values: NDArray[np.floating[Any]], uniforms: NDArray[np.floating[Any]] | None = None
    ) -> NDArray[np.uint64]:
        """Integers in [0, 2^bits - 2] for `values`, both of shape (n,).

        values: float64 or float32. uniforms: independent uniform values in [0, 1), shape (n,), for stochastic rounding,
        whose expectation is the clamped value; without them, rounding to nearest, ties to even. Raises ShapeWrong,
        NotFinite, ArgumentInvalid (a uniform outside [0, 1)).
        """
        _require_floats("values", values)
        if uniforms is not None:
            _require_floats("uniforms", uniforms)
            if uniforms.shape != values.shape:
                raise ShapeWrong("uniforms", uniforms.shape, f"the shape of values, {values.shape}")
        lanes = np.empty(values.shape, dtype=np.int64)
        for start in range(0, values.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            self._quantise_chunk(values[part], None if uniforms is None else uniforms[part], lanes[part], start)
        return lanes.view(np.uint64)

    def _quantise_chunk(
        self,
        values: NDArray[np.floating[Any]],
        uniforms: NDArray[np.floating[Any]] | None,
        lanes: NDArray[np.int64],
        start: int,
    ) -> None:
        finite = np.isfinite(values)
        if not finite.all():
            raise UpdateInvalid("NotFinite", index=start + int(finite.argmin()))
        # A finite value over a small step may overflow to infinity, which the clamp below brings back.
        with np.errstate(over="ignore"):
            steps = np.divide(values, self.step, dtype=np.float64)
        if uniforms is None:
            np.rint(steps, out=steps)
        else:
            if not (uniforms.min() >= 0 and uniforms.max() < 1):
                raise ArgumentInvalid("uniforms", "outside [0, 1)", "in [0, 1)")
            np.add(steps, uniforms, out=steps)
            np.floor(steps, out=steps)
        # After rounding, not before: `value_range / step` plus a uniform just below 1 may round up to the next integer.
        np.clip(steps, -self.offset, self.offset, out=steps)
        np.add(steps, self.offset, out=lanes, casting="unsafe")

    def with_feedback(
        self, values: NDArray[np.floating[Any]], unsent: NDArray[np.int64] | None, max_norm: float
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Integers to send, as `quantise` gives them, and what they leave unsent for the next time; both of shape (n,).

        Error feedback (Karimireddy et al., Error Feedback Fixes SignSGD, ICML 2019). `values`, float64 or float32 (n,),
        and `unsent`, int64 (n,) in units of step / FINE, are added, clipped to `max_norm`, and rounded to such units,
        to q. Then (sent - offset) · FINE + the new unsent == q, exactly. Raises as `quantise` and `clip_norm` do.
        """
        whole = values.astype(np.float64) if unsent is None else values + unsent * (self.step / FINE)
        fine = np.rint(np.clip(clip_norm(whole, max_norm) * (FINE / self.step), -_EXACT, _EXACT)).astype(np.int64)
        sent = np.clip(np.rint(fine / FINE), -self.offset, self.offset).astype(np.int64)
        return (sent + self.offset).view(np.uint64), fine - sent * FINE

    def dequantise_sum(self, lane_sums: NDArray[np.uint64], total_weight: int) -> NDArray[np.float64]:
        """Weighted sums of values, shape (n,), from weighted sums of integers and the sum of the weights.

        Exact up to float64's rounding. Raises ShapeWrong, ArgumentInvalid.
        """
        if lane_sums.ndim != 1 or lane_sums.dtype != np.uint64:
            raise ShapeWrong("lane_sums", f"{lane_sums.dtype} {lane_sums.shape}", "uint64 (n,)")
        if total_weight < 1 or total_weight * self.offset >= 1 << 62:
            raise ArgumentInvalid("total_weight", total_weight, "at least 1 and small enough for 63-bit lanes")
        if lane_sums.size and int(lane_sums.max()) >= 1 << 63:
            raise ArgumentInvalid("lane_sums", "at least 2^63", "below 2^63")
        # The subtraction is of integers, so that large sums cancel exactly.
        centred = lane_sums.view(np.int64) - np.int64(total_weight * self.offset)
        sums: NDArray[np.float64] = np.multiply(centred, self.step, dtype=np.float64)
        return sums

    def dequantise_mean(self, lane_sums: NDArray[np.uint64], total_weight: int) -> NDArray[np.float64]:
        """Weighted means of values, shape (n,): `dequantise_sum` over `total_weight`. Raises as that does."""
        sums = self.dequantise_sum(lane_sums, total_weight)
        np.divide(sums, total_weight, out=sums)
        return sums


def clip_norm(vector: NDArray[np.floating[Any]], max_norm: float) -> NDArray[np.float64]:
    """`vector`, shape (n,), scaled down to Euclidean norm `max_norm` (same unit) if it is longer, as float64.

    Returns the input itself if nothing changes and it is float64, and never writes to it. The norm may exceed
    `max_norm` by rounding, about one part in 10^15. Raises ShapeWrong, NotFinite, ArgumentInvalid (max_norm).
    """
    _require_floats("vector", vector)
    if not (math.isfinite(max_norm) and max_norm > 0):
        raise ArgumentInvalid("max_norm", max_norm, "positive and finite")
    wide = vector.astype(np.float64, copy=False)
    lowest, highest = float(wide.min(initial=0.0)), float(wide.max(initial=0.0))
    if not (math.isfinite(lowest) and math.isfinite(highest)):
        raise UpdateInvalid("NotFinite", index=int(np.isfinite(wide).argmin()))
    largest = max(-lowest, highest)
    if largest == 0.0:
        return wide
    # Relative to the largest entry, so that squares of huge or tiny values neither overflow nor vanish.
    relative = wide / largest
    relative_norm = float(np.linalg.norm(relative))
    if relative_norm <= max_norm / largest:
        return wide
    relative *= max_norm / relative_norm
    return relative


def _require_floats(name: str, array: NDArray[np.floating[Any]]) -> None:
    if array.ndim != 1 or array.dtype not in (np.float32, np.float64):
        raise ShapeWrong(name, f"{array.dtype} {array.shape}", "float64 or float32 (n,)")
