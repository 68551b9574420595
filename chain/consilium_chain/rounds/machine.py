"""The round as one pure state machine that every party steps: from the chain's state and its own, the next steps.

No I/O and no clock of its own: hospitals, voters, the aggregator, a worker and tests step a copy before a transaction
is paid for. The contract decides; these are its rules seen from outside. A phase is one row of `PHASES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeVar

from consilium_chain.ledger.structs import STATISTICS_ROUND, Phase, Role, RoundState, TaskState, members
from consilium_chain.rounds.timing import deadline_passed, dispute_step

# Phases that the beacon's value ends. Their deadline is of a beacon that died.
WAITING = (Phase.FORMING, Phase.DRAWING)
# Phases that anybody can end as soon as it is time, or at once.
ENDED_BY_ANYBODY = (*WAITING, Phase.SETTLING)


class Step(Enum):
    STOP = auto()
    JOIN = auto()  # again: a reorganisation undid it
    # Anybody's.
    TICK = auto()
    FORM_COHORTS = auto()
    DRAW_SEATS = auto()
    SETTLE = auto()
    # The aggregator's.
    FIX_SURVIVORS = auto()
    PUBLISH = auto()
    NAME = auto()
    DISCLOSE = auto()
    # A hospital's. The last three answer a request for their part of the round.
    DISPUTE = auto()
    RUN_RELAY = auto()
    CHECK_LINK = auto()
    RESUME = auto()
    TRAIN = auto()
    NOTE_COMMITMENT = auto()
    COMMIT = auto()
    READ_AHEAD = auto()
    SIGN = auto()
    UPLOAD = auto()
    UNMASK = auto()
    # A voter's.
    STAND_DOWN = auto()
    SCORE = auto()
    REVEAL = auto()


@dataclass(frozen=True)
class View:
    """The chain's state at one moment. `now`: the chain's clock in seconds, which voters do not use. `block`: of this
    state. `roster`: as in `Snapshot`.
    """

    state: TaskState
    round: RoundState
    now: int = 0
    beacon_ready: bool = False
    beacon_expired: bool = False
    shards_closed: bool = False  # no other shard takes commitments to this round any more
    has_decoys: bool = False  # the round's sums are published as they are or sign-flipped
    masked: bool = False  # survivors are fixed first, and help to unmask their sum
    min_reveals: int = 1
    publish_window: int = 0  # seconds: of each of Disputing's steps
    # Uploads and answers still missing so many seconds before the deadline are given up: to go on takes its time.
    upload_margin: int = 3
    answer_margin: int = 3
    block: int = 0
    roster: bytes | None = None


@dataclass(frozen=True)
class AsAnybody:
    """An account without a part in the task: it takes the steps that are open to anybody."""


@dataclass(frozen=True)
class AsAggregator:
    """`awaited`, `arrived`: bit maps of uploads. `refused`: the contract refused this phase's publication, naming or
    disclosure, so only the deadline can end it. `has_parts`: survivors owe nothing any more.
    """

    awaited: int = 0
    arrived: int = 0
    refused: bool = False
    has_parts: bool = True


@dataclass(frozen=True)
class AsHospital:
    """A hospital by its index, with its own state in the view's round.

    `is_reached`: some request of the aggregator arrived. `is_asked`: one for this round arrived. `send_at`: from this
    time on the chain's clock it commits by its own transaction. `shows_at`: from this block on it shows its points.
    `disputed`: rounds and steps of its dispute statements.
    """

    index: int
    is_member: bool = True
    is_reached: bool = True
    is_asked: bool = True
    is_cut_off: bool = False
    can_resume: bool = False
    has_begun: bool = False
    has_update: bool = False
    knows_commitment: bool = False
    has_sent: bool = False
    send_at: int = 0
    shows_at: int = 0
    disputed: frozenset[tuple[int, int]] = frozenset()
    has_read: bool = True


@dataclass(frozen=True)
class AsVoter:
    """A voter by its index."""

    index: int
    is_member: bool = True
    is_paused: bool = False


Party = AsAnybody | AsAggregator | AsHospital | AsVoter
P = TypeVar("P")
Guards = Mapping[Step, Callable[[P, View], bool]]


@dataclass(frozen=True)
class Rules:
    """A phase's steps, by party and in order of precedence. The aggregator takes the first due step."""

    aggregator: Guards[AsAggregator]
    hospital: Guards[AsHospital]
    voter: Guards[AsVoter]


