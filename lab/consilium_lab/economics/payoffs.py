"""Settlement of many rounds at once, in integers: equal, unit for unit, to `consilium_chain.settlement.settlement`.

Rounds are the first axis of every array: R rounds, K cohorts, H hospitals of equal weight, V voters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from consilium_chain.settlement.payouts import BASIS_POINTS, portion

from consilium_lab.economics.bank import Integers
from consilium_lab.economics.rules import Rules
from consilium_lab.economics.world import Ballots, Flags
from consilium_lab.errors import LabError

LAST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Settled:
    """Outcomes of R rounds. Amounts in millionths of a token; `left` stays in the pool."""

    medians: Integers  # (R, K), 0 in a void round
    accepted: Flags  # (R, K)
    void: Flags  # (R,)
    counted: Flags  # (R, K) the two medians tell the sum from its decoy
    failed: Flags  # (R, V) rated a decoy that counts no worse than its sum
    near: Flags  # (R, V) revealed, and within tolerance of every median
    earned: Flags  # (R, V) near and not failed; in a round with decoys, one counted
    hospital_rewards: Integers  # (R, H)
    hospital_slashes: Integers
    voter_rewards: Integers  # (R, V)
    voter_slashes: Integers  # for not revealing, or failing
    aggregator_rewards: Integers  # (R,)
    aggregator_slashes: Integers  # (R,)
    left: Integers  # (R,) of the budget, unpaid


def settle_rounds(
    rules: Rules, ballots: Ballots, tested: Flags, seated: Flags, revealed: Flags, cohort_of: Integers,
    budget: Integers | None = None, blamed: Flags | None = None,
) -> Settled:  # fmt: skip
    """Settles R rounds. `tested` (R,): the rounds with decoys. `budget` (R,): the most that each round may pay, by
    default the rules'. `blamed` (R,): the rounds that are void by the aggregator's fault.

    Scores are below 2^31 in size, so that no product exceeds 64 bits. All hospitals commit, survive and weigh 1; all
    cohorts are viable; all decoys are disclosed. Raises LabError (MoneyLost) if the money does not add up.
    """
    counts = revealed.sum(axis=1)
    budget = np.full(len(counts), rules.budget) if budget is None else budget
    blamed = np.zeros(len(counts), dtype=bool) if blamed is None else blamed
    void = (counts < rules.min_reveals) | blamed
    judged = ~void[:, None]
    medians = np.where(judged, lower_medians(ballots.sums, revealed), 0)
    accepted = (medians >= rules.accept_floor) & judged
    harmful = (medians < rules.harmful_below) & judged
    apart = medians - lower_medians(ballots.decoys, revealed) >= rules.decoy_margin
    counted = accepted & apart & tested[:, None]
    failed = (counted[..., None] & (ballots.sums <= ballots.decoys)).any(axis=1) & revealed
    near = _near(rules, ballots.sums, medians) & revealed & judged
    earned = near & ~failed & (counted.any(axis=1) | ~tested)[:, None]

    gains = np.take_along_axis(np.where(accepted, np.maximum(medians, 0), 0), cohort_of, axis=1)
    whole = gains.sum(axis=1, keepdims=True)
    hospital_part, voter_part, aggregator_part = (
        budget * bps // BASIS_POINTS
        for bps in (rules.hospital_share_bps, rules.voter_share_bps, rules.aggregator_share_bps)
    )
    if rules.forfeits:
        hospital_part = hospital_part * (accepted & (medians > 0)).sum(axis=1) // rules.cohorts
    hospital_rewards = hospital_part[:, None] * gains // np.maximum(whole, 1)
    seats = np.maximum(seated.sum(axis=1, keepdims=True), 1)
    voter_rewards = np.where(earned, voter_part[:, None] // seats, 0)
    aggregator_rewards = np.where(void, 0, aggregator_part)
    paid = hospital_rewards.sum(axis=1) + voter_rewards.sum(axis=1) + aggregator_rewards
    harmful_slash = portion(rules.hospital_bond, rules.harmful_slash_bps)
    hospital_slashes = np.take_along_axis(harmful, cohort_of, axis=1) * harmful_slash
    voter_slashes = (seated & ~revealed) * rules.silence_slash + failed * rules.decoy_slash
    aggregator_slashes = blamed * portion(rules.aggregator_bond, rules.not_published_slash_bps)
    settled = Settled(
        medians, accepted, void, counted, failed, near, earned, hospital_rewards, hospital_slashes, voter_rewards,
        voter_slashes, aggregator_rewards, aggregator_slashes, budget - paid,
    )  # fmt: skip
    _require_conserved(settled)
    return settled


def lower_medians(votes: Integers, revealed: Flags) -> Integers:
    """Per round and cohort, of the revealed votes: (R, K). Meaningless without a revealed vote."""
    ordered = np.sort(np.where(revealed[:, None, :], votes, LAST), axis=2)
    index = np.maximum((revealed.sum(axis=1) - 1) // 2, 0)
    return np.asarray(np.take_along_axis(ordered, index[:, None, None], axis=2)[..., 0])


def _near(rules: Rules, votes: Integers, medians: Integers) -> Flags:
    reach = rules.tolerance_abs + np.abs(medians) * rules.tolerance_bps // BASIS_POINTS
    return np.asarray((np.abs(votes - medians[..., None]) <= reach[..., None]).all(axis=1))


def _require_conserved(settled: Settled) -> None:
    """A round pays out of its budget, never more, and nothing negative."""
    least = np.minimum(settled.left, settled.hospital_rewards.min(axis=1))
    if (least < 0).any():
        worst = int(np.argmin(least))
        raise LabError("MoneyLost", round=worst, amount=int(least[worst]))
