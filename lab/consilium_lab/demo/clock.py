"""Moves the local chain's clock forward when a phase waits only for a party that was killed or that cheats.

Every phase of the demo lasts ten minutes, and ends early when all have acted. So even a slow machine is fast enough for
an honest party, but an attack that ends with a missed deadline would take ten minutes. All parties follow the chain's
clock. When all honest parties have acted, the demo moves it, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from consilium_chain.ledger.structs import Phase, RoundState, TaskParams, TaskState, members
from consilium_chain.rounds.timing import dispute_step, margin

from consilium_lab.demo.chronicle import Chronicle
from consilium_lab.demo.network import Network, Role
from consilium_lab.demo.screen import Screen

LEAPS = (
    Phase.COMMITTING, Phase.UPLOADING, Phase.PUBLISHING, Phase.DISPUTING, Phase.SCORING, Phase.REVEALING,
    Phase.DISCLOSING,
)  # fmt: skip
GIVEN_UP = ("refused", "silent")  # events of a cheat that does nothing more in the phase


@dataclass(frozen=True)
class Leap:
    """`until`: the chain's time, in seconds. `why`: for the screen."""

    until: int
    why: str


@dataclass(frozen=True)
class Scene:
    """State of the task. `idle_hospitals`, `idle_voters`, `strangers`, `uploaded`, `answered` and `submitted_evidence`
    are bit maps, of hospitals but for `idle_voters`.

    An idle party was killed, or cheats and does nothing more in this round. A stranger has sent garbage for shares, if
    it has committed. `submitted_evidence`: in the present step of Disputing, with the hospitals that have nothing to
    show.
    """

    state: TaskState
    round: RoundState
    params: TaskParams
    now: int
    hospitals: tuple[str, ...]
    voters: tuple[str, ...]
    viable_members: int = 0
    idle_hospitals: int = 0
    idle_voters: int = 0
    strangers: int = 0
    uploaded: int = 0
    answered: int = 0
    submitted_evidence: int = 0
    aggregator_refused: bool = False  # the refused call would have ended the phase
    aggregator_ignores: bool = False  # it has all signed updates, but commits none


def leap(scene: Scene) -> Leap | None:
    """The time to which the clock may move without harm to an honest party; None if it must not move."""
    state, round_ = scene.state, scene.round
    over = state.deadline + 1
    match state.phase:
        case Phase.COMMITTING:
            missing = round_.members & ~round_.committed
            if missing and scene.aggregator_ignores:
                half = scene.now + (state.deadline - scene.now) // 2
                return Leap(half, "hospitals commit by themselves after half of the time")
            return _without(scene.hospitals, missing, scene.idle_hospitals, over)
        case Phase.UPLOADING:
            missing = round_.committed & scene.viable_members & ~scene.uploaded
            if scene.params.masked:  # the aggregator awaits none without valid shares: a leap would hit the next phase
                missing &= ~scene.strangers
            until = state.deadline - margin(scene.params.upload_window)
            return _without(scene.hospitals, missing, scene.idle_hospitals, until)
        case Phase.PUBLISHING if scene.params.masked and not scene.aggregator_refused:
            missing = round_.survivors & ~scene.answered
            until = state.deadline - margin(scene.params.publish_window)
            return _without(scene.hospitals, missing, scene.idle_hospitals, until)
        case Phase.PUBLISHING | Phase.DISCLOSING if scene.aggregator_refused:
            return Leap(over, "the aggregator has no other publication")
        case Phase.DISPUTING:
            step = dispute_step(state, scene.params.publish_window, scene.now)
            left = round_.accused & round_.survivors & ~scene.submitted_evidence
            if step == 2 or left & ~scene.idle_hospitals:
                return None
            until = state.deadline - (2 - step) * scene.params.publish_window
            return Leap(until, f"all have submitted evidence, step {step + 1} of 2")
        case Phase.SCORING:
            missing = state.active_voters & ~(round_.seated | round_.stood_down)
            return _without(scene.voters, missing, scene.idle_voters, over)
        case Phase.REVEALING:
            return _without(scene.voters, round_.seated & ~round_.revealed, scene.idle_voters, over)
        case _:
            return None


def _without(names: tuple[str, ...], missing: int, idle: int, until: int) -> Leap | None:
    """A leap if parties are missing and all of them are idle, otherwise None."""
    if not missing or missing & ~idle:
        return None
    return Leap(until, f"{', '.join(names[index] for index in members(missing))} will not act; all others have acted")


