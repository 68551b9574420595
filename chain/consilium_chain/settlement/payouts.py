"""Arithmetic of rewards and slashes, as in `libraries/{Payouts,Medians,Ranks}.sol`, with the same vectors.

Amounts in the token's smallest unit, scores in millionths, shares and slashes in basis points. Every division rounds
down, so that parts never exceed the whole.
"""

from __future__ import annotations

from collections.abc import Sequence

BASIS_POINTS = 10_000
FIRST_CLAIM = 10**36  # of an arena's best


def portion(amount: int, basis_points: int) -> int:
    return amount * basis_points // BASIS_POINTS


def penalty(bond: int, basis_points: int, left: int) -> int:
    """A slash of `basis_points` of `bond`, at most `left`."""
    return min(portion(bond, basis_points), left)


def round_part(pool: int, rounds: int, left: int) -> int:
    """The most that a round pays: an even part of the pool, at most `left`."""
    return min(pool // rounds, left)


def gain(weight: int, median: int) -> int:
    """A hospital's claim on the hospitals' part: weight times improvement, or 0 without one."""
    return weight * median if median > 0 else 0


def rank_claim(rank: int, decay_bps: int) -> int:
    """The claim of a rank, counted from 0, on an arena's pay: `decay_bps` of the claim of the rank before."""
    claim = FIRST_CLAIM
    for _ in range(rank):
        claim = portion(claim, decay_bps)
    return claim


def ranking(medians: Sequence[int], floor: int) -> list[int]:
    """An arena's cohorts with a rank, the best first: their medians reach the floor, which is above zero.

    Of equal ones the lower index comes first; the cohorts' seed drew it.
    """
    ranked = [cohort for cohort, median in enumerate(medians) if median >= floor]
    return sorted(ranked, key=lambda cohort: (-medians[cohort], cohort))


def round_gain(medians: Sequence[int], accepted: int) -> int:
    """A settled round's improvement, in millionths of the metric: the mean of the accepted cohorts' medians, rounded
    down; 0 unless it is positive (`Gains.sol`). `accepted`: bit map over cohorts.
    """
    found = [median for cohort, median in enumerate(medians) if accepted >> cohort & 1]
    return max(0, sum(found)) // len(found) if found else 0


def share(amount: int, part: int, whole: int) -> int:
    """`amount` times `part` of `whole`; 0 if `whole` is 0."""
    return amount * part // whole if whole else 0


def reach(median: int, tolerance_abs: int, tolerance_bps: int) -> int:
    """The largest distance from the median of a paid score."""
    return tolerance_abs + portion(abs(median), tolerance_bps)


def is_near(score: int, median: int, tolerance_abs: int, tolerance_bps: int) -> bool:
    return abs(score - median) <= reach(median, tolerance_abs, tolerance_bps)


def counts(genuine: int, decoy: int, accept_floor: int, margin: int) -> bool:
    """True if a cohort's two medians distinguish its sum from its decoy, so that voters are tested by it."""
    return genuine >= accept_floor and genuine - decoy >= margin


def lower_median(values: Sequence[int]) -> int:
    """The element at index (n - 1) // 2 of n >= 1 sorted values: one of them, never an average."""
    return sorted(values)[(len(values) - 1) // 2]
