"""A task's rounds and cohorts, and the judging of them: metric, voters, thresholds, decoys."""

from __future__ import annotations

from typing import Annotated, Literal

from consilium_core.typed_toml import Section
from pydantic import Field

from consilium_chain.tasks.plugin_specs import MetricPlugin
from consilium_chain.tasks.questions import Metric
from consilium_chain.tasks.training_specs import UINT32

# Limits of the contract (`TaskRules.sol`), repeated so that a file is refused before anybody pays for it.
MAX_PARTICIPANTS = 256  # one bit map word on chain
MAX_COHORTS = 64
MAX_SHARDS = 16
MIN_MASKED = 3  # hospitals of a cohort whose updates are masked

# In millionths it fits the contract's 64 bits, and no loss improves by more.
Score = Annotated[float, Field(ge=-1_000_000, le=1_000_000)]


class RoundsSpec(Section):
    rounds: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=5, description="training rounds, after the statistics round"
    )
    cohorts: Annotated[int, Field(ge=1, le=MAX_COHORTS)] = Field(
        default=1, description="sums of a round that are judged apart; hospitals are dealt anew each round"
    )
    min_cohort_size: Annotated[int, Field(ge=1, le=MAX_PARTICIPANTS)] = Field(
        default=MIN_MASKED, description="hospitals of a cohort at least; masks need 3"
    )
    min_hospitals: Annotated[int, Field(ge=1, le=MAX_PARTICIPANTS)] = Field(
        default=MIN_MASKED, description="hospitals without which the task ends"
    )
    max_hospitals: Annotated[int, Field(ge=1, le=MAX_PARTICIPANTS)] = Field(
        default=4, description="hospitals that may join; the fewer, the smaller an update"
    )
    shards: Annotated[int, Field(ge=1, le=MAX_SHARDS)] = Field(
        default=1, description="tasks that train one model together, each of these terms and with this pool"
    )
    rows_per_weight: Annotated[int, Field(ge=1, le=UINT32)] = Field(
        default=10, description="rows that count as one weight; a hospital's weight is its rows by this, rounded up"
    )
    max_weight: Annotated[int, Field(ge=1, le=UINT32)] = Field(
        default=64, description="a hospital's weight at most; more rows then earn and count no more"
    )

    @property
    def largest_cohort(self) -> int:
        """The most hospitals of a cohort that can form: n hospitals make min(cohorts, n // min_cohort_size) cohorts of
        nearly equal size. The contract's own bound (`TaskRules.sol`).
        """
        if self.cohorts == 1:
            return self.max_hospitals
        # All cohorts and every hospital, or one cohort of too few hospitals for two.
        return max(-(-self.max_hospitals // self.cohorts), min(self.max_hospitals, 2 * self.min_cohort_size - 1))


class JudgingSpec(Section):
    metric: Metric | Literal["plugin"] = Field(
        default="log_loss",
        description="the metric of a candidate: its score is the gain over the base, or with log_loss the reduction",
    )
    plugin: MetricPlugin | None = None
    min_voters: Annotated[int, Field(ge=1, le=MAX_PARTICIPANTS)] = Field(
        default=1, description="voters without which the task ends"
    )
    max_voters: Annotated[int, Field(ge=1, le=MAX_PARTICIPANTS)] = Field(default=5, description="voters that may join")
    seats: Annotated[int, Field(ge=1, le=MAX_PARTICIPANTS)] = Field(
        default=4, description="expected size of a round's committee, drawn from the voters"
    )
    min_reveals: Annotated[int, Field(ge=1, le=MAX_PARTICIPANTS)] = Field(
        default=1, description="ballots without which a round is void"
    )
    accept_floor: Score = Field(default=-0.01, description="least median improvement of a cohort that is used and paid")
    rank_floor: Annotated[Score, Field(ge=0)] = Field(
        default=0, description="in an arena: least median improvement that has a rank; above 0"
    )
    harmful_below: Score = Field(default=-0.05, description="median below which a cohort is slashed; at most -0.01")
    tolerance: Annotated[Score, Field(ge=0)] = Field(
        default=0.05, description="distance from the median up to which a score is paid"
    )
    tolerance_bps: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=3_000, description="added to tolerance: a part of the median, in basis points"
    )
    decoys: bool = Field(default=True, description="publish each sum as it is or sign-flipped, by a secret bit")
    decoy_margin: Annotated[Score, Field(ge=0)] = Field(
        default=0.05, description="the least distance between the medians of a sum and its decoy for the pair to count"
    )
    least_rows: Annotated[int, Field(ge=1, le=UINT32)] | None = Field(
        default=None, description="rows that a voter must hold out; all metrics but log_loss need it (economics.md)"
    )
    least_of_class: Annotated[int, Field(ge=1, le=UINT32)] | None = Field(
        default=None, description="of these at least so many of each class; all metrics but log_loss need it"
    )

    @property
    def in_words(self) -> str:
        """The metric."""
        return self.metric if self.plugin is None else f"{self.plugin.entry} of the plug-in {self.plugin.in_words}"
