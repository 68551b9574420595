"""Decoy rounds on a real local chain: a `TaskDriver` whose aggregator hides its sums and discloses them later.

What decoys take back is drawn at random: the chain takes the aggregator's word for it, and voters look.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from chain_driver import TaskDriver, Update
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.publishing import Decoys, DisclosedBlob, DisclosedCohort, PublishedCohort
from consilium_chain.ledger.structs import members
from consilium_chain.rounds.sums import NegatedDelta
from consilium_chain.rpc.outgoing import Receipt
from consilium_server.aggregator.decoys import HiddenSums
from consilium_server.aggregator.uploads import CohortSum
from consilium_zk.decoys import is_flipped, negated_delta_lanes
from consilium_zk.kzg import Commitment, commit
from consilium_zk.packing import LaneLayout, pack

BITS = 16  # of a quantised value
DECOY_LAYOUT = LaneLayout(bits=BITS + 1, total_weight=256)
SETTLE_GAS = 2_000_000

Disclosure = Callable[[list[DisclosedCohort]], list[DisclosedCohort]]


def seed_of(flipped: int, task: int, round_: int, cohorts: int) -> bytes:
    """A seed that turns exactly these cohorts of a round, found by trying: another one for each round."""
    tried = ((round_ << 32 | number).to_bytes(32, "big") for number in range(1, 1 << 20))
    return next(s for s in tried if sum(is_flipped(s, task, round_, k) << k for k in range(cohorts)) == flipped)


@dataclass
class DecoyDriver(TaskDriver):
    """`flipped`: bit map of the cohorts whose sums are published sign-flipped in every training round."""

    layout: LaneLayout = DECOY_LAYOUT
    flipped: int = 0

    def __post_init__(self) -> None:
        own = {"decoys": True, "update_bits": BITS, "lane_bits": self.layout.lane_bits}
        self.terms = own | self.terms
        super().__post_init__()
        self.lanes = self.params.update_blobs * self.layout.lanes_per_blob
        self.hidden: dict[int, HiddenSums] = {}

    def make_update(self, index: int, round_: int | None = None) -> Update:
        """Quantised values in every lane, packed and blinded."""
        number = self.round if round_ is None else round_
        if number == 0 and self.statistics is not None:
            return super().make_update(index, number)
        lanes = self.random.integers(0, 2**BITS - 1, self.lanes, dtype=np.uint64)
        return self.update_of(index, number, lanes, pack(lanes, self.layout))

    def hiding(self) -> HiddenSums:
        """This round's, the same at every call."""
        round_ = self.round
        if round_ not in self.hidden:
            seed = seed_of(self.flipped, self.task, round_, self.params.cohorts)
            progress = self.random.integers(-(2**BITS), 2**BITS, self.lanes)
            negated_delta = NegatedDelta(negated_delta_lanes(progress, BITS), self.layout)
            self.hidden[round_] = HiddenSums(self.task, round_, seed, negated_delta)
        return self.hidden[round_]

    @property
    def decoys(self) -> Decoys | None:
        return self.hiding().decoys if self.params.has_decoys(self.round) else None

    def shown_sum(self, cohort: int, survivors: Sequence[int]) -> PublishedCohort:
        found = self.cohort_sum(cohort, survivors)
        if not self.params.has_decoys(self.round):
            return found
        total = CohortSum(list(found.blobs), [commit(blob) for blob in found.blobs])
        weight, points = self.weight_of(cohort, survivors), self.points_of(cohort, survivors)
        return replace(found, blobs=self.hiding().hide(cohort, total, weight, points).blobs)

    def points_of(self, cohort: int, survivors: Sequence[int]) -> dict[int, list[Commitment]]:
        return {index: self.updates[self.round, index].points for index in self.cohort(cohort) if index in survivors}

    def weight_of(self, cohort: int, survivors: Sequence[int]) -> int:
        round_ = self.round
        return sum(self.weight(index, round_) for index in self.cohort(cohort) if index in survivors)

    # Voters

    def ballot(self, genuine: Sequence[int], decoy: Sequence[int]) -> list[int]:
        """Scores of the sums and of their decoys, by cohort, in the order of a ballot."""
        pairs = [
            (bad, good) if self.flipped >> cohort & 1 else (good, bad)
            for cohort, (good, bad) in enumerate(zip(genuine, decoy, strict=True))
        ]
        return [as_it_is for as_it_is, _ in pairs] + [flipped for _, flipped in pairs]

    # Opening

    def disclosed(self) -> list[DisclosedCohort]:
        """What an honest aggregator shows of this round."""
        state, secrets = self.round_state, self.hidden[self.round].secrets
        found = []
        for cohort in members(state.viable_cohorts):
            given = self.cohort_sum(cohort, list(members(state.survivors))).commitments
            blobs = [DisclosedBlob(pair, own) for pair, own in zip(secrets.blinders[cohort], given, strict=True)]
            found.append(DisclosedCohort(cohort, blobs))
        return found

    def open(
        self,
        change: Disclosure | None = None,
        seed: bytes | None = None,
        negated_delta: Sequence[Commitment] | None = None,
        by: Ledger | None = None,
        settle_gas: int = SETTLE_GAS,
    ) -> list[Receipt]:
        """Discloses the round, and settles it where there is gas for that; of the disclosure as `change` makes it."""
        hidden, disclosed = self.hidden[self.round], self.disclosed()
        return (by or self.aggregator).aggregator.disclose_decoys(
            self.task, self.round, hidden.seed if seed is None else seed,
            hidden.negated_delta.points if negated_delta is None else negated_delta,
            disclosed if change is None else change(disclosed), settle_gas,
        )  # fmt: skip
