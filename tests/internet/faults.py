"""A matrix of faults over a small internet: which process, in which phase of a round, what befalls it.

A cell is a round of a task. In it one fault is made as soon as its phase has begun; then the round must end, and what
must hold is looked at (`Played.broken`). A round after which not everybody took part is followed by one without a
fault, which must be settled with everybody in it: the service came back by itself.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

import httpx
import psutil
from consilium_chain.task_spec import TaskSpec
from consilium_chain.views import Outcome, Phase, SlashReason, VoidReason, members
from consilium_cli.demo.chronicle import Chronicle
from consilium_client.config import LEDGER_FILE
from consilium_client.epsilon_ledger import EpsilonLedger

from internet.network import Network, until

OUTAGE = 10.0  # seconds that what is stopped, cut off or out of disk space is so: less than any phase's time
STARTED_FOR_A_TASK = ("aggregator", "superlink", "sponsor", "hospital-1")
ROUNDS_TO_RETURN = 4
MOST_BEHIND = 20  # blocks
ROUND_PATIENCE = 900.0  # seconds; all windows of a round one after the other are less
LINK_HOSTS = {"node": "chain", "hospital-1": "hospital-1", "voter-1": "voter-1", "operator": "operator"}

PROCESSES = (
    "node", "api", "worker", "index", "aggregator", "superlink", "proxy", "redis", "postgres", "sponsor",
    "hospital-1", "supernode/hospital-1", "relay/hospital-1", "voter-1", "operator",
)  # fmt: skip
PHASES = {
    "joining": Phase.JOINING,
    "committing": Phase.COMMITTING,
    "uploading": Phase.UPLOADING,
    "publishing": Phase.PUBLISHING,
    "scoring": Phase.SCORING,
    "revealing": Phase.REVEALING,
    "settling": Phase.OPENING,  # from the last ballot on
}
FAULTS = ("kill", "stop", "cut off", "bad line", "full disk", "clock", "restart")
IN_WORDS = {
    "kill": "`kill -9`; its supervisor starts it again",
    "stop": f"SIGSTOP, and SIGCONT {OUTAGE:g} s later",
    "cut off": f"its host's cable is down for {OUTAGE:g} s",
    "bad line": "its host's line has 150 ± 50 ms, 3 % loss and 2 Mbit/s each way, to the end of the round",
    "full disk": f"no byte is free where it writes, for {OUTAGE:g} s",
    "clock": "started again with its clock an hour ahead, to the end of the round",
    "restart": "SIGTERM; its supervisor starts it again",
}
OWN_DISKS = {"api", "worker", "index", "proxy", "redis", "postgres", "hospital-1", "voter-1"}
CLOCKS = {"proxy", "redis", "postgres"}
INNER = {"aggregator": "the worker", "superlink": "the aggregator"}  # who starts it again


@dataclass(frozen=True)
class Cell:
    process: str
    phase: str
    fault: str

    def __str__(self) -> str:
        return f"{self.process}, {self.phase}, {self.fault}"


def why_not(cell: Cell) -> str | None:
    """Why there is no such thing, in words."""
    process, fault = cell.process, cell.fault
    if fault in ("cut off", "bad line"):
        return None if process in LINK_HOSTS else "shares its host's line"
    if process == "operator":
        return "a host, not a process"
    if fault == "full disk" and process not in OWN_DISKS:
        return "writes where the process does that starts it, or nowhere"
    if fault in ("clock", "restart") and (process in INNER or "/" in process):
        return "is started by another process of these rows"
    if fault == "clock" and process not in CLOCKS:
        return "libfaketime 0.9.10 makes Python's sleep fail, and the chain has a clock of its own"
    if cell.phase == "joining" and "/" in process:
        return "starts with the first round"
    return None


def matrix() -> list[Cell]:
    """All cells that there are."""
    cells = [Cell(process, phase, fault) for fault in FAULTS for phase in PHASES for process in PROCESSES]
    return [cell for cell in cells if why_not(cell) is None]


@dataclass
class Played:
    """What came of a cell."""

    cell: Cell | None
    task: int
    round: int
    outcome: str = ""
    seconds: float = 0.0
    slashed: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)  # hospitals that are in no sum, voters that revealed nothing
    back: float | None = None  # seconds after the round's end until all processes ran and the API answered
    broken: list[str] = field(default_factory=list)  # what should hold and does not

    @property
    def whole(self) -> bool:
        """Settled with everybody in it."""
        return self.outcome == "settled" and not self.absent and self.back is not None


class Faults:
    """Makes faults in one network, and takes them away again."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def make(self, cell: Cell, until_end: ExitStack) -> None:
        """At once. What lasts to the end of the round is taken away by `until_end`."""
        process, fault, services = cell.process, cell.fault, self._network.services
        if fault == "kill":
            self._kill(process)
        elif fault == "restart":
            services.restart(process)
        elif fault == "stop":
            self._for_a_while(
                partial(self._signal, process, signal.SIGSTOP), partial(self._signal, process, signal.SIGCONT)
            )
        elif fault == "cut off":
            host = self._network.host(LINK_HOSTS[process])
            self._for_a_while(host.cut_off, host.back)
        elif fault == "bad line":
            host = self._network.host(LINK_HOSTS[process])
            host.worsen()
            until_end.callback(host.mend)
        elif fault == "full disk":
            disk = self._network.disks[process]
            self._for_a_while(disk.fill, disk.make_room)
        else:
            services.restart(process, hours_off=1)
            until_end.callback(services.restart, process)

    def _kill(self, process: str) -> None:
        if process in self._network.services:
            self._network.services.kill(process)
            return
        for one in self._network.processes_of(process):
            one.kill()

    def _signal(self, process: str, number: signal.Signals) -> None:
        for one in self._network.processes_of(process):
            try:
                one.send_signal(number)
            except psutil.NoSuchProcess:
                continue

    @staticmethod
    def _for_a_while(begin: Callable[[], None], end: Callable[[], None]) -> None:
        begin()
        try:
            time.sleep(OUTAGE)
        finally:
            end()


