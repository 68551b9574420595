"""Decoys: known-bad candidates that a voter must tell from a cohort's sum. The study behind them: docs/decoys.md.

A sum of total weight w holds S = w · h + w · x in each lane: x is the cohort's mean update in steps of the quantiser,
h its offset, so that |x| <= h. The published lane is A = 2wh + w · y, and a secret bit chooses between

    as it is:   y = x                 A = S + w · h
    flipped:     y = -x - back         A = 4wh - w · negated_delta - S          negated_delta = h + back,  |back| <= h

Both keep A in [0, 4wh], so no lane ever carries into the next, and both are linear, scalar by scalar and in
commitments. Turning is its own inverse: a reader of A has two candidates, y and -y - back, and must evaluate which one
is good. `back` is the task's progress so far times a strength, lane by lane: the base minus that is harmful.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from eth_utils.crypto import keccak
from numpy.typing import NDArray

from .blobs import Blob, add, scale, with_blinders
from .constants import BYTES_PER_BLOB, BYTES_PER_FIELD_ELEMENT, MAX_BITS, MIN_BITS, USABLE_SCALARS
from .curve import GENERATOR, Commitment, to_eip2537, weighted_sum
from .encoding import bytes32, uint256
from .errors import ArgumentInvalid, LaneOutOfRange, ShapeWrong
from .kzg import blinder_points, commit
from .packing import LaneLayout

DECOY_TAG: Final[bytes] = keccak(b"CONSILIUM-V1-CANARY")

STRENGTH_UNIT: Final = 16
"""Strengths count sixteenths, so that the product with an integer is one and the division a shift."""

STRENGTH: Final = 24
"""One and a half, the least of those studied at which no honest vote rated a decoy above its sum."""

MAX_STRENGTH: Final = 255
"""With progress below 2^55 steps the product fits a signed 64-bit integer."""

_MAX_PROGRESS = 1 << 55
_MAX_MIDDLE = 1 << 61

# --- lanes ---------------------------------------------------------------------------------------------------------


def published_lanes(
    lanes: NDArray[np.uint64], negated_delta: NDArray[np.uint64], weight: int, bits: int, flipped: bool
) -> NDArray[np.uint64]:
    """The published lanes of a sum: uint64 (n,), each in [0, 4wh].

    lanes: the sum's, uint64 (n,), each in [0, 2wh]. negated_delta: of `negated_delta_lanes`, uint64 (n,), each in [0,
    2h], one for all cohorts of a round. weight: w. bits: of a quantised value; h = 2^(bits-1) - 1. Raises ShapeWrong,
    ArgumentInvalid, LaneOutOfRange.
    """
    offset = _offset(weight, bits)
    _require_lanes("lanes", lanes, 2 * weight * offset)
    return _flip(lanes, negated_delta, weight, offset) if flipped else lanes + np.uint64(weight * offset)


def read_lanes(
    published: NDArray[np.uint64], negated_delta: NDArray[np.uint64], weight: int, bits: int, flipped: bool
) -> NDArray[np.uint64]:
    """The inverse of `published_lanes`: the sum's lanes, uint64 (n,), each in [0, 2wh], if it was published like that.

    Raises LaneOutOfRange if a lane is not of a sum of quantised updates: then this reading is not a model. Raises
    ShapeWrong, ArgumentInvalid.
    """
    offset = _offset(weight, bits)
    _require_lanes("published", published, 4 * weight * offset)
    lanes = _flip(published, negated_delta, weight, offset) if flipped else published - np.uint64(weight * offset)
    signed, top = lanes.view(np.int64), 2 * weight * offset
    outside = (signed < 0) | (signed > top)
    if outside.any():
        first = int(outside.argmax())
        raise LaneOutOfRange(first, int(signed[first]), top)
    return lanes


def _flip(lanes: NDArray[np.uint64], negated_delta: NDArray[np.uint64], weight: int, offset: int) -> NDArray[np.uint64]:
    """4wh - w · negated_delta - lane, modulo 2^64. Its own inverse."""
    _require_lanes("negated_delta", negated_delta, 2 * offset)
    if negated_delta.shape != lanes.shape:
        raise ShapeWrong("negated_delta", negated_delta.shape, f"the shape of the lanes, {lanes.shape}")
    return np.uint64(4 * weight * offset) - negated_delta * np.uint64(weight) - lanes


def negated_delta_lanes(progress: NDArray[np.int64], bits: int, strength: int = STRENGTH) -> NDArray[np.uint64]:
    """A round's negated delta, per unit of weight and offset to be non-negative: uint64 (n,), in [0, 2h].

        h + clamp(floor(progress · strength / 16), -h, h),    h = 2^(bits-1) - 1

    progress: int64 (n,), in quantiser steps, within ±2^55, as `progress_after` counts it. strength: sixteenths, 0 to
    255; at 0, or before the first settled round, decoys are mirror images. Raises ShapeWrong, ArgumentInvalid.
    """
    offset = _offset(1, bits)
    _require_progress(progress)
    if not 0 <= strength <= MAX_STRENGTH:
        raise ArgumentInvalid("strength", strength, f"in [0, {MAX_STRENGTH}] sixteenths")
    back: NDArray[np.int64] = np.clip((progress * np.int64(strength)) >> np.int64(4), -offset, offset)
    shifted: NDArray[np.int64] = back + np.int64(offset)
    return shifted.view(np.uint64)


def progress_after(progress: NDArray[np.int64], lanes: NDArray[np.uint64], weight: int, bits: int) -> NDArray[np.int64]:
    """Progress after a settled round, int64 (n,), from that before it and the lanewise sum of its accepted cohorts.

        progress + floor((2 · (lane - weight · h) + weight) / (2 · weight)),    h = 2^(bits-1) - 1

    weight: total weight of the accepted cohorts. Progress starts at zero and leaves the model's base minus initial
    parameters, in quantiser steps, by at most half a step a round. Raises ShapeWrong, ArgumentInvalid, LaneOutOfRange.
    """
    middle = weight * _offset(weight, bits)
    _require_lanes("lanes", lanes, 2 * middle)
    _require_progress(progress)
    if progress.shape != lanes.shape:
        raise ShapeWrong("progress", progress.shape, f"the shape of lanes, {lanes.shape}")
    whole, rest = np.divmod(lanes.view(np.int64) - np.int64(middle), np.int64(weight))
    # floor((2x + w) / 2w) is the quotient, and one more where twice the remainder reaches the weight.
    rounded_up = rest >= np.int64(weight - weight // 2)
    return progress + whole + rounded_up


# --- the secret bit ------------------------------------------------------------------------------------------------


def is_flipped(seed: bytes, task: int, round: int, cohort: int) -> bool:
    """True if this cohort's sum is published sign-flipped: the lowest bit of keccak256(abi.encode(tag, seed, ...)).

    seed: 32 secret random bytes, whose `seed_commitment` is on chain before publication. Raises ShapeWrong,
    ArgumentInvalid.
    """
    words = [uint256("task", task), uint256("round", round), uint256("cohort", cohort)]
    return bool(keccak(DECOY_TAG + bytes32("seed", seed) + b"".join(words))[-1] & 1)


def seed_commitment(seed: bytes) -> bytes:
    """keccak256(abi.encode(tag, seed)), 32 bytes. Raises ShapeWrong."""
    return keccak(DECOY_TAG + bytes32("seed", seed))


# --- blobs and commitments -----------------------------------------------------------------------------------------
# `layout` is that of published sums: its bits are one more than a quantised value's, which makes room for 4wh.


def published_blob(total: Blob, negated_delta: Blob, weight: int, layout: LaneLayout, flipped: bool) -> Blob:
    """`published_lanes` on a summed blob, scalar by scalar for any scalars; both blinders become zero.

    total: the sum of members' weighted blobs, of total weight `weight`. negated_delta: the same lanes' part of
    `pack(negated_delta_lanes(...), layout)`. Lanes that are invalid in `total`, and only these, are invalid in the
    result. Raises ArgumentInvalid, ShapeWrong.
    """
    middle = _middle(weight, layout)
    bare = with_blinders(total, 0, 0)
    if not flipped:
        return add([bare, _filled(middle, layout)])
    return add([_filled(4 * middle, layout)], [bare, scale(negated_delta, weight)])


def published_commitment(
    total: Commitment,
    weight: int,
    blinders: tuple[int, int],
    negated_delta: Commitment,
    layout: LaneLayout,
    flipped: bool,
) -> Commitment:
    """The commitment to `published_blob`, from the values on chain, as the contract computes it.

    total, weight: the commitment to the summed blob, Σ w_i · C_i of the members', and Σ w_i. blinders: that blob's.
    negated_delta: the commitment to this blob's negated delta, of `negated_delta_points`. E commits to ones in all
    lanes, and D to the sum without its blinders. The result is D + w · h · E as it is, and 4wh · E - w · negated delta
    - D sign-flipped. Raises ArgumentInvalid, PointMalformed.
    """
    ones = _middle(weight, layout) * _ones(layout) * (4 if flipped else 1)
    sign = -1 if flipped else 1
    first, second = (-ones - sign * blinder for blinder in blinders)
    points = [total, GENERATOR, *blinder_points(), negated_delta]
    return weighted_sum(points, [sign, ones, first, second, -weight if flipped else 0])


def negated_delta_points(negated_delta: Sequence[Blob], layout: LaneLayout) -> list[Commitment]:
    """The commitment to each blob of a round's negated delta, the same for all cohorts. Up to 30 ms for each distinct
    blob.
    """
    near = layout.near(_middle(1, layout))
    points = {blob: commit(blob, near) for blob in set(negated_delta)}
    return [points[blob] for blob in negated_delta]


def negated_delta_digest(points: Sequence[Commitment]) -> bytes:
    """keccak256 of the points in EIP-2537 encoding, one after the other: 32 bytes. Raises PointMalformed."""
    return keccak(b"".join(to_eip2537(point) for point in points))


def _ones(layout: LaneLayout) -> int:
    """The scalar that holds one in each of its lanes."""
    return sum(1 << (lane * layout.lane_bits) for lane in range(layout.lanes_per_scalar))


def _filled(value: int, layout: LaneLayout) -> Blob:
    """The blob that holds `value`, known to fit, in every lane."""
    scalar = (value * _ones(layout)).to_bytes(BYTES_PER_FIELD_ELEMENT, "big")
    return Blob((scalar * USABLE_SCALARS).ljust(BYTES_PER_BLOB, b"\0"))


def _middle(weight: int, layout: LaneLayout) -> int:
    """w · h, for a weight that the layout's lanes are made for."""
    layout.max_sum(weight)
    return weight * _offset(weight, layout.bits - 1)


def _offset(weight: int, bits: int) -> int:
    """h, if 4wh fits a lane of 63 bits."""
    if not MIN_BITS <= bits <= MAX_BITS:
        raise ArgumentInvalid("bits", bits, f"in [{MIN_BITS}, {MAX_BITS}]")
    offset = (1 << (bits - 1)) - 1
    if weight < 1 or weight * offset >= _MAX_MIDDLE:
        raise ArgumentInvalid("weight", weight, "at least 1 and small enough for 63-bit lanes")
    return offset


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
