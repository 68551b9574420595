"""An arena's part of the report: ranks, pay against the formula, and the model against those of single trainers.

The formula is worked out in exact fractions, apart from the code that settles.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from consilium_chain.ledger.structs import Outcome
from consilium_chain.settlement.payouts import BASIS_POINTS, portion, round_part
from consilium_chain.tasks.money_spec import TOKEN
from consilium_operators.arena import standings_of

from consilium_lab.demo.chronicle import Chronicle
from consilium_lab.demo.network import Network, Role
from consilium_lab.economics.arena import shares

METRIC = "auc"


def arena_of(network: Network, chronicle: Chronicle, last: int, final: Mapping[str, float | None]) -> dict[str, Any]:
    """Ready for JSON. Amounts are decimal strings of the smallest unit."""
    tasks, task = network.treasury.tasks, network.task
    played = [r for r in range(1, last + 1) if tasks.round_state(task, r).outcome is Outcome.SETTLED]
    rounds = [_round(network, round_) for round_ in played]
    (line,) = chronicle.lines_of("compared")
    alone = {
        party.name: found.get(METRIC)
        for party, found in zip(network.of(Role.HOSPITAL), line.fields["each"], strict=True)
    }
    measured = {name: value for name, value in alone.items() if value is not None}
    best = max(measured, key=lambda name: measured[name]) if measured else None
    ranked = [one for found in rounds for one in found["standings"] if one["rank"] is not None]
    return {
        "decay": network.spec.money.rank_decay_bps / BASIS_POINTS,
        "rounds": rounds,
        "largest_difference": str(max((abs(int(one["difference"])) for one in ranked), default=0)),
        "metric": METRIC,
        "final": final.get(METRIC),
        "alone": alone,
        "best_alone": best,
        "best_alone_metric": None if best is None else measured[best],
    }


def _round(network: Network, round_: int) -> dict[str, Any]:
    ledger, task, money = network.treasury, network.task, network.spec.money
    nodes, floor = [one.node for one in ledger.tasks.hospitals(task)], ledger.tasks.params(task).rank_floor
    state = ledger.tasks.round_state(task, round_)
    rows = [(one, network.party(one.trainer)) for one in standings_of(ledger, task, round_, state, nodes, floor)]
    parts = shares(sum(one.median >= floor for one, _ in rows), Fraction(money.rank_decay_bps, 10_000))
    pool = money.pool * TOKEN
    base = portion(round_part(pool, network.spec.rounds.rounds, pool), money.hospital_share_bps)
    due = [int(base * part) for part in parts]
    standings = [
        {
            "who": party.name if party else one.trainer,
            "median": one.improvement,
            "rank": at + 1 if at < len(due) else None,
            "share": float(parts[at]) if at < len(due) else 0.0,
            "due": str(due[at] if at < len(due) else 0),
            "paid": str(one.reward),
            "difference": str(one.reward - (due[at] if at < len(due) else 0)),
        }
        for at, (one, party) in enumerate(rows)
    ]
    return {"round": round_, "standings": standings}