def next_steps(view: View, party: Party) -> tuple[Step, ...]:
    """The steps that this party takes now, in order. Without any, it waits."""
    rules = PHASES[view.state.phase]
    match party:
        case AsAnybody():
            return _due(rules.aggregator, AsAggregator(refused=True), view)[:1]
        case AsAggregator():
            return _due(rules.aggregator, party, view)[:1]
        case AsHospital() | AsVoter() if not party.is_member:
            return (Step.JOIN,) if is_joining(view.state) else ()
        case AsHospital():
            return _due(rules.hospital, party, view)
        case AsVoter():
            return _due(rules.voter, party, view)


def _due(guards: Guards[P], party: P, view: View) -> tuple[Step, ...]:
    return tuple(step for step, is_due in guards.items() if is_due(party, view))


def duty(role: Role, state: TaskState, round_: RoundState, index: int) -> Step | None:
    """The step that a hospital or voter owes before the phase's deadline. The chain does not show uploads, answers and
    statements until all are there: they stay owed until then.
    """
    step, owing = (None, _nobody) if is_closed(state) else _DUTIES.get((role, state.phase), (None, _nobody))
    return step if owing(state, round_) >> index & 1 else None


def may_come(state: TaskState, round_: int, step: Step) -> bool:
    """True if the phase of this hospital's step in this round is now or later. Requests are sent a round ahead."""
    if state.round + 1 == round_:
        return not has_ended(state)
    ahead = (rules for phase, rules in PHASES.items() if phase >= state.phase)
    return state.round == round_ and any(step in rules.hospital for rules in ahead)


def is_closed(state: TaskState) -> bool:
    """True if a shard takes no commitments any more, and waits for the other shards."""
    return state.phase is Phase.COMMITTING and state.shard != 0 and state.deadline == 0


def is_joining(state: TaskState) -> bool:
    return state.phase is Phase.JOINING


def has_ended(state: TaskState) -> bool:
    return state.phase is Phase.ENDED


def last_round(state: TaskState, rounds: int) -> int:
    """The last of a task's `rounds`; the current one if its operator stopped it, but not the statistics round."""
    return min(max(state.round, 1), rounds) if state.stopping else rounds


def expected_uploads(round_state: RoundState, cohorts: list[int]) -> int:
    """Bit map of the hospitals with an awaited upload: committed, and in a viable cohort."""
    viable = 0
    for cohort in members(round_state.viable_cohorts):
        viable |= cohorts[cohort]
    return round_state.committed & viable


def is_judged(round_state: RoundState, min_reveals: int) -> bool:
    """True if enough voters revealed scores, and no majority says that the published sums do not match."""
    revealed, mismatched = round_state.revealed.bit_count(), round_state.mismatched.bit_count()
    return revealed - mismatched >= min_reveals and 2 * mismatched <= revealed


def _always(party: object, view: View) -> bool:
    return True


def _is_over(party: object, view: View) -> bool:
    return deadline_passed(view.state, view.now)


def _is_beacon_dead(party: object, view: View) -> bool:
    """An expired value looks ready too: its block is past."""
    return _is_over(party, view) or view.beacon_expired


def _is_beacon_ready(party: object, view: View) -> bool:
    return view.beacon_ready


def _has_uploads(party: AsAggregator, view: View) -> bool:
    complete = party.arrived & party.awaited == party.awaited
    return not party.refused and (complete or view.now >= view.state.deadline - view.upload_margin)


