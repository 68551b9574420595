"""Models of tasks and rounds in the API's answers (see `schemas`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Literal

from consilium_chain.ledger.structs import TaskParams
from consilium_chain.tasks.sale_spec import SaleSpec
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, JsonValue, create_model

from consilium_server.api.schemas import (
    Account,
    Amount,
    ApiModel,
    Bytes,
    Hash,
    Indices,
    Millionths,
    OutcomeName,
    Payment,
    PhaseName,
    RoleName,
    RoundNumber,
    TaskNumber,
    Time,
    VoidReasonName,
)

MOST_ANSWERS = 8  # named in a task's question
AMOUNTS = ("pool", "hospital_bond", "voter_bond", "aggregator_bond", "tick_bounty")


class Asked(ApiModel):
    """The question of a task file, in parts from which a page makes a sentence."""

    of: Literal["table", "text", "corpus", "images", "series"] = Field(description="kind of data")
    inputs: int = Field(description="columns that a model reads; 1 for texts and images")
    modality: str | None = Field(description="of DICOM files, such as CT")
    kind: Literal["classification", "regression", "survival", "multilabel", "segmentation", "next_token"]
    target: str = Field(description="column with the answer, or of the event; empty if no column has it")
    answers: list[str] = Field(description=f"the first {MOST_ANSWERS} classes or labels")
    answers_in_all: int
    unit: str = Field(description="of an amount or a time")
    up_to: float | None = Field(description="end of the time that is asked for")
    deviation: float | None = Field(description="an amount's, in its unit: errors count in it")


class TaskSummary(ApiModel):
    task: TaskNumber
    name: str | None = Field(description="name in the task file; null if the file is unknown or invalid")
    asked: Asked | None = Field(description="null if the file is unknown or invalid")
    operator: Account
    aggregator: Account
    spec_hash: Hash
    pool: Amount = Field(description="pool as proposed, with additions by its operator while others joined")
    phase: PhaseName
    round: int
    rounds: int = Field(description="training rounds of the task")
    deadline: Time = Field(description="deadline of the phase; 0 for none")
    proposed_at: Time
    proposed_in: int = Field(description="block of the proposal")


Terms: Any = create_model(
    "Terms",
    __base__=ApiModel,
    __doc__="Terms that the contract enforces (`TaskParams`). Scores and thresholds in millionths, windows in seconds,"
    " shares and slashes in basis points.",
    **{
        field.name: (Amount if field.name in AMOUNTS else bool if field.type == "bool" else int, ...)
        for field in fields(TaskParams)
        if field.name not in ("spec_hash", "aggregator")
    },  # type: ignore[call-overload]
)


class Privacy(ApiModel):
    epsilon: float = Field(description="the most privacy that the whole task may cost a row")
    delta: float
    max_grad_norm: float


class SpecFile(ApiModel):
    """Content of a known and valid task file. The file itself is at `/v1/artifacts/files/{hash}`."""

    name: str
    model: str
    parameters: int
    coordinates: int = Field(description="numbers of an update; fewer than the parameters with a codec")
    data: str = Field(description="kind of data")
    classes: list[str] = Field(description="empty if the task asks another question")
    question: str = Field(description="what a model answers for each example, in words")
    metric: str
    lanes_per_update: int
    lane_bits: int
    update_blobs: int
    statistics_blobs: int
    privacy: Privacy | None
    sale: SaleSpec | None = Field(description="null if the model can never be sold")


class Member(ApiModel):
    account: Account
    role: RoleName
    position: int
    weight: int = Field(description="a hospital's weight; 0 for others")
    accepted: int = Field(description="settled training rounds whose accepted sums have the hospital; 0 for others")
    joined_at: Time
    earned: Amount
    slashed: Amount
    bond: Amount = Field(description="part that the task still locks, until it is released")


class Money(ApiModel):
    """`pool` went in, with the proposal and later additions; rewards, bounties and the refund came out.

    The rest of the pool is burnt when the task ends. Slashes come from bonds, and are burnt.
    """

    pool: Amount
    rewards: Amount
    bounties: Amount
    refund: Amount
    left: Amount
    burnt: Amount
    slashed: Amount


class Task(TaskSummary):
    stopping: bool = Field(description="true if its operator stopped it: `last_round` is its last round")
    last_round: int = Field(description="round after which it ends, or has ended")
    shards: list[int] = Field(description="tasks that train one model with this one, itself included")
    terms: Terms
    spec: SpecFile | None
    spec_fault: str | None = Field(description="reason why a known file is invalid")
    money: Money
    participants: list[Member]


class RoundSummary(ApiModel):
    round: RoundNumber
    phase: PhaseName | None = Field(description="null once it is over")
    outcome: OutcomeName
    void_reason: VoidReasonName
    medians: list[int] = Field(description="median improvement by cohort, in millionths")
    accepted: list[int] = Field(description="accepted cohorts")
    started_at: Time
    ended_at: Time | None


class BlobHashes(ApiModel):
    blob: int
    expected: Hash | None = Field(description="hash by the contract's sum of commitments; null until it is known")
    published: Hash | None


class ProofCohort(ApiModel):
    cohort: int
    members: Indices
    survivors: Indices
    is_flipped: bool | None = Field(description="sign-flipped as a decoy; null until it is disclosed")
    blobs: list[BlobHashes]


class CohortView(ProofCohort):
    median: int | None = Field(description="median score in millionths; null before the round is settled")
    accepted: bool | None
    fate: Literal["open", "published", "dropped", "accused"]


class CommitmentView(ApiModel):
    hospital: Account
    position: int | None
    point_hashes: list[Hash] = Field(description="hash of the hospital's KZG commitment to each blob")
    points: list[Bytes] | None = Field(
        description="these KZG commitments, G1 compressed, 48 bytes for each blob; null until the contract adds them up"
    )
    share_bundle: Hash | None = Field(description="keccak256 of the hospital's secret shares")
    transaction: Hash
    block: int


class Ballot(ApiModel):
    voter: Account
    position: int | None
    commitment: Hash | None
    verdict: Literal["not_revealed", "scored", "does_not_match", "stood_down"]
    scores: list[int | None] | None = Field(
        description="in millionths, by cohort; in decoy rounds, then of each cohort's other reading; null for an"
        " invalid model"
    )


class Spread(ApiModel):
    """Spread of the committee's scores of a cohort, without those of decoys."""

    cohort: int
    votes: int
    lowest: Millionths
    lower_quartile: Millionths
    median: Millionths
    upper_quartile: Millionths
    highest: Millionths


