"""An operator with its own voters, hospitals or aggregator: its gain by a rejection, over whole tasks."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
from consilium_chain.tasks.limits import MICRO

from consilium_lab.economics.bank import Conduct, Integers
from consilium_lab.economics.payoffs import Settled, lower_medians, settle_rounds
from consilium_lab.economics.players import favoured, liars_ballots
from consilium_lab.economics.rules import ROUNDS_PER_TASK, Unpaid
from consilium_lab.economics.world import Ballots, Flags, Reals, World


class Trick(StrEnum):
    """The operator's trick. Votes deviate only in rounds whose median its voters hold: a minority would lose."""

    REJECT_ALL = "reject all"
    REJECT_BUT_ONE = "reject all but one"  # its voters are paid, and the honest ones are too far from the medians
    REJECT_OTHERS = "reject others"  # all cohorts except those with more of its hospitals than an even split
    PICK = "pick"  # knows all medians, and rejects the cohorts whose rejection pays its hospitals most
    NO_REVEAL = "no reveal"  # its voters do not reveal if that makes the round void
    NO_SEAT = "no seat"  # its voters take no seats if that makes the round void
    MISMATCH = "mismatch"  # most ballots say "does not match": the round is void, the aggregator slashed
    NOT_DISCLOSED = "not disclosed"  # its aggregator misses the deadline
    RATE = "rate"  # rejects none, but rates the cohorts that PICK would reject near zero


REJECTIONS = tuple(trick for trick in Trick if trick is not Trick.RATE)
NEED_HOSPITALS = (Trick.REJECT_OTHERS, Trick.PICK, Trick.RATE)


class When(StrEnum):
    """The rounds of a task with the trick."""

    ALL = "all rounds"
    ALL_BUT_LAST = "all but the last"
    LAST = "the last"


@dataclass(frozen=True)
class Moves:
    """A run of R rounds with the operator's trick."""

    ballots: Ballots  # of all voters
    seated: Flags  # (R, V)
    revealed: Flags  # (R, V)
    blamed: Flags  # (R,) void, and the aggregator slashed
    evaluates: Flags  # (R,) the operator's voters evaluate


