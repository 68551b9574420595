"""Tasks and rounds, as the API says them (see `schemas`)."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal

from consilium_chain.ledger.structs import TaskParams
from pydantic import BaseModel, ConfigDict, Field, create_model

from consilium_server.api.schemas import (
    Account,
    Amount,
    Bytes,
    Hash,
    Indices,
    Millionths,
    OutcomeName,
    Payment,
    PhaseName,
    RoleName,
    RoundNumber,
    Said,
    TaskNumber,
    Time,
    VoidReasonName,
)

AMOUNTS = ("pool", "hospital_bond", "voter_bond", "aggregator_bond", "tick_bounty")


class TaskSummary(Said):
    task: TaskNumber
    name: str | None = Field(description="from the task file; null where the file is not known, or does not hold")
    operator: Account
    aggregator: Account
    spec_hash: Hash
    pool: Amount = Field(description="as proposed, and what its operator added while others joined")
    phase: PhaseName
    round: int
    rounds: int = Field(description="training rounds that the task has")
    deadline: Time = Field(description="of the phase; 0 for none")
    proposed_at: Time
    proposed_in: int = Field(description="block")


Terms: Any = create_model(
    "Terms",
    __base__=Said,
    __doc__="What the contract enforces: `TaskParams` of the contracts. Scores and thresholds in millionths, windows in"
    " seconds, shares and slashes in basis points.",
    **{
        field.name: (Amount if field.name in AMOUNTS else bool if field.type == "bool" else int, ...)
        for field in fields(TaskParams)
        if field.name not in ("spec_hash", "aggregator")
    },  # type: ignore[call-overload]
)


class Privacy(Said):
    epsilon: float = Field(description="the most that the whole task may cost a row")
    delta: float
    max_grad_norm: float


class SpecFile(Said):
    """Content of a known and valid task file; the file itself is at `/v1/artifacts/files/{hash}`."""

    name: str
    model: str
    parameters: int
    data: str = Field(description="kind of the data")
    classes: list[str]
    metric: str
    lanes_per_update: int
    lane_bits: int
    update_blobs: int
    statistics_blobs: int
    privacy: Privacy | None


class Member(Said):
    account: Account
    role: RoleName
    position: int
    weight: int = Field(description="of a hospital, else 0")
    joined_at: Time
    earned: Amount
    slashed: Amount
    bond: Amount = Field(description="what of it the task still locks; once it has ended, to be released")


class Money(Said):
    """`pool` went in, at the proposal and while others joined; rewards, bounties and the refund came out.

    The part of the pool that rounds did not pay is burnt as the task ends. Slashes come from bonds, and are burnt.
    """

    pool: Amount
    rewards: Amount
    bounties: Amount
    refund: Amount
    left: Amount
    burnt: Amount
    slashed: Amount


class Task(TaskSummary):
    stopping: bool = Field(description="its operator has stopped it: no round after `last_round` begins")
    last_round: int = Field(description="after which it ends, or has ended")
    terms: Terms
    spec: SpecFile | None
    spec_fault: str | None = Field(description="why a known file says nothing: it does not hold")
    money: Money
    participants: list[Member]


class RoundSummary(Said):
    round: RoundNumber
    phase: PhaseName | None = Field(description="null once it is over")
    outcome: OutcomeName
    void_reason: VoidReasonName
    medians: list[int] = Field(description="improvement by cohort, in millionths")
    accepted: list[int] = Field(description="cohorts")
    started_at: Time
    ended_at: Time | None


class BlobHashes(Said):
    blob: int
    expected: Hash | None = Field(description="what the contract's sum of commitments says; null until it is known")
    published: Hash | None


class CohortView(Said):
    cohort: int
    members: Indices
    survivors: Indices
    median: int | None = Field(description="in millionths; null before the round is settled")
    accepted: bool | None
    fate: Literal["open", "published", "dropped", "accused"]
    is_turned: bool | None = Field(description="in a canary round, once it is opened")
    blobs: list[BlobHashes]


class CommitmentView(Said):
    hospital: Account
    position: int | None
    points: list[Bytes] = Field(description="KZG commitments, G1 compressed, 48 bytes for each blob")
    dealing: Hash | None = Field(description="keccak256 of the hospital's dealing")
    transaction: Hash
    block: int


class Ballot(Said):
    voter: Account
    position: int | None
    commitment: Hash | None
    verdict: Literal["not_revealed", "scored", "does_not_match", "stood_down"]
    scores: list[int | None] | None = Field(
        description="in millionths, by cohort, in canary rounds then of each cohort's other reading; null for what the"
        " voter calls no valid model"
    )


class Spread(Said):
    """Spread of the committee's scores of a cohort, without those of decoys."""

    cohort: int
    votes: int
    lowest: Millionths
    lower_quartile: Millionths
    median: Millionths
    upper_quartile: Millionths
    highest: Millionths


