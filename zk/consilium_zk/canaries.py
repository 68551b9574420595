"""Canaries: known-bad candidates that a voter must tell from a cohort's sum. The study behind them: docs/canaries.md.

A cohort's sum is published either as it is or *turned*, by a secret bit; turning twice gives the sum back. Whoever
reads the blobs has both candidates and has to look which is the good one. With v the cohort's mean update and d the
task's progress (base minus initial parameters), the genuine candidate is base + v, the canary base - v - strength · d:
the update turned round, and more than all that was learnt taken back.

Integers only, each lane by itself: a contract can recompute one lane of the canary from the sum's and the progress's.
And linear, so that it can compare commitments instead: with E committing to ones in all lanes in use,

    Com(canary) = (M + weight · h) · E - weight · Com(retreat) - Com(sum)
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

STRENGTH_UNIT: Final = 16
"""Strengths count sixteenths, so that the product with an integer is one and the division a shift."""

STRENGTH: Final = 24
"""One and a half, the least of those studied at which no honest vote rated a canary above its sum."""

MAX_STRENGTH: Final = 255
"""With progress below 2^55 steps the product fits a signed 64-bit integer."""

_MAX_PROGRESS = 1 << 55
_MAX_MIDDLE = 1 << 62


def canary_lanes(lanes: NDArray[np.uint64], retreat: NDArray[np.uint64], weight: int, bits: int) -> NDArray[np.uint64]:
    """The turned sum, uint64 (n,), of a sum's `lanes`, uint64 (n,), each in [0, M], M = weight · (2^bits - 2).

        canary = (M + weight · (h - retreat) - lane) mod (M + 1),    h = half_range(bits)

    retreat: of `retreat_lanes`, uint64 (n,), in [0, 2h]; one for all cohorts of a round. weight: the sum's.
    An involution: applied to its own result it gives `lanes` again. While every update stays within half the
    quantiser's range, as `retreat` does, the modulus never acts, and the canary is linear in both.
    Raises ShapeWrong, ArgumentInvalid, LaneOutOfRange.
    """
    top, half = _top(weight, bits), half_range(bits)
    _require_lanes("lanes", lanes, top)
    _require_lanes("retreat", retreat, 2 * half)
    if retreat.shape != lanes.shape:
        raise ShapeWrong("retreat", retreat.shape, f"the shape of lanes, {lanes.shape}")
    # All of it fits 64 unsigned bits: M + 1 <= 2^63, and weight · h is at most a quarter of M.
    modulus = np.uint64(top + 1)
    pivot = np.uint64(top + weight * half) - retreat * np.uint64(weight)
    pivot = np.where(pivot >= modulus, pivot - modulus, pivot)
    turned: NDArray[np.uint64] = np.where(pivot >= lanes, pivot - lanes, pivot + modulus - lanes)
    return turned


def retreat_lanes(progress: NDArray[np.int64], bits: int, strength: int = STRENGTH) -> NDArray[np.uint64]:
    """How far a round's canaries go back, per unit of weight and offset to be non-negative: uint64 (n,), in [0, 2h].

        h + clamp(floor(progress · strength / 16), -h, h),    h = half_range(bits)

    progress: int64 (n,), in quantiser steps, within ±2^55, as `progress_after` counts it. strength: sixteenths, 0 to
    255; at 0, or before the first settled round, canaries are mirror images. Raises ShapeWrong, ArgumentInvalid.
    """
    half = half_range(bits)
    _require_progress(progress)
    if not 0 <= strength <= MAX_STRENGTH:
        raise ArgumentInvalid("strength", strength, f"in [0, {MAX_STRENGTH}] sixteenths")
    back: NDArray[np.int64] = np.clip((progress * np.int64(strength)) >> np.int64(4), -half, half)
    shifted: NDArray[np.int64] = back + np.int64(half)
    return shifted.view(np.uint64)


def half_range(bits: int) -> int:
    """Half the quantiser's range, in steps, rounded down. Raises ArgumentInvalid."""
    if not MIN_BITS <= bits <= MAX_BITS:
        raise ArgumentInvalid("bits", bits, f"in [{MIN_BITS}, {MAX_BITS}]")
    return ((1 << (bits - 1)) - 1) // 2


def progress_after(progress: NDArray[np.int64], lanes: NDArray[np.uint64], weight: int, bits: int) -> NDArray[np.int64]:
    """Progress after a settled round, int64 (n,), from that before it and the lanewise sum of its accepted cohorts.

        progress + floor((2 · (lane - weight · (2^(bits-1) - 1)) + weight) / (2 · weight))

    weight: total weight of the accepted cohorts. Progress starts at zero and leaves the model's base minus initial
    parameters, in quantiser steps, by at most half a step a round. Raises ShapeWrong, ArgumentInvalid, LaneOutOfRange.
    """
    top = _top(weight, bits)
    _require_lanes("lanes", lanes, top)
    _require_progress(progress)
    if progress.shape != lanes.shape:
        raise ShapeWrong("progress", progress.shape, f"the shape of lanes, {lanes.shape}")
    whole, rest = np.divmod(lanes.view(np.int64) - np.int64(top // 2), np.int64(weight))
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


def _top(weight: int, bits: int) -> int:
    """The most that a lane of a sum of this weight may hold."""
    half_range(bits)
    offset = (1 << (bits - 1)) - 1
    if weight < 1 or weight * offset >= _MAX_MIDDLE:
        raise ArgumentInvalid("weight", weight, "at least 1 and small enough for 63-bit lanes")
    return 2 * weight * offset


def _require_lanes(name: str, lanes: NDArray[np.uint64], top: int) -> None:
    if lanes.ndim != 1 or lanes.dtype != np.uint64:
        raise ShapeWrong(name, f"{lanes.dtype} {lanes.shape}", "uint64 (n,)")
    if lanes.size and int(lanes.max()) > top:
        first = int((lanes > np.uint64(top)).argmax())
        raise LaneOutOfRange(first, int(lanes[first]), top)


def _require_progress(progress: NDArray[np.int64]) -> None:
    if progress.ndim != 1 or progress.dtype != np.int64:
        raise ShapeWrong("progress", f"{progress.dtype} {progress.shape}", "int64 (n,)")
    if progress.size and not -_MAX_PROGRESS <= int(progress.min()) <= int(progress.max()) <= _MAX_PROGRESS:
        raise ArgumentInvalid("progress", "beyond 2^55 steps", "within ±2^55 steps")
