"""An estimate of a task's cost and time, and concerns about its terms, from the task file and the chain's prices.

Pure. Gas figures are measured for whole transactions: `chain/contracts/snapshots/*.json`, and otherwise the largest in
`bench/results/gas.json`. Everybody takes part, with as many hospitals and voters as may join; hospitals sign their
commits and the aggregator sends them. Estimates are above the real cost, and below its double
(tests/chain/test_estimate.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from consilium_zk.constants import BYTES_PER_BLOB
from consilium_zk.secret_shares import share_bundle_bytes

from consilium_chain.tasks.chain_terms import ChainTerms, Pay, pay
from consilium_chain.tasks.concerns import Concern, concerns
from consilium_chain.tasks.limits import grace
from consilium_chain.tasks.task_spec import TaskSpec

# Once, of every node: approving, `register` with a stake; in the end `releaseBond` and `claim`.
_APPROVE, _REGISTER, _RELEASE, _CLAIM = 46_500, 163_700, 45_500, 86_700
_NODE = _APPROVE + _REGISTER + _RELEASE + _CLAIM
_PROPOSE, _REFUND = 327_000, 60_000
_JOIN_HOSPITAL, _JOIN_VOTER, _JOIN_AGGREGATOR = 250_000, 295_000, 140_600
_VOTER_KEY, _HELD_OUT = 203_400, 23_900
# `commitUpdate`, one blob and sixteen, with the cost of ending the phase; `commitUpdates`, of 16 and 255
# hospitals, and of four with sixteen blobs. A cohort's first commitment to a blob takes a slot.
_COMMIT_ALONE, _COMMIT_ALONE_PER_BLOB, _GAS_PER_SHARE_BYTE = 60_200, 24_400, 50
_RELAY, _RELAYED_AT_MOST = 40_000, 16_000_000
_RELAY_PER_UPDATE, _RELAY_PER_BLOB, _RELAY_PER_SLOT = 15_000, 1_500, 22_100
_SETTLE_PER_NODE, _SETTLE_PER_SCORE = 55_000, 6_000
_FORM, _FORM_PER_HOSPITAL, _DRAW, _DRAND = 130_000, 22_000, 134_700, 101_500
# `fixSurvivors`, `setDecoys`; `publish` of one blob; `sumCommitments` and `discloseDecoys` of a blob and its points.
_BEGIN, _DECOYS, _PUBLISH = 73_700, 52_700, 59_600
_SUM, _DISCLOSE, _PER_POINT, _PER_NEGATED_DELTA_POINT = 97_000, 125_000, 18_500, 4_400
_SCORE, _STAND_DOWN, _REVEAL, _REVEAL_PER_SCORE = 231_300, 53_000, 80_000, 3_500


@dataclass(frozen=True)
class Gas:
    """The cost of one party of a role, in gas: once a task, and in all rounds together."""

    once: int
    rounds: int

    @property
    def total(self) -> int:
        return self.once + self.rounds


@dataclass(frozen=True)
class Estimate:
    """`seated`, `standing`: the gas of a voter that is drawn in every round, and in none. `hospital_alone`: of a
    hospital that sends its own commits. `published_blobs`: of the whole task; `artifact_bytes`: their size in the
    store. `upload_bytes`: of a hospital in a round. Without a `chain`, the seconds are None: `longest`, if every phase
    takes its longest time, with a dispute in every round; `expected`, if joining takes its whole window, training,
    uploading and judging half of theirs, and each other step two blocks.
    """

    operator: Gas
    aggregator: Gas
    hospital: Gas
    hospital_alone: Gas
    seated: Gas
    standing: Gas
    all_gas: int
    published_blobs: int
    artifact_bytes: int
    upload_bytes: int
    hospitals_pay: Pay
    voters_pay: Pay
    aggregator_pay: Pay
    longest: float | None
    expected: float | None
    concerns: tuple[Concern, ...]
    chain: ChainTerms | None

    @property
    def blob_gas(self) -> int:
        return self.published_blobs * BYTES_PER_BLOB


def estimate(spec: TaskSpec, chain: ChainTerms | None = None) -> Estimate:
    """Without `chain`, no times and no concerns about the chain."""
    rounds, judging = spec.rounds, spec.judging
    hospitals, voters, seats = rounds.max_hospitals, judging.max_voters, judging.seats
    training = rounds.rounds
    scores = rounds.cohorts * (1 + judging.decoys)
    judged = training + _statistics_judged(spec)
    seated = judged * (_SCORE + _REVEAL) + (training * scores + _statistics_judged(spec)) * _REVEAL_PER_SCORE
    standing = judged * _STAND_DOWN
    once = _NODE + _JOIN_VOTER + _VOTER_KEY + _HELD_OUT
    operator, aggregator = Gas(_APPROVE + _PROPOSE + _REFUND, 0), _aggregator(spec, chain)
    hospital = Gas(_NODE + _JOIN_HOSPITAL, 0)
    voting = voters * once + seats * seated + (voters - seats) * standing
    blobs = 0
    if spec.update.publication == "blobs":
        blobs = spec.statistics_blobs + training * rounds.cohorts * spec.update_blobs
    kept = spec.statistics_blobs + training * rounds.cohorts * spec.update_blobs
    return Estimate(
        operator=operator,
        aggregator=aggregator,
        hospital=hospital,
        hospital_alone=Gas(hospital.once, _commits_alone(spec)),
        seated=Gas(once, seated),
        standing=Gas(once, standing),
        all_gas=operator.total + aggregator.total + hospitals * hospital.total + voting,
        published_blobs=blobs,
        artifact_bytes=kept * BYTES_PER_BLOB,
        upload_bytes=spec.update_blobs * BYTES_PER_BLOB,
        hospitals_pay=pay(spec, spec.money.hospital_share_bps, hospitals),
        voters_pay=pay(spec, spec.money.voter_share_bps, seats),
        aggregator_pay=pay(spec, spec.money.aggregator_share_bps, 1),
        longest=None if chain is None else _longest(spec, chain),
        expected=None if chain is None else _expected(spec, chain),
        concerns=tuple(concerns(spec, chain)),
        chain=chain,
    )


def _statistics_judged(spec: TaskSpec) -> bool:
    """Round 0 is judged if its sum is published by hash only."""
    return spec.update.publication == "digests"


def _aggregator(spec: TaskSpec, chain: ChainTerms | None) -> Gas:
    rounds, judging, hospitals = spec.rounds, spec.judging, spec.rounds.max_hospitals
    drand = _DRAND if chain is not None and chain.has_drand else 0
    sums, points = rounds.cohorts * spec.update_blobs, hospitals * spec.update_blobs
    shown = sums * _PUBLISH
    added = sums * (_DISCLOSE if judging.decoys else _SUM) + points * _PER_POINT
    if judging.decoys:
        shown += _DECOYS
        added += sums * spec.update_blobs * _PER_NEGATED_DELTA_POINT
    scores = rounds.cohorts * judging.seats * (1 + judging.decoys)
    settled = (hospitals + judging.seats) * _SETTLE_PER_NODE + scores * _SETTLE_PER_SCORE
    drawn = _DRAW + drand
    training = (
        _relayed(hospitals, spec.update_blobs, rounds.cohorts) + _FORM + _FORM_PER_HOSPITAL * hospitals + _BEGIN + shown
    )
    training += added + drawn + settled
    statistics = _relayed(hospitals, spec.statistics_blobs, 1) + _BEGIN + drand
    statistics += spec.statistics_blobs * (_SUM + _PUBLISH + _PER_POINT * hospitals)
    if _statistics_judged(spec):
        statistics += drawn + judging.seats * _SETTLE_PER_NODE + _DRAW
    return Gas(_NODE + _JOIN_AGGREGATOR, statistics + rounds.rounds * training)


def _relayed(hospitals: int, blobs: int, cohorts: int) -> int:
    """Commits of all hospitals, in as few transactions as possible."""
    gas = hospitals * (_RELAY_PER_UPDATE + blobs * _RELAY_PER_BLOB) + cohorts * blobs * _RELAY_PER_SLOT
    return gas + math.ceil(gas / _RELAYED_AT_MOST) * _RELAY


def _commits_alone(spec: TaskSpec) -> int:
    rounds, gas = spec.rounds, 0
    if spec.update.masked:  # for the whole cohort; round 0 has only one cohort
        largest = math.ceil(rounds.max_hospitals / rounds.cohorts)
        gas = share_bundle_bytes(rounds.max_hospitals) + rounds.rounds * share_bundle_bytes(largest)
        gas *= _GAS_PER_SHARE_BYTE
    blobs = spec.statistics_blobs + rounds.rounds * spec.update_blobs
    return gas + (1 + rounds.rounds) * _COMMIT_ALONE + blobs * _COMMIT_ALONE_PER_BLOB


# --- time ----------------------------------------------------------------------------------------------------------


def _longest(spec: TaskSpec, chain: ChainTerms) -> float:
    w, training = spec.windows, spec.rounds.rounds
    late = grace(w.upload) + grace(w.publish)
    round_ = w.commit + w.upload + w.publish + late + (3 * w.publish if spec.update.masked else 0)
    judging = chain.beacon_seconds + w.score + w.reveal
    disclosing = w.publish + grace(w.publish) if spec.judging.decoys else 0
    judged = training + _statistics_judged(spec)
    return w.join + (training + 1) * round_ + judged * judging + training * disclosing + chain.beacon_seconds


def _expected(spec: TaskSpec, chain: ChainTerms) -> float:
    w, training = spec.windows, spec.rounds.rounds
    steps = 2 * chain.block_seconds
    round_ = (w.commit + w.upload) / 2 + 2 * steps  # survivors, sums
    judging = chain.beacon_seconds + w.score / 2 + 3 * steps  # seats, reveals, settlement
    judged = training + _statistics_judged(spec)
    return w.join + (training + 1) * round_ + judged * judging + training * steps + chain.beacon_seconds
