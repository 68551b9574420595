"""The model from the public record. Each party derives every base model itself, and asks no other party for it.

A base model is the starting model, moved by the task's outer step (`outer`) in each settled round. The outer step
takes the weighted mean of the accepted cohorts' published sums, spread over the parameters by the task's codec. Tasks
that train one model together (shards) have one base.
"""

from __future__ import annotations

import numpy as np
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import RecordIncomplete
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND, Outcome, RoundState
from consilium_chain.rounds.shards import ShardSums, States
from consilium_chain.rounds.signed_updates import agreed_base
from consilium_chain.rounds.sums import CohortSum
from consilium_chain.tasks.start_specs import FileStart, SeedStart
from consilium_chain.tasks.summary_counts import summed_counts
from consilium_chain.tasks.task_spec import STATISTICS_BITS, STATISTICS_RANGE
from consilium_core.logs import emit
from consilium_zk.basis import Basis, Coordinates
from consilium_zk.quantise import Quantiser
from numpy.typing import NDArray

from consilium_client.data.standardise import class_weights, counted_start, public_sums
from consilium_client.errors import ClientError, MismatchError
from consilium_client.models import Vector, digest_of, start_of
from consilium_client.models.fold import Fold, Folded
from consilium_client.start import started_from, started_from_file
from consilium_client.task import JoinedTask

FIRST_ROUND = STATISTICS_ROUND + 1  # of training


