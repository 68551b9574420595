"""Results without simulation: checks of the simulation, and formulas for a task's terms."""

from __future__ import annotations

import numpy as np

from consilium_lab.economics.world import Reals


def honest_from_rate(
    cost: float, seat_pay: float, near_lazy: float, near_honest: float, slash: float, told: float, failed: float
) -> float:
    """The share of rounds with decoys from which on evaluating pays more than not evaluating.

    Per seat, honesty earns `near_honest · seat_pay − cost` and laziness `near_lazy · seat_pay`; in a round with
    decoys who does not pass loses that pay and `slash`. `told` is the chance that a lazy voter passes such a round,
    `failed` the chance that an honest one does not. Where the two meet is the answer; infinity if nowhere, since a lazy
    voter fails no more often than an honest one.
    """
    lost = (1 - told) * (near_lazy * seat_pay + slash) - failed * (near_honest * seat_pay + slash)
    advantage = cost + seat_pay * (near_lazy - near_honest)
    if advantage <= 0:
        return 0.0
    return advantage / lost if lost > 0 else float("inf")


def seats_of(voters: int, chance: float) -> Reals:
    """Distribution of how many of `voters` independent voters win a seat: (voters + 1,)."""
    distribution = np.ones(1)
    for _ in range(voters):
        distribution = np.convolve(distribution, [1 - chance, chance])
    return distribution


def capture_chance(
    voters: int, colluders: int, seats: int, min_reveals: int, downwards: bool = False, one_key: bool = False
) -> float:
    """Chance that colluders alone set the lower median in a round: they are more than half of the committee, or to set
    it `downwards` half of it.

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
    """Expected part of the voters' part that a stake of `stake` bonds earns per round, split over `parts` accounts,
    when everybody is paid and the `others` have one bond each.
    """
    total = others + stake
    own = seats_of(parts, min(1.0, seats * stake / parts / total))
    rest = seats_of(others, min(1.0, seats / total))
    return float(sum(own[x] * rest[y] * x / (x + y) for x in range(1, len(own)) for y in range(len(rest))))


def aggregator_pay(fee: float, slash: float, cheated: float, late: float = 0.0) -> float:
    """Mean per round of an aggregator that lets a share `cheated` of the rounds go by, and acts in the grace of a share
    `late`, which costs it the fee and no slash.
    """
    return (1 - cheated - late) * fee - cheated * slash
