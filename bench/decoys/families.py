"""Ways to make a decoy: each a function of the public record, the cohort that it stands beside, and a seed.

All take the cohort's own mean update, so that norm, layers and company look right, and do something harmful with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from consilium_zk.decoys import STRENGTH_UNIT, negated_delta_lanes, published_lanes
from numpy.random import Generator

from bench.decoys.rounds import Round, Sum, Vector, layer_slices

Make = Callable[[Round, int, float, Generator], Vector | Sum]


@dataclass(frozen=True)
class Family:
    """`strengths` are tried one by one; `twins` says that every cohort of a round gets such a decoy."""

    name: str
    label: str
    make: Make
    strengths: tuple[float, ...]
    twins: bool = False


def progress(turn: Round) -> Vector:
    """What the task has learnt so far: base minus initial parameters."""
    return turn.base.astype(np.float64) - turn.start


def honest(turn: Round, cohort: int, strength: float, random: Generator) -> Vector:
    """No decoy: what the cohort would have sent had its hospitals shuffled their rows otherwise. Needs data; it is
    here to show that the detector sees nothing where there is nothing to see."""
    return turn.mean_update(turn.again[cohort])


def noise(turn: Round, cohort: int, strength: float, random: Generator) -> Vector:
    own = turn.updates[cohort]
    drawn = random.standard_normal(len(own))
    return strength * float(np.linalg.norm(own)) / float(np.linalg.norm(drawn)) * drawn


def flipped_last(turn: Round, cohort: int, strength: float, random: Generator) -> Vector:
    """The last round's update flipped round, with noise; the cohort's own where there is no last round."""
    last = turn.earlier[-1].joint if turn.earlier else turn.updates[cohort]
    return -strength * last + noise(turn, cohort, 0.5, random)


def permuted(turn: Round, cohort: int, strength: float, random: Generator) -> Vector:
    """Every value in a random other position of its layer."""
    moved = turn.updates[cohort].copy()
    for part in layer_slices(turn.spec):
        moved[part] = random.permutation(moved[part])
    return strength * moved


def half_flipped(turn: Round, cohort: int, strength: float, random: Generator) -> Vector:
    own = turn.updates[cohort]
    return strength * np.where(random.random(len(own)) < 0.5, -own, own)


def overshoot(turn: Round, cohort: int, strength: float, random: Generator) -> Vector:
    return strength * turn.updates[cohort]


def prior_shift(turn: Round, cohort: int, strength: float, random: Generator) -> Vector:
    """The last bias moved by `strength` logits to a random side: every patient more ill, or more healthy."""
    shifted = turn.updates[cohort].copy()
    shifted[-1] += strength * random.choice([-1.0, 1.0])
    return shifted


def head_undone(turn: Round, cohort: int, strength: float, random: Generator) -> Vector:
    """The output layer taken back by `strength` times what it has become; everything else as the cohort has it."""
    spoilt = turn.updates[cohort].copy()
    head = layer_slices(turn.spec)[-1]
    spoilt[head] -= strength * (turn.base[head] + spoilt[head])
    return spoilt


def half_undone(turn: Round, cohort: int, strength: float, random: Generator) -> Vector:
    """A random half of the parameters taken back by `strength` times what they have learnt."""
    own = turn.updates[cohort]
    return own - strength * np.where(random.random(len(own)) < 0.5, progress(turn) + own, 0.0)


def blend_undone(turn: Round, cohort: int, strength: float, random: Generator) -> Vector:
    """Every value from a random cohort of this round, less `strength` times what has been learnt."""
    pick = random.integers(len(turn.updates), size=len(turn.base))
    blended = np.choose(pick, turn.updates)
    return blended - strength * (progress(turn) + turn.joint)


def stiff(turn: Round, cohort: int, strength: float, random: Generator) -> Vector:
    """Against the change between the last two updates, which points where the loss curves most (a secant)."""
    own = turn.updates[cohort]
    change = turn.earlier[-1].joint - turn.joint if turn.earlier else own
    return own - strength * float(np.linalg.norm(own) / np.linalg.norm(change)) * change


def surprise_mirrored(turn: Round, cohort: int, strength: float, random: Generator) -> Vector:
    """Keeps the part that earlier rounds foretell, and flips the rest of the update."""
    own = turn.updates[cohort]
    if not turn.earlier:
        return -strength * own
    known, _ = np.linalg.qr(np.array([one.joint for one in turn.earlier]).T)
    foretold = known @ (known.T @ own)
    return foretold - strength * (own - foretold)


def mirrored(turn: Round, cohort: int, strength: float, random: Generator) -> Vector:
    return -strength * turn.updates[cohort]


def flipped(turn: Round, cohort: int, strength: float, random: Generator) -> Sum:
    """Mirrored, and `strength` times the task's progress taken back: in round 1, the mirror image itself.

    A voter takes a decoy that leaves the quantiser's range for no model, without a look at its rows. Here it is
    brought back to the range's end instead, and scored: it is judged by no more than its harm.
    """
    genuine, bits = turn.cohorts[cohort], turn.spec.update.bits
    negated_delta = negated_delta_lanes(turn.progress, bits, round(strength * STRENGTH_UNIT))
    published = published_lanes(genuine.lanes, negated_delta, genuine.weight, bits, flipped=True)
    middle = np.uint64(genuine.weight * turn.quantiser.offset)
    lanes = np.clip(published, middle, 3 * middle) - middle  # as read plainly
    return Sum(lanes, genuine.weight, genuine.divisor)


FAMILIES = (
    Family("honest", "none: the cohort trained again", honest, (1.0,)),
    Family("noise", "Gaussian noise", noise, (1.0, 8.0)),
    Family("flipped_last", "last round's update flipped round", flipped_last, (4.0,)),
    Family("permuted", "permuted within layers", permuted, (8.0,)),
    Family("half_flipped", "random half flipped", half_flipped, (8.0,)),
    Family("overshoot", "scaled up", overshoot, (8.0,)),
    Family("prior_shift", "output bias shifted", prior_shift, (3.0,)),
    Family("head_undone", "output layer taken back", head_undone, (1.0,)),
    Family("half_undone", "random half taken back", half_undone, (1.0, 2.0)),
    Family("blend_undone", "cohorts blended, progress taken back", blend_undone, (0.5, 1.0)),
    Family("stiff", "against the steepest change", stiff, (8.0,)),
    Family("mirrored", "mirror image of one cohort", mirrored, (1.0, 3.0)),
    Family("honest_twins", "none: all cohorts trained again", honest, (1.0,), twins=True),
    Family("surprise_twins", "what was not foretold, mirrored", surprise_mirrored, (1.0,), twins=True),
    Family("mirrored_twins", "all cohorts mirrored", mirrored, (1.0,), twins=True),
    Family("flipped", "all cohorts flipped", flipped, (0.5, 1.0, 1.5), twins=True),
)


def make_decoy(family: Family, strength: float, turn: Round, cohort: int, random: Generator) -> Sum:
    made = family.make(turn, cohort, strength, random)
    return made if isinstance(made, Sum) else as_sum(turn, cohort, made, random)


def as_sum(turn: Round, cohort: int, update: Vector, random: Generator) -> Sum:
    """`update` as the sum of `cohort`'s members would be published: same weight, same divisor, dithered rounding."""
    genuine = turn.cohorts[cohort]
    exact = update * (genuine.weight / turn.quantiser.step) / genuine.divisor
    steps = np.floor(exact + random.random(len(update))).astype(np.int64) * genuine.divisor
    bound = genuine.weight * turn.quantiser.offset
    return Sum((np.clip(steps, -bound, bound) + bound).astype(np.uint64), genuine.weight, genuine.divisor)
