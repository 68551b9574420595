"""The points of a task's rounds, as a pure function of its events."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from consilium_chain.ledger.structs import DOES_NOT_MATCH, INVALID_SCORE, Phase, members
from consilium_chain.tasks.limits import MICRO
from consilium_chain.tasks.money_spec import TOKEN

from consilium_operators.watching import Entry

JOINED = {"HospitalJoined": "hospital", "VoterJoined": "voter", "AggregatorJoined": "aggregator"}
USED = {
    *JOINED, "PhaseStarted", "Rewarded", "BountyPaid", "Slashed", "RoundSettled", "RoundVoided", "TaskEnded",
}  # fmt: skip
PARTIES = {"hospital": "hospitals", "voter": "voters", "aggregator": "aggregator"}
SINGLE = 1e-6  # relative; TensorBoard keeps single precision

PointKey = tuple[str, int]
"""A point's name and step: no tracker has two points there."""


@dataclass(frozen=True)
class Point:
    """`step`: the round. `time`: of the block that ended it, in seconds."""

    name: str
    step: int
    value: float
    time: int

    @property
    def key(self) -> PointKey:
        return self.name, self.step

    def is_kept_as(self, value: float | None) -> bool:
        """True if a tracker already has it with this value."""
        return value is not None and math.isclose(self.value, value, rel_tol=SINGLE)


def points_of(entries: Sequence[Entry]) -> list[Point]:
    """The points of each finished round, in order. `entries`: a task's events from its proposal on.

    A round is finished when the next one begins or the task ends: then nothing about it changes. Amounts are in whole
    tokens, times in seconds of the chain's clock, medians in units of the metric.
    """
    roles: dict[str, str] = {}
    values: dict[int, dict[str, float]] = defaultdict(dict)
    amounts: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    points: list[Point] = []
    phase: tuple[int, Phase, int] | None = None  # the present one, and its start
    for entry in entries:
        name, event, now = entry.event.name, entry.event.values, entry.time or 0
        if name in JOINED:
            roles[event[JOINED[name]]] = PARTIES[JOINED[name]]
        elif name in ("PhaseStarted", "TaskEnded"):
            following = event.get("round")
            if phase is not None:
                before, of, since = phase
                passed = f"seconds/{of.name.lower()}"
                values[before][passed] = values[before].get(passed, 0) + now - since
                if before != following and "settled" in values[before]:
                    points += _points(before, values[before], amounts[before], now)
            phase = None if following is None else (following, Phase(event["phase"]), now)
        elif name == "Rewarded":
            amounts[event["round"]][f"pay/{roles.get(event['account'], 'others')}"] += event["amount"]
        elif name == "BountyPaid":
            amounts[event["round"]]["pay/bounties"] += event["amount"]
        elif name == "Slashed":
            amounts[event["round"]][f"slashed/{roles.get(event['account'], 'others')}"] += event["amount"]
            values[event["round"]]["slashes"] = values[event["round"]].get("slashes", 0) + 1
        elif name in ("RoundSettled", "RoundVoided"):
            values[event["round"]] |= _outcome(event.get("medians"), event.get("acceptedCohorts", 0))
    return points


def _outcome(medians: Sequence[int] | None, accepted: int) -> dict[str, float]:
    """`medians`: None of a void round."""
    if medians is None:
        return {"settled": 0}
    taken = set(members(accepted))
    judged = {
        f"median/cohort-{cohort}": median / MICRO
        for cohort, median in enumerate(medians)
        if median not in (INVALID_SCORE, DOES_NOT_MATCH)
    }
    each: dict[str, float] = {f"accepted/cohort-{cohort}": cohort in taken for cohort in range(len(medians))}
    return {"settled": 1, "accepted/cohorts": len(taken), **judged, **each}


def _points(round_: int, values: dict[str, float], amounts: dict[str, int], now: int) -> list[Point]:
    whole = {name: amount / TOKEN for name, amount in amounts.items()}
    return [Point(name, round_, float(value), now) for name, value in sorted(({"slashes": 0} | values | whole).items())]
