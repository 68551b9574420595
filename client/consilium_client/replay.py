"""The model as the public record gives it: nobody is asked for a base model, everybody derives it.

A base is the initial parameters plus, for each settled round, the weighted mean of the accepted cohorts' published
sums. Elementwise IEEE arithmetic in a fixed order: every machine gets the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from consilium_chain.artifacts import ArtifactStore
from consilium_chain.ledger import Ledger
from consilium_chain.task_spec import STATISTICS_BITS, STATISTICS_RANGE
from consilium_chain.views import STATISTICS_ROUND, Outcome, RoundState, members
from consilium_zk.errors import ZkError
from consilium_zk.packing import LaneLayout, unpack
from consilium_zk.quantise import Quantiser
from numpy.typing import NDArray

from consilium_client.errors import RecordIncomplete
from consilium_client.models import initial_parameters
from consilium_client.task import JoinedTask

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class CohortSum:
    """Sum of a cohort's quantised updates: lanes (p,) and the total weight in them."""

    lanes: NDArray[np.uint64]
    weight: int


class PublicRecord:
    """Reads a task's published sums from chain and artifact store, and keeps what it derived."""

    def __init__(self, ledger: Ledger, store: ArtifactStore, task: JoinedTask) -> None:
        self._ledger, self._store, self._task = ledger, store, task
        spec = task.spec
        self._quantiser = Quantiser(spec.update.bits, spec.update.value_range)
        first = initial_parameters(spec.model, spec.data.columns, seed=int.from_bytes(task.params.spec_hash[:8], "big"))
        self._bases: list[Vector] = [first]
        self._sums: dict[tuple[int, int], CohortSum | None] = {}

    def statistics(self) -> NDArray[np.float64]:
        """Sums over all hospitals of round 0: float64 (statistics_values,). Raises RecordIncomplete."""
        state = self._ledger.round_state(self._task.number, STATISTICS_ROUND)
        if state.outcome is not Outcome.SETTLED:
            raise RecordIncomplete(f"round 0 of task {self._task.number} is not settled")
        found = self.cohort_sum(STATISTICS_ROUND, 0, state)
        if found is None:
            raise RecordIncomplete(f"the statistics of task {self._task.number} hold a value out of range")
        return Quantiser(STATISTICS_BITS, STATISTICS_RANGE).dequantise_sum(found.lanes, found.weight)

    def base(self, round_: int) -> Vector:
        """The model that round `round_` (1 …) starts from: float32 (p,)."""
        while len(self._bases) < round_:
            done = len(self._bases)
            state = self._ledger.round_state(self._task.number, done)
            if state.outcome is Outcome.PENDING:
                raise RecordIncomplete(f"round {done} of task {self._task.number} is not settled")
            self._bases.append(self._next_base(done, state))
        return self._bases[round_ - 1]

    def candidate(self, round_: int, cohort: int, state: RoundState) -> Vector | None:
        """Base plus one cohort's mean update; None where the published sum is no valid model."""
        found = self.cohort_sum(round_, cohort, state)
        return None if found is None else self._apply(self.base(round_), [found])

    def cohort_sum(self, round_: int, cohort: int, state: RoundState) -> CohortSum | None:
        """A cohort's published sum; None where a lane is out of range, which its commitments cannot rule out."""
        key_of = (round_, cohort)
        if key_of in self._sums:
            return self._sums[key_of]
        survivors = self._ledger.cohort_members(self._task.number, round_, cohort) & state.survivors
        weight, layout, count, blob_count = self._shape(round_, survivors)
        hashes = [self._ledger.expected_blob_hash(self._task.number, round_, cohort, i) for i in range(blob_count)]
        blobs = self._store.get_blobs(hashes)
        try:
            found = CohortSum(unpack(blobs, count, layout, weight), weight)
        except ZkError:
            found = None
        # The round's sums come again when the next base is derived.
        self._sums = {key: value for key, value in self._sums.items() if key[0] >= round_ - 1} | {key_of: found}
        return found

    def _shape(self, round_: int, survivors: int) -> tuple[int, LaneLayout, int, int]:
        spec = self._task.spec
        if round_ == STATISTICS_ROUND:
            return survivors.bit_count(), spec.statistics_layout, spec.statistics_values, spec.statistics_blobs
        hospitals = self._ledger.hospitals(self._task.number)
        weight = sum(hospitals[index].weight for index in members(survivors))
        return weight, spec.update_layout, spec.parameters, spec.update_blobs

    def _next_base(self, round_: int, state: RoundState) -> Vector:
        sums = [self.cohort_sum(round_, cohort, state) for cohort in members(state.accepted_cohorts)]
        return self._apply(self._bases[round_ - 1], [found for found in sums if found is not None])

    def _apply(self, base: Vector, sums: list[CohortSum]) -> Vector:
        if not sums:
            return base
        lanes = np.add.reduce([found.lanes for found in sums], axis=0, dtype=np.uint64)
        mean = self._quantiser.dequantise_mean(lanes, sum(found.weight for found in sums))
        return base + mean.astype(np.float32)
