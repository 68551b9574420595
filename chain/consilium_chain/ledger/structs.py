"""Structs of the contracts as typed values, field by field as in `ITasks.sol`, which documents them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, Self


class Phase(IntEnum):
    NONE = 0
    JOINING = 1
    FORMING = 2
    COMMITTING = 3
    UPLOADING = 4
    PUBLISHING = 5
    DISPUTING = 6
    DRAWING = 7
    SCORING = 8
    REVEALING = 9
    DISCLOSING = 10
    SETTLING = 11
    ENDED = 12


class Outcome(IntEnum):
    PENDING = 0
    SETTLED = 1
    VOID = 2


class VoidReason(IntEnum):
    NONE = 0
    TOO_FEW_HOSPITALS = 1
    SURVIVORS_NOT_FIXED = 2
    NOT_PUBLISHED = 3
    TOO_FEW_SCORES = 4
    NOT_DISCLOSED = 5
    MISMATCHED = 6
    NO_SUMS = 7
    NO_RANDOMNESS = 8


class SlashReason(IntEnum):
    HARMFUL_COHORT = 0
    WITHHELD_UPLOAD = 1
    FALSE_UPLOAD = 2
    NOT_REVEALED = 3
    FAILED_DECOY = 4
    NOT_PUBLISHED = 5
    NOT_DISCLOSED = 6
    MISMATCHED = 7


class PayoutReason(IntEnum):
    NOT_SETTLED = 0
    STRANGER = 1
    STATISTICS = 2
    VOID = 3
    NOT_PUBLISHED = 4
    NOT_DISCLOSED = 5
    MISMATCHED = 6
    SAT_OUT = 7
    NOT_COMMITTED = 8
    NOT_IN_SUM = 9
    WITHHELD = 10
    FALSE_UPLOAD = 11
    HARMFUL = 12
    REJECTED = 13
    NO_IMPROVEMENT = 14
    NO_SEAT = 15
    NOT_REVEALED = 16
    UNTESTED = 17
    FAILED_DECOY = 18
    FAR = 19
    LATE = 20
    PAID = 21


class Role(IntEnum):
    HOSPITAL = 0
    VOTER = 1
    AGGREGATOR = 2


STATISTICS_ROUND = 0
INVALID_SCORE = -(2**63)  # a voter's score for a published sum that is not a valid model
DOES_NOT_MATCH = (
    INVALID_SCORE + 1
)  # the whole ballot of a voter, if the publication or the named hospitals do not match


def ballot_size(params: TaskParams, round_: int, cohorts: int) -> int:
    """Scores of a ballot: one for each of the round's cohorts, and with decoys another one for each cohort's twin.

    In a task with decoys or digests, and in a round with accused cohorts, a ballot of DOES_NOT_MATCH only is valid
    too.
    """
    return cohorts * (2 if params.has_decoys(round_) else 1)


def members(bit_map: int) -> Iterator[int]:
    """Indices in a bit map, ascending."""
    while bit_map:
        low = bit_map & -bit_map
        yield low.bit_length() - 1
        bit_map ^= low


_ENUMS: dict[str, Callable[[Any], Any]] = {
    "phase": Phase,
    "outcome": Outcome,
    "void_reason": VoidReason,
    "role": Role,
    "reason": PayoutReason,
}


class _FromChain:
    """A struct of the ABI, with its fields in the order of the Solidity declaration."""

    @classmethod
    def from_chain(cls, raw: Any) -> Self:
        values = {}
        for field, value in zip(fields(cls), raw, strict=True):  # type: ignore[arg-type]
            plain = tuple(value) if isinstance(value, list) else value
            values[field.name] = _ENUMS[field.name](plain) if field.name in _ENUMS else plain
        return cls(**values)


@dataclass(frozen=True)
class TaskParams(_FromChain):
    spec_hash: bytes
    aggregator: str
    digests: bool
    decoys: bool
    masked: bool
    update_bits: int
    lane_bits: int
    publish_window: int
    pool: int
    hospital_bond: int
    voter_bond: int
    aggregator_bond: int
    tick_bounty: int
    rounds: int
    cohorts: int
    min_cohort_size: int
    min_hospitals: int
    max_hospitals: int
    min_voters: int
    max_voters: int
    seats: int
    min_reveals: int
    statistics_blobs: int
    update_blobs: int
    shards: int
    rows_per_weight: int
    max_weight: int
    accept_floor: int
    harmful_below: int
    tolerance_abs: int
    tolerance_bps: int
    decoy_margin: int
    hospital_share_bps: int
    voter_share_bps: int
    aggregator_share_bps: int
    rank_decay_bps: int
    harmful_slash_bps: int
    withheld_slash_bps: int
    not_revealed_slash_bps: int
    failed_decoy_slash_bps: int
    not_published_slash_bps: int
    join_window: int
    commit_window: int
    upload_window: int
    score_window: int
    reveal_window: int
    rank_floor: int

    def to_chain(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    def has_decoys(self, round_: int) -> bool:
        """True if this round's sums are published as they are or sign-flipped."""
        return self.decoys and round_ != STATISTICS_ROUND


@dataclass(frozen=True)
class TaskState(_FromChain):
    operator: str
    phase: Phase
    round: int
    deadline: int
    shard: int
    pool_left: int
    aggregator_joined: bool
    stopping: bool
    forfeited: int
    active_hospitals: int
    active_voters: int


@dataclass(frozen=True)
class Hospital(_FromChain):
    node: str
    weight: int
    bond: int


@dataclass(frozen=True)
class Voter(_FromChain):
    node: str
    bond: int
    key_hash: bytes


@dataclass(frozen=True)
class RoundState(_FromChain):
    outcome: Outcome
    void_reason: VoidReason
    cohorts: int
    beacon_request: int
    cohort_seed: bytes
    seat_seed: bytes
    members: int
    committed: int
    viable_cohorts: int
    survivors: int
    summed_cohorts: int
    published_cohorts: int
    dropped_cohorts: int
    accused: int
    named: int
    guilty: int
    flipped_cohorts: int
    seated: int
    stood_down: int
    revealed: int
    mismatched: int
    seat_weight: int
    accepted_cohorts: int
    budget: int
    late: bool
    medians: tuple[int, ...]


@dataclass(frozen=True)
class Payout(_FromChain):
    role: Role
    reason: PayoutReason
    base: int
    part: int
    whole: int
    reward: int
    slash: int


@dataclass(frozen=True)
class Stake(_FromChain):
    """A node's stake: `active` and `unbonding` are all of it; new bonds can lock `free`."""

    active: int
    free: int
    locked: int
    unbonding: int


@dataclass(frozen=True)
class Unbonding:
    """A request of `withdraw`, valid from `matures_at` on, in the chain's seconds. `amount`: its present worth; a slash
    takes from it too.
    """

    request: int
    node: str
    role: Role
    matures_at: int
    amount: int