class Committee(ApiModel):
    seed: Hash | None
    seat_weight: Amount | None
    ballots: list[Ballot]
    spread: list[Spread] = Field(description="empty until the round is over")


class Evidence(ApiModel):
    name: str = Field(description="name of the event", examples=["RoundSettled"])
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


class ProofMember(ApiModel):
    position: int
    hospital: Account
    weight: int = Field(description="weight in this round; 1 in the statistics round")
    point_hashes: list[Hash] | None = Field(description="null if it did not commit")
    points: list[Bytes] | None = Field(description="null if it is in no sum, or its points are not shown yet")


class Proof(ApiModel):
    """Data for the check that the published blobs open the weighted sum of survivors' commitments.

    Each commitment must have the hash to which its hospital committed. A browser and `consilium verify` check both.
    They need not trust this server: every value comes from an event, and `evidence` names its place on the chain.
    """

    chain_id: int
    contract: Account
    task: TaskNumber
    round: RoundNumber
    spec_hash: Hash
    digests: bool = Field(
        description="true if sums are published as hashes only, with their bytes in the artifact store"
    )
    decoys: bool
    seed_commitment: Hash | None
    negated_delta: Hash | None
    hospitals: list[ProofMember]
    cohorts: list[ProofCohort]
    evidence: list[Evidence]


