"""The economics of an arena (docs/arena.md): the pay of ranks, and the gain of several accounts. Pure."""

from __future__ import annotations

from fractions import Fraction


def shares(trainers: int, decay: Fraction) -> list[Fraction]:
    """The parts of ranks 1 … `trainers`: q^(k−1), scaled so that all add up to 1."""
    parts = [decay**rank for rank in range(trainers)]
    return [part / sum(parts) for part in parts]


def sybil_gain(trainers: int, rank: int, accounts: int, decay: Fraction) -> Fraction:
    """The part of a round's pay for hospitals that one trainer gains by `accounts` accounts instead of one.

    Its models are nearly equal, so they take `rank` and the next ranks. `trainers`: those with a rank, with this one
    once. Each account locks a bond of its own.
    """
    several = shares(trainers + accounts - 1, decay)[rank - 1 : rank - 1 + accounts]
    return sum(several, Fraction(0)) - shares(trainers, decay)[rank - 1]


def first_rank_within(most: Fraction, trainers: int, accounts: int, decay: Fraction) -> int | None:
    """The best rank from which on so many accounts gain at most `most`; None if every rank gains more."""
    for rank in range(1, trainers + 1):
        if sybil_gain(trainers, rank, accounts, decay) <= most:
            return rank
    return None
