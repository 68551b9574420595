"""Takes tasks' overdue steps that the contract allows anybody to take."""

from __future__ import annotations

from dataclasses import dataclass

from consilium_chain.errors import Refused
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase
from consilium_chain.rounds.machine import ENDED_BY_ANYBODY, WAITING, AsAnybody, Step, View, next_steps
from consilium_chain.rpc.outgoing import Receipt
from consilium_core.logs import emit
from sqlalchemy import Connection, func, select

from consilium_server.database.tables import Block, PhaseStart, TaskRow

PATIENCE = 60  # seconds for which a phase that anybody can end at once is left to the task's aggregator


@dataclass(frozen=True)
class OpenTask:
    """A task in the phase that began at `began`; `deadline` 0 for none. Both in the chain's seconds."""

    number: int
    aggregator: str
    phase: Phase
    deadline: int
    began: int


def open_tasks(connection: Connection) -> list[OpenTask]:
    """Tasks that have not ended, in the order of their numbers."""
    place = (PhaseStart.block.desc(), PhaseStart.log_index.desc())
    rank = func.row_number().over(partition_by=PhaseStart.task, order_by=place).label("place")
    ranked = select(PhaseStart.task, PhaseStart.phase, PhaseStart.deadline, PhaseStart.block, rank).subquery()
    asked = (
        select(TaskRow.task, TaskRow.aggregator, ranked.c.phase, ranked.c.deadline, Block.time)
        .join(ranked, ranked.c.task == TaskRow.task)
        .join(Block, Block.number == ranked.c.block)
        .where(ranked.c.place == 1, ranked.c.phase != Phase.ENDED)
        .order_by(TaskRow.task)
    )
    return [OpenTask(task, who, Phase(phase), *times) for task, who, phase, *times in connection.execute(asked)]


def is_overdue(task: OpenTask, now: int, precedence: float) -> bool:
    """True if others, its aggregator first, have had their time; `now` is the chain's."""
    until = task.began + PATIENCE if task.phase in ENDED_BY_ANYBODY else task.deadline
    return until != 0 and now > until + precedence


def move_on(ledger: Ledger, task: int) -> Receipt | None:
    """Takes the step that anybody may take now, if there is one. It is no failure if another was first. Raises Refused,
    ChainUnreachable, TransactionRejected, RandomnessUnavailable.
    """
    view = _view(ledger, task)
    state, steps = view.state, next_steps(view, AsAnybody())
    try:
        receipt = _take(ledger, task, steps[0], view) if steps else None
    except Refused as error:
        later = ledger.tasks.state(task)
        if (later.round, later.phase) == (state.round, state.phase):
            raise
        emit("others-first", call=error.call, error=error.name, round=state.round)
        return None
    if receipt is not None:
        step, phase = steps[0].name.lower(), state.phase.name.lower()
        emit("moved-on", step=step, phase=phase, round=state.round, gas=receipt.gas_used)
    return receipt


def _view(ledger: Ledger, task: int) -> View:
    state = ledger.tasks.state(task)
    round_state = ledger.tasks.round_state(task, state.round)
    waits = state.phase in WAITING
    return View(
        state=state,
        round=round_state,
        now=ledger.connection.blocks.now(),
        beacon_ready=waits and ledger.phases.beacon_ready(round_state.beacon_request),
        beacon_expired=waits and ledger.phases.beacon_expired(round_state.beacon_request),
    )


def _take(ledger: Ledger, task: int, step: Step, view: View) -> Receipt | None:
    match step:
        case Step.TICK:
            return ledger.phases.tick(task)
        case Step.SETTLE:
            return ledger.phases.settle(task, view.state.round)
        case Step.FORM_COHORTS:
            return ledger.phases.form_cohorts(task, view.round.beacon_request)
        case Step.DRAW_SEATS:
            return ledger.phases.draw_seats(task, view.round.beacon_request)
        case _:
            return None
