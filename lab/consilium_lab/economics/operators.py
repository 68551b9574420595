"""An operator with voters, hospitals or an aggregator of its own: its gain by a rejection, over whole tasks."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
from consilium_chain.tasks.task_spec import MICRO

from consilium_lab.economics.bank import Conduct, Integers
from consilium_lab.economics.payoffs import Settled, lower_medians, settle_rounds
from consilium_lab.economics.players import favoured, told
from consilium_lab.economics.rules import ROUNDS_PER_TASK, Unpaid
from consilium_lab.economics.world import Ballots, Flags, Reals, World


class Trick(StrEnum):
    """The operator's trick. Votes deviate only in rounds whose median its voters hold: a minority loses by it."""

    REJECT_ALL = "reject all"
    REJECT_BUT_ONE = "reject all but one"  # so that its voters are paid, and the honest ones are too far away
    REJECT_OTHERS = "reject others"  # all cohorts but those with more of its hospitals than an even assignment gives
    PICK = "pick"  # rejects the cohorts whose rejection pays its hospitals most, knowing all medians
    NO_REVEAL = "no reveal"  # its voters keep silent where that makes the round void
    NO_SEAT = "no seat"  # its voters take no seats where that makes the round void
    MISMATCH = "mismatch"  # most ballots say that the publication does not match: void, the aggregator is slashed
    NOT_DISCLOSED = "not disclosed"  # its aggregator lets the round go by
    RATE = "rate"  # no rejection: says that the cohorts that PICK would reject improve next to nothing


REJECTIONS = tuple(trick for trick in Trick if trick is not Trick.RATE)
NEED_HOSPITALS = (Trick.REJECT_OTHERS, Trick.PICK, Trick.RATE)


class When(StrEnum):
    """In which rounds of a task."""

    ALL = "all rounds"
    ALL_BUT_LAST = "all but the last"
    LAST = "the last"


@dataclass(frozen=True)
class Moves:
    """A run of R rounds as the operator makes it go."""

    ballots: Ballots  # of all voters
    seated: Flags  # (R, V)
    revealed: Flags  # (R, V)
    blamed: Flags  # (R,) void, and the aggregator slashed
    looks: Flags  # (R,) the operator's voters evaluate


@dataclass(frozen=True)
class Operator:
    """The operator's own voters (V,), hospitals (H,) and aggregator in a world."""

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
            evaluations = (moves.seated[r] & self.voters).sum(axis=1) * moves.looks[r]
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
        """Honest votes. Where its voters hold the median, all of them vote the honest median: agreeing is no
        rejection, and a vote that agrees is never too far away.
        """
        nobody = np.zeros(self.world.rounds, dtype=bool)
        own = np.where(self._holds[:, None, None], self._medians[..., None], self._found.sums)
        return Moves(self._ballots(own), self.world.seated, self.world.seated, nobody, ~nobody)

    def moves(self, trick: Trick, when: When) -> Moves:
        """The honest ones but for the trick, played wherever it can be in these rounds of every task."""
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
            return replace(self.honest, blamed=blamed, looks=~blamed)
        if trick is Trick.NOT_DISCLOSED:
            return replace(self.honest, blamed=rounds)
        plays = rounds & self._holds
        low = 1 if trick is Trick.RATE else rules.accept_floor - 1
        rated = np.where(self._kept(trick), self._medians, low)[..., None]
        own = np.where(plays[:, None, None], rated, self.honest.ballots.sums)
        looks = ~plays | (trick is not Trick.REJECT_ALL)  # with nothing accepted no decoy counts
        return replace(self.honest, ballots=self._ballots(own), looks=looks)

    @cached_property
    def _found(self) -> Ballots:
        """Honest voters' scores of honest hospitals."""
        return self.world.evaluations(Conduct.HONEST, np.zeros(self.world.rules.hospitals, dtype=bool))

    @cached_property
    def _medians(self) -> Integers:
        return lower_medians(self._found.sums, self.world.seated)

    @cached_property
    def _holds(self) -> Flags:
        """(R,) where its voters can pull the lower median down: half of an even number of votes is enough."""
        taken, own = self.world.seated.sum(axis=1), (self.world.seated & self.voters).sum(axis=1)
        return np.asarray((own > (taken - 1) // 2) & (own > 0))

    def _ballots(self, own: Integers) -> Ballots:
        """Ballots with its voters' scores of sums. They evaluate, so that they rate each decoy below its sum."""
        theirs, found = told(own, self._found), self._found
        return Ballots(
            np.where(self.voters, theirs.sums, found.sums), np.where(self.voters, theirs.decoys, found.decoys)
        )

    def _rounds(self, when: When) -> Flags:
        is_last = np.arange(self.world.rounds) % ROUNDS_PER_TASK == ROUNDS_PER_TASK - 1
        if when is When.ALL:
            return np.ones_like(is_last)
        return np.asarray(is_last if when is When.LAST else ~is_last)

    def _kept(self, trick: Trick) -> Flags:
        """(R, K) the cohorts that its voters let pass."""
        if trick is Trick.REJECT_OTHERS:
            return favoured(self.world, self.hospitals)
        if trick in NEED_HOSPITALS:
            return self._best_kept(self.world.rules.forfeits and trick is Trick.PICK)
        kept = np.zeros(self._medians.shape, dtype=bool)
        kept[:, 0] = trick is Trick.REJECT_BUT_ONE
        return kept

    def _best_kept(self, forfeits: bool) -> Flags:
        """The set of cohorts that leaves its hospitals most of a round's part."""
        gains, owned = np.maximum(self._medians, 0), self.world.deviants_in(self.hospitals)
        best, kept = np.full(len(gains), -1.0), np.ones(gains.shape, dtype=bool)
        for chosen in itertools.product((True, False), repeat=self.world.rules.cohorts):
            share = (gains * owned)[:, chosen].sum(axis=1) / np.maximum(gains[:, chosen].sum(axis=1), 1)
            if forfeits:
                share = share * (gains[:, chosen] > 0).sum(axis=1)
            better = share > best
            best, kept = np.where(better, share, best), np.where(better[:, None], chosen, kept)
        return kept
