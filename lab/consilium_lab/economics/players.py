"""Players' moves, and their pay in a run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from consilium_chain.tasks.limits import MICRO

from consilium_lab.economics.bank import Conduct, Integers
from consilium_lab.economics.payoffs import Settled, lower_medians, settle_rounds
from consilium_lab.economics.world import Ballots, Flags, Reals, World

LOUD = 1 * MICRO  # a colluder's vote: more than any candidate improves
SHADE = 0.9  # of the tolerance: how far a careful colluder bends its vote


class Vote(StrEnum):
    """Ways to vote. Without evaluation only chance, or the norms, tell a sum from its decoy."""

    HONEST = "honest"  # by its own rows
    LAZY = "lazy"  # zero to all, without evaluation
    FORECAST = "forecast"  # to all the usual improvement of this round, from public history
    COPYING = "copying"  # to all the mean of the last round's medians, since this round's votes are hidden
    COIN = "coin"  # tosses a coin for each pair: the forecast to one, a very low score to the other
    DODGING = "dodging"  # the same, but does not reveal if the other reveals show a wrong guess
    COMPARING = "comparing"  # evaluates in the first round; then takes the shorter of a pair for the sum, and forecasts
    SILENT = "silent"  # takes the seat, evaluates, never reveals
    COLLUDING = "colluding"  # its own hospitals' cohorts very high, the others low enough for rejection
    OPPORTUNIST = "opportunist"  # the same in rounds whose median the clique holds, otherwise honest
    SHADING = "shading"  # evaluates, then moves its scores nearly as far as the tolerance allows


CARELESS = {Vote.LAZY, Vote.FORECAST, Vote.COPYING, Vote.COIN, Vote.DODGING}  # never evaluate


@dataclass(frozen=True)
class Cast:
    """The deviating voters (V,) and hospitals (H,), and their moves. `own`: hospitals that colluding voters favour."""

    vote: Vote
    voters: Flags
    conduct: Conduct
    hospitals: Flags
    own: Flags


@dataclass(frozen=True)
class Played:
    """A run's payoffs in tokens, minus costs: voters (R, V), hospitals (R, H)."""

    settled: Settled
    revealed: Flags
    voters: Reals
    hospitals: Reals
    voter_costs: Reals


def play(world: World, cast: Cast) -> Played:
    """Raises LabError (MoneyLost, RulesInvalid)."""
    rules = world.rules
    found = world.evaluations(cast.conduct, cast.hospitals)
    revealed = world.seated & ~(_silent(world, cast.vote) & cast.voters)
    theirs = ballots_of(world, cast, found, revealed)
    ballots = Ballots(
        np.where(cast.voters, theirs.sums, found.sums), np.where(cast.voters, theirs.decoys, found.decoys)
    )
    settled = settle_rounds(rules, ballots, world.tested, world.seated, revealed, world.cohort_of)
    costs = (world.seated & (~cast.voters | _evaluates(world, cast.vote)[:, None])) * rules.evaluation_cost
    trains = ~cast.hospitals | (cast.conduct not in (Conduct.ZERO, Conduct.NOISE))
    hospitals = settled.hospital_rewards - settled.hospital_slashes - trains * rules.training_cost
    return Played(
        settled=settled,
        revealed=revealed,
        voters=(settled.voter_rewards - settled.voter_slashes - costs) / MICRO,
        hospitals=hospitals / MICRO,
        voter_costs=costs / MICRO,
    )


def _evaluates(world: World, vote: Vote) -> Flags:
    """(R,) the rounds in which such a voter evaluates."""
    if vote is Vote.COMPARING:
        return np.asarray(world.phase == 0)
    return np.full(world.rounds, vote not in CARELESS)


def _silent(world: World, vote: Vote) -> Flags:
    """(R, V) voters that would not reveal."""
    if vote is Vote.DODGING:
        return np.asarray(world.tested[:, None] & ~world.coin.all(axis=1))
    return np.full_like(world.seated, vote is Vote.SILENT)


def ballots_of(world: World, cast: Cast, found: Ballots, revealed: Flags) -> Ballots:
    """The ballots if all voters voted so. `found`: their honest scores."""
    usual = world.bank.forecast(world.rules.cohort_size)[world.phase]
    forecast = np.broadcast_to(usual[:, None, None], found.sums.shape)
    match cast.vote:
        case Vote.LAZY:
            return _alike(np.zeros_like(found.sums))
        case Vote.FORECAST:
            return _alike(forecast)
        case Vote.COPYING:
            return _alike(_copied(cast.voters, found.sums, revealed))
        case Vote.COIN | Vote.DODGING:
            says_so = world.coin | ~world.tested[:, None, None]  # nothing to guess without decoys
            return Ballots(np.where(says_so, forecast, -LOUD), np.where(says_so, -LOUD, forecast))
        case Vote.COMPARING:
            works = _evaluates(world, cast.vote)[:, None, None]
            return Ballots(np.where(works, found.sums, forecast), np.where(works, found.decoys, -LOUD))
        case Vote.COLLUDING | Vote.OPPORTUNIST:
            loud = np.where(favoured(world, cast.own)[..., None], LOUD, world.rules.harmful_below)  # rejects only
            plays = holds_median(revealed, cast.voters) | (cast.vote is Vote.COLLUDING)
            return liars_ballots(np.where(plays[:, None, None], loud, found.sums), found)
        case Vote.SHADING:
            bend = int(SHADE * world.rules.tolerance_abs)
            return liars_ballots(found.sums + np.where(favoured(world, cast.own)[..., None], bend, -bend), found)
        case Vote.HONEST | Vote.SILENT:
            return found


def _alike(scores: Integers) -> Ballots:
    """The same score for a sum and for its decoy."""
    return Ballots(scores, scores)


def liars_ballots(sums: Integers, found: Ballots) -> Ballots:
    """Ballots of a liar about sums that knows the decoys. It rates each below its sum, so as not to fail."""
    return Ballots(sums, np.minimum(found.decoys, sums - 1))


def holds_median(revealed: Flags, clique: Flags) -> Flags:
    """(R,) the rounds in which the clique has more than half of the votes. It knows in time, since seats are public,
    and it may take its own last.
    """
    return np.asarray((revealed & clique).sum(axis=1) > revealed.sum(axis=1) // 2)


def favoured(world: World, own: Flags) -> Flags:
    """(R, K) the cohorts with more of the colluders' hospitals than an even split."""
    return np.asarray(world.deviants_in(own) > world.rules.cohort_size * own.mean())


def _copied(copiers: Flags, found: Integers, revealed: Flags) -> Integers:
    """Round by round, since the copiers' votes enter the medians that they copy next."""
    votes = found.copy()
    last = 0
    for r in range(len(found)):
        votes[r][:, copiers] = last
        medians = lower_medians(votes[r : r + 1], revealed[r : r + 1])[0]
        last = int(medians.sum()) // len(medians) if revealed[r].any() else last
    return votes
