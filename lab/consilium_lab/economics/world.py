"""All chance of a run, drawn once, so that honest and dishonest play of the same rounds can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from consilium_lab.economics.bank import Bank, Conduct, Integers
from consilium_lab.economics.rules import ROUNDS_PER_TASK, Rules

Flags = NDArray[np.bool_]
Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Ballots:
    """Scores of sums and of their decoys, each (R, K, V). The latter mean nothing in a round without decoys."""

    sums: Integers
    decoys: Integers


@dataclass(frozen=True)
class World:
    """A run of R rounds under `rules`: K cohorts of H hospitals, V voters. Voters' shares of stake are `shares` (V,).

    Every task is one of the measured ones. In every round the measured voters are assigned anew to the simulated ones.
    """

    rules: Rules
    bank: Bank
    shares: Reals  # (V,)
    task: Integers  # (R,) which of the bank's tasks
    phase: Integers  # (R,) round of the task, from 0
    cohort_of: Integers  # (R, H)
    first_pick: Integers  # (R,) which measured cohort stands for cohort 0; the next for cohort 1, …
    evaluator: Integers  # (R, V) which measured voter this one is
    seated: Flags  # (R, V)
    tested: Flags  # (R,) the round's sums have decoys
    coin: Flags  # (R, K, V) this voter tells the sum from its decoy by tossing a coin

    @property
    def rounds(self) -> int:
        return len(self.task)

    @property
    def voters(self) -> int:
        return len(self.shares)

    def evaluations(self, conduct: Conduct, deviants: Flags) -> Ballots:
        """Each voter's honest scores, if the hospitals `deviants` (H,) behave so."""
        size, cohorts = self.rules.cohort_size, self.rules.cohorts
        count = self.deviants_in(deviants)
        found = Ballots(*np.empty((2, self.rounds, cohorts, self.voters), dtype=np.int64))
        for number in np.unique(count):
            r, k = np.nonzero(count == number)
            for into, table in zip((found.sums, found.decoys), self.bank.of(conduct, size, int(number)), strict=True):
                measured = (self.first_pick[r] + k) % table.shape[2]
                rows = table[self.task[r], self.phase[r], measured]  # (found, measured voters)
                into[r, k] = np.take_along_axis(rows, self.evaluator[r], axis=1)
        return found

    def deviants_in(self, deviants: Flags) -> Integers:
        """The number of each cohort's hospitals among `deviants`: (R, K)."""
        inside = self.cohort_of[:, None, :] == np.arange(self.rules.cohorts)[None, :, None]
        return np.asarray((inside & deviants).sum(axis=2))


def draw(rules: Rules, bank: Bank, rounds: int, seed: int, stakes: Sequence[float] = (), alike: int = 1) -> World:
    """A world for a seed; the same seed gives the same tasks, cohorts, voters and coins under any terms.

    `stakes`: the voters', by default one bond each. The first `alike` voters are one party's, and hold its rows.
    """
    held = np.array(stakes or [1.0] * rules.voters)
    tasks = -(-rounds // ROUNDS_PER_TASK)
    assignment, voters, seats, tested, coins = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(5))
    order = np.argsort(voters.random((rounds, bank.voters)), axis=1)
    numbers = np.full(ROUNDS_PER_TASK, ROUNDS_PER_TASK - 1) if rules.late else np.arange(ROUNDS_PER_TASK)
    phase = np.tile(numbers, tasks)[:rounds]
    return World(
        rules=rules,
        bank=bank,
        shares=held / held.sum(),
        task=np.repeat(assignment.integers(0, bank.tasks, tasks), ROUNDS_PER_TASK)[:rounds],
        phase=phase,
        cohort_of=_assigned(assignment, rounds, rules),
        first_pick=assignment.integers(0, rules.hospitals, rounds),
        evaluator=order[:, np.maximum(np.arange(len(held)) - (alike - 1), 0)],
        seated=seats.random((rounds, len(held))) < seat_chance(held / held.sum(), rules.seats),
        tested=tested.permutation(rounds) < round(rules.decoy_rate * rounds),  # exactly that share of them
        coin=coins.random((rounds, rules.cohorts, len(held))) < 0.5,
    )


def seat_chance(shares: Reals, seats: int) -> Reals:
    """As in `libraries/Tickets.sol`: in proportion to stake, and at most 1."""
    return np.minimum(1.0, seats * shares)


def _assigned(random: np.random.Generator, rounds: int, rules: Rules) -> Integers:
    """The cohort of every hospital, shuffled anew in every round: (R, H)."""
    order = np.argsort(random.random((rounds, rules.hospitals)), axis=1)
    return order % rules.cohorts