def _has_answers(party: AsAggregator, view: View) -> bool:
    return not party.refused and (party.has_parts or view.now >= view.state.deadline - view.answer_margin)


def _names(party: AsAggregator, view: View) -> bool:
    return not party.refused and dispute_step(view.state, view.publish_window, view.now) == 2


def _are_reveals_over(party: object, view: View) -> bool:
    return _is_over(party, view) or view.round.revealed == view.round.seated


def _discloses(party: AsAggregator, view: View) -> bool:
    """A round that is void anyway is not worth the gas of a disclosure."""
    closed = view.has_decoys and view.round.viable_cohorts != 0 and not party.refused
    return closed and _are_reveals_over(party, view) and is_judged(view.round, view.min_reveals)


def _disputes(party: AsHospital, view: View) -> bool:
    step = dispute_step(view.state, view.publish_window, view.now)
    is_asked = view.masked and step < 2 and (view.state.round, step) not in party.disputed
    return is_asked and _has(party, view.round.accused & view.round.survivors)


def _resumes(party: AsHospital, view: View) -> bool:
    return party.can_resume and not _has(party, view.state.active_hospitals)


def _waits_for_request(party: AsHospital, view: View) -> bool:
    return party.is_cut_off or not party.is_asked


def _trains(party: AsHospital, view: View) -> bool:
    """In the first round only after the aggregator's request arrived. Flower takes seconds to start, and a hospital
    that cannot be reached yet would commit to an update that it cannot upload in time.
    """
    is_due = not party.has_begun and not is_closed(view.state)
    return is_due and (party.is_reached or view.state.round != STATISTICS_ROUND)


def _commits(party: AsHospital, view: View) -> bool:
    is_due = party.has_update and not party.has_sent and view.now >= party.send_at and not is_closed(view.state)
    return is_due and not _has(party, view.round.committed)


def _may_score(party: AsVoter, view: View) -> bool:
    """A voter with no bond left takes no seat, but still reveals committed scores."""
    has_acted = _has(party, view.round.seated | view.round.stood_down)
    return _has(party, view.state.active_voters) and not has_acted


def _has(party: AsHospital | AsVoter, bit_map: int) -> bool:
    return bool(bit_map >> party.index & 1)


_STOP: Guards[object] = {Step.STOP: _always}
_TICK: Guards[object] = {Step.TICK: _is_over}
_IN_TASK: Guards[AsHospital] = {
    Step.RUN_RELAY: _always,
    Step.CHECK_LINK: lambda me, view: me.is_cut_off,
    Step.NOTE_COMMITMENT: lambda me, view: me.has_update and not me.knows_commitment and _has(me, view.round.committed),
}
_IN_JUDGING: Guards[AsHospital] = {**_IN_TASK, Step.READ_AHEAD: lambda me, view: not me.has_read}
_COMMITTING: Guards[AsHospital] = {
    Step.RUN_RELAY: _always,
    Step.CHECK_LINK: _waits_for_request,
    Step.RESUME: _resumes,
    Step.TRAIN: _trains,
    # Also that the block that had it is gone.
    Step.NOTE_COMMITMENT: lambda me, view: me.has_update and me.knows_commitment != _has(me, view.round.committed),
    Step.COMMIT: _commits,
    Step.SIGN: _always,
    Step.TICK: _is_over,
}
_UPLOADING: Guards[AsHospital] = {
    **_IN_TASK,
    Step.CHECK_LINK: _waits_for_request,
    Step.RESUME: _resumes,
    Step.SIGN: _always,  # also a late request: the request for the upload follows it
    Step.UPLOAD: lambda me, view: view.block >= me.shows_at,
}
# Another machine of the aggregator may need the uploads again. Only survivors give them: from others' the answers take
# the masks that two hospitals share.
_PUBLISHING: Guards[AsHospital] = {
    **_IN_TASK,
    Step.RESUME: _resumes,
    Step.UPLOAD: lambda me, view: view.block >= me.shows_at and _has(me, view.round.survivors),
    Step.UNMASK: _always,
}