class Committee(Said):
    seed: Hash | None
    seat_weight: Amount | None
    ballots: list[Ballot]
    spread: list[Spread] = Field(description="once the round is over")


class Evidence(Said):
    name: str = Field(description="of the event", examples=["RoundSettled"])
    time: Time
    block: int
    block_hash: Hash
    log_index: int
    transaction: Hash


class Round(RoundSummary):
    task: TaskNumber
    cohorts: list[CohortView]
    commitments: list[CommitmentView]
    committee: Committee
    payments: list[Payment]
    evidence: list[Evidence]


class ProofMember(Said):
    position: int
    hospital: Account
    weight: int = Field(description="in this round: 1 in the round of statistics")
    points: list[Bytes] | None = Field(description="null where it did not commit")


class ProofCohort(Said):
    cohort: int
    members: Indices
    survivors: Indices
    is_turned: bool | None
    blobs: list[BlobHashes]


class Proof(Said):
    """Data with which a browser or `consilium verify` checks that the published blobs open the weighted sum of
    survivors' commitments. None of it has to be trusted: every value comes from an event, at the place that `evidence`
    names.
    """

    chain_id: int
    contract: Account
    task: TaskNumber
    round: RoundNumber
    spec_hash: Hash
    digests: bool = Field(description="sums are published as hashes only, and their bytes in the artifact store")
    canaries: bool
    seed_commitment: Hash | None
    retreat: Hash | None
    hospitals: list[ProofMember]
    cohorts: list[ProofCohort]
    evidence: list[Evidence]


class TaskText(BaseModel):
    """A task file, as text: its hash is over the UTF-8 bytes of exactly this."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"text": 'name = "heart"\n[model]\nname = "logistic"\n'}}
    )

    text: str = Field(min_length=1, max_length=65_536)


class StoredFile(Said):
    hash: Hash
    size: int = Field(description="bytes")


class Gas(Said):
    """Gas of one party of a role."""

    once: int = Field(description="for the task")
    rounds: int = Field(description="for all rounds together")


class GasEstimate(Said):
    operator: Gas
    aggregator: Gas
    hospital: Gas
    seated_voter: Gas = Field(description="drawn in every round")
    standing_voter: Gas = Field(description="drawn in none")
    all: int = Field(description="of everybody together")


class Pay(Said):
    """The most that a training round pays, if all earn alike."""

    role: Amount = Field(description="all of the role")
    one: Amount


class Concern(Said):
    rule: str = Field(examples=["few reveals"])
    reason: str


class Present(Said):
    """Prices of the chain at this moment, and the time that the task takes on it."""

    gas_price: Amount = Field(description="wei, with what it takes to be included soon")
    blob_gas_price: Amount = Field(description="wei")
    expected_seconds: float
    longest_seconds: float = Field(description="where every phase lasts as long as it may, with blame in every round")


class CheckedTask(Said):
    spec: SpecFile
    terms: Terms
    gas: GasEstimate
    published_blobs: int = Field(description="of the whole task")
    artifact_bytes: int
    hospitals: Pay
    voters: Pay
    aggregator: Pay
    concerns: list[Concern] = Field(description="what to think over; nothing of it is forbidden")
    present: Present | None = Field(description="null where this server asks no chain node, or gets no answer")


class Check(Said):
    """A task file's cost and terms, before anybody pays for it."""

    hash: Hash
    holds: bool
    problem: str | None = Field(description="why it does not hold, with every fault")
    task: CheckedTask | None = Field(description="null where it does not hold")
