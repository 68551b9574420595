"""Checks of a task file and of published sums. Pure: the values were read before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from consilium_chain.ledger.publishing import Decoys
from consilium_chain.ledger.record import ShownBlinders
from consilium_chain.ledger.structs import TaskParams
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
    """Compares the terms of a task file, whose hash is on chain, with the terms that the contract enforces."""
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


def bases_agree(derived: bytes, stated: Mapping[str, bytes]) -> Check:
    """Compares the derived base's digest with the digests that hospitals state, by address.

    One hospital may state a wrong one, and that must not discredit the others' round. It fails if most do.
    """
    other = {hospital: base for hospital, base in stated.items() if base != derived}
    lines = [f"{hospital} stated {base.hex()}" for hospital, base in sorted(other.items())]
    same = f"{len(stated) - len(other)} of {len(stated)} hospitals stated the base {derived.hex()}"
    made = fails if 2 * len(other) > len(stated) else holds
    return made(Name.BASES, "\n".join([same, *lines]))


# --- decoys ------------------------------------------------------------------------------------------------------


def decoys_follow(
    task: int,
    round_: int,
    claimed: Decoys,
    negated_delta_digest: bytes,
    shown: Sequence[ShownBlinders],
    cohorts: Sequence[Published],
) -> Check:
    """Compares the aggregator's claims before publication with the record, and the sign-flipped sums with its seed."""
    if claimed.negated_delta_digest != negated_delta_digest:
        return fails(
            Name.DECOYS,
            f"the negated delta is {claimed.negated_delta_digest.hex()} on chain,"
            f" but {negated_delta_digest.hex()} by the record",
        )
    takes_back = "the negated delta follows from the record"
    seed = next((one.seed for one in shown if seed_commitment(one.seed) == claimed.seed_commitment), None)
    if seed is None:
        return unchecked(
            Name.DECOYS,
            f"{takes_back}; the sign-flipped sums were not recomputed, since no transaction shows the seed: only the"
            " contract checked them, in discloseDecoys",
        )
    faults = [
        f"cohort {one.cohort} is {_flipped(one.is_flipped)} on chain, but {_flipped(not one.is_flipped)} by the seed"
        for one in cohorts
        if is_flipped(seed, task, round_, one.cohort) != one.is_flipped
    ]
    if faults:
        return fails(Name.DECOYS, faults)
    return holds(Name.DECOYS, f"{takes_back}, and the seed gives the sign-flipped sums of the chain")


def _flipped(is_so: bool) -> str:
    return "sign-flipped" if is_so else "not sign-flipped"


# --- sums ----------------------------------------------------------------------------------------------------------


def plain_sums(points: Points, cohorts: Sequence[Published]) -> Check:
    """Compares Σ weight · commitment of each cohort's survivors, blob by blob, with the hash in the contract."""
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
    """The same in a decoy round, where a sum is published without its blinders, sign-flipped or not.

    The blinders need no trust. If any two numbers fulfil the equation, all other scalars of the published blob are the
    sum's, unless KZG's binding is broken. Without blinders nothing is proven: some pair fits every blob.
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
            f"no transaction shows the blinders of {missing} of {_blobs(cohorts)}, and without them every sum fits:"
            " only the contract checked them, in discloseDecoys",
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
    """The fault of a survivor's number of commitments, in words; empty if it is right."""
    count, wanted = len(points.get(who, ())), len(one.hashes)
    if count == wanted:
        return ""
    return f"cohort {one.cohort}: the events show {count} commitments of survivor {who}, but its sum has {wanted} blobs"


def _mismatch(one: Published, blob: int, found: Sequence[Commitment]) -> str:
    given = " or ".join(versioned_hash(each).hex() for each in found)
    return (
        f"cohort {one.cohort}, blob {blob}: the chain has {one.hashes[blob].hex()}, but the survivors' commitments"
        f" give {given}"
    )


def _recomputed(points: Points, cohorts: Sequence[Published]) -> Check:
    count = sum(len(one.weights) for one in cohorts)
    return holds(Name.SUMS, f"the weighted sum of {count} survivors' commitments gives {_blobs(cohorts)} as on chain")


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
        """The first lane that is not a sum of quantised values, in words; empty if all are."""
        try:
            lanes = unpack(blobs, self.count, self.layout, one.weight)
            if self.negated_delta is not None:
                read_lanes(lanes, self.negated_delta, one.weight, self.bits, one.is_flipped)
        except ZkError as error:
            return f"cohort {one.cohort}: {error}"
        return ""


def lanes_in_range(faults: Mapping[int, str], accepted: int) -> Check:
    """`faults`: by cohort, the fault of its lanes, or an empty text. Only accepted cohorts enter the model."""
    bad = [fault for cohort, fault in faults.items() if fault and accepted >> cohort & 1]
    if bad:
        return fails(Name.LANES, bad)
    outside = [str(cohort) for cohort, fault in faults.items() if fault]
    aside = f"; out of range, but not accepted: cohort {', '.join(outside)}" if outside else ""
    good = len(faults) - len(outside)
    return holds(Name.LANES, f"{good} of {len(faults)} sums have only values in the quantiser's range{aside}")
