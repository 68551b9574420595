"""Checks of a task file and of published sums, over values that were read before. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from consilium_chain.ledger.publishing import Decoys
from consilium_chain.ledger.record import ShownBlinders
from consilium_chain.ledger.structs import (
    TaskParams,
)
from consilium_chain.rounds.sums import NegatedDelta
from consilium_chain.tasks.proposal import with_pool_of
from consilium_core.units import tokens
from consilium_zk.blobs import Blob
from consilium_zk.curve import Commitment, weighted_sum
from consilium_zk.decoys import is_flipped, published_commitment, read_lanes, seed_commitment
from consilium_zk.errors import ZkError
from consilium_zk.kzg import versioned_hash
from consilium_zk.packing import LaneLayout, unpack
from numpy.typing import NDArray

from consilium_verify.report import Check, Name, fails, holds, unchecked

Points = Mapping[str, Sequence[Commitment]]


@dataclass(frozen=True)
class Published:
    """A cohort with a published sum: its survivors' weights by address, and the versioned hash of each blob."""

    cohort: int
    weights: Mapping[str, int]
    hashes: Sequence[bytes]
    is_flipped: bool = False

    @property
    def weight(self) -> int:
        return sum(self.weights.values())


def terms_match(of_file: TaskParams, on_chain: TaskParams) -> Check:
    """A task file whose hash is the chain's, as terms, against those that the contract enforces."""
    wanted = with_pool_of(on_chain, of_file)
    faults = [
        f"{field.name} is {getattr(wanted, field.name)} in the file and {getattr(on_chain, field.name)} on chain"
        for field in fields(TaskParams)
        if getattr(wanted, field.name) != getattr(on_chain, field.name)
    ]
    if faults:
        return fails(Name.TASK_FILE, faults)
    more = on_chain.pool - of_file.pool
    added = f", and its operator added {tokens(more)} tokens to the pool" if more else ""
    return holds(Name.TASK_FILE, f"keccak256 {on_chain.spec_hash.hex()}; its terms are those on chain{added}")


# --- decoys ------------------------------------------------------------------------------------------------------


def decoys_follow(
    task: int,
    round_: int,
    said: Decoys,
    negated_delta_digest: bytes,
    shown: Sequence[ShownBlinders],
    cohorts: Sequence[Published],
) -> Check:
    """Compares the aggregator's claims before publication with the record, and the sign-flipped sums with its seed."""
    if said.negated_delta_digest != negated_delta_digest:
        return fails(
            Name.DECOYS,
            f"said to take back {said.negated_delta_digest.hex()}, but the record gives {negated_delta_digest.hex()}",
        )
    takes_back = "what they take back is what the record gives"
    seed = next((one.seed for one in shown if seed_commitment(one.seed) == said.seed_commitment), None)
    if seed is None:
        return unchecked(
            Name.DECOYS,
            f"{takes_back}; which sums are sign-flipped was not recomputed, since no transaction shows the seed:"
            " it rests on the contract's check in discloseDecoys",
        )
    faults = [
        f"cohort {one.cohort} is {_flipped(one.is_flipped)} on chain, but {_flipped(not one.is_flipped)} by the seed"
        for one in cohorts
        if is_flipped(seed, task, round_, one.cohort) != one.is_flipped
    ]
    if faults:
        return fails(Name.DECOYS, faults)
    return holds(Name.DECOYS, f"{takes_back}, and the seed turns the sums that the chain says")


def _flipped(is_so: bool) -> str:
    return "sign-flipped" if is_so else "not sign-flipped"


# --- sums ----------------------------------------------------------------------------------------------------------


def plain_sums(points: Points, cohorts: Sequence[Published]) -> Check:
    """Σ weight · commitment of each cohort's survivors, blob by blob, against the hash that the contract holds."""
    faults = [
        *_incomplete(points, cohorts),
        *(
            _mismatch(one, blob, [total])
            for one, blob, total in _totals(points, cohorts)
            if versioned_hash(total) != one.hashes[blob]
        ),
    ]
    return fails(Name.SUMS, faults) if faults else _recomputed(points, cohorts)