PHASES: Mapping[Phase, Rules] = {
    Phase.NONE: Rules(_STOP, {}, {}),
    Phase.JOINING: Rules(_TICK, {}, {}),
    Phase.FORMING: Rules({Step.TICK: _is_beacon_dead, Step.FORM_COHORTS: _is_beacon_ready}, _IN_TASK, {}),
    Phase.COMMITTING: Rules(
        {Step.TICK: lambda me, view: _is_over(me, view) or (is_closed(view.state) and view.shards_closed)},
        _COMMITTING,
        {},
    ),
    Phase.UPLOADING: Rules(
        {
            Step.TICK: _is_over,
            Step.FIX_SURVIVORS: lambda me, view: view.masked and _has_uploads(me, view),
            Step.PUBLISH: lambda me, view: not view.masked and _has_uploads(me, view),
        },
        _UPLOADING,
        {},
    ),
    Phase.PUBLISHING: Rules({Step.TICK: _is_over, Step.PUBLISH: _has_answers}, _PUBLISHING, {}),
    # Statements come first: a node may have started late, and silence is slashed.
    Phase.DISPUTING: Rules({Step.TICK: _is_over, Step.NAME: _names}, {Step.DISPUTE: _disputes, **_IN_TASK}, {}),
    Phase.DRAWING: Rules({Step.TICK: _is_beacon_dead, Step.DRAW_SEATS: _is_beacon_ready}, _IN_JUDGING, {}),
    Phase.SCORING: Rules(
        _TICK,
        _IN_JUDGING,
        {
            Step.STAND_DOWN: lambda me, view: me.is_paused and _may_score(me, view),  # so that others need not wait
            Step.SCORE: lambda me, view: not me.is_paused and _may_score(me, view),
        },
    ),
    Phase.REVEALING: Rules(
        {Step.DISCLOSE: _discloses, Step.SETTLE: _are_reveals_over},
        _IN_JUDGING,
        {Step.REVEAL: lambda me, view: _has(me, view.round.seated & ~view.round.revealed)},
    ),
    Phase.DISCLOSING: Rules(
        {
            Step.SETTLE: lambda me, view: view.round.summed_cohorts == view.round.viable_cohorts,
            Step.TICK: _is_over,
            Step.DISCLOSE: lambda me, view: not me.refused,
        },
        _IN_TASK,
        {},
    ),
    Phase.SETTLING: Rules({Step.SETTLE: _always}, _IN_TASK, {}),
    Phase.ENDED: Rules(_STOP, _STOP, _STOP),
}


def _nobody(state: TaskState, round_: RoundState) -> int:
    return 0


# By role and phase: the step, and a bit map of those that owe it.
_DUTIES: Mapping[tuple[Role, Phase], tuple[Step, Callable[[TaskState, RoundState], int]]] = {
    (Role.HOSPITAL, Phase.COMMITTING): (Step.COMMIT, lambda state, round_: round_.members & ~round_.committed),
    (Role.HOSPITAL, Phase.UPLOADING): (Step.UPLOAD, lambda state, round_: round_.committed),
    (Role.HOSPITAL, Phase.PUBLISHING): (Step.UNMASK, lambda state, round_: round_.survivors),
    (Role.HOSPITAL, Phase.DISPUTING): (Step.DISPUTE, lambda state, round_: round_.accused & round_.survivors),
    (Role.VOTER, Phase.SCORING): (
        Step.SCORE, lambda state, round_: state.active_voters & ~(round_.seated | round_.stood_down),
    ),
    (Role.VOTER, Phase.REVEALING): (Step.REVEAL, lambda state, round_: round_.seated & ~round_.revealed),
}  # fmt: skip
