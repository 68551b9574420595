"""Steps of a round that any account may take, for the aggregator and for the job that watches deadlines."""

from __future__ import annotations

from typing import Any

from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, RoundState, TaskState
from consilium_chain.rounds.machine import WAITING, Step, View, is_closed
from consilium_chain.rpc.outgoing import Receipt


def chain_view(
    ledger: Ledger, task: int, state: TaskState, round_state: RoundState, now: int | None = None, **more: Any
) -> View:
    """The view of a round for `next_steps`. `now`: the chain's clock, which is read if it is unknown. `more`: fields
    that only some parties need.
    """
    request, waits = round_state.beacon_request, state.phase in WAITING
    if state.phase is Phase.FORMING and state.shard and not ledger.tasks.have_shards_reached(task, state.round):
        waits = False  # the contract would refuse it
    return View(
        state=state,
        round=round_state,
        now=ledger.connection.blocks.now() if now is None else now,
        beacon_ready=waits and ledger.phases.beacon_ready(request),
        shards_closed=is_closed(state) and ledger.tasks.have_shards_closed(task, state.round),
        beacon_expired=waits and ledger.phases.beacon_expired(request),
        **more,
    )


def take_open_step(
    ledger: Ledger, task: int, step: Step, round_: int, round_state: RoundState | None
) -> Receipt | None:
    """Takes the step; does nothing for a step of one party. Raises Refused, RandomnessUnavailable."""
    match step:
        case Step.TICK:
            return ledger.phases.tick(task)
        case Step.SETTLE:
            return ledger.phases.settle(task, round_)
        case Step.FORM_COHORTS if round_state:
            return ledger.phases.form_cohorts(task, round_state.beacon_request)
        case Step.DRAW_SEATS if round_state:
            return ledger.phases.draw_seats(task, round_state.beacon_request)
    return None