@dataclass(frozen=True)
class Operator:
    """The operator's own voters (V,), hospitals (H,) and aggregator."""

    world: World
    voters: Flags
    hospitals: Flags
    aggregator: bool

    def can(self, trick: Trick) -> bool:
        if trick in NEED_HOSPITALS:
            return bool(self.hospitals.any())
        return self.aggregator or trick is not Trick.NOT_DISCLOSED

    def income(self, moves: Moves) -> Reals:
        """Tokens a round, for each whole task: (R // ROUNDS_PER_TASK,). Raises LabError (MoneyLost)."""
        rules, tasks = self.world.rules, self.world.rounds // ROUNDS_PER_TASK
        earned, carried = np.zeros((2, tasks), dtype=np.int64)
        for number in range(ROUNDS_PER_TASK):
            r = np.arange(tasks) * ROUNDS_PER_TASK + number
            settled = settle_rounds(
                rules, Ballots(moves.ballots.sums[r], moves.ballots.decoys[r]), self.world.tested[r],
                moves.seated[r], moves.revealed[r], self.world.cohort_of[r], rules.budget + carried, moves.blamed[r],
            )  # fmt: skip
            evaluations = (moves.seated[r] & self.voters).sum(axis=1) * moves.evaluates[r]
            earned += self._paid(settled) - evaluations * rules.evaluation_cost
            if rules.unpaid is Unpaid.REFUNDED:
                earned += settled.left
            elif rules.unpaid is Unpaid.CARRIED:
                carried = settled.left
        training = self.hospitals.sum() * rules.training_cost
        return np.asarray((earned / ROUNDS_PER_TASK - training) / MICRO)

    def _paid(self, settled: Settled) -> Integers:
        """(R,), less slashes."""
        voters = (settled.voter_rewards - settled.voter_slashes)[:, self.voters].sum(axis=1)
        hospitals = (settled.hospital_rewards - settled.hospital_slashes)[:, self.hospitals].sum(axis=1)
        aggregator = self.aggregator * (settled.aggregator_rewards - settled.aggregator_slashes)
        return np.asarray(voters + hospitals + aggregator)

    @cached_property
    def honest(self) -> Moves:
        """Honest votes. If its voters hold the median, all of them vote the honest median, which is never too far from
        the medians.
        """
        none = np.zeros(self.world.rounds, dtype=bool)
        own = np.where(self._holds[:, None, None], self._medians[..., None], self._found.sums)
        return Moves(self._ballots(own), self.world.seated, self.world.seated, none, ~none)

    def moves(self, trick: Trick, when: When) -> Moves:
        """The honest moves with the trick, wherever it is possible in these rounds of every task."""
        rules, seated, rounds = self.world.rules, self.world.seated, self._rounds(when)
        seats, others = ((seated & who).sum(axis=1) for who in (self.voters, ~self.voters))
        enough = seats + others >= rules.min_reveals
        absent = seated & ~(self.voters & (rounds & enough & (others < rules.min_reveals))[:, None])
        if trick is Trick.NO_REVEAL:
            return replace(self.honest, revealed=absent)
        if trick is Trick.NO_SEAT:
            return replace(self.honest, seated=absent, revealed=absent)
        if trick is Trick.MISMATCH:
            blamed = rounds & enough & (seats > others)
            return replace(self.honest, blamed=blamed, evaluates=~blamed)
        if trick is Trick.NOT_DISCLOSED:
            return replace(self.honest, blamed=rounds)
        plays = rounds & self._holds
        low = 1 if trick is Trick.RATE else rules.accept_floor - 1
        rated = np.where(self._kept(trick), self._medians, low)[..., None]
        own = np.where(plays[:, None, None], rated, self.honest.ballots.sums)
        evaluates = ~plays | (trick is not Trick.REJECT_ALL)  # if nothing is accepted, no decoy counts
        return replace(self.honest, ballots=self._ballots(own), evaluates=evaluates)

    @cached_property
    def _found(self) -> Ballots:
        """Honest voters' scores of honest hospitals."""
        return self.world.evaluations(Conduct.HONEST, np.zeros(self.world.rules.hospitals, dtype=bool))

    @cached_property
    def _medians(self) -> Integers:
        return lower_medians(self._found.sums, self.world.seated)

    @cached_property
    def _holds(self) -> Flags:
        """(R,) its voters can lower the median: half of an even number of votes suffices."""
        taken, own = self.world.seated.sum(axis=1), (self.world.seated & self.voters).sum(axis=1)
        return np.asarray((own > (taken - 1) // 2) & (own > 0))

    def _ballots(self, own: Integers) -> Ballots:
        """Ballots with its voters' scores of sums. They know the decoys, and rate each below its sum."""
        theirs, found = liars_ballots(own, self._found), self._found
        return Ballots(
            np.where(self.voters, theirs.sums, found.sums), np.where(self.voters, theirs.decoys, found.decoys)
        )

    def _rounds(self, when: When) -> Flags:
        is_last = np.arange(self.world.rounds) % ROUNDS_PER_TASK == ROUNDS_PER_TASK - 1
        if when is When.ALL:
            return np.ones_like(is_last)
        return np.asarray(is_last if when is When.LAST else ~is_last)

    def _kept(self, trick: Trick) -> Flags:
        """(R, K) the cohorts that its voters accept."""
        if trick is Trick.REJECT_OTHERS:
            return favoured(self.world, self.hospitals)
        if trick in NEED_HOSPITALS:
            return self._best_kept(self.world.rules.forfeits and trick is Trick.PICK)
        kept = np.zeros(self._medians.shape, dtype=bool)
        kept[:, 0] = trick is Trick.REJECT_BUT_ONE
        return kept

    def _best_kept(self, forfeits: bool) -> Flags:
        """(R, K) the set of cohorts that gives its hospitals most of a round's pay."""
        gains, owned = np.maximum(self._medians, 0), self.world.deviants_in(self.hospitals)
        best, kept = np.full(len(gains), -1.0), np.ones(gains.shape, dtype=bool)
        for chosen in itertools.product((True, False), repeat=self.world.rules.cohorts):
            share = (gains * owned)[:, chosen].sum(axis=1) / np.maximum(gains[:, chosen].sum(axis=1), 1)
            if forfeits:
                share = share * (gains[:, chosen] > 0).sum(axis=1)
            better = share > best
            best, kept = np.where(better, share, best), np.where(better[:, None], chosen, kept)
        return kept
