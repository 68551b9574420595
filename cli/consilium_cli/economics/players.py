"""What players do, and what a run pays them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from consilium_chain.task_spec import MICRO

from consilium_cli.economics.bank import Conduct, Integers
from consilium_cli.economics.payoffs import Settled, canary_slashes, lower_medians, settle_rounds
from consilium_cli.economics.world import Flags, Reals, World

LOUD = 1 * MICRO  # a colluder's vote: more than any candidate earns
SHADE = 0.9  # of the tolerance: how far a careful colluder bends its vote


class Vote(StrEnum):
    """How a voter votes."""

    HONEST = "honest"  # what its own rows say
    LAZY = "lazy"  # zero, without looking
    FORECAST = "forecast"  # what this round of a task usually improves, from public history, without looking
    COPYING = "copying"  # the mean of last round's medians: commitments hide this round's votes
    HEDGING = "hedging"  # just below the canaries' line, without looking
    SILENT = "silent"  # takes the seat, evaluates, never reveals
    DODGING = "dodging"  # forecasts, sees the others reveal, and keeps silent if there was a canary
    COLLUDING = "colluding"  # own hospitals' cohorts far up, the others down to rejection
    OPPORTUNIST = "opportunist"  # the same, but only in rounds whose median the clique holds; honest in all others
    SHADING = "shading"  # evaluates, then bends as far as the tolerance lets it
    STINGY = "stingy"  # every cohort far down, so that the pool goes back to the operator


EVALUATES = {*Vote} - {Vote.LAZY, Vote.FORECAST, Vote.COPYING, Vote.HEDGING, Vote.DODGING, Vote.STINGY}
CALLS_ALL_BAD = {Vote.HEDGING, Vote.STINGY}


@dataclass(frozen=True)
class Cast:
    """Who deviates, and how: voters (V,), hospitals (H,). `own` are the hospitals that colluding voters favour."""

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
    canary_slashes: Integers
    voters: Reals
    hospitals: Reals
    voter_costs: Reals


def play(world: World, cast: Cast) -> Played:
    """Raises MoneyLost, RulesInvalid."""
    rules = world.rules
    found = world.evaluations(cast.conduct, cast.hospitals)
    canary_found = world.canary_evaluations()
    revealed = world.seated & ~(_silent(world, cast.vote) & cast.voters)
    votes = np.where(cast.voters, _votes(world, cast, found, revealed), found)
    careless = np.where(world.told, rules.canary_line - 1, _careless_canary_vote(world, cast.vote))
    looks = cast.vote in EVALUATES
    canary_votes = np.where(cast.voters & (not looks), careless, canary_found)
    settled = settle_rounds(rules, votes, world.seated, revealed, world.cohort_of)
    slashes = canary_slashes(rules, canary_votes, world.canary & ~settled.void, revealed)
    costs = (world.seated & (~cast.voters | looks)) * rules.evaluation_cost
    trains = ~cast.hospitals | (cast.conduct not in (Conduct.ZERO, Conduct.NOISE))
    hospitals = settled.hospital_rewards - settled.hospital_slashes - trains * rules.training_cost
    return Played(
        settled=settled,
        revealed=revealed,
        canary_slashes=slashes,
        voters=(settled.voter_rewards - settled.voter_slashes - slashes - costs) / MICRO,
        hospitals=hospitals / MICRO,
        voter_costs=costs / MICRO,
    )


def _silent(world: World, vote: Vote) -> Flags:
    """(R, V) who would not reveal, playing so."""
    if vote is Vote.SILENT:
        return np.ones_like(world.seated)
    if vote is Vote.DODGING:
        return np.asarray(world.canary[:, None] & ~world.told)
    return np.zeros_like(world.seated)


def _votes(world: World, cast: Cast, found: Integers, revealed: Flags) -> Integers:
    """(R, K, V) as if everybody played so."""
    match cast.vote:
        case Vote.LAZY:
            return np.zeros_like(found)
        case Vote.FORECAST | Vote.DODGING:
            usual = world.bank.forecast(world.rules.cohort_size)[world.phase]
            return np.broadcast_to(usual[:, None, None], found.shape)
        case Vote.HEDGING:
            return np.full_like(found, world.rules.canary_line - 1)
        case Vote.COPYING:
            return _copied(cast.voters, found, revealed)
        case Vote.STINGY:
            return np.full_like(found, -LOUD)
        case Vote.COLLUDING | Vote.OPPORTUNIST:
            loud = np.where(_favoured(world, cast.own)[..., None], LOUD, world.rules.harmful_below)  # rejects only
            plays = holds_median(revealed, cast.voters) | (cast.vote is Vote.COLLUDING)
            return np.where(plays[:, None, None], loud, found)
        case Vote.SHADING:
            bend = int(SHADE * world.rules.tolerance_abs)
            return np.where(_favoured(world, cast.own)[..., None], found + bend, found - bend)
        case Vote.HONEST | Vote.SILENT:
            return found


def holds_median(revealed: Flags, clique: Flags) -> Flags:
    """(R,) the rounds in which more than half of the votes are the clique's. It knows in time: seats are taken in
    public, and it may take its own last.
    """
    return np.asarray((revealed & clique).sum(axis=1) > revealed.sum(axis=1) // 2)


def _favoured(world: World, own: Flags) -> Flags:
    """(R, K) the cohorts that hold more of the colluders' hospitals than an even dealing would give them."""
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


def _careless_canary_vote(world: World, vote: Vote) -> Integers:
    """(R, 1) or scalar: what somebody who does not look says of a canary: what it says of any cohort."""
    return np.asarray(world.rules.canary_line - 1 if vote in CALLS_ALL_BAD else 0)
