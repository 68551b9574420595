"""A matrix of faults over a small internet: which process, in which phase of a round, what befalls it.

Each fault is made as soon as its phase has begun; then the round must end, and what must hold is looked at
(`Played.broken`). A round has up to one cell of each phase, of processes that have nothing to do with each other; where
it does not hold, its cells are played again one by one. A round in which not everybody took part is followed by one
without a fault, which must be settled with everybody in it: the service came back by itself.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial

import httpx
import psutil
from consilium_chain.ledger.structs import Outcome, Phase, SlashReason, VoidReason, members
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.config import PRIVACY_FILE
from consilium_client.privacy.accountant import PrivacyAccountant
from consilium_lab.demo.chronicle import Chronicle

from internet.network import DISPUTE_STEP, WINDOWS, Network, until

OUTAGE = 10.0  # seconds that what is stopped, cut off, out of disk space or of time is so: less than any phase's time
CLOCKS = {"clock": 3600, "clock behind": -3600}  # seconds
STARTED_FOR_A_TASK = ("aggregator", "superlink", "sponsor", "hospital-1")
ROUNDS_TO_RETURN = 4
ROUNDS_OF_A_TASK = 8
TOGETHER = {"joining": 3, "disputing": 4}  # cells that a round has of one phase
LIAR = "hospital-4"
LIES_OF_A_TASK = 4  # rounds: each costs the liar a part of its bond
MOST_BEHIND = 20  # blocks
GRACE = 60.0  # seconds for transactions, beyond all windows of a round one after the other
HOSTS = {"node": "chain", "hospital-1": "hospital-1", "voter-1": "voter-1", "operator": "operator"}

PROCESSES = (
    "node", "api", "worker", "index", "aggregator", "superlink", "proxy", "redis", "postgres", "sponsor",
    "hospital-1", "supernode/hospital-1", "relay/hospital-1", "voter-1", "operator",
)  # fmt: skip
PHASES = {
    "joining": Phase.JOINING,
    "committing": Phase.COMMITTING,
    "uploading": Phase.UPLOADING,
    "disputing": Phase.DISPUTING,
    "publishing": Phase.PUBLISHING,
    "scoring": Phase.SCORING,
    "revealing": Phase.REVEALING,
    "settling": Phase.DISCLOSING,  # from the last ballot on
}
FAULTS = ("kill", "stop", "cut off", "bad line", "full disk", *CLOCKS, "restart")
IN_WORDS = {
    "kill": "`kill -9`; its supervisor starts it again",
    "stop": f"SIGSTOP, and SIGCONT {OUTAGE:g} s later",
    "cut off": f"its host's cable is down for {OUTAGE:g} s",
    "bad line": "its host's line has 150 ± 50 ms, 3 % loss and 2 Mbit/s each way, to the end of the round",
    "full disk": f"no byte is free where it writes, for {OUTAGE:g} s",
    "clock": f"its host's clock is an hour ahead for {OUTAGE:g} s, in all that runs there",
    "clock behind": f"its host's clock is an hour behind for {OUTAGE:g} s, in all that runs there",
    "restart": "SIGTERM; its supervisor starts it again",
}
OWN_DISKS = {"api", "worker", "index", "proxy", "postgres", "hospital-1", "voter-1"}
INNER = {"aggregator": "the worker", "superlink": "the aggregator"}  # who starts it again
# Of these at most one is hurt in a round: an outage of one is an outage of all, and two of them would be a longer one.
FAMILIES = {
    **dict.fromkeys(("worker", "aggregator", "superlink"), "conducting"),
    **dict.fromkeys(("hospital-1", "supernode/hospital-1", "relay/hospital-1"), "hospital-1"),
}


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
    if fault in CLOCKS:
        if process == "node":
            return "a chain has its blocks' time"
        return None if process in HOSTS else "has its host's clock"
    if fault in ("cut off", "bad line"):
        return None if process in HOSTS else "shares its host's line"
    if process == "operator":
        return "a host, not a process"
    if fault == "full disk" and process not in OWN_DISKS:
        return "writes where the process does that starts it, or nowhere"
    if fault == "restart" and (process in INNER or "/" in process):
        return "is started by another process of these rows"
    if cell.phase == "joining" and "/" in process:
        return "starts with the first round"
    return None


def matrix() -> list[Cell]:
    """All cells that there are."""
    cells = [Cell(process, phase, fault) for fault in FAULTS for phase in PHASES for process in PROCESSES]
    return [cell for cell in cells if why_not(cell) is None]


def packed(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Rounds of several cells each, of unrelated processes, and of different phases but for `TOGETHER`."""
    rounds: list[list[Cell]] = []
    for cell in cells:
        most = TOGETHER.get(cell.phase, len(PHASES))
        fitting = (one for one in rounds if len(one) < most and all(_unrelated(cell, other) for other in one))
        found = next(fitting, None)
        if found is None:
            rounds.append(found := [])
        found.append(cell)
    return [sorted(one, key=lambda cell: list(PHASES).index(cell.phase)) for one in rounds]