class PublicRecord:
    """Derives a task's models from chain and artifact store, and keeps only the first and the latest two.

    All methods raise RecordIncomplete, ArtifactMissing or ArtifactCorrupt where the record is not complete, and
    ClientError (StartUnusable), ModelError (WeightsUnusable).
    """

    def __init__(self, ledger: Ledger, store: ArtifactStore, task: JoinedTask, depth: int = 0) -> None:
        """`depth`: tasks that start from this one, one from the other."""
        self._ledger, self._store, self._task, self._depth = ledger, store, task, depth
        spec = task.spec
        self._shards = ShardSums(ledger, store, task.number, spec)
        self.sums = self._shards.own
        self._fold = Fold(spec, task.params.spec_hash)
        self._states: dict[int, Folded] = {}
        self._sources: dict[
            int, tuple[object, ...]
        ] = {}  # by round: facts of the chain that its state after comes from
        self._compared: set[int] = set()  # rounds whose stated bases were compared

    @property
    def basis(self) -> Basis:
        return self._fold.basis

    def statistics(self) -> NDArray[np.float64]:
        """The sums that everybody standardises by: float64 (statistics_values,). Raises StatisticsOutOfRange.

        Those of the schema; in a task with exact statistics, round 0's sums over all hospitals.
        """
        spec = self._task.spec
        if spec.statistics == "schema":
            return public_sums(spec.data)
        return self._round_0()[: spec.data.statistics_values]

    def class_weights(self) -> NDArray[np.float32] | None:
        """The weight of a row of each class in training, float32 (classes,); None if all rows count alike."""
        spec = self._task.spec
        return class_weights(self._round_0(), spec) if spec.counted_classes else None

    def summary(self) -> tuple[NDArray[np.int64], int]:
        """The counts of the summary over all hospitals, with their noise, (summary_values,), and the number of these
        hospitals. Raises as `statistics`.
        """
        return summed_counts(self._round_0(), self._task.spec), self._counted_sum().weight

    def _round_0(self) -> NDArray[np.float64]:
        """The sums of round 0 over all hospitals, float64 (statistics_values,)."""
        found = self._counted_sum()
        return Quantiser(STATISTICS_BITS, STATISTICS_RANGE).dequantise_sum(found.lanes, found.weight)

    def _counted_sum(self) -> CohortSum:
        if self._is_uncounted():
            raise RecordIncomplete(f"round 0 of task {self._task.number} is not settled")
        found = self._shards.counted()
        if found is None:
            raise ClientError("StatisticsOutOfRange", task=self._task.number)
        return found

    def base(self, round_: int) -> Vector:
        """The model that round `round_` (1 …) starts from: float32 (p,)."""
        return self._before(round_).outer.model

    def base_digest(self, round_: int) -> bytes:
        """`digest_of` the base of a round; in round 0, of the first one, without what round 0 counts."""
        if round_ == STATISTICS_ROUND and self._task.spec.starts_counted:
            return digest_of(self._start())
        return digest_of(self.base(max(round_, FIRST_ROUND)))

    def refresh(self, round_: int) -> None:
        """Derives a round's base anew if the kept one is stale, and logs which one was.

        It is stale if a reorganisation changed a round before it, or if more than half of a round's hospitals state
        another one. The record has the last word, not the hospitals: a node goes on with the model that it derives.
        """
        for done, source in sorted(self._sources.items()):
            if done < round_ and source != self._source(self._shards.states(done)):
                self._forget_after(done)
                emit("base-undone", round=done + 1)
                break
        for stated_in in (round_ - 1, round_):
            self._compare(stated_in)

    def _compare(self, round_: int) -> None:
        """Compares the base of a round with the digests that its hospitals state."""
        if round_ in self._compared or round_ < STATISTICS_ROUND:
            return
        stated = self._ledger.record.stated_bases(self._task.number, round_).values()
        hospitals = self._ledger.tasks.round_state(self._task.number, round_).members.bit_count()
        agreed = agreed_base(stated, hospitals)
        if agreed is None:
            return
        self._compared.add(round_)
        if (kept := self.base_digest(round_)) == agreed:
            return
        self._forget_after(max(round_, FIRST_ROUND) - 1)
        derived = self.base_digest(round_)
        event = "base-healed" if derived == agreed else "base-differs"
        emit(event, round=round_, kept=kept.hex(), derived=derived.hex(), stated=agreed.hex())

    def _forget_after(self, done: int) -> None:
        """Forgets the state after a round, and later ones. The next one is derived from the last that stays."""
        self._states = {known: state for known, state in self._states.items() if known <= done}
        self._sources = {known: source for known, source in self._sources.items() if known < done}
        self._compared = {known for known in self._compared if known <= done}
        self._shards.forget(done)

    @staticmethod
    def _source(states: States) -> tuple[object, ...]:
        return tuple(
            (task, one.outcome, one.cohort_seed, one.survivors, one.accepted_cohorts, one.flipped_cohorts)
            for task, one in states.items()
        )

    def latest_mean(self, round_: int) -> tuple[int, Coordinates] | None:
        """The latest settled round before `round_`, and its mean update, float64 (k,), in a task with control variates.
        None before the first.
        """
        before = self._before(round_)
        return None if before.mean is None else (before.round, before.mean)

    def candidates(self, round_: int, cohort: int, state: RoundState) -> list[Vector | None]:
        """A cohort's candidates (`Outer.candidate`): as published, and in a decoy round sign-flipped. None for no
        valid model."""
        found, before = self.sums.readings(round_, cohort, state), self._before(round_)
        return [None if one is None else self._fold.candidate(before, one.lanes, one.weight) for one in found]

    def require_decoys(self, round_: int) -> None:
        """Raises NegatedDeltaMismatched unless the aggregator published the negated delta of this decoy round's record.

        The contract takes it from the aggregator. Voters check that the aggregator did not choose it freely.
        """
        published = self._ledger.record.decoys_set(self._task.number, round_)
        if published is None:
            raise RecordIncomplete(f"this chain node lacks the record of the decoys of round {round_}")
        expected = self.sums.negated_delta(round_).digest
        if published.negated_delta_digest != expected:
            raise MismatchError(
                "NegatedDeltaMismatched",
                round=round_,
                published=published.negated_delta_digest.hex(),
                expected=expected.hex(),
            )

    def _before(self, round_: int) -> Folded:
        states, sources = self._states, self._sources
        if FIRST_ROUND not in states:
            states, sources = {}, {}
            if self._task.spec.starts_counted:
                sources[STATISTICS_ROUND] = self._source(self._shards.states(STATISTICS_ROUND))
            states[FIRST_ROUND] = self._fold.begin(self._start(self._counted()))
        for done in range(max(known for known in states if known <= round_), round_):
            found = self._shards.states(done)
            accepted, state = self._shards.accepted(done, found), states[done]
            moved = state if accepted is None else self._fold.after(state, done, accepted.lanes, accepted.weight)
            # The first one stays: any other can be derived again from it.
            states = {k: known for k, known in states.items() if k >= done or k == FIRST_ROUND} | {done + 1: moved}
            sources = {k: known for k, known in sources.items() if k + 1 in states} | {done: self._source(found)}
        self._states, self._sources = states, sources
        return states[round_]

    def _counted(self) -> Vector | None:
        """The last biases by round 0's counts, in a task that starts from them; None if round 0 has no valid sum, so
        that one hospital cannot stop the task.
        """
        if not self._task.spec.starts_counted or self._is_uncounted():
            return None
        try:
            return counted_start(self._round_0(), self._task.spec)
        except ClientError as error:
            if error.name != "StatisticsOutOfRange":
                raise
            return None

    def _is_uncounted(self) -> bool:
        """True if round 0 is void, in every shard."""
        states = self._shards.states(STATISTICS_ROUND).values()
        return all(state.outcome is Outcome.VOID for state in states)

    def _start(self, counted: Vector | None = None) -> Vector:
        """`counted`: the last biases by round 0's counts."""
        spec = self._task.spec
        if isinstance(spec.start, SeedStart):
            return start_of(spec, int.from_bytes(self._task.params.spec_hash[:8], "big"), counted)
        if isinstance(spec.start, FileStart):
            return started_from_file(self._store, spec, spec.start)
        other, last = started_from(self._ledger, self._store, spec, spec.start, self._depth)
        return PublicRecord(self._ledger, self._store, other, self._depth + 1).base(last + 1)
