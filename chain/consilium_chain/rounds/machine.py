"""The round as one pure state machine, which every party steps: the chain's state and its own say what it does next.

No I/O and no clock of its own: hospitals, voters, the aggregator, a worker and tests step a copy before anyone pays for
a transaction. The contract is the authority; these are its rules seen from outside. A phase is one row of `PHASES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from types import MappingProxyType
from typing import TypeVar

from consilium_chain.ledger.structs import STATISTICS_ROUND, Phase, RoundState, TaskState, members
from consilium_chain.tasks.task_spec import grace

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
    OPEN = auto()
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
    """The chain's state at one moment; `now` is the chain's clock in seconds."""

    state: TaskState
    round: RoundState
    now: int
    beacon_ready: bool = False
    beacon_expired: bool = False
    has_canaries: bool = False  # the round's sums are published as they are or sign-flipped
    masked: bool = False  # survivors are fixed first, and help to unmask their sum
    min_reveals: int = 1
    publish_window: int = 0  # seconds: of each of Blaming's steps
    # Uploads and answers still missing so many seconds before the deadline are given up: to go on takes its time.
    upload_margin: int = 3
    answer_margin: int = 3


@dataclass(frozen=True)
class AsAnybody:
    """An account without a part in the task: it takes the steps that the contract takes from anybody."""


@dataclass(frozen=True)
class AsAggregator:
    """`awaited` and `arrived`: bit maps of uploads. `refused`: the contract refused what this phase is for, the
    round's publication, naming or opening, which only the deadline can end then. `unmasked`: it needs no more answers.
    """

    awaited: int = 0
    arrived: int = 0
    refused: bool = False
    unmasked: bool = True

    def has_uploads(self, view: View) -> bool:
        complete = self.arrived & self.awaited == self.awaited
        return not self.refused and (complete or view.now >= view.state.deadline - view.upload_margin)

    def fixes(self, view: View) -> bool:
        return view.masked and self.has_uploads(view)

    def publishes_plainly(self, view: View) -> bool:
        return not view.masked and self.has_uploads(view)

    def publishes_unmasked(self, view: View) -> bool:
        return not self.refused and (self.unmasked or view.now >= view.state.deadline - view.answer_margin)

    def names(self, view: View) -> bool:
        return not self.refused and dispute_step(view.state, view.publish_window, view.now) == 2

    def opens(self, view: View) -> bool:
        """A round that is void whatever is opened is not worth the opening's gas."""
        closed = view.has_canaries and view.round.viable_cohorts != 0
        return not self.refused and closed and are_reveals_over(self, view) and is_judged(view.round, view.min_reveals)

    def goes_on_opening(self, view: View) -> bool:
        return not self.refused


@dataclass(frozen=True)
class AsHospital:
    """A hospital by its index, with what it has and has done in the view's round.

    `is_reached`: any request of the aggregator's came; `is_asked`: one for this round. `send_at`: from then on, by the
    chain's clock, it commits by a transaction of its own. `disputed`: rounds and steps of its dispute statements.
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
    disputed: frozenset[tuple[int, int]] = field(default=frozenset())
    has_read: bool = True

    def disputes(self, view: View) -> bool:
        step = dispute_step(view.state, view.publish_window, view.now)
        accused = view.round.accused & view.round.survivors
        is_stated = (view.state.round, step) in self.disputed
        return view.masked and step < 2 and not is_stated and bool(accused >> self.index & 1)

    def checks(self, view: View) -> bool:
        return self.is_cut_off

    def waits_for_request(self, view: View) -> bool:
        return self.is_cut_off or not self.is_asked

    def resumes(self, view: View) -> bool:
        return self.can_resume and not view.state.active_hospitals >> self.index & 1

    def trains(self, view: View) -> bool:
        """In the first round only once the aggregator's request has come through: Flower takes seconds to start, and a
        hospital that cannot be reached yet would commit to what it cannot upload in time.
        """
        return not self.has_begun and (self.is_reached or view.state.round != STATISTICS_ROUND)

    def is_committed(self, view: View) -> bool:
        return bool(view.round.committed >> self.index & 1)

    def learns_of_commitment(self, view: View) -> bool:
        return self.has_update and not self.knows_commitment and self.is_committed(view)

    def learns_of_change(self, view: View) -> bool:
        """Also that the block that had its commitment is gone."""
        return self.has_update and self.knows_commitment != self.is_committed(view)

    def commits(self, view: View) -> bool:
        return self.has_update and not self.has_sent and not self.is_committed(view) and view.now >= self.send_at

    def reads_ahead(self, view: View) -> bool:
        return not self.has_read


@dataclass(frozen=True)
class AsVoter:
    """A voter by its index."""

    index: int
    is_member: bool = True
    is_paused: bool = False

    def may_score(self, view: View) -> bool:
        """A voter whose bond is slashed to nothing takes no seat any more; what it committed to, it still reveals."""
        is_active = view.state.active_voters >> self.index & 1
        has_acted = (view.round.seated | view.round.stood_down) >> self.index & 1
        return bool(is_active) and not has_acted

    def stands_down(self, view: View) -> bool:
        """Others need not wait then for a ballot that does not come."""
        return self.is_paused and self.may_score(view)

    def scores(self, view: View) -> bool:
        return not self.is_paused and self.may_score(view)

    def reveals(self, view: View) -> bool:
        return bool((view.round.seated & ~view.round.revealed) >> self.index & 1)


Party = AsAnybody | AsAggregator | AsHospital | AsVoter
P = TypeVar("P")
Guards = Mapping[Step, Callable[[P, View], bool]]


@dataclass(frozen=True)
class Rules:
    """A phase's steps, by party and in order of precedence. Of its due steps the aggregator takes the first one."""

    aggregator: Guards[AsAggregator]
    hospital: Guards[AsHospital] = field(default_factory=lambda: MappingProxyType({}))
    voter: Guards[AsVoter] = field(default_factory=lambda: MappingProxyType({}))


