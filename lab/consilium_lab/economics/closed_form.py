"""Results by formulas: they check the simulation, and give bounds for a task's terms."""

from __future__ import annotations

import numpy as np

from consilium_lab.economics.world import Reals


def honest_from_rate(
    cost: float,
    seat_pay: float,
    near_lazy: float,
    near_honest: float,
    slash: float,
    lazy_passes: float,
    honest_fails: float,
) -> float:
    """The share of rounds with decoys above which evaluation pays more than laziness.

    Per seat, honesty earns `near_honest · seat_pay − cost` and laziness `near_lazy · seat_pay`. A voter that fails a
    round with decoys loses that pay and `slash`. `lazy_passes`: the chance that a lazy voter passes such a round.
    `honest_fails`: the chance that an honest voter fails. Infinity if a lazy voter fails no more often.
    """
    lost = (1 - lazy_passes) * (near_lazy * seat_pay + slash) - honest_fails * (near_honest * seat_pay + slash)
    advantage = cost + seat_pay * (near_lazy - near_honest)
    if advantage <= 0:
        return 0.0
    return advantage / lost if lost > 0 else float("inf")


def seats_of(voters: int, chance: float) -> Reals:
    """The distribution of the number of seats that `voters` independent voters win: (voters + 1,)."""
    distribution = np.ones(1)
    for _ in range(voters):
        distribution = np.convolve(distribution, [1 - chance, chance])
    return distribution


def capture_chance(
    voters: int, colluders: int, seats: int, min_reveals: int, downwards: bool = False, one_key: bool = False
) -> float:
    """The chance that colluders alone set the lower median in a round: with more than half of the committee, or with
    half of it if they lower the median (`downwards`).

    Voters have one bond each. A void round counts as not captured. With `one_key` a single draw seats all colluders or
    none, as if their accounts had one ticket.
    """
    chance = min(1.0, seats / voters)
    theirs, others = seats_of(colluders, chance), seats_of(voters - colluders, chance)
    if one_key:
        theirs = np.zeros(colluders + 1)
        theirs[[0, colluders]] = 1 - chance, chance
    return float(
        sum(
            theirs[a] * others[b]
            for a in range(1, len(theirs))
            for b in range(len(others))
            if a + b >= max(min_reveals, 1) and (2 * a >= a + b if downwards else 2 * a > a + b)
        )
    )


def split_pay(others: int, seats: int, stake: float, parts: int) -> float:
    """The expected share of the voters' pay per round for a stake of `stake` bonds, split over `parts` accounts.

    All are paid, and the `others` have one bond each.
    """
    total = others + stake
    own = seats_of(parts, min(1.0, seats * stake / parts / total))
    rest = seats_of(others, min(1.0, seats / total))
    return float(sum(own[x] * rest[y] * x / (x + y) for x in range(1, len(own)) for y in range(len(rest))))


def aggregator_pay(fee: float, slash: float, cheated: float, late: float = 0.0) -> float:
    """The mean pay per round of an aggregator that misses a share `cheated` of the rounds, and acts in the grace period
    of a share `late`. The latter costs the fee, but no slash.
    """
    return (1 - cheated - late) * fee - cheated * slash
