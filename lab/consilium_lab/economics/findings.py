"""Break-even shares from the rows: decoy rounds above which laziness loses, cliques above which collusion gains."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from consilium_chain.tasks.limits import MICRO

from consilium_lab.economics.closed_form import capture_chance, honest_from_rate
from consilium_lab.economics.options import Scenario
from consilium_lab.economics.players import Vote, play
from consilium_lab.economics.rules import DEMO, RECOMMENDED
from consilium_lab.economics.scenarios import (
    CLIQUES,
    COHORT_SIZES,
    COMMITTEES,
    CURVES,
    Row,
    Setting,
    everybody_honest,
    first,
)

NOTICEABLE = 0.05  # of the honest income
ELECTORATES = ((40, 9), (40, 15), (40, 25), (100, 15), (100, 25), (236, 15), (236, 25))  # voters, seats
CLIQUE_SHARES = (0.1, 0.2, 0.3, 0.4, 0.45)
HARMFUL_BELOW = (0, -10_000, -20_000, -40_000)  # millionths
# The chance to pass a round with decoys by its number of cohorts, for players that are the same in every round.
BY_HAND: Mapping[Scenario, Callable[[int], float]] = {
    Scenario.LAZY: lambda cohorts: 0.0,
    Scenario.FORECAST: lambda cohorts: 0.0,
    Scenario.COIN: lambda cohorts: 0.5**cohorts,
    Scenario.DODGING: lambda cohorts: 0.5**cohorts,
}


def zero_of(points: Sequence[tuple[float, float]]) -> float | None:
    """The first x at which a polyline through (x, y), ascending in x, meets y = 0; None if it never does."""
    for (left, low), (right, high) in itertools.pairwise(points):
        if low == 0:
            return left
        if low * high < 0:
            return left + (right - left) * low / (low - high)
    return points[-1][0] if points and points[-1][1] == 0 else None


def rate_curve(rows: Sequence[Row], scenario: str, late: bool) -> list[Row]:
    """Rows of a tenth of the voters under the demo's terms, by the share of rounds with decoys."""
    chosen = [row for row in rows if (row.scenario, row.share, row.terms, row.late) == (scenario, 0.1, "demo", late)]
    return sorted(chosen, key=lambda row: row.decoy_rate)


def crossings(rows: Sequence[Row], setting: Setting) -> list[dict[str, Any]]:
    """For each way to vote without evaluation: the share of rounds with decoys above which honesty earns more,
    simulated and by formula; None if it never does.
    """
    found = []
    for scenario in CURVES:
        for late in (False, True):
            curve = rate_curve(rows, scenario, late)
            if not curve:
                continue
            crossed = 0.0 if curve[0].gain <= 0 else zero_of([(row.decoy_rate, row.gain) for row in curve])
            found.append(
                {
                    "scenario": str(scenario),
                    "late": late,
                    "simulated": None if crossed is None else round(crossed, 4),
                    "closed_form": _rounded(closed_crossing(scenario, late, setting)) if scenario in BY_HAND else None,
                }
            )
    return found


def _rounded(rate: float) -> float | None:
    """None for a rate above 1."""
    return round(rate, 4) if rate <= 1 else None


def closed_crossing(scenario: Scenario, late: bool, setting: Setting) -> float:
    """By formula, from the share of each kind of vote near the medians in rounds without decoys."""
    rules = replace(DEMO, late=late, decoy_rate=0.0)
    world = setting.world(rules)
    deviants = first(world.voters, 0.1)
    honest = play(world, everybody_honest(world))
    lazy = play(world, replace(everybody_honest(world), vote=Vote(scenario), voters=deviants))
    seats = world.seated[:, deviants].sum()
    near_honest, near_lazy = (float(p.settled.near[:, deviants].sum() / seats) for p in (honest, lazy))
    pay = honest.settled.voter_rewards[:, deviants].sum() / honest.settled.near[:, deviants].sum() / MICRO
    return honest_from_rate(
        cost=rules.evaluation_cost / MICRO,
        seat_pay=float(pay),
        near_lazy=near_lazy,
        near_honest=near_honest,
        slash=(rules.silence_slash if scenario is Scenario.DODGING else rules.decoy_slash) / MICRO,
        lazy_passes=BY_HAND[scenario](rules.cohorts),
        honest_fails=setting.bank.honest_fails(rules.cohort_size, rules.cohorts, late),
    )


def clique_curve(rows: Sequence[Row], scenario: str, seats: int, min_reveals: int) -> list[Row]:
    chosen = [
        row
        for row in rows
        if (row.scenario, row.terms, row.seats, row.min_reveals) == (scenario, "committee", seats, min_reveals)
    ]
    return sorted(chosen, key=lambda row: row.share)


def break_evens(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """For each committee: the share above which a clique gains a twentieth of its honest income; None if never."""
    found = []
    for scenario in CLIQUES:
        for seats in COMMITTEES:
            for min_reveals in (seats // 2 + 1, 1):
                curve = clique_curve(rows, scenario, seats, min_reveals)
                if not curve:
                    continue
                over = [(row.share, row.gain - NOTICEABLE * row.if_honest) for row in curve]
                crossed = over[0][0] if over[0][1] > 0 else zero_of(over)
                at = next(row for row in curve if row.share == 0.3)
                found.append(
                    {
                        "scenario": str(scenario),
                        "seats": seats,
                        "min_reveals": min_reveals,
                        "gains_from_share": None if crossed is None else round(crossed, 3),
                        "gain_at_0.3": round(at.gain, 3),
                        "held_at_0.3": None if at.held is None else round(at.held, 3),
                        "capture_chance_at_0.3_closed_form": round(
                            capture_chance(RECOMMENDED.voters, round(0.3 * RECOMMENDED.voters), seats, min_reveals), 4
                        ),
                    }
                )
    return found


def captures() -> list[dict[str, Any]]:
    """The chances that a clique holds a committee of which more than half must reveal: with a ticket for each voter,
    and with one key, and so one ticket, for all.
    """
    found = []
    for voters, seats in ELECTORATES:
        for share in CLIQUE_SHARES:
            clique = voters, round(voters * share), seats, seats // 2 + 1
            chances = {
                "more_than_half": capture_chance(*clique),
                "half": capture_chance(*clique, downwards=True),
                "more_than_half_by_one_key": capture_chance(*clique, one_key=True),
            }
            rounded = {name: round(chance, 6) for name, chance in chances.items()}
            found.append({"voters": voters, "seats": seats, "share": share, **rounded})
    return found


def honest_below(setting: Setting) -> list[dict[str, Any]]:
    """The share of honest cohorts whose median by an honest committee is below a threshold for harm."""
    found = []
    for size in COHORT_SIZES:
        for late in (False, True):
            world = setting.world(replace(DEMO, cohort_size=size, late=late))
            settled = play(world, everybody_honest(world)).settled
            medians = settled.medians[~settled.void]
            shares = {f"{below / MICRO:g}": round(float((medians < below).mean()), 5) for below in HARMFUL_BELOW}
            found.append({"cohort_size": size, "late": late, "seats": DEMO.seats, "below": shares})
    return found