def decoy_sums(
    points: Points, cohorts: Sequence[Published], negated_delta: NegatedDelta, shown: Sequence[ShownBlinders]
) -> Check:
    """The same in a decoy round, in which a sum is published without its blinders, and sign-flipped or not.

    The blinders need no trust: with any two numbers that make the equation hold, all other scalars of the published
    blob are those of the sum, or KZG's binding is broken. Without them nothing can be said: two fit every blob.
    """
    faults, missing = _incomplete(points, cohorts), 0
    for one, blob, total in _totals(points, cohorts):
        pairs = {each.blinders for each in shown if (each.cohort, each.blob) == (one.cohort, blob)}
        back = negated_delta.points[blob]
        found = [
            published_commitment(total, one.weight, pair, back, negated_delta.layout, one.is_flipped)
            for pair in sorted(pairs)
        ]
        missing += not found
        if found and one.hashes[blob] not in [versioned_hash(each) for each in found]:
            faults.append(_mismatch(one, blob, found))
    if faults:
        return fails(Name.SUMS, faults)
    if missing:
        return unchecked(
            Name.SUMS,
            f"no transaction shows the blinders of {missing} of {_blobs(cohorts)}, without which every sum fits: that"
            " these are the survivors' rests on the contract's check in discloseDecoys",
        )
    return _recomputed(points, cohorts)


def _totals(points: Points, cohorts: Sequence[Published]) -> Iterable[tuple[Published, int, Commitment]]:
    for one in cohorts:
        if any(_committed(points, one, who) for who in one.weights):
            continue
        for blob in range(len(one.hashes)):
            chosen = [points[who][blob] for who in one.weights]
            yield one, blob, weighted_sum(chosen, list(one.weights.values()))


def _incomplete(points: Points, cohorts: Sequence[Published]) -> list[str]:
    return [fault for one in cohorts for who in one.weights if (fault := _committed(points, one, who))]


def _committed(points: Points, one: Published, who: str) -> str:
    """The fault of a survivor's number of commitments, in words; empty without one."""
    count, wanted = len(points.get(who, ())), len(one.hashes)
    if count == wanted:
        return ""
    return f"cohort {one.cohort}: the events hold {count} commitments of survivor {who}, where a sum has {wanted} blobs"


def _mismatch(one: Published, blob: int, found: Sequence[Commitment]) -> str:
    given = " or ".join(versioned_hash(each).hex() for each in found)
    return (
        f"cohort {one.cohort}, blob {blob}: the chain holds {one.hashes[blob].hex()}, but the survivors' commitments"
        f" give {given}"
    )


def _recomputed(points: Points, cohorts: Sequence[Published]) -> Check:
    count = sum(len(one.weights) for one in cohorts)
    return holds(
        Name.SUMS, f"{count} survivors' commitments, weighted and added up, give {_blobs(cohorts)} as the chain has it"
    )


def _blobs(cohorts: Sequence[Published]) -> str:
    count = sum(len(one.hashes) for one in cohorts)
    return f"{count} blob{'' if count == 1 else 's'} of {len(cohorts)} cohort{'' if len(cohorts) == 1 else 's'}"


# --- lanes ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lanes:
    """Parameters for reading a round's blobs. `negated_delta`: in a decoy round, the negated delta of sign-flipped
    sums.
    """

    layout: LaneLayout
    count: int
    bits: int  # of a quantised value
    negated_delta: NDArray[np.uint64] | None = None  # (count,)

    def fault(self, one: Published, blobs: Sequence[Blob]) -> str:
        """The first lane that no sum of quantised values has, in words; empty if there is none."""
        try:
            lanes = unpack(blobs, self.count, self.layout, one.weight)
            if self.negated_delta is not None:
                read_lanes(lanes, self.negated_delta, one.weight, self.bits, one.is_flipped)
        except ZkError as error:
            return f"cohort {one.cohort}: {error}"
        return ""


def lanes_in_range(faults: Mapping[int, str], accepted: int) -> Check:
    """`faults`: by cohort, the fault of its lanes, or an empty text. A cohort that is not accepted enters no model."""
    bad = [fault for cohort, fault in faults.items() if fault and accepted >> cohort & 1]
    if bad:
        return fails(Name.LANES, bad)
    outside = [str(cohort) for cohort, fault in faults.items() if fault]
    aside = f"; out of range, and rightly not accepted: cohort {', '.join(outside)}" if outside else ""
    good = len(faults) - len(outside)
    return holds(Name.LANES, f"{good} of {len(faults)} sums are of values within the quantiser's range{aside}")
