"""Times within a phase, from its deadline: pure, as the machine that uses them."""

from __future__ import annotations

from consilium_chain.ledger.structs import TaskState
from consilium_chain.tasks.limits import grace


def margin(window: int) -> int:
    """Seconds before the deadline of the aggregator's phase at which it stops waiting for hospitals.

    A quarter of the window, before the grace period that costs it the fee. Hospitals have the rest, and the aggregator
    has time to fix survivors or to publish.
    """
    return window // 4 + grace(window)


def deadline_passed(state: TaskState, now: int) -> bool:
    """Settling has no deadline (0), and neither have a Forming without a request, and a shard that waits for others."""
    return state.deadline != 0 and now > state.deadline


def dispute_step(state: TaskState, publish_window: int, now: int) -> int:
    """The step of Disputing: in 0 and 1 hospitals make dispute statements, in 2 the aggregator names cheaters."""
    naming = state.deadline - publish_window
    return (now >= naming - publish_window) + (now >= naming)
