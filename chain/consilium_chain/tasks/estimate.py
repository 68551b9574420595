"""An estimate of a task's cost and time, and concerns about its terms, from the task file and the chain's prices.

Pure. Gas figures are measured for whole transactions: `chain/contracts/snapshots/*.json`, and otherwise the largest in
`bench/results/gas.json`. Everybody takes part, with as many hospitals and voters as may join; hospitals sign their
commits and the aggregator sends them. Estimates are above the real cost, and below its double
(tests/chain/test_estimate.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from consilium_zk.constants import BYTES_PER_BLOB
from consilium_zk.secret_shares import share_bundle_bytes

from consilium_chain.settlement.payouts import portion, round_part
from consilium_chain.tasks.fairness import few_of_class, unfairness
from consilium_chain.tasks.outer_specs import AdamSpec, MomentumSpec, NesterovSpec, OuterSpec
from consilium_chain.tasks.task_spec import TOKEN, TaskSpec, grace

# Once, of every node: approving, `register` with a stake; in the end `releaseBond` and `claim`.
_APPROVE, _REGISTER, _RELEASE, _CLAIM = 46_500, 163_600, 42_500, 86_700
_NODE = _APPROVE + _REGISTER + _RELEASE + _CLAIM
_PROPOSE, _REFUND = 327_000, 60_000
_JOIN_HOSPITAL, _JOIN_VOTER, _JOIN_AGGREGATOR = 250_000, 295_000, 140_000
_VOTER_KEY, _HELD_OUT = 180_900, 23_900
# `commitUpdate`, one blob and sixteen, with the cost of ending the phase; `commitUpdates`, of 16 and 220
# hospitals, and of four with sixteen blobs.
_COMMIT_ALONE, _COMMIT_ALONE_PER_BLOB, _GAS_PER_SHARE_BYTE = 102_100, 35_800, 50
_RELAY, _RELAY_PER_UPDATE, _RELAY_PER_BLOB, _RELAYED_AT_MOST = 175_000, 35_500, 34_000, 16_000_000
_SETTLE_PER_NODE, _SETTLE_PER_SCORE = 55_000, 6_000
_FORM, _FORM_PER_HOSPITAL, _DRAW, _DRAND = 130_000, 22_000, 134_700, 101_500
# `fixSurvivors`, `setDecoys`; `publish` of one blob; `sumCommitments` and `discloseDecoys` of a blob and its points.
_BEGIN, _DECOYS, _PUBLISH = 73_700, 52_700, 59_600
_SUM, _DISCLOSE, _PER_POINT, _PER_NEGATED_DELTA_POINT = 90_000, 117_000, 15_500, 4_400
_SCORE, _STAND_DOWN, _REVEAL, _REVEAL_PER_SCORE = 231_300, 53_000, 80_000, 3_500

MAX_BLOBS_PER_TRANSACTION = 6  # as `connection` sends them
MARGIN_BLOCKS = 3  # that a phase needs at least: to see it, to be taken into a block, and one that is missed
ANSWER_MARGIN = 3  # seconds before its deadline, when the aggregator stops waiting (`rounds.View`)
HIGH_EPSILON = 10.0  # above it, the bound on a row's privacy loss means little
HIGH_DELTA = 1e-3
# Of the outer step; docs/models.md has measurements. Of a momentum that fades, so much at most after each round.
FAST_MOMENTUM, FAST_ADAM, FADES = 0.5, 0.03, 0.7
SMALLEST_COMMITTEE = 3


@dataclass(frozen=True)
class ChainTerms:
    """A chain at one moment: wei for a unit of gas and of blob gas (EIP-4844), seconds between blocks, and seconds from
    a request to its random value.
    """

    gas_price: int
    blob_gas_price: int
    block_seconds: float
    beacon_seconds: float
    takes_blobs: bool = True
    has_drand: bool = False

    def wei(self, gas: int, blob_gas: int = 0) -> int:
        return gas * self.gas_price + blob_gas * self.blob_gas_price


@dataclass(frozen=True)
class Gas:
    """The cost of one party of a role, in gas: once a task, and in all rounds together."""

    once: int
    rounds: int

    @property
    def total(self) -> int:
        return self.once + self.rounds


@dataclass(frozen=True)
class Pay:
    """The pay of a training round if all earn alike, in the smallest unit: for the whole role, and for one party."""

    role: int
    one: int


class Rule(StrEnum):
    NO_MASKS = "no masks"
    PUBLISHED_ALONE = "published alone"
    NO_PRIVACY = "no privacy"
    HIGH_EPSILON = "high epsilon"
    HIGH_DELTA = "high delta"
    NO_DECOYS = "no decoys"
    DECOYS_FREE = "decoys cost nothing"
    DECOYS_FADE = "decoys fade"
    DIGESTS = "sums off chain"
    LOCAL = "local tensors"
    NO_BLOBS = "no blobs here"
    ONE_COHORT = "one cohort"
    SMALL_COMMITTEE = "small committee"
    FEW_REVEALS = "few reveals"
    NO_TOLERANCE = "no tolerance"
    WIDE_TOLERANCE = "wide tolerance"
    NO_POOL = "no pool"
    BONDS_ABOVE_PAY = "bonds above pay"
    HARM_FREE = "harm costs nothing"
    HARM_NEAR_NOISE = "harm near noise"
    NOTHING_ACCEPTED = "nothing accepted"
    SILENCE_FREE = "silence costs nothing"
    SHORT_WINDOW = "short window"
    UNFAIR = "unfair terms"
    FEW_OF_CLASS = "few rows of a class"


@dataclass(frozen=True)
class Concern:
    """A rule that a task's terms break, and the reason why that matters here. Terms with concerns are allowed; the task
    file's parser refuses forbidden ones.
    """

    rule: Rule
    reason: str


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
        hospitals_pay=_pay(spec, spec.money.hospital_share_bps, hospitals),
        voters_pay=_pay(spec, spec.money.voter_share_bps, seats),
        aggregator_pay=_pay(spec, spec.money.aggregator_share_bps, 1),
        longest=None if chain is None else _longest(spec, chain),
        expected=None if chain is None else _expected(spec, chain),
        concerns=tuple(_concerns(spec, chain)),
        chain=chain,
    )


def _pay(spec: TaskSpec, share_bps: int, parties: int) -> Pay:
    pool = spec.money.pool * TOKEN
    role = portion(round_part(pool, spec.rounds.rounds, pool), share_bps)
    return Pay(role, role // parties)


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
    training = _relayed(hospitals, spec.update_blobs) + _FORM + _FORM_PER_HOSPITAL * hospitals + _BEGIN + shown
    training += added + drawn + settled
    statistics = _relayed(hospitals, spec.statistics_blobs) + _BEGIN + drand
    statistics += spec.statistics_blobs * (_SUM + _PUBLISH + _PER_POINT * hospitals)
    if _statistics_judged(spec):
        statistics += drawn + judging.seats * _SETTLE_PER_NODE + _DRAW
    return Gas(_NODE + _JOIN_AGGREGATOR, statistics + rounds.rounds * training)


def _relayed(hospitals: int, blobs: int) -> int:
    """Commits of all hospitals, in as few transactions as possible."""
    gas = hospitals * (_RELAY_PER_UPDATE + blobs * _RELAY_PER_BLOB)
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


def _concerns(spec: TaskSpec, chain: ChainTerms | None) -> Iterator[Concern]:
    yield from _of_updates(spec)
    yield from _of_committees(spec)
    for rule, reason in ((Rule.UNFAIR, unfairness(spec)), (Rule.FEW_OF_CLASS, few_of_class(spec.judging))):
        if reason:
            yield Concern(rule, reason)
    yield from _of_money(spec)
    if spec.update.publication == "blobs" and chain is not None and not chain.takes_blobs:
        yield Concern(
            Rule.NO_BLOBS,
            'this chain takes no blob transactions: write publication = "digests", or the task cannot be proposed',
        )
    if chain is not None:
        yield from _of_windows(spec, chain)


def _of_updates(spec: TaskSpec) -> Iterator[Concern]:
    update, rounds, privacy = spec.update, spec.rounds, spec.privacy
    if not update.masked:
        yield Concern(Rule.NO_MASKS, "the aggregator sees each hospital's update, and hospitals refuse that by default")
        if rounds.min_cohort_size == 1:
            yield Concern(Rule.PUBLISHED_ALONE, "a cohort may have one hospital only, whose update is then public")
    if privacy is None:
        yield Concern(Rule.NO_PRIVACY, "the sums may reveal any fact about a hospital's rows")
    elif privacy.epsilon > HIGH_EPSILON:
        yield Concern(
            Rule.HIGH_EPSILON, f"epsilon {privacy.epsilon:g} is above {HIGH_EPSILON:g}: the bound protects rows little"
        )
    if privacy is not None and privacy.delta > HIGH_DELTA:
        yield Concern(
            Rule.HIGH_DELTA,
            f"delta {privacy.delta:g} leaves one row in {1 / privacy.delta:,.0f} unprotected: keep it below 1 / rows",
        )
    if update.publication == "digests":
        yield Concern(
            Rule.DIGESTS, "sums are in the artifact store only, which must keep them as long as they are needed"
        )
    if local := spec.training.local:
        yield Concern(Rule.LOCAL, f"voters judge starting values of {', '.join(local)}; the model leaves them out")
    if rounds.cohorts == 1:
        yield Concern(
            Rule.ONE_COHORT, "a round is accepted or rejected as a whole, so one harmful update spoils it for all"
        )


def _fast(outer: OuterSpec) -> str:
    """The setting of the outer step that decoys cannot follow (docs/models.md), or ""."""
    fades = isinstance(outer, NesterovSpec) and outer.fading <= FADES
    if isinstance(outer, MomentumSpec | NesterovSpec) and outer.momentum > FAST_MOMENTUM and not fades:
        return f"momentum of {outer.momentum:g} (above {FAST_MOMENTUM:g})"
    if isinstance(outer, AdamSpec) and outer.learning_rate > FAST_ADAM:
        return f"learning_rate of {outer.learning_rate:g} (above {FAST_ADAM:g})"
    return ""


def _of_committees(spec: TaskSpec) -> Iterator[Concern]:
    judging, money = spec.judging, spec.money
    if not judging.decoys:
        yield Concern(Rule.NO_DECOYS, "a voter that does not evaluate is paid like one that does")
    elif money.failed_decoy_slash_bps == 0:
        yield Concern(Rule.DECOYS_FREE, "failed_decoy_slash_bps is 0: a voter that accepts a decoy keeps its bond")
    if judging.decoys and (fast := _fast(spec.outer)):
        yield Concern(
            Rule.DECOYS_FADE,
            f"an outer {fast} moves the model faster than its updates: decoys begin to resemble their sums, and a"
            " round with such decoys pays no voter",
        )
    if judging.seats < SMALLEST_COMMITTEE:
        yield Concern(
            Rule.SMALL_COMMITTEE,
            f"one voter decides the median of {judging.seats} seat(s): set {SMALLEST_COMMITTEE} or more",
        )
    elif judging.min_reveals < SMALLEST_COMMITTEE:
        yield Concern(
            Rule.FEW_REVEALS, f"{judging.min_reveals} revealed ballot(s) decide a round if others stay silent"
        )
    if judging.tolerance == 0 and judging.tolerance_bps == 0:
        yield Concern(Rule.NO_TOLERANCE, "voters are paid only for scores equal to the median, and their rows differ")
    gap = judging.accept_floor - judging.harmful_below
    if judging.seats < SMALLEST_COMMITTEE and judging.tolerance > max(gap, abs(judging.accept_floor)):
        yield Concern(
            Rule.WIDE_TOLERANCE,
            f"a score {judging.tolerance:g} from the median is still paid, more than from accepted to harmful, and"
            f" {judging.seats} seat(s) cannot outvote it",
        )
    if judging.accept_floor >= 0:
        yield Concern(
            Rule.NOTHING_ACCEPTED,
            "accept_floor is not below 0: when the model stops improving, half of all honest cohorts score below 0 by"
            " chance, are rejected and earn nothing",
        )
    elif judging.harmful_below > 2 * judging.accept_floor:
        yield Concern(
            Rule.HARM_NEAR_NOISE,
            f"harmful_below {judging.harmful_below:g} is nearer to 0 than twice accept_floor"
            f" {judging.accept_floor:g}, the range of chance: in a noisy round honest hospitals lose their bonds",
        )
    if money.not_revealed_slash_bps == 0:
        yield Concern(
            Rule.SILENCE_FREE, "not_revealed_slash_bps is 0: a seated voter may withhold its ballot at no cost"
        )


def _of_money(spec: TaskSpec) -> Iterator[Concern]:
    money = spec.money
    if money.pool == 0:
        yield Concern(Rule.NO_POOL, "nobody is paid, and everybody pays their own gas")
    if money.harmful_slash_bps == 0:
        yield Concern(Rule.HARM_FREE, "harmful_slash_bps is 0: the hospitals of a harmful cohort keep their bonds")
    for who, bond, share, parties in (
        ("hospital", money.hospital_bond, money.hospital_share_bps, spec.rounds.max_hospitals),
        ("seat", money.voter_bond, money.voter_share_bps, spec.judging.seats),
    ):
        earns = _pay(spec, share, parties).one * spec.rounds.rounds
        if money.pool and bond * TOKEN > earns:
            yield Concern(
                Rule.BONDS_ABOVE_PAY,
                f"a {who} locks {bond:,} tokens to earn {earns / TOKEN:,.2f} in the whole task, if all earn alike",
            )


def _of_windows(spec: TaskSpec, chain: ChainTerms) -> Iterator[Concern]:
    blobs = spec.update_blobs * spec.rounds.cohorts
    transactions = math.ceil(blobs / MAX_BLOBS_PER_TRANSACTION) if spec.update.publication == "blobs" else 1
    # A block has room for about one transaction's blobs: others send blobs too.
    needs = {name: MARGIN_BLOCKS for name in ("join", "commit", "score", "reveal")}
    needs |= {"upload": MARGIN_BLOCKS, "publish": MARGIN_BLOCKS + transactions - 1}
    for name, blocks in needs.items():
        seconds = blocks * chain.block_seconds + (ANSWER_MARGIN if name in ("upload", "publish") else 0)
        window = getattr(spec.windows, name)
        if window < seconds:
            yield Concern(
                Rule.SHORT_WINDOW,
                f"{name} = {window} s is too short: with {chain.block_seconds:g} s a block, set {math.ceil(seconds)} s",
            )
