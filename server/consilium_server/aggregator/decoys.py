"""Decoys (decoys) at the aggregator: sums published as they are or sign-flipped, and the secrets that disclose them.

Seed and blinders are on disk before the publication, because a restart must not cost the bond.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from consilium_chain.ledger.publishing import Decoys, DisclosedBlob, DisclosedCohort, cohort_commitments
from consilium_chain.ledger.structs import STATISTICS_ROUND, RoundState, ballot_size, members
from consilium_chain.rounds.sums import NegatedDelta
from consilium_chain.tasks.limits import PAGE_GAS, settle_gas
from consilium_core.logs import emit
from consilium_zk.blobs import blinders
from consilium_zk.curve import Commitment
from consilium_zk.decoys import is_flipped, published_blob, published_commitment, seed_commitment

from consilium_server.aggregator.round_secrets import SEED_BYTES, Blinders, RoundSecrets
from consilium_server.aggregator.task import AggregatedTask
from consilium_server.aggregator.uploads import CohortSum
from consilium_server.errors import DecoysLost

SETTLE_GAS = 200_000  # without the part that grows with nodes and scores


@dataclass
class HiddenSums:
    """A round's sums before publication. `seed`: 32 secret random bytes."""

    task: int
    round: int
    seed: bytes
    negated_delta: NegatedDelta
    _blinders: dict[int, list[Blinders]] = field(default_factory=dict)
    _points: dict[int, Sequence[Commitment]] = field(default_factory=dict)

    def hide(self, cohort: int, total: CohortSum, weight: int, points: Mapping[int, Sequence[Commitment]]) -> CohortSum:
        """A cohort's published sum, given its true sum, its total weight and its survivors' points: without blinders,
        and flipped by the seed.
        """
        self._points |= points
        flipped = is_flipped(self.seed, self.task, self.round, cohort)
        layout = self.negated_delta.layout
        secret = self._blinders[cohort] = [blinders(blob) for blob in total.blobs]
        blobs = [
            published_blob(blob, back, weight, layout, flipped)
            for blob, back in zip(total.blobs, self.negated_delta.blobs, strict=True)
        ]
        commitments = [
            published_commitment(point, weight, own, back, layout, flipped)
            for point, own, back in zip(total.commitments, secret, self.negated_delta.points, strict=True)
        ]
        return CohortSum(blobs, commitments)

    @property
    def decoys(self) -> Decoys:
        """Commitments to the seed and to the negated delta. They are published with the sums."""
        return Decoys(seed_commitment(self.seed), self.negated_delta.digest)

    @property
    def secrets(self) -> RoundSecrets:
        """Secrets that disclose the decoys."""
        return RoundSecrets(self.seed, dict(self._blinders), dict(self._points))


def hidden_sums(
    task: AggregatedTask, round_: int, earlier: RoundSecrets | None, on_chain: Decoys | None
) -> HiddenSums | None:
    """Begins a round's hidden sums, with the `earlier` seed if there is one; None in a round without decoys.

    A transaction with the earlier seed may reach the chain at any time. Raises DecoysLost if the decoys `on_chain`
    are others.
    """
    if not task.params.has_decoys(round_):
        return None
    seed = earlier.seed if earlier else secrets.token_bytes(SEED_BYTES)
    before = (dict(earlier.blinders), dict(earlier.points)) if earlier else ()
    hidden = HiddenSums(task.number, round_, seed, task.sums.negated_delta(round_), *before)
    if on_chain not in (None, hidden.decoys):
        raise DecoysLost("DecoysLost", path=task.secrets.shown)
    return hidden


def disclose(task: AggregatedTask, round_: int, round_state: RoundState, force: bool) -> None:
    """Discloses on chain which sums were sign-flipped, with the proof of all sums. Settles in the same call if it can.

    `force`: without a dry run. Raises DecoysLost, Refused.
    """
    ledger, decoys = task.ledger, task.ledger.record.decoys_set(task.number, round_)
    secret = task.secrets.of(round_, decoys.seed_commitment if decoys else None, round_state.survivors)
    hashes, cohorts = task.point_hashes(round_), task.cohorts(round_, round_state)

    def disclosed(cohort: int) -> DisclosedCohort:
        survivors = {index: secret.points[index] for index in members(cohorts[cohort] & round_state.survivors)}
        commitments = cohort_commitments(hashes, cohorts[cohort], survivors)
        pairs = zip(secret.blinders[cohort], commitments, strict=True)
        return DisclosedCohort(cohort, [DisclosedBlob(pair, given) for pair, given in pairs])

    closed = round_state.viable_cohorts & ~round_state.summed_cohorts
    receipts = ledger.aggregator.disclose_decoys(
        task.number, round_, secret.seed, task.sums.negated_delta(round_).points,
        [disclosed(cohort) for cohort in members(closed)], _settle_gas(task, len(task.addresses())), force,
    )  # fmt: skip
    emit("disclosed", round=round_, gas=sum(receipt.gas_used for receipt in receipts))


def _settle_gas(task: AggregatedTask, hospitals: int) -> int:
    """An upper bound on the gas of settling a round, or its first page."""
    voters = task.params.max_voters
    scores = voters * ballot_size(task.params, STATISTICS_ROUND + 1, task.params.cohorts)
    return SETTLE_GAS + min(PAGE_GAS, settle_gas(hospitals + voters, scores))
