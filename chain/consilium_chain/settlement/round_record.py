"""The input of settlement: a task's terms, and a round with its scores."""

from __future__ import annotations

from dataclasses import dataclass

from consilium_chain.errors import SettlementInvalid
from consilium_chain.ledger.structs import DOES_NOT_MATCH, TaskParams, members
from consilium_chain.settlement.payouts import portion


@dataclass(frozen=True)
class Terms:
    """The task's parameters that settlement reads. Shares and slashes in basis points."""

    pool: int
    rounds: int
    max_hospitals: int
    hospital_bond: int
    voter_bond: int
    aggregator_bond: int
    digests: bool
    decoys: bool
    min_reveals: int
    accept_floor: int
    harmful_below: int
    tolerance_abs: int
    tolerance_bps: int
    decoy_margin: int
    hospital_share_bps: int
    voter_share_bps: int
    aggregator_share_bps: int
    rank_decay_bps: int
    rank_floor: int
    harmful_slash_bps: int
    withheld_slash_bps: int
    not_revealed_slash_bps: int
    failed_decoy_slash_bps: int
    not_published_slash_bps: int

    @classmethod
    def of(cls, params: TaskParams) -> Terms:
        return cls(**{name: getattr(params, name) for name in cls.__dataclass_fields__})

    @property
    def withheld_slash(self) -> int:
        """The slash of a hospital whose committed upload is in no sum, if its bond is large enough.

        The chain cannot tell if the hospital or the aggregator withheld the upload, so the slash is at most an even
        part of the aggregator's fee.
        """
        fee = portion(self.pool // self.rounds, self.aggregator_share_bps)
        return min(portion(self.hospital_bond, self.withheld_slash_bps), fee // self.max_hospitals)


@dataclass(frozen=True)
class RoundRecord:
    """A training round after scoring. Sets of hospitals, voters and cohorts are bit maps over their indices.

    Money is the amount before the round. `forfeited`: the part of `pool_left` that earlier rounds could have paid and
    did not; it is burnt in the end.
    """

    pool_left: int
    weights: tuple[int, ...]  # per hospital
    hospital_bonds: tuple[int, ...]
    voter_bonds: tuple[int, ...]
    aggregator_bond: int
    cohorts: tuple[int, ...]  # per cohort: its hospitals
    viable: int  # cohorts that have a published sum
    committed: int
    survivors: int
    flipped: int | None  # cohorts with a sign-flipped sum; None without decoys, or if they were not disclosed
    seated: int
    # Per voter: one score for each cohort, and with decoys then one for each cohort's other reading; None if it did
    # not reveal.
    scores: tuple[tuple[int, ...] | None, ...]
    dropped: int = 0  # cohorts that the aggregator dropped, or accused, once their survivors were fixed
    named: int = 0  # hospitals that the aggregator names as the reason for dropped cohorts
    forfeited: int = 0
    late: bool = False  # the aggregator acted in a grace period

    def __post_init__(self) -> None:
        """Raises SettlementInvalid if no round on a chain can be like this."""
        if len(self.weights) != len(self.hospital_bonds):
            raise SettlementInvalid(f"{len(self.weights)} weights of hospitals, but {len(self.hospital_bonds)} bonds")
        if len(self.scores) != len(self.voter_bonds):
            raise SettlementInvalid(f"ballots of {len(self.scores)} voters, but {len(self.voter_bonds)} bonds")
        if self.revealed & ~self.seated:
            raise SettlementInvalid(f"voters {list(members(self.revealed & ~self.seated))} revealed without a seat")
        if self.forfeited > self.pool_left:
            raise SettlementInvalid(f"{self.forfeited} is forfeited, more than the {self.pool_left} left in the pool")
        if not self.viable and not self.named:
            raise SettlementInvalid("no cohort has a sum, so the round was void before scoring")
        assigned = 0
        for cohort in self.cohorts:
            if assigned & cohort:
                raise SettlementInvalid(f"hospitals {list(members(assigned & cohort))} are in two cohorts")
            assigned |= cohort
        known = {
            "viable": (self.viable, (1 << len(self.cohorts)) - 1),
            "dropped": (self.dropped, (1 << len(self.cohorts)) - 1 & ~self.viable),
            "flipped": (self.flipped or 0, self.viable),
            "cohorts": (assigned, (1 << len(self.weights)) - 1),
            "committed": (self.committed, assigned),
            "survivors": (self.survivors, self.committed & self._members_of(self.viable | self.dropped)),
            "named": (self.named, self.committed & self._members_of(self.dropped)),
            "seated": (self.seated, (1 << len(self.voter_bonds)) - 1),
        }
        for name, (part, whole) in known.items():
            if part & ~whole:
                raise SettlementInvalid(f"{name} has {list(members(part & ~whole))}, which are not in the round")

    def require_fits(self, terms: Terms) -> None:
        """Raises SettlementInvalid if no round of a task with these terms can be like this."""
        if self.flipped is not None and not terms.decoys:
            raise SettlementInvalid("the task has no decoys, but sums are flipped")
        if len(self.weights) > terms.max_hospitals:
            raise SettlementInvalid(f"{len(self.weights)} hospitals, but the task allows {terms.max_hospitals}")
        expected = len(self.cohorts) * (2 if terms.decoys else 1)
        for voter in members(self.revealed):
            if len(self.scores_of(voter)) != expected:
                raise SettlementInvalid(
                    f"voter {voter} gave {len(self.scores_of(voter))} scores instead of {expected} for"
                    f" {len(self.cohorts)} cohorts {'with' if terms.decoys else 'without'} decoys"
                )

    def _members_of(self, cohorts: int) -> int:
        return sum(cohort for k, cohort in enumerate(self.cohorts) if cohorts >> k & 1)

    @property
    def summed(self) -> int:
        """Hospitals with an update in a published sum."""
        return self._members_of(self.viable) & self.survivors

    @property
    def withheld(self) -> int:
        """Hospitals that committed and were left out of their cohort's survivors."""
        return self._members_of(self.viable | self.dropped) & self.committed & ~self.survivors

    @property
    def revealed(self) -> int:
        return sum(1 << voter for voter, scores in enumerate(self.scores) if scores is not None)

    @property
    def mismatched(self) -> int:
        """Voters that say that the published sum, or the named hospitals, are wrong."""
        return sum(1 << voter for voter in members(self.revealed) if self.scores_of(voter)[0] == DOES_NOT_MATCH)

    def scores_of(self, voter: int) -> tuple[int, ...]:
        """The ballot of a voter that revealed."""
        scores = self.scores[voter]
        if scores is None:
            raise SettlementInvalid(f"voter {voter} has not revealed")
        return scores

    def genuine_of(self, voter: int, cohort: int) -> int:
        """A voter's score for a cohort's sum."""
        return self.scores_of(voter)[cohort + self._turn(cohort)]

    def decoy_of(self, voter: int, cohort: int) -> int:
        """Its score for the sum's decoy."""
        return self.scores_of(voter)[cohort + len(self.cohorts) - self._turn(cohort)]

    def cohort_of(self, hospital: int) -> int | None:
        return next((k for k, cohort in enumerate(self.cohorts) if cohort >> hospital & 1), None)

    def _turn(self, cohort: int) -> int:
        """The distance in a ballot to the sum's score: a sign-flipped sum is read the other way."""
        return len(self.cohorts) if (self.flipped or 0) >> cohort & 1 else 0