def _unrelated(one: Cell, other: Cell) -> bool:
    if (one.phase == other.phase) != (one.phase in TOGETHER or other.phase in TOGETHER):
        return False
    if one.fault == other.fault == "bad line":  # which lasts to the end of the round: one at a time
        return False
    return FAMILIES.get(one.process, one.process) != FAMILIES.get(other.process, other.process)


@dataclass
class TaskPlan:
    joining: list[Cell] = field(default_factory=list)
    rounds: list[list[Cell]] = field(default_factory=list)
    liar: str | None = None


def plan(cells: Sequence[Cell]) -> list[TaskPlan]:
    """Tasks that play all of them. In some a hospital lies: without a lie nobody is blamed."""
    kinds: list[list[Cell]] = [[], [], []]
    for cell in cells:
        kinds[_kind([cell])].append(cell)
    return plan_rounds([one for kind in kinds for one in packed(kind)])


def plan_rounds(rounds: Iterable[list[Cell]]) -> list[TaskPlan]:
    """Tasks that play these rounds, each of cells that `packed` would let meet."""
    kinds: list[list[list[Cell]]] = [[], [], []]
    for one in rounds:
        kinds[_kind(one)].append(one)
    joining, honest, lies = kinds
    tasks = [TaskPlan(one) for one in joining]
    while len(tasks) * ROUNDS_OF_A_TASK < len(honest):
        tasks.append(TaskPlan())
    for number, one in enumerate(honest):
        tasks[number % len(tasks)].rounds.append(one)
    return tasks + _with_a_liar(lies)


def _kind(cells: Sequence[Cell]) -> int:
    """0: while others join, 1: of a round, 2: of a round with a lie."""
    return {"joining": 0, "disputing": 2}.get(cells[0].phase, 1)


def _with_a_liar(rounds: Sequence[list[Cell]]) -> list[TaskPlan]:
    """In tasks so short that the liar's bond lasts."""
    batches = [list(rounds[first : first + LIES_OF_A_TASK]) for first in range(0, len(rounds), LIES_OF_A_TASK)]
    return [TaskPlan(rounds=batch, liar=LIAR) for batch in batches]


@dataclass
class Played:
    """What came of a round and its cells."""

    cells: list[Cell]
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
        """Once its process is there; returns when it has been made, or is over if it passes by itself. What lasts to
        the end of the round is taken away by `until_end`.
        """
        process, fault, services = cell.process, cell.fault, self._network.services
        if fault in ("cut off", "bad line", *CLOCKS):
            host = self._network.host(HOSTS[process])
            if fault == "cut off":
                self._for_a_while(host.cut_off, host.back)
            elif fault in CLOCKS:
                self._for_a_while(partial(host.clock.set, CLOCKS[fault]), partial(host.clock.set, 0))
            else:
                host.worsen()
                until_end.callback(host.mend)
            return
        until(lambda: self._processes(process), str(cell))
        if fault == "kill":
            self._kill(process)
        elif fault == "restart":
            services.restart(process)
        elif fault == "stop":
            stopped = self._processes(process)
            self._for_a_while(
                partial(self._signal, stopped, signal.SIGSTOP), partial(self._signal, stopped, signal.SIGCONT)
            )
        else:
            disk = self._network.disks[process]
            self._for_a_while(disk.fill, disk.make_room)

    def _processes(self, process: str) -> list[psutil.Process]:
        services = self._network.services
        if process in services and not services[process].runs:
            return []
        return self._network.processes_of(process)

    def _kill(self, process: str) -> None:
        if process in self._network.services:
            self._network.services.kill(process)
            return
        for one in self._network.processes_of(process):
            one.kill()

    @staticmethod
    def _signal(processes: Sequence[psutil.Process], number: signal.Signals) -> None:
        for one in processes:
            with suppress(psutil.NoSuchProcess):
                one.send_signal(number)

    @staticmethod
    def _for_a_while(begin: Callable[[], None], end: Callable[[], None]) -> None:
        begin()
        try:
            time.sleep(OUTAGE)
        finally:
            end()


