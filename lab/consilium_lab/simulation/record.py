"""A task's public record without a chain: it answers as the contracts would, for the code that reads records.

`PublicRecord` and `Judge` read it as they read a chain. The blobs of sums are in a store on disk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Hospital, Outcome, RoundState, VoidReason, members
from consilium_chain.rounds.sums import PublishedSums
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import TaskSpec, spec_hash
from consilium_client.replay import PublicRecord
from consilium_client.task import JoinedTask
from consilium_zk.blobs import Blob, combine
from consilium_zk.curve import weighted_sum
from consilium_zk.decoys import is_flipped, published_blob
from consilium_zk.kzg import commit, versioned_hash

from consilium_lab.errors import LabError

TASK = 1
NOBODY = "0x" + "00" * 20
NEW_ROUND = RoundState(
    Outcome.PENDING, VoidReason.NONE, 0, 0, bytes(32), bytes(32), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    False, ()
)  # fmt: skip


class SimulatedRecord:
    """`weights`: of the hospitals, by index. `seed` (32 bytes) decides which sums are published sign-flipped."""

    def __init__(self, raw: bytes, spec: TaskSpec, weights: Sequence[int], store: ArtifactStore, seed: bytes) -> None:
        self.spec, self.weights, self.store, self.seed = spec, weights, store, seed
        self.params = task_params(spec, spec_hash(raw), NOBODY)
        self.tasks = self  # readers ask it for rounds, cohorts, hospitals and sums
        self._rounds: dict[int, RoundState] = {}
        self._cohorts: dict[tuple[int, int], int] = {}
        self._hashes: dict[tuple[int, int], list[bytes]] = {}
        self._aggregator = PublishedSums(cast(Ledger, self), store, TASK, spec)

    @property
    def task(self) -> JoinedTask:
        return JoinedTask(TASK, self.spec, self.params)

    def reader(self) -> PublicRecord:
        return PublicRecord(cast(Ledger, self), self.store, self.task)

    def publish(
        self,
        round_: int,
        cohorts: Sequence[Sequence[int]],
        updates: Mapping[int, Sequence[Blob]],
        *,
        absent: Collection[int] = (),
        is_statistics: bool,
    ) -> RoundState:
        """Adds up each cohort's updates (by hospital) by weight, checks the sum by commitments, and publishes it. A
        cohort without updates has no sum. `absent`: hospitals that committed nothing.

        Raises LabError (SumMismatched) if a sum is not the one that its hospitals committed to.
        """
        summed = 0
        for cohort, assigned_ in enumerate(cohorts):
            self._cohorts[round_, cohort] = _bits(assigned_)
            if survivors := [index for index in assigned_ if index in updates]:
                sums = self._sums(round_, cohort, {index: updates[index] for index in survivors}, is_statistics)
                self._hashes[round_, cohort] = [self.store.put_blob(blob, commit(blob)) for blob in sums]
                summed |= 1 << cohort
        everybody = [index for part in cohorts for index in part]
        self._rounds[round_] = replace(
            NEW_ROUND, cohorts=len(cohorts), viable_cohorts=summed, published_cohorts=summed, members=_bits(everybody),
            committed=_bits([index for index in everybody if index not in absent]), survivors=_bits(updates),
        )  # fmt: skip
        return self._rounds[round_]

    def _sums(
        self, round_: int, cohort: int, updates: Mapping[int, Sequence[Blob]], is_statistics: bool
    ) -> Sequence[Blob]:
        """The blobs of a cohort's sum, as they are published."""
        factors = [1 if is_statistics else self.weights[index] for index in updates]
        sums = [_checked_sum(part, factors, round_, cohort) for part in zip(*updates.values(), strict=True)]
        if is_statistics or not self.spec.judging.decoys:
            return sums
        negated, flipped = self._aggregator.negated_delta(round_), self.flipped(round_, cohort)
        return [
            published_blob(blob, back, sum(factors), self.spec.update_layout, flipped)
            for blob, back in zip(sums, negated.blobs, strict=True)
        ]

    def void(self, round_: int, reason: VoidReason) -> None:
        """Ends a round without sums."""
        self._rounds[round_] = replace(NEW_ROUND, outcome=Outcome.VOID, void_reason=reason)

    def settle(self, round_: int, accepted: int) -> None:
        """`accepted`: bit map of cohorts. Discloses which sums are sign-flipped."""
        state = self._rounds[round_]
        flipped = sum(self.flipped(round_, cohort) << cohort for cohort in members(state.viable_cohorts))
        self._rounds[round_] = replace(
            state, outcome=Outcome.SETTLED, accepted_cohorts=accepted, flipped_cohorts=flipped
        )

    def flipped(self, round_: int, cohort: int) -> bool:
        return self.spec.judging.decoys and is_flipped(self.seed, TASK, round_, cohort)

    def shards(self, task: int) -> range:
        """A simulation plays one shard of a model."""
        return range(task, task + 1)

    def round_state(self, task: int, round_: int) -> RoundState:
        return self._rounds.get(round_, NEW_ROUND)

    def cohort_members(self, task: int, round_: int, cohort: int) -> int:
        return self._cohorts[round_, cohort]

    def hospitals(self, task: int) -> list[Hospital]:
        return [Hospital(f"0x{index:040x}", weight, 0) for index, weight in enumerate(self.weights)]

    def expected_blob_hashes(self, task: int, round_: int, cohort: int, count: int) -> list[bytes]:
        return self._hashes[round_, cohort][:count]


def _bits(indices: Iterable[int]) -> int:
    return sum(1 << index for index in indices)


def _checked_sum(blobs: Sequence[Blob], factors: Sequence[int], round_: int, cohort: int) -> Blob:
    """The weighted sum of one blob of each hospital, as the chain checks it: by the sum of their commitments."""
    found = combine(blobs, factors)
    expected = weighted_sum([commit(blob) for blob in blobs], factors)
    if versioned_hash(commit(found)) != versioned_hash(expected):
        raise LabError("SumMismatched", round=round_, cohort=cohort)
    return found


def assigned(hospitals: Sequence[int], spec: TaskSpec, random: np.random.Generator) -> list[list[int]]:
    """Hospitals by cohort, in cohorts of nearly equal size, as many as the contract forms: perhaps none."""
    count = min(spec.rounds.cohorts, len(hospitals) // spec.rounds.min_cohort_size)
    order = random.permutation(hospitals).tolist()
    return [sorted(order[cohort::count]) for cohort in range(count)]
