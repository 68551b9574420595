"""Players' moves, and their pay in a run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from consilium_chain.tasks.task_spec import MICRO

from consilium_lab.economics.bank import Conduct, Integers
from consilium_lab.economics.payoffs import Settled, lower_medians, settle_rounds
from consilium_lab.economics.world import Ballots, Flags, Reals, World

LOUD = 1 * MICRO  # a colluder's vote: more than any candidate earns
SHADE = 0.9  # of the tolerance: how far a careful colluder bends its vote


class Vote(StrEnum):
    """Ways to vote. Without evaluation a voter tells a sum from its decoy only by chance or by their norms."""

    HONEST = "honest"  # what its own rows say
    LAZY = "lazy"  # zero to all, without looking
    FORECAST = "forecast"  # to all what this round of a task usually improves, from public history, without looking
    COPYING = "copying"  # to all the mean of last round's medians: commitments hide this round's votes
    COIN = "coin"  # the forecast to one of each pair by the toss of a coin, far down to the other
    DODGING = "dodging"  # the same; sees the others reveal, and keeps silent if a coin fell wrongly
    COMPARING = "comparing"  # works in a task's first round; then takes a pair's shorter one for the sum, and forecasts
    SILENT = "silent"  # takes the seat, evaluates, never reveals
    COLLUDING = "colluding"  # own hospitals' cohorts far up, the others down to rejection
    OPPORTUNIST = "opportunist"  # the same, but only in rounds whose median the clique holds; honest in all others
    SHADING = "shading"  # evaluates, then bends as far as the tolerance lets it


CARELESS = {Vote.LAZY, Vote.FORECAST, Vote.COPYING, Vote.COIN, Vote.DODGING}  # who never evaluate


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
    """A run's payoffs in tokens, costs taken off: voters (R, V), hospitals (R, H)."""

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
    """(R,) the rounds in which such a voter looks at its data."""
    if vote is Vote.COMPARING:
        return np.asarray(world.phase == 0)
    return np.full(world.rounds, vote not in CARELESS)


def _silent(world: World, vote: Vote) -> Flags:
    """(R, V) voters that do not reveal if they vote so."""
    if vote is Vote.DODGING:
        return np.asarray(world.tested[:, None] & ~world.coin.all(axis=1))
    return np.full_like(world.seated, vote is Vote.SILENT)


def ballots_of(world: World, cast: Cast, found: Ballots, revealed: Flags) -> Ballots:
    """All voters' ballots if each of them voted so, from their honest scores."""
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
            says_so = world.coin | ~world.tested[:, None, None]  # without decoys there is nothing to guess
            return Ballots(np.where(says_so, forecast, -LOUD), np.where(says_so, -LOUD, forecast))
        case Vote.COMPARING:
            works = _evaluates(world, cast.vote)[:, None, None]
            return Ballots(np.where(works, found.sums, forecast), np.where(works, found.decoys, -LOUD))
        case Vote.COLLUDING | Vote.OPPORTUNIST:
            loud = np.where(favoured(world, cast.own)[..., None], LOUD, world.rules.harmful_below)  # rejects only
            plays = holds_median(revealed, cast.voters) | (cast.vote is Vote.COLLUDING)
            return told(np.where(plays[:, None, None], loud, found.sums), found)
        case Vote.SHADING:
            bend = int(SHADE * world.rules.tolerance_abs)
            return told(found.sums + np.where(favoured(world, cast.own)[..., None], bend, -bend), found)
        case Vote.HONEST | Vote.SILENT:
            return found


def _alike(scores: Integers) -> Ballots:
    """The same to a sum and to its decoy."""
    return Ballots(scores, scores)


def told(sums: Integers, found: Ballots) -> Ballots:
    """Ballots of a liar about sums that knows the decoys, and rates each below its sum so as not to fail."""
    return Ballots(sums, np.minimum(found.decoys, sums - 1))


def holds_median(revealed: Flags, clique: Flags) -> Flags:
    """(R,) the rounds in which more than half of the votes are the clique's. It knows in time: seats are taken in
    public, and it may take its own last.
    """
    return np.asarray((revealed & clique).sum(axis=1) > revealed.sum(axis=1) // 2)


def favoured(world: World, own: Flags) -> Flags:
    """(R, K) the cohorts that hold more of the colluders' hospitals than an even assignment would give them."""
    return np.asarray(world.deviants_in(own) > world.rules.cohort_size * own.mean())


def _copied(copiers: Flags, found: Integers, revealed: Flags) -> Integers:
    """Round by round, since the copiers' own votes are in the medians that they copy next."""
    votes = found.copy()
    last = 0
    for r in range(len(found)):
        votes[r][:, copiers] = last
        medians = lower_medians(votes[r : r + 1], revealed[r : r + 1])[0]
        last = int(medians.sum()) // len(medians) if revealed[r].any() else last
    return votes