class Clock:
    def __init__(self, network: Network, chronicle: Chronicle, screen: Screen) -> None:
        self._network, self._chronicle, self._screen = network, chronicle, screen
        self._cheats = {party.name for party in network.parties if party.attack is not None}
        self._killed: set[str] = set()
        self._done: set[tuple[int, Phase, str]] = set()

    def killed(self, name: str) -> None:
        """Marks a party as idle."""
        self._killed.add(name)

    def advance(self) -> None:
        """Moves the clock forward if only idle parties are missing, at most once per phase and reason."""
        state = self._network.treasury.tasks.state(self._network.task)
        if state.phase not in LEAPS or not (self._cheats or self._killed):
            return
        scene = self._scene(state)
        found = leap(scene)
        if found is None or found.until <= scene.now:
            return
        key = scene.state.round, scene.state.phase, found.why
        if key not in self._done:
            self._done.add(key)
            self._network.node.put_forward(found.until - scene.now)
            self._screen.say(
                f"  [dim]the chain's clock moves forward by {found.until - scene.now} s: {found.why}[/dim]"
            )

    def _scene(self, state: TaskState) -> Scene:
        ledger, task = self._network.treasury, self._network.task
        number = state.round
        round_state, params, now = (
            ledger.tasks.round_state(task, number),
            ledger.tasks.params(task),
            ledger.connection.blocks.now(),
        )
        hospitals, voters = self._joined
        viable = sum(
            ledger.tasks.cohort_members(task, number, cohort) for cohort in members(round_state.viable_cohorts)
        )
        idle = self._killed | {name for event in GIVEN_UP for name in self._logged(event, number) & self._cheats}
        step = dispute_step(state, params.publish_window, now)
        return Scene(
            state, round_state, params, now, hospitals, voters, viable,
            idle_hospitals=_bits(hospitals, idle),
            idle_voters=_bits(voters, idle),
            strangers=_bits(hospitals, {party.name for party in self._network.of(Role.STRANGER)}),
            uploaded=self._named_in("uploaded", number),
            answered=self._named_in("answered", number),
            submitted_evidence=_bits(hospitals, self._submitted_evidence(number, step)),
            aggregator_refused=self._is_refused(number, state.phase),
            aggregator_ignores=bool(self._logged("ignored", number)),
        )  # fmt: skip

    @cached_property
    def _joined(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of hospitals and of voters, by index. Only valid after joining."""
        ledger, task = self._network.treasury, self._network.task
        hospitals = self._names(hospital.node for hospital in ledger.tasks.hospitals(task))
        return hospitals, self._names(voter.node for voter in ledger.tasks.voters(task))

    def _names(self, addresses: Iterable[str]) -> tuple[str, ...]:
        found = [(address, self._network.party(address)) for address in addresses]
        return tuple(party.name if party is not None else address for address, party in found)

    def _logged(self, event: str, round_: int) -> set[str]:
        """Processes that logged the event in this round."""
        return {line.process for line in self._chronicle.lines_of(event) if line.fields.get("round") == round_}

    def _named_in(self, event: str, round_: int) -> int:
        """Bit map of the hospitals that the aggregator's log names in this event."""
        lines = (line for line in self._chronicle.lines_of(event) if line.fields.get("round") == round_)
        return sum(1 << index for index in {line.fields["hospital"] for line in lines})

    def _submitted_evidence(self, round_: int, step: int) -> set[str]:
        without_evidence = {
            line.process
            for line in self._chronicle.lines_of("nothing-to-show")
            if (line.fields["round"], line.fields["step"]) == (round_, step)
        }
        submitted_evidence = self._chronicle.of_round(round_, "EvidenceSubmitted")
        return without_evidence | set(
            self._names(event.values["hospital"] for event in submitted_evidence if event.values["step"] == step)
        )

    def _is_refused(self, round_: int, phase: Phase) -> bool:
        call = {Phase.PUBLISHING: "publish", Phase.DISCLOSING: "discloseDecoys"}.get(phase)
        (aggregator,) = self._network.of(Role.AGGREGATOR)
        return call is not None and any(
            line.process == aggregator.name
            and line.fields.get("round") == round_
            and line.fields["call"].startswith(call)
            for line in self._chronicle.lines_of("refused")
            if aggregator.name in self._cheats
        )


def _bits(names: tuple[str, ...], among: set[str]) -> int:
    return sum(1 << index for index, name in enumerate(names) if name in among)
