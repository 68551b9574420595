"""Publishes a round: each cohort's checked sum, or the reason for its absence."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from consilium_chain.artifacts.store import CHECK_BITS
from consilium_chain.ledger.publishing import (
    NOTHING_SAID,
    Accusation,
    CohortsFate,
    Commitments,
    PublishedCohort,
    cohort_commitments,
)
from consilium_chain.ledger.structs import STATISTICS_ROUND, Phase, RoundState, TaskState, members
from consilium_core.logs import emit
from consilium_core.tracing import span

from consilium_server.aggregator.decoys import HiddenSums, hidden_sums
from consilium_server.aggregator.disputes import accuse_withholders, make_accusation
from consilium_server.aggregator.round_work import RoundWork
from consilium_server.aggregator.task import AggregatedTask
from consilium_server.aggregator.uploads import CohortSum, Contribution, sum_cohort, wrong_uploads
from consilium_server.errors import SumMismatch

SumHook = Callable[[int, CohortSum, Sequence[Contribution]], CohortSum]
Summed = tuple[dict[int, Contribution], CohortSum]  # a cohort's survivors by index, and their checked sum


@dataclass
class Publication:
    """An attempt to publish a round. `sum_to_publish` gives the sum to publish for each checked sum."""

    task: AggregatedTask
    work: RoundWork
    state: TaskState
    round_state: RoundState
    sum_to_publish: SumHook
    survivors: int = 0
    published: list[PublishedCohort] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    accused: dict[int, Accusation] = field(default_factory=dict)

    def publish(self, force: bool) -> None:
        """Sends every viable cohort's fate; `force`: without a dry run. Raises Refused, DecoysLost, SumMismatch."""
        task, round_, started = self.task, self.work.number, time.monotonic()
        begun = self.state.phase is Phase.PUBLISHING
        before = task.ledger.record.published_so_far(task.number, round_) if begun else NOTHING_SAID
        earlier = task.secrets.latest(round_)
        if before.decoys is not None:  # perhaps another machine's
            earlier = task.secrets.of(round_, before.decoys.seed_commitment, self.round_state.survivors)
        hidden = hidden_sums(task, round_, earlier, before.decoys)
        allowed = self.round_state.survivors if begun else (earlier.survivors if earlier else 0) or ~0
        contributions = self._contributions(allowed)
        cohorts = self.work.cohorts(self.round_state)
        for cohort in members(self.round_state.viable_cohorts):
            present = {index: contributions[index] for index in members(cohorts[cohort]) if index in contributions}
            with span("sum", cohort=cohort, hospitals=len(present)):
                self._add(cohort, cohorts[cohort], present, hidden)
        if hidden is not None and self.published:  # an empty result must not replace secrets from before a restart
            task.secrets.store(round_, replace(hidden.secrets, survivors=self.survivors))
        publish = task.ledger.aggregator.publish_digests if task.params.digests else task.ledger.aggregator.publish_sums
        decoys = hidden.decoys if hidden and self.published else None
        fate = CohortsFate(None if begun else self.survivors)
        if task.params.masked:
            fate = CohortsFate(dropped=self.dropped, accused=self.accused)
        receipts = publish(task.number, round_, fate, self.published, decoys, force, before)
        emit(
            "published", round=round_, gas=sum(r.gas_used for r in receipts), cohorts=len(self.published),
            survivors=self.survivors.bit_count(), seconds=round(time.monotonic() - started, 3),
        )  # fmt: skip

    def _contributions(self, allowed: int) -> dict[int, Contribution]:
        """Uploads of committed hospitals in the bit map `allowed`, with their weights."""
        hospitals = self.task.ledger.tasks.hospitals(self.task.number)
        return {
            index: Contribution(upload, 1 if self.work.number == STATISTICS_ROUND else hospitals[index].weight)
            for index, upload in self.work.uploads(self.round_state.committed).items()
            if allowed >> index & 1
        }

    def _add(
        self, cohort: int, cohort_members: int, present: dict[int, Contribution], hidden: HiddenSums | None
    ) -> None:
        """Adds a cohort's sum or its accusation, or drops it. Raises SumMismatch if no hospital is at fault."""
        try:
            summed = self._unmasked_sum(cohort, present) if self.task.params.masked else self._sum(cohort, present)
        except SumMismatch as error:
            if not self.task.params.masked:
                raise
            emit("sum-missing", round=self.work.number, cohort=cohort, error=type(error).__name__)
            self.accused[cohort] = self._accusation(cohort, cohort_members)
            return
        if summed is None:
            self._leave_out(cohort)
            return
        survivors, total = summed
        parts = list(survivors.values())
        points = {index: part.points for index, part in survivors.items()}
        shown = self.sum_to_publish(self.work.number, total, parts)
        if hidden is not None:
            shown = hidden.hide(cohort, shown, sum(part.weight for part in parts), points)
        self.survivors |= sum(1 << index for index in survivors)
        hashes = self.work.point_hashes(self.round_state.committed)
        self.published.append(self._stored(cohort, shown, cohort_commitments(hashes, cohort_members, points)))

    def _sum(self, cohort: int, present: dict[int, Contribution]) -> Summed | None:
        """A cohort's checked sum, without hospitals with a wrong upload; None if too few are left."""
        if len(present) < max(self.task.params.min_cohort_size, 1):
            return None
        try:
            return present, sum_cohort(cohort, list(present.values()), self._factors())
        except SumMismatch:
            wrong = wrong_uploads(present)
            emit("upload-wrong", round=self.work.number, cohort=cohort, hospitals=wrong)
            if not wrong:
                raise
            return self._sum(cohort, {index: part for index, part in present.items() if index not in wrong})

    def _unmasked_sum(self, cohort: int, present: dict[int, Contribution]) -> Summed | None:
        """A masked cohort's checked sum; None if its masks are unknown.

        Raises SumMismatch if an upload differs from the commitment and the agreed masks.
        """
        residue = self.work.answers(self.round_state)[cohort].residue()
        if residue is None:
            emit("sum-missing", round=self.work.number, cohort=cohort, error="UnmaskingFailed")
            return None
        survivors = {index: part for index, part in present.items() if self.round_state.survivors >> index & 1}
        return survivors, sum_cohort(cohort, list(survivors.values()), self._factors(), residue)

    def _factors(self) -> list[int]:
        """Random factors of a sum's check, one per blob. They are chosen after the uploads arrived."""
        return [secrets.randbits(CHECK_BITS) for _ in range(self.task.blob_count(self.work.number))]

    def _leave_out(self, cohort: int) -> None:
        """Accuses hospitals that withheld their masks' roots, if enough answered; else drops the cohort."""
        answers = self.work.answers(self.round_state).get(cohort) if self.task.params.masked else None
        if answers is not None and answers.at_fault():
            self.accused[cohort] = accuse_withholders(self.task.store, answers.sound)
        else:
            self.dropped.append(cohort)

    def _accusation(self, cohort: int, cohort_members: int) -> Accusation:
        task, work, round_state = self.task, self.work, self.round_state
        roots = work.answers(round_state)[cohort].roots()
        # This process has not read the statements if an earlier one fixed the survivors.
        work.sound_statements(cohort_members, round_state.committed)
        uploads = work.uploads(round_state.committed)
        return make_accusation(
            task.ledger, task.store, task.number, cohort, round_state, work.statements, uploads, roots
        )

    def _stored(self, cohort: int, shown: CohortSum, commitments: Sequence[Commitments]) -> PublishedCohort:
        """Stores a sum and begins its cell proofs."""
        digests = []
        for blob, commitment in zip(shown.blobs, shown.commitments, strict=True):
            if not self.task.params.digests:
                self.task.ledger.aggregator.prover.prove(blob, commitment)
            digests.append(self.task.store.put_blob(blob, commitment))
        return PublishedCohort(cohort, shown.blobs, commitments, digests)
