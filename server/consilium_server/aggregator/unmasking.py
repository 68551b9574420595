"""Survivors' answers in a masked round, by cohort. They give the masks of the cohort's sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import RoundState, members
from consilium_chain.rounds.secret_shares import masked_cohort, read_share_bundles
from consilium_core.logs import emit
from consilium_zk.blobs import Blob
from consilium_zk.errors import AnswerMalformed, UnmaskingFailed
from consilium_zk.secure_aggregation import Unmasking

from consilium_server.aggregator.uploads import Answer


class CohortAnswers:
    """Survivors of one cohort, and their answers so far."""

    def __init__(self, round_: int, survivors: int, threshold: int, unmasking: Unmasking) -> None:
        self._round, self._survivors, self._threshold, self._unmasking = round_, survivors, threshold, unmasking
        self.sound: dict[int, bytes] = {}  # answers that their hospitals signed, by index
        self._taken = 0
        self._tried = 0
        self._residue: Callable[[int], Blob] | None = None

    def take(self, answers: Mapping[int, Answer]) -> None:
        """Takes the new answers of this cohort's survivors. Logs each invalid one with its hospital."""
        for index in members(self._survivors & ~self._taken):
            if index not in answers:
                continue
            self._taken |= 1 << index
            try:
                faults = self._unmasking.take(index, answers[index].words)
            except AnswerMalformed as error:
                emit("answer-refused", round=self._round, hospital=index, error=str(error))
                continue
            self.sound[index] = answers[index].words
            for dealer, fault in faults.items():
                emit("share-missing", round=self._round, hospital=index, dealer=dealer, error=str(fault))

    def at_fault(self) -> set[int]:
        """Hospitals that withheld roots of masks, once enough survivors answered."""
        return set(self._unmasking.at_fault()) if len(self.sound) >= self._threshold else set()

    def is_over(self, silent: int) -> bool:
        """True if no answer is expected: the masks are known, or all others are `silent` (a bit map)."""
        return self.residue() is not None or not self._survivors & ~self._taken & ~silent

    def roots(self) -> dict[int, int]:
        """Roots of all masks in the masking (`Unmasking.roots`), once the residue is known."""
        return self._unmasking.roots()

    def residue(self) -> Callable[[int], Blob] | None:
        """The mask of the survivors' sum, by number of blob; None until the answers give it."""
        if self._residue is None and self._taken != self._tried and len(self.sound) >= self._threshold:
            self._tried = self._taken
            try:
                seeds = self._unmasking.seeds()
            except UnmaskingFailed as error:
                for index, fault in error.faults.items():
                    emit("root-missing", round=self._round, hospital=index, error=str(fault))
            else:
                self._residue = lambda blob: self._unmasking.residue(seeds, blob)
        return self._residue


def cohort_answers(
    ledger: Ledger, store: ArtifactStore, task: int, round_: int, cohort: int, round_state: RoundState
) -> CohortAnswers:
    """Begins the answers of a cohort with fixed survivors. Raises ArtifactMissing, ArtifactCorrupt."""
    masked = masked_cohort(ledger, task, round_, cohort)
    share_bundles = read_share_bundles(ledger, store, task, round_, masked)
    survivors = cohort & round_state.survivors
    return CohortAnswers(round_, survivors, masked.threshold, Unmasking(masked, share_bundles, members(survivors)))
