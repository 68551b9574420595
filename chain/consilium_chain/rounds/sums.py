"""A task's published sums, from chain and artifact store, and the negated delta of its decoys.

In a decoy round a sum has two readings, one genuine and one a decoy (`consilium_zk.decoys`); the chain discloses
which after the round is settled. All lanes of a training round's blobs are read, and lanes beyond the update's
coordinates are dropped then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from consilium_zk.blobs import Blob
from consilium_zk.curve import Commitment
from consilium_zk.decoys import (
    negated_delta_digest,
    negated_delta_lanes,
    negated_delta_points,
    progress_after,
    read_lanes,
)
from consilium_zk.errors import LaneOutOfRange, ZkError
from consilium_zk.packing import LaneLayout, pack, unpack
from numpy.typing import NDArray

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import RecordIncomplete
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND, Outcome, RoundState, members
from consilium_chain.tasks.task_spec import TaskSpec


@dataclass(frozen=True)
class CohortSum:
    """Sum of quantised vectors: lanes, uint64 (n,), and the total weight in them."""

    lanes: NDArray[np.uint64]
    weight: int


def added(sums: Iterable[CohortSum | None]) -> CohortSum | None:
    """The sum of the valid ones; None without any."""
    total: CohortSum | None = None
    for found in sums:
        if found is not None:
            total = found if total is None else CohortSum(total.lanes + found.lanes, total.weight + found.weight)
    return total


@dataclass(frozen=True, eq=False)
class NegatedDelta:
    """The negated delta of a round's decoys: lanes, uint64 (spec.lanes,), and values derived from them."""

    lanes: NDArray[np.uint64]
    layout: LaneLayout

    @cached_property
    def blobs(self) -> list[Blob]:
        return pack(self.lanes, self.layout)

    @cached_property
    def points(self) -> list[Commitment]:
        """The commitment to each blob; up to 30 ms a blob that differs."""
        return negated_delta_points(self.blobs, self.layout)

    @cached_property
    def digest(self) -> bytes:
        return negated_delta_digest(self.points)


