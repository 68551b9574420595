"""Concerns about a task's terms. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from consilium_chain.tasks.chain_terms import ChainTerms, pay
from consilium_chain.tasks.fairness import few_of_class, overlooked_harm, unfairness
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.outer_specs import AdamSpec, MomentumSpec, NesterovSpec, OuterSpec
from consilium_chain.tasks.task_spec import TaskSpec

MAX_BLOBS_PER_TRANSACTION = 6  # as `connection` sends them
MARGIN_BLOCKS = 3  # that a phase needs at least: to see it, to be taken into a block, and one that is missed
ANSWER_MARGIN = 3  # seconds before its deadline, when the aggregator stops waiting (`rounds.View`)
HIGH_EPSILON = 10.0  # above it, the bound on a row's privacy loss means little
HIGH_DELTA = 1e-3
# Of the outer step; docs/models.md has measurements. Of a momentum that fades, so much at most after each round.
FAST_MOMENTUM, FAST_ADAM, FADES = 0.5, 0.03, 0.7
SMALLEST_COMMITTEE = 3
FEW_TO_COUNT = 5  # hospitals, whose exact counts are added up


class Rule(StrEnum):
    NO_MASKS = "no masks"
    PUBLISHED_ALONE = "published alone"
    ARENA = "arena"
    NO_PRIVACY = "no privacy"
    HIGH_EPSILON = "high epsilon"
    HIGH_DELTA = "high delta"
    NO_DECOYS = "no decoys"
    DECOYS_FREE = "decoys cost nothing"
    DECOYS_FADE = "decoys fade"
    DIGESTS = "sums off chain"
    LOCAL = "local tensors"
    EXACT_COUNTS = "exact counts of few"
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
    HARM_OVERLOOKED = "harm overlooked"


@dataclass(frozen=True)
class Concern:
    """A rule that a task's terms break, and the reason why that matters here. Terms with concerns are allowed; the task
    file's parser refuses forbidden ones.
    """

    rule: Rule
    reason: str


def concerns(spec: TaskSpec, chain: ChainTerms | None) -> Iterator[Concern]:
    yield from _of_updates(spec)
    yield from _of_committees(spec)
    reasons = {
        Rule.UNFAIR: unfairness(spec), Rule.FEW_OF_CLASS: few_of_class(spec.judging),
        Rule.HARM_OVERLOOKED: overlooked_harm(spec),
    }  # fmt: skip
    yield from (Concern(rule, reason) for rule, reason in reasons.items() if reason)
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
    if spec.is_arena:
        yield Concern(
            Rule.ARENA, "each trainer's update is public: hospitals refuse that unless their policies allow arenas"
        )
    elif not update.masked:
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
    if spec.summary is not None and spec.summary_variance == 0 and rounds.min_hospitals < FEW_TO_COUNT:
        yield Concern(
            Rule.EXACT_COUNTS,
            f"the summary's counts have no noise, and {rounds.min_hospitals} hospital(s) may be all: the others learn"
            f" one's counts together. Set epsilon under [summary], or min_hospitals to {FEW_TO_COUNT} or more",
        )
    if update.publication == "digests":
        yield Concern(
            Rule.DIGESTS,
            "sums are in artifact stores only, which must keep them as long as needed: name stores on two hosts",
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
        earns = pay(spec, share, parties).one * spec.rounds.rounds
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
    if spec.update.masked:  # hospitals wait before they sign, and before they show points
        needs |= {name: needs[name] + chain.confirmations - 1 for name in ("commit", "upload")}
    for name, blocks in needs.items():
        seconds = blocks * chain.block_seconds + (ANSWER_MARGIN if name in ("upload", "publish") else 0)
        window = getattr(spec.windows, name)
        if window < seconds:
            yield Concern(
                Rule.SHORT_WINDOW,
                f"{name} = {window} s is too short: with {chain.block_seconds:g} s a block, set {math.ceil(seconds)} s",
            )