def next_steps(view: View, party: Party) -> tuple[Step, ...]:
    """The steps that this party takes now, in order; none: it waits."""
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


def may_come(state: TaskState, round_: int, step: Step) -> bool:
    """True if the phase of this hospital's step in this round is there or to come. Requests are sent a round ahead."""
    if state.round + 1 == round_:
        return not has_ended(state)
    ahead = (rules for phase, rules in PHASES.items() if phase >= state.phase)
    return state.round == round_ and any(step in rules.hospital for rules in ahead)


def is_joining(state: TaskState) -> bool:
    return state.phase is Phase.JOINING


def has_ended(state: TaskState) -> bool:
    return state.phase is Phase.ENDED


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


def dispute_step(state: TaskState, publish_window: int, now: int) -> int:
    """Of Blaming: 0 or 1, in which hospitals make dispute statements, or 2, in which the aggregator names cheaters."""
    naming = state.deadline - publish_window
    return (now >= naming - publish_window) + (now >= naming)


def expected_uploads(round_state: RoundState, cohorts: list[int]) -> int:
    """Bit map of the hospitals whose upload is awaited: committed, and in a cohort that is still viable."""
    viable = 0
    for cohort in members(round_state.viable_cohorts):
        viable |= cohorts[cohort]
    return round_state.committed & viable


def is_judged(round_state: RoundState, min_reveals: int) -> bool:
    """True if enough voters revealed scores, and most do not say that the published sums do not match."""
    revealed, mismatched = round_state.revealed.bit_count(), round_state.mismatched.bit_count()
    return revealed - mismatched >= min_reveals and 2 * mismatched <= revealed


def always(party: object, view: View) -> bool:
    return True


def is_over(party: object, view: View) -> bool:
    return deadline_passed(view.state, view.now)


def is_beacon_dead(party: object, view: View) -> bool:
    """An expired value looks ready, too: its block is past."""
    return is_over(party, view) or view.beacon_expired


def is_beacon_ready(party: object, view: View) -> bool:
    return view.beacon_ready


def are_reveals_over(party: object, view: View) -> bool:
    return is_over(party, view) or view.round.revealed == view.round.seated


def are_sums_complete(party: object, view: View) -> bool:
    return view.round.summed_cohorts == view.round.viable_cohorts


_STOP: Guards[object] = {Step.STOP: always}
_TICK: Guards[object] = {Step.TICK: is_over}
_IN_TASK: Guards[AsHospital] = {
    Step.RUN_RELAY: always,
    Step.CHECK_LINK: AsHospital.checks,
    Step.NOTE_COMMITMENT: AsHospital.learns_of_commitment,
}
_IN_JUDGING: Guards[AsHospital] = {**_IN_TASK, Step.READ_AHEAD: AsHospital.reads_ahead}

PHASES: Mapping[Phase, Rules] = {
    Phase.NONE: Rules(_STOP),
    Phase.JOINING: Rules(_TICK),
    Phase.FORMING: Rules({Step.TICK: is_beacon_dead, Step.FORM_COHORTS: is_beacon_ready}, _IN_TASK),
    Phase.COMMITTING: Rules(
        _TICK,
        {
            Step.RUN_RELAY: always,
            Step.CHECK_LINK: AsHospital.waits_for_request,
            Step.RESUME: AsHospital.resumes,
            Step.TRAIN: AsHospital.trains,
            Step.NOTE_COMMITMENT: AsHospital.learns_of_change,
            Step.COMMIT: AsHospital.commits,
            Step.SIGN: always,
            Step.TICK: is_over,
        },
    ),
    Phase.UPLOADING: Rules(
        {
            Step.TICK: is_over,
            Step.FIX_SURVIVORS: AsAggregator.fixes,
            Step.PUBLISH: AsAggregator.publishes_plainly,
        },
        {
            **_IN_TASK,
            Step.CHECK_LINK: AsHospital.waits_for_request,
            Step.RESUME: AsHospital.resumes,
            Step.SIGN: always,  # also to a late request: only then the upload is asked for
            Step.UPLOAD: always,
        },
    ),
    Phase.PUBLISHING: Rules(
        {Step.TICK: is_over, Step.PUBLISH: AsAggregator.publishes_unmasked},
        {**_IN_TASK, Step.RESUME: AsHospital.resumes, Step.UNMASK: always},
    ),
    Phase.BLAMING: Rules(
        {Step.TICK: is_over, Step.NAME: AsAggregator.names},
        # First of all: a node may have started late, and silence is slashed.
        {Step.DISPUTE: AsHospital.disputes, **_IN_TASK},
    ),
    Phase.DRAWING: Rules({Step.TICK: is_beacon_dead, Step.DRAW_SEATS: is_beacon_ready}, _IN_JUDGING),
    Phase.SCORING: Rules(_TICK, _IN_JUDGING, {Step.STAND_DOWN: AsVoter.stands_down, Step.SCORE: AsVoter.scores}),
    Phase.REVEALING: Rules(
        {Step.OPEN: AsAggregator.opens, Step.SETTLE: are_reveals_over}, _IN_JUDGING, {Step.REVEAL: AsVoter.reveals}
    ),
    Phase.OPENING: Rules(
        {Step.SETTLE: are_sums_complete, Step.TICK: is_over, Step.OPEN: AsAggregator.goes_on_opening}, _IN_TASK
    ),
    Phase.SETTLING: Rules({Step.SETTLE: always}, _IN_TASK),
    Phase.ENDED: Rules(_STOP, _STOP, _STOP),
}