class StatisticsColumn(ApiModel):
    """Rows of all hospitals together by a column's ranges (`edges`), or else by its codes or answers (`names`). Noise
    can make counts negative.
    """

    name: str
    is_answer: bool
    edges: Sequence[FiniteFloat] = Field(description="ends of the ranges, ascending; empty without ranges")
    names: Sequence[str] = Field(description="of codes or answers; empty with ranges")
    counts: Sequence[int]
    values: int | None = Field(description="rows with a value; null if a row can have several")
    missing: int | None = Field(description="rows without a value; null if all have one")
    mean: FiniteFloat | None = Field(description="by ranges: at most half a range away")
    quartiles: Sequence[FiniteFloat] | None = Field(description="by ranges: each at most a range away")
    width: FiniteFloat | None = Field(description="of the widest range")


class Statistics(ApiModel):
    hospitals: int = Field(description="number of those whose rows are counted together")
    rows: int
    things: str = Field(description="the rows in a word: rows, stays, images, texts")
    deviation: FiniteFloat = Field(description="standard deviation of the noise in each count; 0 without noise")
    epsilon: FiniteFloat | None = Field(description="the most that the counts cost a row; null without noise")
    delta: FiniteFloat | None
    columns: list[StatisticsColumn]
    left_out: int = Field(description="number of columns that the answer has no room for")


class AllStatistics(ApiModel):
    items: list[Statistics]


class TaskText(BaseModel):
    """A task file as text. Its hash is over exactly these UTF-8 bytes."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"text": 'name = "heart"\n[model]\nname = "logistic"\n'}}
    )

    text: str = Field(min_length=1, max_length=65_536)


class TaskDocument(BaseModel):
    """The content of a task file as JSON. Null stands for a key that is left out."""

    model_config = ConfigDict(extra="forbid")

    document: dict[str, JsonValue]


class Fault(ApiModel):
    where: str = Field(
        description="its key, or empty for several keys together; a section's form comes after the section, as in"
        " `data.table.features.0.numeric.min`"
    )
    what: str


class StoredFile(ApiModel):
    hash: Hash
    size: int = Field(description="size in bytes")


class Gas(ApiModel):
    """Gas of one party of a role."""

    once: int = Field(description="gas for the task")
    rounds: int = Field(description="gas for all rounds together")


class GasEstimate(ApiModel):
    operator: Gas
    aggregator: Gas
    hospital: Gas
    seated_voter: Gas = Field(description="voter that is drawn in every round")
    standing_voter: Gas = Field(description="voter that is never drawn")
    all: int = Field(description="gas of all parties together")


class Pay(ApiModel):
    """The most that a training round pays, if all earn alike."""

    role: Amount = Field(description="pay of the whole role")
    one: Amount


class Concern(ApiModel):
    rule: str = Field(examples=["few reveals"])
    reason: str


class Present(ApiModel):
    """Prices of the chain at this moment, and the time that the task takes on it."""

    gas_price: Amount = Field(description="wei, with a fee for inclusion soon")
    blob_gas_price: Amount = Field(description="wei")
    expected_seconds: float
    longest_seconds: float = Field(
        description="seconds if every phase takes its whole window, with a dispute in every round"
    )


class CheckedTask(ApiModel):
    spec: SpecFile
    sections: dict[str, str] = Field(
        description="SHA-256 of each section that decides how rounds end, by name: as in a file of `consilium simulate`"
    )
    terms: Terms
    gas: GasEstimate
    published_blobs: int = Field(description="blobs that the whole task publishes")
    artifact_bytes: int
    hospitals: Pay
    voters: Pay
    aggregator: Pay
    concerns: list[Concern] = Field(description="terms that are allowed and doubtful")
    present: Present | None = Field(description="null if this server has no chain node, or got no answer")


class Check(ApiModel):
    """A task file's cost and terms, before its proposal."""

    hash: Hash
    holds: bool
    problem: str | None = Field(description="reason why it is invalid, with every fault")
    faults: list[Fault] = Field(description="the single faults; empty if it is valid")
    text: str = Field(description="the file: as given, or as it was written from a document")
    document: dict[str, Any] | None = Field(description="its content; null if it is not TOML")
    task: CheckedTask | None = Field(description="null if the file is invalid")
