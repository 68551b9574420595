"""Canaries: known-bad candidates that a voter must tell from a cohort's sum. The study behind them: docs/canaries.md.

A cohort's sum is published either as it is or *turned*, by a secret bit; turning twice gives the sum back. Whoever
reads the blobs has both candidates and has to look which is the good one. With v the cohort's mean update and d the
task's progress (base minus initial parameters), the genuine candidate is base + v, the canary base - v - retreat · d:
at retreat 1, the update turned round and applied to the initial model.

Integers only, each lane by itself: lane i of the canary follows from lane i of the sum and of the progress, so that a
contract can recompute a single one.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from eth_utils.crypto import keccak
from numpy.typing import NDArray

from .constants import MAX_BITS, MIN_BITS
from .encoding import bytes32, uint256
from .errors import ArgumentInvalid, LaneOutOfRange, ShapeWrong

CANARY_TAG: Final[bytes] = keccak(b"CONSILIUM-V1-CANARY")

RETREAT_UNIT: Final = 16
"""`retreat` counts sixteenths, so that the product is an integer and the division a shift."""

MAX_RETREAT: Final = 255
"""In sixteenths. With progress below 2^55 steps the product fits a signed 64-bit integer."""

_MAX_PROGRESS = 1 << 55
_MAX_HALF_RANGE = 1 << 62


def canary_lanes(
    lanes: NDArray[np.uint64], progress: NDArray[np.int64], weight: int, bits: int, retreat: int = RETREAT_UNIT
) -> NDArray[np.uint64]:
    """The turned sum, uint64 (n,), of a sum's `lanes`, uint64 (n,), each in [0, M], M = weight · (2^bits - 2).

        canary = (M - weight · back - lane) mod (M + 1)
        back   = clamp(floor(progress · retreat / 16), -h, h),    h = floor((2^(bits-1) - 1) / 2)

    progress: int64 (n,), in quantiser steps, as `progress_after` counts it; within ±2^55. retreat: sixteenths, 0 to
    255. An involution: applied to its own result, with the same arguments, it gives `lanes` again. Where every update
    and `back` are within half the quantiser's range, which `h` sees to for `back`, the modulus never acts.
    Raises ShapeWrong, ArgumentInvalid, LaneOutOfRange.
    """
    offset, top = _half_range(weight, bits)
    _require_lanes(lanes, top)
    _require_progress(progress, lanes.shape)
    if not 0 <= retreat <= MAX_RETREAT:
        raise ArgumentInvalid("retreat", retreat, f"in [0, {MAX_RETREAT}] sixteenths")
    half = np.int64(offset >> 1)
    back = np.clip((progress * np.int64(retreat)) >> np.int64(4), -half, half)
    # All of it fits 64 unsigned bits: M + 1 <= 2^63, and weight · back is at most a quarter of M.
    modulus = np.uint64(top + 1)
    pivot = np.uint64(top) - (back * np.int64(weight)).view(np.uint64)
    pivot = np.where(pivot >= modulus, pivot - modulus, pivot)
    turned: NDArray[np.uint64] = np.where(pivot >= lanes, pivot - lanes, pivot + modulus - lanes)
    return turned


def progress_after(progress: NDArray[np.int64], lanes: NDArray[np.uint64], weight: int, bits: int) -> NDArray[np.int64]:
    """Progress after a settled round, int64 (n,), from that before it and the lanewise sum of its accepted cohorts.

        progress + floor((2 · (lane - weight · (2^(bits-1) - 1)) + weight) / (2 · weight))

    weight: total weight of the accepted cohorts. Progress starts at zero and leaves the model's base minus initial
    parameters, in quantiser steps, by at most half a step a round. Raises ShapeWrong, ArgumentInvalid, LaneOutOfRange.
    """
    offset, top = _half_range(weight, bits)
    _require_lanes(lanes, top)
    _require_progress(progress, lanes.shape)
    whole, rest = np.divmod(lanes.view(np.int64) - np.int64(weight * offset), np.int64(weight))
    # floor((2x + w) / 2w) is the quotient, and one more where twice the remainder reaches the weight.
    rounded_up = rest >= np.int64(weight - weight // 2)
    return progress + whole + rounded_up


def is_turned(seed: bytes, task: int, round: int, cohort: int) -> bool:
    """Whether this cohort's sum is published turned: the lowest bit of keccak256(abi.encode(tag, seed, ...)).

    seed: 32 secret random bytes, of which `seed_commitment` is on chain before publication.
    Raises ShapeWrong, ArgumentInvalid.
    """
    words = [uint256("task", task), uint256("round", round), uint256("cohort", cohort)]
    return bool(keccak(CANARY_TAG + bytes32("seed", seed) + b"".join(words))[-1] & 1)


def seed_commitment(seed: bytes) -> bytes:
    """keccak256(abi.encode(tag, seed)), 32 bytes. Raises ShapeWrong."""
    return keccak(CANARY_TAG + bytes32("seed", seed))


def _half_range(weight: int, bits: int) -> tuple[int, int]:
    """The integer that stands for zero in one update, and the most that a lane of the sum may hold."""
    if not MIN_BITS <= bits <= MAX_BITS:
        raise ArgumentInvalid("bits", bits, f"in [{MIN_BITS}, {MAX_BITS}]")
    offset = (1 << (bits - 1)) - 1
    if weight < 1 or weight * offset >= _MAX_HALF_RANGE:
        raise ArgumentInvalid("weight", weight, "at least 1 and small enough for 63-bit lanes")
    return offset, 2 * weight * offset


def _require_lanes(lanes: NDArray[np.uint64], top: int) -> None:
    if lanes.ndim != 1 or lanes.dtype != np.uint64:
        raise ShapeWrong("lanes", f"{lanes.dtype} {lanes.shape}", "uint64 (n,)")
    if lanes.size and int(lanes.max()) > top:
        first = int((lanes > np.uint64(top)).argmax())
        raise LaneOutOfRange(first, int(lanes[first]), top)


def _require_progress(progress: NDArray[np.int64], shape: tuple[int, ...]) -> None:
    if progress.shape != shape or progress.dtype != np.int64:
        raise ShapeWrong("progress", f"{progress.dtype} {progress.shape}", f"int64 {shape}")
    if progress.size and not -_MAX_PROGRESS <= int(progress.min()) <= int(progress.max()) <= _MAX_PROGRESS:
        raise ArgumentInvalid("progress", "beyond 2^55 steps", "within ±2^55 steps")
