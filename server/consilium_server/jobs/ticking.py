"""Moves tasks on that nobody else moves: what the contract takes from anybody once it is time."""

from __future__ import annotations

from consilium_chain.errors import Refused
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, RoundState, TaskState
from consilium_chain.rounds.machine import WAITING, Step, View, next_step
from consilium_chain.rpc.outgoing import Receipt
from consilium_core.logs import emit

from consilium_server.jobs.due import OpenTask

PATIENCE = 60  # seconds for which a phase that anybody can end at once is left to the task's aggregator
_SOON = (*WAITING, Phase.SETTLING)


def is_overdue(task: OpenTask, now: int, precedence: float) -> bool:
    """Whether others, its aggregator first, have had their time; `now` is the chain's."""
    until = task.began + PATIENCE if task.phase in _SOON else task.deadline
    return until != 0 and now > until + precedence


def move_on(ledger: Ledger, task: int) -> Receipt | None:
    """Takes the step that is anybody's to take now, if there is one. That another was first is no failure.

    Raises Refused, ChainUnreachable, TransactionRejected, RandomnessUnavailable.
    """
    state = ledger.tasks.state(task)
    round_state = ledger.tasks.round_state(task, state.round)
    step = next_step(_view(ledger, state, round_state), 0, 0, refused=True)  # what only an aggregator does, not
    try:
        receipt = _take(ledger, task, step, state, round_state)
    except Refused as error:
        later = ledger.tasks.state(task)
        if (later.round, later.phase) == (state.round, state.phase):
            raise
        emit("others-first", call=error.call, error=error.name, round=state.round)
        return None
    if receipt is not None:
        emit(
            "moved-on", step=step.name.lower(), phase=state.phase.name.lower(), round=state.round, gas=receipt.gas_used
        )
    return receipt


def _view(ledger: Ledger, state: TaskState, round_state: RoundState) -> View:
    waits = state.phase in WAITING
    return View(
        state=state,
        round=round_state,
        now=ledger.connection.blocks.now(),
        beacon_ready=waits and ledger.phases.beacon_ready(round_state.beacon_request),
        beacon_expired=waits and ledger.phases.beacon_expired(round_state.beacon_request),
    )


def _take(ledger: Ledger, task: int, step: Step, state: TaskState, round_state: RoundState) -> Receipt | None:
    match step:
        case Step.TICK:
            return ledger.phases.tick(task)
        case Step.SETTLE:
            return ledger.phases.settle(task, state.round)
        case Step.FORM_COHORTS:
            return ledger.phases.form_cohorts(task, round_state.beacon_request)
        case Step.DRAW_SEATS:
            return ledger.phases.draw_seats(task, round_state.beacon_request)
        case _:
            return None