class Play:
    """A task on a network, played round by round."""

    def __init__(self, network: Network, rounds: int, joining: Sequence[Cell] = (), liar: str | None = None) -> None:
        """Proposes the task. `joining`: faults while others join."""
        self.network = network
        self._liar = liar
        self._faults = Faults(network)
        self._until_end = ExitStack()
        self._threads = ThreadPoolExecutor(thread_name_prefix="faults")
        self._began = time.monotonic()
        self.spec: TaskSpec
        self._windows = WINDOWS | ({"publish": DISPUTE_STEP} if liar else {})
        self.task, self.spec = network.put(rounds, self._windows)
        self._chronicle = Chronicle(network.operator, self.task, self._began)
        making = [self._make(cell) for cell in joining if cell.process not in STARTED_FOR_A_TASK]
        network.open_doors(self.task)
        network.start_hospitals(self.task, liar)
        making += [self._make(cell) for cell in joining if cell.process in STARTED_FOR_A_TASK]
        self.first = self._end_of(0, Played(list(joining), self.task, 0), making)

    def play(self, *cells: Cell) -> Played:
        """The next round, with these faults in it, in the order of their phases."""
        number = self.network.operator.tasks.state(self.task).round
        played = Played(list(cells), self.task, number)
        self._began = time.monotonic()
        making = []
        for cell in cells:
            if self._comes(number, PHASES[cell.phase]):
                making.append(self._make(cell, self._turn_of(cell)))
            else:
                played.broken.append(f"{cell.phase} did not come")
        return self._end_of(number, played, making)

    def _make(self, cell: Cell, turn: float = 0.0) -> Future[None]:
        def make() -> None:
            time.sleep(turn)
            self._faults.make(cell, self._until_end)

        return self._threads.submit(make)

    def _turn_of(self, cell: Cell) -> float:
        """Seconds until a process has something to do in a phase that has just begun: in `Disputing` the aggregator's
        turn is the last step.
        """
        late = cell.phase == "disputing" and FAMILIES.get(cell.process) == "conducting"
        return 2.0 * DISPUTE_STEP if late else 0.0

    def finish(self) -> list[str]:
        """After the last round: the task ends, hospitals leave, and what is left of the pool is the operator's."""
        network, ledger = self.network, self.network.operator
        self._threads.shutdown()
        until(lambda: network.phase(self.task) is Phase.ENDED, "the task's end")
        until(lambda: not any(network.services[name].wanted for name in network.hospitals), "the hospitals' farewell")
        broken = self._money()
        if ledger.tasks.state(self.task).pool_left:
            broken.append(f"{ledger.tasks.state(self.task).pool_left} are left in the pool of an ended task")
        bonds = [hospital.bond for hospital in ledger.tasks.hospitals(self.task)]
        if any(bonds):
            broken.append(f"hospitals left their bonds behind: {bonds}")
        return broken

    def patience(self, number: int) -> float:
        """Seconds after which a round must have ended, whoever is away."""
        steps = sum(self._windows.values()) - (self._windows["join"] if number else 0)
        steps += self._windows["publish"] * (4 if self._liar else 1)  # of `Disputing` three, of `Opening` one
        return steps + GRACE

    @property
    def over(self) -> bool:
        return self.network.phase(self.task) is Phase.ENDED

    def _comes(self, number: int, phase: Phase) -> bool:
        """Waits until the phase has begun; False where the round ended without."""

        def begun() -> bool:
            if phase is Phase.DISCLOSING:  # which is over with the transaction that begins it
                state = self.network.operator.tasks.round_state(self.task, number)
                return bool(state.seated) and state.revealed == state.seated
            self._chronicle.update([])
            return any(event.values["phase"] == phase for event in self._chronicle.of_round(number, "PhaseStarted"))

        until(lambda: begun() or self._has_ended(number), f"{phase.name} of round {number}", self.patience(number))
        return begun()

    def _has_ended(self, number: int) -> bool:
        return self.network.operator.tasks.round_state(self.task, number).outcome is not Outcome.PENDING

    def _end_of(self, number: int, played: Played, making: Sequence[Future[None]]) -> Played:
        try:
            until(lambda: self._has_ended(number), f"the end of round {number}", self.patience(number))
        except AssertionError as error:
            played.broken.append(str(error))
        finally:
            played.seconds = round(time.monotonic() - self._began, 1)
            wait(making)
            self._until_end.close()
        played.broken += [f"not made: {fault!r}" for one in making if (fault := one.exception())]
        self._chronicle.update([])
        self._describe(number, played)
        played.back = self._back()
        if played.back is None:
            played.broken.append(f"not back by itself: {self._missing()}")
        played.broken += self._money() + self._epsilon(number)
        return played

    def _describe(self, number: int, played: Played) -> None:
        network, ledger = self.network, self.network.operator
        state = ledger.tasks.round_state(self.task, number)
        played.outcome = state.outcome.name.lower()
        if state.void_reason is not VoidReason.NONE:
            played.outcome += f" ({state.void_reason.name.lower().replace('_', ' ')})"
        for event in self._chronicle.of_round(number, "Slashed"):
            reason = SlashReason(event.values["reason"]).name.lower().replace("_", " ")
            played.slashed.append(f"{network.name_of(event.values['account'])}: {reason}")
        lied = number > 0 and self._liar is not None
        liars = [one for one in played.slashed if lied and one.startswith(f"{self._liar}: ")]
        if lied and state.outcome is Outcome.SETTLED and len(liars) != 1:
            played.broken.append(f"{self._liar} lied, and was slashed {len(liars)} times")
        if others := [one for one in played.slashed if one not in liars]:  # no outage here is longer than a phase
            played.broken.append(f"slashed: {', '.join(others)}")
        present = set(members(state.survivors))
        played.absent = [
            network.name_of(one.node) for k, one in enumerate(ledger.tasks.hospitals(self.task)) if k not in present
        ]
        if number and state.outcome is Outcome.SETTLED:
            revealed = set(members(state.revealed))
            played.absent += [
                network.name_of(one.node) for k, one in enumerate(ledger.tasks.voters(self.task)) if k not in revealed
            ]

    def _money(self) -> list[str]:
        books = self.network.books()
        return [f"{books.difference} units are nowhere"] if books.difference else []

    def _epsilon(self, number: int) -> list[str]:
        """Each round that a hospital has committed to is charged once; what is charged beside is what a crash kept."""
        if not number:
            return []
        ledger, broken = self.network.operator, []
        place = ledger.folder_name(self.task)
        indices = {one.node: k for k, one in enumerate(ledger.tasks.hospitals(self.task))}
        for name, home in self.network.homes.items():
            index = indices[self.network.accounts[name].address]
            rounds = [one.round for one in PrivacyAccountant(home.folder / PRIVACY_FILE).charges() if one.task == place]
            committed = [
                r for r in range(1, number + 1) if ledger.tasks.round_state(self.task, r).committed >> index & 1
            ]
            if len(set(rounds)) != len(rounds) or not set(committed) <= set(rounds):
                broken.append(f"{name} committed in {committed} and was charged in {rounds}")
            if set(rounds) - set(range(1, ledger.tasks.state(self.task).round + 1)):
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


