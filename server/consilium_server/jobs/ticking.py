"""Takes overdue steps of tasks that the contract allows any account to take."""

from __future__ import annotations

from dataclasses import dataclass

from consilium_chain.errors import Refused
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase
from consilium_chain.rounds.machine import ENDED_BY_ANYBODY, AsAnybody, next_steps
from consilium_chain.rpc.outgoing import Receipt
from consilium_core.logs import emit
from sqlalchemy import Connection, select
from sqlalchemy.orm import aliased

from consilium_server.database.tables import Block, PhaseStart, TaskRow
from consilium_server.index.store import latest
from consilium_server.open_steps import chain_view, take_open_step

PATIENCE = 60  # seconds of a phase without deadline that are left to the task's aggregator


@dataclass(frozen=True)
class OpenTask:
    """A task that has not ended. `began`: start of its phase; `deadline`: 0 for none. Both in the chain's seconds."""

    number: int
    aggregator: str
    phase: Phase
    deadline: int
    began: int


def open_tasks(connection: Connection) -> list[OpenTask]:
    """Tasks that have not ended, in the order of their numbers."""
    end = aliased(PhaseStart)
    has_ended = select(end.task).where(end.task == TaskRow.task, end.phase == Phase.ENDED).exists()
    are_open = select(TaskRow.task).where(~has_ended)  # first, because most tasks have ended, with many rows each
    phase = latest(PhaseStart, [PhaseStart.task], PhaseStart.task.in_(are_open))
    query = (
        select(TaskRow.task, TaskRow.aggregator, phase.c.phase, phase.c.deadline, Block.time)
        .join(phase, phase.c.task == TaskRow.task)
        .join(Block, Block.number == phase.c.block)
        .order_by(TaskRow.task)
    )
    return [OpenTask(task, account, Phase(of), *times) for task, account, of, *times in connection.execute(query)]


def is_overdue(task: OpenTask, now: int, precedence: float) -> bool:
    """True if the time of the task's aggregator for the next step is over. `now`: the chain's time."""
    is_closed = task.phase is Phase.COMMITTING and task.deadline == 0  # a shard that waits for others
    until = task.began + PATIENCE if is_closed or task.phase in ENDED_BY_ANYBODY else task.deadline
    return until != 0 and now > until + precedence


def move_on(ledger: Ledger, task: int) -> Receipt | None:
    """Takes the step that any account may take now, if there is one. Does not fail if another account was first.

    Raises Refused, ChainUnreachable, TransactionRejected, RandomnessUnavailable.
    """
    state = ledger.tasks.state(task)
    view = chain_view(ledger, task, state, ledger.tasks.round_state(task, state.round))
    steps = next_steps(view, AsAnybody())
    try:
        receipt = take_open_step(ledger, task, steps[0], state.round, view.round) if steps else None
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