class Play:
    """A task on a network, played round by round."""

    def __init__(self, network: Network, rounds: int, joining: Cell | None = None) -> None:
        """Proposes the task. `joining`: a fault while others join."""
        self.network = network
        self._faults = Faults(network)
        self._until_end = ExitStack()
        self._began = time.monotonic()
        self.spec: TaskSpec
        self.task, self.spec = network.put(rounds)
        self._chronicle = Chronicle(network.operator, self.task, self._began)
        if joining is not None and joining.process not in STARTED_FOR_A_TASK:
            self._faults.make(joining, self._until_end)
        network.open_doors(self.task)
        network.start_hospitals(self.task)
        if joining is not None and joining.process in STARTED_FOR_A_TASK:
            until(lambda: network.processes_of(joining.process), str(joining))
            self._faults.make(joining, self._until_end)
        self.first = self._end_of(0, Played(joining, self.task, 0))

    def play(self, cell: Cell | None) -> Played:
        """The next round."""
        number = self.network.operator.state(self.task).round
        played = Played(cell, self.task, number)
        self._began = time.monotonic()
        if cell is not None:
            if self._comes(number, PHASES[cell.phase]):
                self._faults.make(cell, self._until_end)
            else:
                played.broken.append("the phase did not come")
        return self._end_of(number, played)

    def finish(self) -> list[str]:
        """After the last round: the task ends, hospitals leave, and what is left of the pool is the operator's."""
        network, ledger = self.network, self.network.operator
        until(lambda: network.phase(self.task) is Phase.ENDED, "the task's end")
        until(lambda: not any(network.services[name].wanted for name in network.hospitals), "the hospitals' farewell")
        broken = self._money()
        if ledger.state(self.task).pool_left:
            broken.append(f"{ledger.state(self.task).pool_left} are left in the pool of an ended task")
        bonds = [hospital.bond for hospital in ledger.hospitals(self.task)]
        if any(bonds):
            broken.append(f"hospitals left their bonds behind: {bonds}")
        return broken

    @property
    def over(self) -> bool:
        return self.network.phase(self.task) is Phase.ENDED

    def _comes(self, number: int, phase: Phase) -> bool:
        """Waits until the phase has begun; False where the round ended without."""

        def begun() -> bool:
            if phase is Phase.OPENING:  # which is over with the transaction that begins it
                state = self.network.operator.round_state(self.task, number)
                return bool(state.seated) and state.revealed == state.seated
            self._chronicle.update([])
            return any(event.values["phase"] == phase for event in self._chronicle.of_round(number, "PhaseStarted"))

        until(lambda: begun() or self._has_ended(number), f"{phase.name} of round {number}", ROUND_PATIENCE)
        return begun()

    def _has_ended(self, number: int) -> bool:
        return self.network.operator.round_state(self.task, number).outcome is not Outcome.PENDING

    def _end_of(self, number: int, played: Played) -> Played:
        try:
            until(lambda: self._has_ended(number), f"the end of round {number}", ROUND_PATIENCE)
        except AssertionError as error:
            played.broken.append(str(error))
        finally:
            played.seconds = round(time.monotonic() - self._began, 1)
            self._until_end.close()
        self._chronicle.update([])
        self._describe(number, played)
        played.back = self._back()
        if played.back is None:
            played.broken.append(f"not back by itself: {self._missing()}")
        played.broken += self._money() + self._epsilon(number)
        return played

    def _describe(self, number: int, played: Played) -> None:
        network, ledger = self.network, self.network.operator
        state = ledger.round_state(self.task, number)
        played.outcome = state.outcome.name.lower()
        if state.void_reason is not VoidReason.NONE:
            played.outcome += f" ({state.void_reason.name.lower().replace('_', ' ')})"
        for event in self._chronicle.of_round(number, "Slashed"):
            reason = SlashReason(event.values["reason"]).name.lower().replace("_", " ")
            played.slashed.append(f"{network.name_of(event.values['account'])}: {reason}")
        if played.slashed:  # no outage here is longer than a phase
            played.broken.append(f"slashed: {', '.join(played.slashed)}")
        present = set(members(state.survivors))
        played.absent = [
            network.name_of(one.node) for k, one in enumerate(ledger.hospitals(self.task)) if k not in present
        ]
        if number and state.outcome is Outcome.SETTLED:
            revealed = set(members(state.revealed))
            played.absent += [
                network.name_of(one.node) for k, one in enumerate(ledger.voters(self.task)) if k not in revealed
            ]

    def _money(self) -> list[str]:
        books = self.network.books()
        return [f"{books.difference} units are nowhere"] if books.difference else []

    def _epsilon(self, number: int) -> list[str]:
        """Each round that a hospital has committed to is charged once; what is charged beside is what a crash kept."""
        if not number:
            return []
        ledger, broken = self.network.operator, []
        place = ledger.place(self.task)
        indices = {one.node: k for k, one in enumerate(ledger.hospitals(self.task))}
        for name, home in self.network.homes.items():
            index = indices[self.network.accounts[name].address]
            rounds = [one.round for one in EpsilonLedger(home.folder / LEDGER_FILE).charges() if one.task == place]
            committed = [r for r in range(1, number + 1) if ledger.round_state(self.task, r).committed >> index & 1]
            if len(set(rounds)) != len(rounds) or not set(committed) <= set(rounds):
                broken.append(f"{name} committed in {committed} and was charged in {rounds}")
            if set(rounds) - set(range(1, ledger.state(self.task).round + 1)):
                broken.append(f"{name} was charged for rounds that have not begun: {rounds}")
        return broken

    def _missing(self) -> list[str]:
        network = self.network
        missing = network.services.down()
        if not self.over:
            missing += [name for name in ("aggregator", "superlink") if not network.processes_of(name)]
        try:
            behind = network.get("/v1/network")["index"]["behind"]
        except (httpx.HTTPError, ValueError):
            return [*missing, "the API's answer"]
        return (
            missing
            if behind is not None and behind <= MOST_BEHIND
            else [*missing, f"the index, {behind} blocks behind"]
        )

    def _back(self, patience: float = 150.0) -> float | None:
        """Seconds until everything runs that should; None: not within `patience`."""
        began = time.monotonic()
        while self._missing():
            if time.monotonic() - began > patience:
                return None
            time.sleep(0.2)
        return round(time.monotonic() - began, 1)


