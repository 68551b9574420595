"""The round as a pure state machine: what is to be done next, given what the chain says and what its clock says.

No I/O and no clock of its own, so that the aggregator, a node and a test can all tick a copy before anyone pays for a
transaction. The contract is the authority; these are its rules seen from outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from consilium_chain.ledger.structs import Phase, RoundState, TaskState, members
from consilium_chain.tasks.task_spec import grace

# Phases that the beacon's value ends. Their deadline is of a beacon that died.
WAITING = (Phase.FORMING, Phase.DRAWING)


class Step(Enum):
    WAIT = auto()
    FORM_COHORTS = auto()
    FIX_SURVIVORS = auto()
    PUBLISH = auto()
    NAME = auto()
    DRAW_SEATS = auto()
    OPEN = auto()
    SETTLE = auto()
    TICK = auto()
    STOP = auto()


@dataclass(frozen=True)
class View:
    """What the chain says at one moment; `now` is the chain's clock in seconds."""

    state: TaskState
    round: RoundState
    now: int
    beacon_ready: bool
    beacon_expired: bool
    has_canaries: bool = False  # the round's sums are published as they are or turned
    masked: bool = False  # survivors are fixed first, and help to unmask their sum
    min_reveals: int = 1
    publish_window: int = 0  # seconds: of each of Blaming's steps
    # Uploads and answers still missing so many seconds before the deadline are given up: to go on takes its time.
    upload_margin: int = 3
    answer_margin: int = 3


def last_round(state: TaskState, rounds: int) -> int:
    """Of a task of so many: the current one where its operator stopped it, but for the statistics alone."""
    return min(max(state.round, 1), rounds) if state.stopping else rounds


def margin(window: int) -> int:
    """Seconds before the deadline of the aggregator's phase from which it waits for no hospital any more.

    A quarter of the window, before the grace period that costs it the fee: hospitals have the other three, and the
    aggregator has time to fix survivors, or to publish.
    """
    return window // 4 + grace(window)


def deadline_passed(state: TaskState, now: int) -> bool:
    """Settling has no deadline (0), and a Forming that waits for nothing has none."""
    return state.deadline != 0 and now > state.deadline


def blaming_step(state: TaskState, publish_window: int, now: int) -> int:
    """Of Blaming: 0 or 1, in which hospitals testify, or 2, in which the aggregator names whose doing it is."""
    naming = state.deadline - publish_window
    return (now >= naming - publish_window) + (now >= naming)


def expected_uploads(round_state: RoundState, cohorts: list[int]) -> int:
    """Bit map of the hospitals whose upload is awaited: committed, and in a cohort that is still viable."""
    viable = 0
    for cohort in members(round_state.viable_cohorts):
        viable |= cohorts[cohort]
    return round_state.committed & viable


def is_judged(round_state: RoundState, min_reveals: int) -> bool:
    """Whether enough voters revealed scores, and most voters do not say that what is published does not match."""
    revealed, mismatched = round_state.revealed.bit_count(), round_state.mismatched.bit_count()
    return revealed - mismatched >= min_reveals and 2 * mismatched <= revealed


def next_step(view: View, awaited: int, arrived: int, refused: bool, unmasked: bool = True) -> Step:
    """What the aggregator does now.

    `awaited` and `arrived` are bit maps of uploads; `refused` says that the contract refused what this phase is for,
    the round's publication, naming or opening, which only the deadline can end then; `unmasked`, that no more answers
    are needed.
    """
    state, round_state = view.state, view.round
    over = deadline_passed(state, view.now)
    match state.phase:
        case Phase.ENDED | Phase.NONE:
            return Step.STOP
        case Phase.FORMING | Phase.DRAWING:
            if over or view.beacon_expired:  # which also looks ready: its block is past
                return Step.TICK
            if not view.beacon_ready:
                return Step.WAIT
            return Step.FORM_COHORTS if state.phase is Phase.FORMING else Step.DRAW_SEATS
        case Phase.UPLOADING if not over and not refused:
            complete = arrived & awaited == awaited
            hurried = view.now >= state.deadline - view.upload_margin
            step = Step.FIX_SURVIVORS if view.masked else Step.PUBLISH
            return step if complete or hurried else Step.WAIT
        case Phase.PUBLISHING if not over and not refused:
            hurried = view.now >= state.deadline - view.answer_margin
            return Step.PUBLISH if unmasked or hurried else Step.WAIT
        case Phase.BLAMING if not over and not refused:
            return Step.NAME if blaming_step(state, view.publish_window, view.now) == 2 else Step.WAIT
        case Phase.REVEALING if over or round_state.revealed == round_state.seated:
            closed = view.has_canaries and round_state.viable_cohorts != 0
            opens = closed and is_judged(round_state, view.min_reveals)
            return Step.OPEN if opens and not refused else Step.SETTLE
        case Phase.OPENING if round_state.summed_cohorts == round_state.viable_cohorts:
            return Step.SETTLE
        case Phase.SETTLING:
            return Step.SETTLE
        case Phase.OPENING if not over and not refused:
            return Step.OPEN
        case _:
            return Step.TICK if over else Step.WAIT
