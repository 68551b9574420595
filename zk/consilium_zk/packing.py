"""Lanes to blobs and back: several small integers in one 255-bit scalar.

Lane `i` of a scalar starts at bit `i * lane_bits`, least significant first. Lanes are wide enough for the weighted sum
of all updates: adding scalars adds lanes, and no lane carries into the next. Scalars are big-endian (EIP-4844). The
last two scalars of a blob stay zero for the blinders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .blobs import Blob
from .constants import (
    BYTES_PER_BLOB,
    FIELD_ELEMENTS_PER_BLOB,
    MAX_BITS,
    MAX_LANE_BITS,
    MIN_BITS,
    USABLE_BITS,
    USABLE_SCALARS,
)
from .errors import ArgumentInvalid, LaneOutOfRange, Malformed, ShapeWrong, UpdateInvalid

_LIMB_BITS = 64
_LIMBS = 4
_LANES = "uint64 (n,), n >= 1"


@dataclass(frozen=True)
class LaneLayout:
    """Lanes of values of `bits` bits, for sums of total weight up to `total_weight`.

    Raises ArgumentInvalid, LanesTooWide.
    """

    bits: int
    total_weight: int

    def __post_init__(self) -> None:
        if not MIN_BITS <= self.bits <= MAX_BITS:
            raise ArgumentInvalid("bits", self.bits, f"in [{MIN_BITS}, {MAX_BITS}]")
        if self.total_weight < 1:
            raise ArgumentInvalid("total_weight", self.total_weight, "at least 1")
        if self.lane_bits > MAX_LANE_BITS:
            raise UpdateInvalid(
                "LanesTooWide",
                bits=self.bits,
                total_weight=self.total_weight,
                lane_bits=self.lane_bits,
                widest=MAX_LANE_BITS,
            )

    @property
    def lane_bits(self) -> int:
        """Width of a lane: bits + ceil(log2(total_weight))."""
        return self.bits + (self.total_weight - 1).bit_length()

    @property
    def lanes_per_scalar(self) -> int:
        return USABLE_BITS // self.lane_bits

    @property
    def lanes_per_blob(self) -> int:
        return USABLE_SCALARS * self.lanes_per_scalar

    def blobs_for(self, count: int) -> int:
        """Blobs that `count` lanes take. Raises ArgumentInvalid below 1."""
        if count < 1:
            raise ArgumentInvalid("count", count, "at least 1")
        return -(-count // self.lanes_per_blob)

    def near(self, lane: int) -> int:
        """The scalar with `lane` in all its lanes but the highest, for `kzg.commit`.

        Subtracted from a scalar of similar lanes, it leaves few bits in each. The highest lane keeps the difference
        positive: a negative number, modulo the group order, has no zero digits.
        """
        return lane * sum(1 << (index * self.lane_bits) for index in range(self.lanes_per_scalar - 1))

    def max_sum(self, weight: int) -> int:
        """The most that a lane can hold in an honest sum of this total weight.

        Raises ArgumentInvalid for a weight outside [1, total_weight].
        """
        if not 1 <= weight <= self.total_weight:
            raise ArgumentInvalid("weight", weight, f"in [1, {self.total_weight}], the range of the lanes")
        return weight * ((1 << self.bits) - 2)


def pack(lanes: NDArray[np.uint64], layout: LaneLayout, total_weight: int = 1) -> list[Blob]:
    """Blobs with `lanes`, uint64 (n,), n >= 1. Unused lanes and the blinders' scalars are zero.

    total_weight: the weight already in the lanes, 1 for one plain update. Raises ShapeWrong, ArgumentInvalid,
    LaneOutOfRange (a lane above max_sum(total_weight)).
    """
    return list(packed([lanes], layout, total_weight))


def packed(chunks: Iterable[NDArray[np.uint64]], layout: LaneLayout, total_weight: int = 1) -> Iterator[Blob]:
    """Packs the chunks one after the other, blob by blob, in memory of a chunk and a few blobs.

    chunks: uint64 (n,) each, of any lengths, at least one not empty. Raises as `pack`, when it reaches the fault.
    """
    bound, per_blob = layout.max_sum(total_weight), layout.lanes_per_blob
    count, rest = 0, np.empty(0, dtype=np.uint64)
    for chunk in chunks:
        if chunk.ndim != 1 or chunk.dtype != np.uint64:
            raise ShapeWrong("lanes", f"{chunk.dtype} {chunk.shape}", _LANES)
        _require_at_most(chunk, bound, count)
        count += chunk.size
        lanes = np.concatenate([rest, chunk]) if rest.size else chunk
        whole = lanes.size - lanes.size % per_blob
        for start in range(0, whole, per_blob):
            yield _pack_blob(lanes[start : start + per_blob], layout)
        rest = lanes[whole:].copy()  # the caller may reuse the chunk
    if count == 0:
        raise ShapeWrong("lanes", "no lane", _LANES)
    if rest.size:
        yield _pack_blob(rest, layout)


def unpack(blobs: Sequence[bytes], count: int, layout: LaneLayout, total_weight: int) -> NDArray[np.uint64]:
    """The `count` lanes of a sum of updates of total weight `total_weight`: uint64 (count,).

    Ignores the two blinder scalars of each blob. Raises ArgumentInvalid, ShapeWrong (number of blobs), BlobMalformed
    (length of a blob), and LaneOutOfRange for a lane above max_sum(total_weight) or a bit set outside the used lanes:
    some update had lanes out of range.
    """
    bound = layout.max_sum(total_weight)
    if len(blobs) != layout.blobs_for(count):
        raise ShapeWrong("blobs", len(blobs), f"{layout.blobs_for(count)} for {count} lanes")
    lanes = np.empty(count, dtype=np.uint64)
    for index, blob in enumerate(blobs):
        start = index * layout.lanes_per_blob
        _unpack_blob(blob, lanes[start : start + layout.lanes_per_blob], layout, bound, start)
    return lanes


def _pack_blob(lanes: NDArray[np.uint64], layout: LaneLayout) -> Blob:
    """One blob from at most `lanes_per_blob` lanes, each known to fit."""
    per_scalar = layout.lanes_per_scalar
    scalars = -(-lanes.size // per_scalar)
    if lanes.size < scalars * per_scalar:
        lanes = np.concatenate([lanes, np.zeros(scalars * per_scalar - lanes.size, dtype=np.uint64)])
    by_lane = np.ascontiguousarray(lanes.reshape(scalars, per_scalar).T)  # (lanes of a scalar, scalars)
    limbs = np.zeros((_LIMBS, FIELD_ELEMENTS_PER_BLOB), dtype=np.uint64)  # least significant limb first
    for lane in range(per_scalar):
        limb, shift = divmod(lane * layout.lane_bits, _LIMB_BITS)
        limbs[limb, :scalars] |= by_lane[lane] << np.uint64(shift)
        if shift + layout.lane_bits > _LIMB_BITS:
            limbs[limb + 1, :scalars] |= by_lane[lane] >> np.uint64(_LIMB_BITS - shift)
    return Blob(limbs[::-1].T.astype(">u8").tobytes())


def _unpack_blob(blob: bytes, lanes: NDArray[np.uint64], layout: LaneLayout, bound: int, start: int) -> None:
    """Fill `lanes`, the blob's share of the vector from index `start` on."""
    if len(blob) != BYTES_PER_BLOB:
        raise Malformed("BlobMalformed", reason=f"{len(blob)} bytes instead of {BYTES_PER_BLOB}")
    words = np.frombuffer(blob, dtype=">u8").reshape(FIELD_ELEMENTS_PER_BLOB, _LIMBS)[:USABLE_SCALARS]
    limbs = words.T[::-1].astype(np.uint64, order="C")  # (limbs, scalars), least significant limb first
    _require_nothing_above_lanes(limbs, layout, bound, start)
    per_scalar = layout.lanes_per_scalar
    by_lane = np.empty((per_scalar, USABLE_SCALARS), dtype=np.uint64)
    mask = np.uint64((1 << layout.lane_bits) - 1)
    for lane in range(per_scalar):
        limb, shift = divmod(lane * layout.lane_bits, _LIMB_BITS)
        np.right_shift(limbs[limb], np.uint64(shift), out=by_lane[lane])
        if shift + layout.lane_bits > _LIMB_BITS:
            by_lane[lane] |= limbs[limb + 1] << np.uint64(_LIMB_BITS - shift)
        by_lane[lane] &= mask
    found = by_lane.T.reshape(-1)
    _require_at_most(found[: lanes.size], bound, start)
    _require_at_most(found[lanes.size :], 0, start + lanes.size)
    lanes[:] = found[: lanes.size]


def _require_at_most(lanes: NDArray[np.uint64], bound: int, start: int) -> None:
    if lanes.size and int(lanes.max()) > bound:
        first = int((lanes > bound).argmax())
        raise LaneOutOfRange(start + first, int(lanes[first]), bound)


def _require_nothing_above_lanes(limbs: NDArray[np.uint64], layout: LaneLayout, bound: int, start: int) -> None:
    """Bits above a scalar's highest lane are that lane's overflow."""
    highest = (layout.lanes_per_scalar - 1) * layout.lane_bits
    used = (1 << (highest + layout.lane_bits)) - 1
    for limb in range(_LIMBS):
        free = ~(used >> (limb * _LIMB_BITS)) & ((1 << _LIMB_BITS) - 1)
        dirty = limbs[limb] & np.uint64(free)
        if dirty.any():
            scalar = int((dirty != 0).argmax())
            whole = sum(int(limbs[k, scalar]) << (k * _LIMB_BITS) for k in range(_LIMBS))
            raise LaneOutOfRange(start + (scalar + 1) * layout.lanes_per_scalar - 1, whole >> highest, bound)