def play_cells(network: Network, tasks: Iterable[TaskPlan]) -> Iterator[Played]:
    """Each round, and those without a fault that show that all is back. Of a round that did not hold, its cells follow
    one by one, those with a liar in tasks of their own.
    """
    for one in tasks:
        lies: list[list[Cell]] = []
        play = Play(network, 3 * len(one.rounds) + 2 * ROUNDS_TO_RETURN, one.joining, one.liar)
        yield _back_again(play, play.first)
        for cells in one.rounds:
            played = _back_again(play, play.play(*cells))
            yield played
            if not played.broken or len(cells) == 1:
                continue
            if one.liar:
                lies += [[cell] for cell in cells]
                continue
            for cell in cells:
                if play.over:
                    break
                yield _back_again(play, play.play(cell))
        if not play.over:
            network.operator.operator.stop(play.task)
        ended = Played([], play.task, -1, "ended")
        while not play.over:
            last = play.play()
            ended.broken += last.broken
            if last.outcome == Outcome.PENDING.name.lower():
                break
        ended.broken += play.finish()
        yield ended
        if play.first.broken and len(one.joining) > 1:
            yield from play_cells(network, [TaskPlan([cell]) for cell in one.joining])
        yield from play_cells(network, _with_a_liar(lies))


def _back_again(play: Play, played: Played) -> Played:
    """With what is wrong with the rounds after it, where it was not whole: a node takes longer to start than a round
    without it lasts.
    """
    if played.whole:
        return played
    for _ in range(ROUNDS_TO_RETURN):
        if play.over:
            if played.round == 0:
                played.broken.append(f"the task ended after {played.outcome}")
            return played
        clean = play.play()
        if clean.whole and not clean.broken:
            return played
    played.broken.append(f"{ROUNDS_TO_RETURN} rounds after it: {clean.outcome}, absent {clean.absent}, {clean.broken}")
    return played
