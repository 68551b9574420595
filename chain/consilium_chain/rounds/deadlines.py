"""A task's missed deadlines, with party and delay, from the chain's events alone.

Pure: events and their blocks' times are arguments. If a phase starts after the deadline of the phase before, that
deadline was missed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from consilium_chain.ledger.structs import Phase, TaskParams
from consilium_chain.rpc.event_logs import Event

AGGREGATORS = (
    Phase.UPLOADING,
    Phase.PUBLISHING,
    Phase.DISPUTING,
    Phase.DISCLOSING,
)  # phases that only it can end in time
# By phase: events of parties that did their part, and the field with their account.
DONE: Mapping[Phase, Mapping[str, str]] = {
    Phase.JOINING: {"HospitalJoined": "hospital", "VoterJoined": "voter", "AggregatorJoined": "aggregator"},
    Phase.COMMITTING: {"UpdateCommitted": "hospital"},
    Phase.SCORING: {"ScoresCommitted": "voter", "VoterStoodDown": "voter"},
    Phase.REVEALING: {"ScoresRevealed": "voter"},
}


@dataclass(frozen=True)
class Missed:
    """A phase that ended by its deadline. Times are in seconds of the chain's clock.

    window: from the phase's start to the deadline. ended_after: from the deadline to the block that ended the phase,
    the least delay of `missing`. missing: accounts; in Joining also the missing numbers of parties. acted: the number
    of parties in time, the last of them `spare` seconds before the deadline.
    """

    round: int
    phase: Phase
    window: int
    ended_after: int
    missing: tuple[str, ...]
    acted: int
    spare: int | None


@dataclass
class _Open:
    round: int
    phase: Phase
    started: int
    deadline: int
    acted: dict[str, int] = field(default_factory=dict)  # when, by account


class Deadlines:
    """Follows one task from its proposal on: takes every event once and in order."""

    def __init__(self, params: TaskParams) -> None:
        self._params = params
        self._open = _Open(0, Phase.NONE, 0, 0)
        self._joined: dict[str, set[str]] = {name: set() for name in DONE[Phase.JOINING]}
        self._absent: set[str] = set()  # hospitals, as the chain said in this phase
        self._seated: set[str] = set()  # voters, in this round
        self._slashed: dict[str, int] = {}

    def take(self, event: Event, time: int) -> Missed | None:
        """The missed deadline that this event, in a block of this time, shows; otherwise None."""
        values = event.values
        if event.name == "PhaseStarted":
            missed = self._missed(time, Phase(values["phase"]))
            self._open = _Open(values["round"], Phase(values["phase"]), time, values["deadline"])
            self._absent.clear()
            if self._open.phase is Phase.SCORING:
                self._seated.clear()
            return missed
        if event.name in self._joined:
            self._joined[event.name].add(values[DONE[Phase.JOINING][event.name]])
        match event.name:
            case "HospitalAbsent":
                self._absent.add(values["hospital"])
            case "ScoresCommitted":
                self._seated.add(values["voter"])
            case "Slashed":
                account = values["account"]
                self._slashed[account] = self._slashed.get(account, 0) + values["amount"]
        if account_field := DONE.get(self._open.phase, {}).get(event.name):
            self._open.acted[values[account_field]] = time
        return None

    def _missed(self, time: int, following: Phase) -> Missed | None:
        phase = self._open
        if phase.deadline == 0 or time <= phase.deadline:
            return None
        missing = self._missing(following)
        if not missing:
            return None
        spare = phase.deadline - max(phase.acted.values()) if phase.acted else None
        return Missed(
            phase.round, phase.phase, phase.deadline - phase.started, time - phase.deadline, missing,
            len(phase.acted), spare,
        )  # fmt: skip

    def _missing(self, following: Phase) -> tuple[str, ...]:
        phase = self._open.phase
        if phase is Phase.JOINING:
            return self._too_few() if following is Phase.ENDED else ()
        if phase in AGGREGATORS:
            return (self._params.aggregator,)
        if phase is Phase.COMMITTING:
            return tuple(sorted(self._absent))
        if phase is Phase.SCORING:
            bond = self._params.voter_bond
            active = {voter for voter in self._joined["VoterJoined"] if self._slashed.get(voter, 0) < bond}
            return tuple(sorted(active - self._open.acted.keys()))
        return tuple(sorted(self._seated - self._open.acted.keys())) if phase is Phase.REVEALING else ()

    def _too_few(self) -> tuple[str, ...]:
        """The parties that are missing for a task to begin."""
        least = {"hospitals": self._params.min_hospitals, "voters": self._params.min_voters}
        found = {"hospitals": len(self._joined["HospitalJoined"]), "voters": len(self._joined["VoterJoined"])}
        aggregator = () if self._joined["AggregatorJoined"] else (self._params.aggregator,)
        return aggregator + tuple(
            f"{least[who] - found[who]} of at least {least[who]} {who}" for who in least if found[who] < least[who]
        )


def fields_of(missed: Missed) -> dict[str, object]:
    """The fields of a log event."""
    return {
        "round": missed.round, "phase": missed.phase.name, "window_s": missed.window,
        "ended_after_s": missed.ended_after, "missing": list(missed.missing), "acted": missed.acted,
        "spare_s": missed.spare,
    }  # fmt: skip


def in_words(fields: Mapping[str, object]) -> str:
    """`fields`: as `fields_of` gives them, with names instead of accounts if wanted."""
    missing = fields["missing"]
    names = ", ".join(map(str, missing)) if isinstance(missing, (list, tuple)) else str(missing)
    phase, spare, late = str(fields["phase"]).lower(), fields["spare_s"], fields["ended_after_s"]
    others = f"; {fields['acted']} acted in time, the last {spare} s before the end" if spare is not None else ""
    return (
        f"round {fields['round']}, {phase}: {names} did not act within {fields['window_s']} s;"
        f" the phase was ended {late} s later{others}"
    )
