"""The terms of a task that concern money. Amounts in millionths of a token, scores in millionths of the metric."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum

from consilium_chain.settlement.payouts import portion
from consilium_chain.settlement.round_record import Terms
from consilium_chain.tasks.limits import MICRO

from consilium_lab.errors import LabError

ROUNDS_PER_TASK = 5  # as measured: improvement falls from round to round, then the next task begins


class Unpaid(StrEnum):
    """The destination of money that a played round does not pay. The contract burns it."""

    REFUNDED = "refunded"  # to the operator, when the task ends
    CARRIED = "carried"  # into the task's next round; the rest of the last round is burnt
    BURNT = "burnt"


@dataclass(frozen=True)
class Rules:
    """Defaults are the demo's terms, scaled to a network of 20 hospitals and 40 voters.

    Voters fill up their bonds after every slash, so each slash is a full one.
    """

    hospitals: int = 20
    voters: int = 40
    cohort_size: int = 4
    seats: int = 9
    min_reveals: int = 1
    budget: int = 2_000 * MICRO  # of one round
    hospital_share_bps: int = 7_000
    voter_share_bps: int = 2_000
    aggregator_share_bps: int = 1_000
    hospital_bond: int = 500 * MICRO
    voter_bond: int = 200 * MICRO
    accept_floor: int = -20_000
    harmful_below: int = -40_000
    tolerance_abs: int = 50_000
    tolerance_bps: int = 5_000
    harmful_slash_bps: int = 2_000
    not_revealed_slash_bps: int = 1_000
    failed_decoy_slash_bps: int = 5_000
    decoy_margin: int = 50_000
    decoy_rate: float = 1.0  # share of rounds with decoys; a round has one for every sum, or none
    late: bool = False  # all rounds are like a task's last one: a long task that has converged
    evaluation_cost: int = 5 * MICRO  # to a voter, per round with a seat
    training_cost: int = 10 * MICRO  # to a hospital, per round
    aggregator_bond: int = 1_000 * MICRO
    not_published_slash_bps: int = 5_000
    unpaid: Unpaid = Unpaid.BURNT
    forfeits: bool = False  # every cohort that is rejected or improves nothing lowers the hospitals' part

    def __post_init__(self) -> None:
        """Raises LabError (RulesInvalid)."""
        for field, is_right, why in (
            ("cohort_size", self.hospitals % self.cohort_size == 0, f"does not divide {self.hospitals} hospitals"),
            ("seats", 1 <= self.seats <= self.voters, f"must be 1 to {self.voters}, the number of voters"),
            ("min_reveals", 1 <= self.min_reveals <= self.seats, f"must be 1 to {self.seats}, the number of seats"),
            ("decoy_rate", 0 <= self.decoy_rate <= 1, "must be a share, 0 to 1"),
        ):
            if not is_right:
                raise LabError("RulesInvalid", field=field, value=getattr(self, field), why=why)

    @property
    def cohorts(self) -> int:
        return self.hospitals // self.cohort_size

    @property
    def decoy_slash(self) -> int:
        """The slash of a voter that failed in a round."""
        return portion(self.voter_bond, self.failed_decoy_slash_bps)

    @property
    def silence_slash(self) -> int:
        """The slash of a voter that held a seat and did not reveal."""
        return portion(self.voter_bond, self.not_revealed_slash_bps)

    @property
    def voter_part(self) -> int:
        """The amount that the seats of a round share."""
        return portion(self.budget, self.voter_share_bps)

    def terms(self, decoys: bool) -> Terms:
        """Terms of one round, for the plain reference."""
        shared = {field.name: getattr(self, field.name) for field in fields(Terms) if hasattr(self, field.name)}
        return Terms(
            **shared, pool=self.budget, rounds=1, max_hospitals=self.hospitals, digests=False, decoys=decoys,
            rank_decay_bps=0, rank_floor=0,
            withheld_slash_bps=0,
        )  # fmt: skip


DEMO = Rules()
PLAIN = replace(DEMO, decoy_rate=0.0)
RECOMMENDED = replace(DEMO, seats=15, min_reveals=8, tolerance_abs=20_000, not_revealed_slash_bps=5_000)
