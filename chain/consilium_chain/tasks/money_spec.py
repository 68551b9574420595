"""A task's money: pool, bonds, shares and slashes."""

from __future__ import annotations

from typing import Annotated, Literal

from consilium_core.typed_toml import Section
from pydantic import Field

SLASH_PER_FEE, SLASHES_PER_BOND = 2, 2  # an aggregator's slash, in fees of a round; its bond, in slashes
TOKEN = 10**18  # smallest units in one token
MOST_TOKENS = (2**96 - 1) // TOKEN  # Staking counts in uint96

Tokens = Annotated[int, Field(ge=0, le=MOST_TOKENS)]
Bond = Annotated[int, Field(ge=1, le=MOST_TOKENS)]


class MoneySpec(Section):
    """Amounts in whole tokens, as integers."""

    pool: Tokens = Field(default=10_000, description="reward of all rounds, paid with the proposal")
    hospital_bond: Bond = Field(default=500, description="that a hospital locks until it leaves")
    voter_bond: Bond = Field(default=200, description="that a voter locks until it leaves")
    aggregator_bond: Bond = Field(
        default=1_000, description="that the aggregator locks; its slash is at least twice its fee of a round"
    )
    tick_bounty: Tokens = Field(
        default=0, description="from the pool, for the account that ends a phase after its deadline"
    )
    hospital_share_bps: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=7_000, description="part of a round's reward, in basis points; the three shares add up to 10000"
    )
    voter_share_bps: Annotated[int, Field(ge=0, le=10_000)] = Field(default=2_000, description="the voters' part")
    aggregator_share_bps: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=1_000, description="the aggregator's part"
    )
    rank_decay_bps: Literal[0] | Annotated[int, Field(ge=5_000, le=10_000)] = Field(
        default=0,
        description="makes an arena (docs/arena.md): the pay of each rank in basis points of the rank before; 0 pays by"
        " weight and improvement",
    )
    harmful_slash_bps: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=2_000, description="of a bond, from each hospital of a harmful cohort"
    )
    withheld_slash_bps: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=200, description="of a bond, for an update that is committed and not uploaded"
    )
    not_revealed_slash_bps: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=1_000, description="of a bond, for scores that are committed and not revealed"
    )
    failed_decoy_slash_bps: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=5_000, description="of a bond, for a voter that scores decoys like sums"
    )
    not_published_slash_bps: Annotated[int, Field(ge=0, le=10_000 // SLASHES_PER_BOND)] = Field(
        default=5_000, description="of the aggregator's bond, for a round without its sums"
    )

    def aggregator_fee(self, rounds: int) -> int:
        """The aggregator's largest pay for one of `rounds`, in the smallest unit; rounded down."""
        return self.pool * TOKEN // rounds * self.aggregator_share_bps // 10_000

    @property
    def aggregator_slash(self) -> int:
        return self.aggregator_bond * TOKEN * self.not_published_slash_bps // 10_000

    def least_aggregator_bond(self, rounds: int) -> int:
        """In whole tokens: the slash is then twice a round's fee, so that a missed round never pays."""
        least = SLASH_PER_FEE * self.aggregator_fee(rounds) * 10_000
        return -(-least // max(1, self.not_published_slash_bps * TOKEN))
