"""The rules of a task file that several of its sections share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from consilium_zk.constants import MAX_BITS

from consilium_chain.tasks.judging_spec import MIN_MASKED
from consilium_chain.tasks.limits import (
    BEACON_DAYS,
    BOUNTIES_BPS,
    DAY,
    LEAST_HARM,
    MAX_BLOBS,
    MAX_DAYS,
    MICRO,
    TICKS_PER_ROUND,
)
from consilium_chain.tasks.money_spec import SLASH_PER_FEE, TOKEN
from consilium_chain.tasks.plugin_specs import require_metric
from consilium_chain.tasks.questions import Regression, Segmentation
from consilium_chain.tasks.start_specs import SeedStart
from consilium_chain.tasks.summary_spec import MOST_DEVIATION

if TYPE_CHECKING:
    from consilium_chain.tasks.task_spec import TaskSpec


def require_fitting(spec: TaskSpec) -> None:
    """Raises ValueError if sections of a task file rule each other out."""
    r, j, m = spec.rounds, spec.judging, spec.money
    spec.model.require_fits(spec.data)
    require_metric(j.metric, j.plugin, spec.data.asked.metrics)
    if spec.training.class_weights == "balanced" and not spec.data.classes:
        raise ValueError(f"data of kind {spec.data.kind} has no classes to balance: set class_weights = 'equal'")
    if j.plugin is not None and isinstance(spec.data.asked, Segmentation):
        raise ValueError("a plug-in's metric reads no masks: judge by dice or log_loss")
    if j.least_of_class and isinstance(spec.data.asked, Regression):
        raise ValueError("an amount has no classes: remove least_of_class")
    spec.model.require_start(spec.start.name)
    if isinstance(spec.start, SeedStart):
        spec.start.require_fits(spec.model.name, spec.model.ends_with_bias, len(spec.data.classes))
        counts = spec.counted_classes or any(part.answers for part in spec.summary_parts)
        if spec.start.counted and not counts:
            raise ValueError(
                "a counted start needs counts of the answers: add a [summary], or state the prevalence instead"
            )
    if r.min_hospitals > r.max_hospitals:
        raise ValueError(f"min_hospitals {r.min_hospitals} is above max_hospitals {r.max_hospitals}")
    if r.min_hospitals < r.min_cohort_size:
        raise ValueError(
            f"min_hospitals {r.min_hospitals} is below min_cohort_size {r.min_cohort_size}: raise min_hospitals"
        )
    if spec.update.masked and r.min_cohort_size < MIN_MASKED:
        raise ValueError(
            f"masked updates need cohorts of at least {MIN_MASKED}: in a cohort of two, each hospital learns the"
            f" other's update from the sum; raise min_cohort_size from {r.min_cohort_size}, or set masked = false"
        )
    if r.cohorts * r.min_cohort_size > r.max_hospitals:
        raise ValueError(
            f"{r.cohorts} cohorts of at least {r.min_cohort_size} need {r.cohorts * r.min_cohort_size} hospitals,"
            f" but at most {r.max_hospitals} may join: lower cohorts or min_cohort_size"
        )
    if spec.sale is not None and r.shards > 1:
        raise ValueError(f"a model of {r.shards} shards cannot be sold yet: remove [sale], or set shards = 1")
    if spec.is_arena:
        _require_arena_fits(spec)
    if j.min_voters > j.max_voters:
        raise ValueError(f"min_voters {j.min_voters} is above max_voters {j.max_voters}")
    if j.seats > j.max_voters:
        raise ValueError(f"{j.seats} seats are more than the {j.max_voters} voters that may join: lower seats")
    if j.min_reveals > j.seats:
        raise ValueError(f"min_reveals {j.min_reveals} is above the {j.seats} seats: lower min_reveals")
    if j.least_of_class is not None and j.least_of_class * len(spec.data.classes) > (j.least_rows or 0):
        raise ValueError(
            f"least_of_class {j.least_of_class} for {len(spec.data.classes)} class(es) needs a least_rows of"
            f" {j.least_of_class * len(spec.data.classes)} or more: raise least_rows"
        )
    if j.harmful_below > j.accept_floor:
        raise ValueError("harmful_below is above accept_floor: a cohort could be accepted and slashed at once")
    if round(j.harmful_below * MICRO) > -round(LEAST_HARM * MICRO):
        raise ValueError(
            f"harmful_below {j.harmful_below:g} is too near to zero: chance alone would slash honest hospitals; set"
            f" it to {-LEAST_HARM:g} or less"
        )
    if spec.privacy is not None and spec.statistics == "exact":
        raise ValueError(
            "exact statistics are sums without noise, which epsilon does not bound: set statistics ="
            ' "schema", or remove [privacy]'
        )
    if spec.privacy is not None and not spec.model.learns_privately:
        raise ValueError(f'the model {spec.model.name} has no form with noise: set it to "lora", or remove [privacy]')
    _require_summary_fits(spec)
    private = spec.privacy is not None
    spec.model.require_alongside(spec.update.codec.name, spec.training.control_variates, private)
    spec.training.require_alongside(spec.privacy, spec.statistics, spec.update.codec)
    longest = spec.windows.longest(r.rounds) + BEACON_DAYS * DAY
    if longest > MAX_DAYS * DAY:
        raise ValueError(
            f"the task may last {longest / DAY:,.1f} days (with {BEACON_DAYS} for a dead beacon), more than the"
            f" {MAX_DAYS} for which a task may lock bonds: lower rounds or windows"
        )
    if j.decoys and spec.update.bits == MAX_BITS:
        raise ValueError(f"decoys need one bit more than the {MAX_BITS} of the update: lower bits to {MAX_BITS - 1}")
    if j.decoys and round(j.decoy_margin * MICRO) < 1:
        raise ValueError("decoys need a decoy_margin of at least a millionth: without it, equal pairs count")
    shares = m.hospital_share_bps + m.voter_share_bps + m.aggregator_share_bps
    if shares != 10_000:
        raise ValueError(f"the three shares add up to {shares} basis points: they must add up to 10000")
    slash, fee = m.aggregator_slash, m.aggregator_fee(r.rounds)
    if slash < SLASH_PER_FEE * fee:
        raise ValueError(
            f"an aggregator that does not publish a round loses {slash / TOKEN:g} tokens, less than twice its"
            f" {fee / TOKEN:g} for a round, so it could afford that: raise aggregator_bond or"
            f" not_published_slash_bps, or lower aggregator_share_bps"
        )
    bounties, most = m.tick_bounty * TICKS_PER_ROUND * (r.rounds + 1) * 10_000, m.pool * BOUNTIES_BPS
    if bounties > most:
        raise ValueError(
            f"a tick_bounty of {m.tick_bounty} may cost more than a hundredth of the pool of {m.pool} over"
            f" {r.rounds} rounds: lower it to {most // (TICKS_PER_ROUND * (r.rounds + 1) * 10_000)}"
        )
    # Lanes too wide for a cohort's weight are refused here too, by their own error.
    if spec.summary is not None and spec.statistics_blobs > MAX_BLOBS:
        raise ValueError(
            f"the {spec.statistics_values:,} values of round 0 take {spec.statistics_blobs} blobs, more than the"
            f" {MAX_BLOBS} of a task: lower bins under [summary]"
        )
    blobs = max(spec.update_blobs, spec.statistics_blobs)
    if blobs > MAX_BLOBS:
        raise ValueError(
            f"an update takes {blobs} blobs, more than the {MAX_BLOBS} of a task: lower bits, choose a codec, or"
            f" shrink the model"
        )
    _require_weights_add_up(spec)


def _require_arena_fits(spec: TaskSpec) -> None:
    """Raises ValueError unless each hospital of an arena is alone in its cohort, and the best becomes the base."""
    rounds, outer = spec.rounds, spec.outer.name
    alone = rounds.min_cohort_size == 1 and rounds.cohorts == rounds.max_hospitals
    if not alone or rounds.shards > 1:
        raise ValueError(
            f"an arena (rank_decay_bps) ranks hospitals one by one: set min_cohort_size = 1, shards = 1, and cohorts ="
            f" max_hospitals, of which there are {rounds.cohorts} and {rounds.max_hospitals}"
        )
    if round(spec.judging.rank_floor * MICRO) < 1:
        raise ValueError(
            "an arena needs a rank_floor above 0: chance alone lifts half of all copies of the base over 0"
        )
    if rounds.max_weight > 1:
        raise ValueError(f"the rows of an arena's hospitals count nothing: set max_weight = 1, not {rounds.max_weight}")
    if outer != "mean":
        raise ValueError(f'an arena\'s best model is the next base: leave out [outer] name = "{outer}"')


def _require_weights_add_up(spec: TaskSpec) -> None:
    """Raises ValueError if the sum over all hospitals of the model could be too large for `Quantiser`."""
    rounds = spec.rounds
    most = (1 << 62) >> (spec.update.bits - 1)
    if rounds.shards * rounds.max_hospitals * rounds.max_weight >= most:
        largest = (most - 1) // (rounds.shards * rounds.max_hospitals)
        raise ValueError(
            f"{rounds.shards * rounds.max_hospitals} hospitals of weight {rounds.max_weight} are too many to add up"
            f" updates of {spec.update.bits} bits: lower max_weight to {largest}"
        )


def _require_summary_fits(spec: TaskSpec) -> None:
    """Raises ValueError if other sections of the task file rule out its summary."""
    summary, privacy = spec.summary, spec.privacy
    if summary is None:
        return
    if summary.epsilon is None:
        if privacy is not None:
            raise ValueError(
                "the epsilon of [privacy] does not bound a summary without noise: set epsilon under [summary], or"
                " remove one of both"
            )
        return
    if spec.statistics == "exact":
        raise ValueError(
            'noise in the summary hides nothing beside exact statistics: set statistics = "schema", or remove'
            " epsilon from [summary]"
        )
    if privacy is not None and not (summary.epsilon < privacy.epsilon and summary.delta == privacy.delta):
        raise ValueError(
            f"the summary costs a part of the task's epsilon {privacy.epsilon:g} at delta {privacy.delta:g}: set a"
            " lower epsilon and the same delta under [summary]"
        )
    if math.sqrt(spec.summary_variance) > MOST_DEVIATION:
        raise ValueError(
            f"the summary's noise has a deviation of {math.sqrt(spec.summary_variance):,.0f} rows at each hospital,"
            f" above {MOST_DEVIATION:,.0f}: raise its epsilon, or leave out columns"
        )
