"""What the rows say: the canary rate from which laziness loses, and the share up to which a clique does."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from consilium_chain.task_spec import MICRO

from consilium_cli.economics.closed_form import capture_chance, honest_from_rate
from consilium_cli.economics.options import Scenario
from consilium_cli.economics.players import play
from consilium_cli.economics.rules import RECOMMENDED, ROUNDS_PER_TASK
from consilium_cli.economics.scenarios import (
    CLIQUES,
    COMMITTEES,
    CURVES,
    VOTES,
    Row,
    Setting,
    everybody_honest,
    first,
)

NOTICEABLE = 0.05  # of the honest income


def zero_of(points: Sequence[tuple[float, float]]) -> float | None:
    """Where a polyline through (x, y), ascending in x, first meets or crosses y = 0; None if it does nowhere."""
    for (left, low), (right, high) in itertools.pairwise(points):
        if low == 0:
            return left
        if low * high < 0:
            return left + (right - left) * low / (low - high)
    return points[-1][0] if points and points[-1][1] == 0 else None


def rate_curve(rows: Sequence[Row], scenario: str, late: bool, told: float) -> list[Row]:
    """A tenth of the voters under the recommended terms, by canary rate."""
    chosen = [
        row
        for row in rows
        if (row.scenario, row.share, row.terms, row.late, row.canary_detection)
        == (scenario, 0.1, "recommended", late, told)
    ]
    return sorted(chosen, key=lambda row: row.canary_rate)


def crossings(rows: Sequence[Row], setting: Setting) -> list[dict[str, Any]]:
    """Per way of not looking: the canary rate from which it earns less than honesty, simulated and by hand."""
    found = []
    for scenario in (Scenario.LAZY, Scenario.FORECAST, Scenario.DODGING):
        for late, told in CURVES:
            curve = rate_curve(rows, scenario, late, told)
            if not curve:
                continue
            crossed = 0.0 if curve[0].gain <= 0 else zero_of([(row.canary_rate, row.gain) for row in curve])
            by_hand = None if scenario is Scenario.DODGING else closed_crossing(scenario, late, told, setting)
            found.append(
                {
                    "scenario": str(scenario),
                    "late": late,
                    "canary_detection": told,
                    "simulated": None if crossed is None else round(crossed, 4),
                    "closed_form": None if by_hand is None else round(by_hand, 4),
                }
            )
    return found


def closed_crossing(scenario: Scenario, late: bool, told: float, setting: Setting) -> float:
    """By hand, from how often each kind of vote is near the medians in rounds without canaries."""
    rules = replace(RECOMMENDED, late=late, canary_rate=0.0)
    world = setting.world(rules)
    deviants = first(world.voters, 0.1)
    honest = play(world, everybody_honest(world))
    lazy = play(world, replace(everybody_honest(world), vote=VOTES[scenario], voters=deviants))
    seats = world.seated[:, deviants].sum()
    near_honest, near_lazy = (float(p.settled.near[:, deviants].sum() / seats) for p in (honest, lazy))
    pay = honest.settled.voter_rewards[:, deviants].sum() / honest.settled.near[:, deviants].sum() / MICRO
    judged = ~honest.settled.void
    return honest_from_rate(
        cost=rules.evaluation_cost / MICRO,
        seat_pay=float(pay),
        near_lazy=near_lazy,
        near_honest=near_honest,
        slash=rules.canary_slash / MICRO,
        eligible=(1 if late else (ROUNDS_PER_TASK - 1) / ROUNDS_PER_TASK) * float(judged.mean()),
        told=told,
        failed=float((setting.bank.canaries[:, -1 if late else 1 :] >= rules.canary_line).mean()),
    )


def clique_curve(rows: Sequence[Row], scenario: str, seats: int, min_reveals: int) -> list[Row]:
    chosen = [
        row
        for row in rows
        if (row.scenario, row.terms, row.seats, row.min_reveals) == (scenario, "committee", seats, min_reveals)
    ]
    return sorted(chosen, key=lambda row: row.share)


def break_evens(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Per committee: the share from which a clique gains a twentieth of what honesty would earn it; None if never."""
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
                        "median_captured_at_0.3": at.detail,
                        "capture_chance_at_0.3_closed_form": round(
                            capture_chance(RECOMMENDED.voters, round(0.3 * RECOMMENDED.voters), seats, min_reveals), 4
                        ),
                    }
                )
    return found
