"""Models of one node and its record in the API's answers (see `schemas`)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from consilium_server.api.schemas import (
    Amount,
    ApiModel,
    Millionths,
    NodeSummary,
    Payment,
    PhaseName,
    RoundNumber,
    SlashReasonName,
    TaskNumber,
    Time,
    Yield,
)

DutyName = Literal["commit", "upload", "reveal", "fix_survivors", "publish", "disclose"]


class YieldOver(ApiModel):
    """A node's yield over another time. The fields are those of `NodeSummary`."""

    is_new: bool
    realised_yield: Yield
    annual_rate: Millionths | None


class Ranks(ApiModel):
    """A trainer's settled rounds in an arena."""

    rounds: int
    ranked: int
    firsts: int
    best: int | None = Field(description="the best rank, from 1; null without one")


class NodeTask(ApiModel):
    task: TaskNumber
    position: int
    joined_at: Time
    phase: PhaseName
    earned: Amount = Field(description="in this role")
    ranks: Ranks | None = Field(description="a hospital's in an arena, of its 1,000 latest rounds in all arenas")


class Node(NodeSummary):
    quarter: YieldOver = Field(description="over 90 days")
    slash_history: list[Payment] = Field(description="latest first, 100 at most")
    task_history: list[NodeTask] = Field(description="latest first, 100 at most")


class Deadlines(ApiModel):
    """A duty's deadlines, and the number that the node met."""

    duty: DutyName
    due: int
    made: int


class LastDuty(ApiModel):
    """The latest duty that was due. Of several in its round: the one that the node missed, or else the last."""

    duty: DutyName
    task: TaskNumber
    round: RoundNumber
    ended_at: Time = Field(description="end of the round")
    made: bool


class SlashSum(ApiModel):
    reason: SlashReasonName
    count: int
    amount: Amount


class Period(ApiModel):
    since: Time
    assets: Amount = Field(description="stake at the end of the period")
    rewarded: Amount = Field(description="in this period")
    burnt: Amount = Field(description="in this period")


class Record(ApiModel):
    """A node's record from the chain alone: its latest rounds that are over, and all its slashes.

    A seat is secret until its voter commits, so a voter that never takes its seats is not seen here.
    """

    rounds: int = Field(description="latest rounds of its tasks that are over, 200 at most; the record is of them")
    since: Time | None = Field(description="end of the first of these rounds")
    deadlines: list[Deadlines]
    accepted: int = Field(description="a hospital's accepted sums; an aggregator's settled rounds")
    rejected: int = Field(description="a hospital's sums that were not accepted; an aggregator's void rounds")
    seats: int = Field(description="seats that a voter took")
    cohort_median: Millionths | None = Field(description="a hospital's: median of its cohorts' median scores")
    all_median: Millionths | None = Field(description="the same of all cohorts of these rounds")
    distance: Millionths | None = Field(description="a voter's: mean distance of its scores from the medians")
    decoys_passed: int = Field(description="pairs of sum and decoy that tested the voter, and that it told apart")
    decoys_failed: int
    slashes: list[SlashSum] = Field(description="since its registration")
    last_act: Time | None = Field(description="block of its latest commitment, reveal or other act in a task")
    last_duty: LastDuty | None
    period_seconds: int = Field(description="a day, or 30 days for a node older than 90")
    periods: list[Period] = Field(description="from its registration on")