class PublishedSums:
    """Reads sums, and keeps those of the latest rounds for deriving the next base."""

    def __init__(self, ledger: Ledger, store: ArtifactStore, task: int, spec: TaskSpec) -> None:
        self._ledger, self._store, self._task, self._spec = ledger, store, task, spec
        self._published: dict[tuple[int, int], CohortSum | None] = {}
        self._progress = {STATISTICS_ROUND + 1: np.zeros(spec.coordinates, np.int64)}
        self._negated_deltas: dict[int, NegatedDelta] = {}

    def readings(self, round_: int, cohort: int, state: RoundState) -> list[CohortSum | None]:
        """The readings of a published sum: as it is, and in a decoy round sign-flipped. None for an invalid sum, which
        has a lane out of range: commitments cannot exclude that.

        Raises ArtifactMissing, ArtifactCorrupt, RecordIncomplete.
        """
        published = self._published_sum(round_, cohort, state)
        if not self._has_decoys(round_):
            return [published]
        return [self._read(round_, published, flipped) for flipped in (False, True)]

    def cohort_sum(self, round_: int, cohort: int, state: RoundState) -> CohortSum | None:
        """A cohort's sum; None for an invalid one. Raises as `readings`; RecordIncomplete also for a decoy round that
        is not settled.
        """
        if self._has_decoys(round_) and state.outcome is not Outcome.SETTLED:
            raise RecordIncomplete(
                f"round {round_} of task {self._task} is not settled, so its decoys are still secret; wait"
            )
        return self.readings(round_, cohort, state)[state.flipped_cohorts >> cohort & 1]

    def accepted(self, round_: int, state: RoundState | None = None) -> CohortSum | None:
        """The sum of all accepted cohorts of a training round; None without any. `state`: if the caller has read it.
        Raises as `cohort_sum`.
        """
        state = state or self._ledger.tasks.round_state(self._task, round_)
        if state.outcome is Outcome.PENDING:
            raise RecordIncomplete(
                f"round {round_} of task {self._task} is not settled yet; wait, or choose an earlier round"
            )
        return added(self.cohort_sum(round_, cohort, state) for cohort in members(state.accepted_cohorts))

    def forget(self, round_: int) -> None:
        """Forgets the values of this round and later ones, which a reorganisation may have changed."""
        self._published = {key: found for key, found in self._published.items() if key[0] < round_}
        self._progress = {known: found for known, found in self._progress.items() if known <= max(round_, 1)}
        self._negated_deltas = {}

    def read_ahead(self, round_: int, state: RoundState) -> None:
        """Reads a round's publication while it is judged, so that `accepted` is quick later.

        Raises ArtifactMissing, ArtifactCorrupt.
        """
        for cohort in members(state.published_cohorts):
            self._published_sum(round_, cohort, state)

    def negated_delta(self, round_: int) -> NegatedDelta:
        """The negated delta of training round `round_`, from the rounds before. Raises as `accepted` does."""
        if round_ not in self._negated_deltas:
            spec, progress = self._spec, self._progress_to(round_)
            padded = np.pad(progress, (0, spec.lanes - progress.size))
            self._negated_deltas = {
                round_: NegatedDelta(negated_delta_lanes(padded, spec.update.bits), spec.update_layout)
            }
        return self._negated_deltas[round_]

    def prepare(self, round_: int) -> None:
        """Derives the negated delta of a decoy round ahead, which takes up to 30 ms a blob. Raises as `accepted`."""
        if self._has_decoys(round_):
            _ = self.negated_delta(round_).points

    def _progress_to(self, round_: int) -> NDArray[np.int64]:
        """The sum of the accepted means before a round, in quantiser steps: int64 (k,)."""
        for done in range(max(known for known in self._progress if known <= round_), round_):
            progress, total = self._progress[done], self.accepted(done)
            if total is not None:
                progress = progress_after(progress, total.lanes, total.weight, self._spec.update.bits)
            self._progress[done + 1] = progress
        # The zeros of the first round stay, so that any other can be derived anew.
        self._progress = {k: v for k, v in self._progress.items() if k >= round_ - 1 or k == STATISTICS_ROUND + 1}
        return self._progress[round_]

    def _has_decoys(self, round_: int) -> bool:
        return self._spec.judging.decoys and round_ != STATISTICS_ROUND

    def _read(self, round_: int, published: CohortSum | None, flipped: bool) -> CohortSum | None:
        if published is None:
            return None
        negated_delta, bits = self.negated_delta(round_).lanes, self._spec.update.bits
        try:
            lanes = read_lanes(published.lanes, negated_delta, published.weight, bits, flipped)
        except LaneOutOfRange:
            return None
        return CohortSum(lanes[: self._spec.coordinates], published.weight)

    def _published_sum(self, round_: int, cohort: int, state: RoundState) -> CohortSum | None:
        """As published: all lanes in a decoy round, otherwise the used ones."""
        key_of = (round_, cohort)
        if key_of in self._published:
            return self._published[key_of]
        survivors = self._ledger.tasks.cohort_members(self._task, round_, cohort) & state.survivors
        weight, layout, count, blob_count = self._shape(round_, survivors)
        hashes = self._ledger.tasks.expected_blob_hashes(self._task, round_, cohort, blob_count)
        blobs = self._store.get_blobs(hashes)
        found = None
        try:
            lanes = unpack(blobs, count, layout, weight)
            found = CohortSum(lanes if self._has_decoys(round_) else lanes[: self._values(round_)], weight)
        except ZkError:
            pass
        self._published = {k: v for k, v in self._published.items() if k[0] >= round_ - 1} | {key_of: found}
        return found

    def _shape(self, round_: int, survivors: int) -> tuple[int, LaneLayout, int, int]:
        """Total weight, layout, lanes and blobs of a cohort's sum."""
        spec = self._spec
        if round_ == STATISTICS_ROUND:
            return survivors.bit_count(), spec.statistics_layout, spec.statistics_values, spec.statistics_blobs
        hospitals = self._ledger.tasks.hospitals(self._task)
        weight = sum(hospitals[index].weight for index in members(survivors))
        return weight, spec.update_layout, spec.lanes, spec.update_blobs

    def _values(self, round_: int) -> int:
        return self._spec.statistics_values if round_ == STATISTICS_ROUND else self._spec.coordinates
