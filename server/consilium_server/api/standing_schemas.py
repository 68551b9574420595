"""Models of an arena's ranks in the API's answers (see `schemas`)."""

from __future__ import annotations

from pydantic import Field

from consilium_server.api.schemas import Account, Amount, ApiModel, OutcomeName, PhaseName, RoundNumber, Time


class Standing(ApiModel):
    hospital: Account
    position: int
    median: int | None = Field(description="in millionths; null before the round is settled, or without an update")
    rank: int | None = Field(description="from 1; null without an improvement, and before the round is settled")
    reward: Amount


class ArenaRound(ApiModel):
    """Ranks of a round, the first one first."""

    round: RoundNumber
    phase: PhaseName | None = Field(description="null once it is over")
    outcome: OutcomeName
    ended_at: Time | None
    standings: list[Standing]