def play_cells(network: Network, cells: Iterable[Cell], most_rounds: int = 25) -> Iterator[Played]:
    """Each cell's round, and those without a fault that show that all is back. Cells of joining have tasks of
    their own; the others share tasks of at most so many rounds.
    """
    waiting = list(cells)
    inside = [cell for cell in waiting if cell.phase != "joining"]
    while inside:
        batch, inside = inside[:most_rounds], inside[most_rounds:]
        play = Play(network, 3 * len(batch) + ROUNDS_TO_RETURN)
        yield play.first
        for cell in batch:
            played = play.play(cell)
            if not played.whole:
                played.broken += _clean_round(play, played)
            yield played
        network.operator.stop(play.task)
        while not play.over:
            play.play(None)
        last = Played(None, play.task, -1, "ended", broken=play.finish())
        yield last
    for cell in waiting:
        if cell.phase == "joining":
            play = Play(network, 1, cell)
            play.first.broken += _clean_round(play, play.first)
            play.first.broken += play.finish()
            yield play.first


def _clean_round(play: Play, after: Played) -> list[str]:
    """What is wrong with the rounds after a fault: a node takes longer to start than a round without it lasts."""
    for _ in range(ROUNDS_TO_RETURN):
        if play.over:
            return [f"the task ended after {after.outcome}"] if after.round == 0 else []
        clean = play.play(None)
        if clean.whole and not clean.broken:
            return []
    return [f"{ROUNDS_TO_RETURN} rounds after it: {clean.outcome}, absent {clean.absent}, {clean.broken}"]
