"""Two hours of rounds on the small internet of `tests/internet`: what grows, and what does not.

One operator, four hospitals, three voters, each on a host of its own, with TLS, PostgreSQL and Redis; private rounds
one after the other, without a pause, in tasks of 50 rounds; meanwhile somebody reads the API through the proxy. Every
ten seconds: memory (PSS, what a process costs), open handles and threads of every process, and what is on each disk.

What was found so far is there after each round. A round that does not end within all its windows, or an error of
whoever plays, looks or reads, ends the soak, with a report of what broke, when and in which phase under "broke".
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import linear_regression, mean
from typing import Any

import httpx
import psutil
from consilium_chain.ledger.structs import Outcome
from internet.faults import Play, Played
from internet.hosts import why_not_here
from internet.network import Network, small_internet

from bench.results_store import COLOURS, Skipped, figure, say, thinned, write_figure

MINUTES, QUICK_MINUTES = 120.0, 1.0
ROUNDS, QUICK_ROUNDS = 50, 2
LOOK, QUICK_LOOK = 10.0, 2.0
READER_PAUSE = 1.0
WARM_UP = 0.25  # of the whole: caches fill, tables get their first rows
MIB = 2**20
POINTS = 80  # of a line in the picture

# The first whose words are all in a process's command line, by host. "task": such a process ends with its task.
ROLES: dict[str, list[tuple[str, str]]] = {
    "operator": [
        ("aggregator (task)", "-m consilium_cli.aggregator"),
        ("SuperLink (task)", "--enable-supernode-auth"),
        ("Flower's server app (task)", "flower_internals"),
        ("API", "server api"),
        ("index", "server index"),
        ("worker", "server worker"),
        ("sponsor (task)", "server sponsor"),
        ("nginx", "nginx"),
        ("Redis", "redis-server"),
        ("PostgreSQL", "postgres"),
    ],
    "hospital": [
        ("SuperNode and relay (task)", "flower_internals relay"),
        ("hospital (task)", "hospital run"),
    ],
    "voter": [("voter", "voter run")],
    "chain": [("anvil, which is the chain", "anvil")],
}
LASTING = ("API", "index", "worker", "nginx", "Redis", "PostgreSQL", "voter")
HANDLES = (*LASTING, "hospital (task)")
OF_A_TASK = tuple(name for roles in ROLES.values() for name, _ in roles if name.endswith("(task)"))


@dataclass
class Look:
    """A moment: what each role has, its processes together; of hospitals and voters the mean of one."""

    at: float
    pss: dict[str, float]  # MiB
    handles: dict[str, float]
    threads: dict[str, float]
    disk: dict[str, float]  # MiB


@dataclass
class Told:
    """What a reader of the API was answered."""

    answers: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0


@dataclass
class Task:
    """A task, as far as it was played. Seconds are since the soak began."""

    begin: float
    number: int | None = None
    end: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)  # of its training rounds

    def row(self) -> dict[str, Any]:
        spent = sorted(self.seconds)
        return {
            "task": self.number, "from": round(self.begin), "to": round(self.end), "outcomes": dict(self.outcomes),
            "broken": self.broken, "round_s": {"median": spent[len(spent) // 2], "most": spent[-1]} if spent else None,
        }  # fmt: skip


class Stuck(Exception):
    """A round did not end within its windows."""


def measure(quick: bool) -> Iterator[dict[str, Any]]:
    """What was found so far, after each round, and at the end. Raises Skipped."""
    if missing := why_not_here():
        raise Skipped(missing)
    minutes, rounds, pause = (QUICK_MINUTES, QUICK_ROUNDS, QUICK_LOOK) if quick else (MINUTES, ROUNDS, LOOK)
    with tempfile.TemporaryDirectory(prefix="net-") as name, small_internet(Path(name)) as network:
        soak = Soak(network, 60 * minutes, rounds)
        with _meanwhile(pause, soak.look) as looking, _meanwhile(READER_PAUSE, soak.read) as reading:
            try:
                while soak.at < soak.seconds:
                    for _ in soak.play():
                        for problem in (*looking, *reading):
                            raise problem
                        yield soak.found()
            except Exception as error:
                soak.breaks(error)
                say(f"broke: {soak.broke}")
        for problem in (*looking, *reading):
            if soak.broke is None:
                soak.breaks(problem)
        yield soak.found()


class Soak:
    """Tasks on a network, and what was seen meanwhile."""

    def __init__(self, network: Network, seconds: float, rounds: int) -> None:
        """`seconds`: after so many a task is stopped, and none begun. `rounds`: of a task."""
        self._network, self.seconds, self._rounds = network, seconds, rounds
        self._began = time.monotonic()
        self.looks: list[Look] = []
        self.tasks: list[Task] = []
        self.told = Told()
        self.broke: dict[str, Any] | None = None
        self._asked = 0

    @property
    def at(self) -> float:
        return time.monotonic() - self._began

    def play(self) -> Iterator[None]:
        """A task to its end, a step at each round's end; the operator stops it when the time is over. Raises Stuck."""
        task = Task(self.at)
        self.tasks.append(task)
        play = Play(self._network, self._rounds)
        task.number = play.task
        self._take_in(task, play.first)
        yield
        stopped = False
        while not play.over:
            if self.at > self.seconds and not stopped:
                self._network.operator.operator.stop(play.task)
                stopped = True
            played = play.play()
            task.seconds.append(played.seconds)
            self._take_in(task, played)
            yield
        task.broken += play.finish()
        task.end = self.at
        say(f"task {task.number} from {task.begin:.0f} to {task.end:.0f} s: {dict(task.outcomes)}, "
            f"{task.broken or 'nothing broken'}")  # fmt: skip

    def _take_in(self, task: Task, played: Played) -> None:
        task.end = self.at
        task.outcomes[played.outcome] += 1
        task.broken += [f"task {task.number}, round {played.round}: {what}" for what in played.broken]
        if played.outcome == Outcome.PENDING.name.lower():
            raise Stuck("; ".join(played.broken))

    def look(self) -> None:
        self.looks.append(_look(self._network, self.at))

    def read(self) -> None:
        paths = ("/v1/network", "/v1/tasks", "/v1/tasks/{}", "/v1/tasks/{}/rounds", "/v1/nodes", "/ready")
        path = paths[self._asked % len(paths)].format(self._network.operator.tasks.count())
        self._asked += 1
        asked = time.monotonic()
        try:
            self._network.get(path)
            self.told.answers["200"] += 1
        except httpx.HTTPStatusError as error:
            self.told.answers[str(error.response.status_code)] += 1
        except httpx.HTTPError as error:
            self.told.answers[type(error).__name__] += 1
        self.told.slowest = max(self.told.slowest, time.monotonic() - asked)

    def breaks(self, error: Exception) -> None:
        """Keeps what broke, when, and where it stands."""
        self.broke = {"at_s": round(self.at), "what": repr(error), "down": self._network.services.down()}
        ledger = self._network.operator
        try:
            task = ledger.tasks.count()
            state = ledger.tasks.state(task)
            self.broke |= {"task": task, "round": state.round, "phase": state.phase.name.lower()}
        except Exception as unseen:  # the report is more than this line of it
            self.broke["where"] = f"the chain does not answer: {unseen!r}"

    def found(self) -> dict[str, Any]:
        services = self._network.services
        restarts = {one: services[one].starts - 1 for one in services.names()}
        looks, tasks = [*self.looks], [one.row() for one in self.tasks]
        return {
            "what": __doc__,
            "broke": self.broke,
            "minutes": round(self.at / 60, 1),
            "tasks": tasks,
            "rounds": dict(sum((one.outcomes for one in self.tasks), Counter())),
            "broken": [what for one in self.tasks for what in one.broken],
            "started_again": {one: count for one, count in restarts.items() if count and one in ("api", "worker",
                              "index", "redis", "postgres", *self._network.voters)},
            "reader": {"answers": dict(self.told.answers), "slowest_s": round(self.told.slowest, 2)},
            "growth": _growth(looks, tasks) if looks else None,
            "looks": [vars(one) for one in looks],
        }  # fmt: skip


@contextmanager
def _meanwhile(pause: float, do: Callable[[], None]) -> Iterator[list[Exception]]:
    """Does it in a thread of its own, every `pause` seconds until the context is left; with the error that ended it."""
    over, problems = threading.Event(), []

    def work() -> None:
        try:
            while not over.wait(pause):
                do()
        except Exception as error:
            problems.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield problems
    finally:
        over.set()
        thread.join()


def _look(network: Network, at: float) -> Look:
    found: dict[str, dict[str, float]] = {"pss": {}, "handles": {}, "threads": {}}
    shares = {"hospital": len(network.hospitals), "voter": len(network.voters)}
    for host in network.internet.hosts.values():
        kind = host.name.partition("-")[0]
        for process in host.processes():
            try:
                line = " ".join(process.cmdline())
                role = next((name for name, word in ROLES.get(kind, []) if word in line), None)
                if role is None:
                    continue
                share = shares.get(kind, 1)
                for what, value in (
                    ("pss", process.memory_full_info().pss / MIB),
                    ("handles", process.num_fds()),
                    ("threads", process.num_threads()),
                ):
                    found[what][role] = found[what].get(role, 0.0) + value / share
            except psutil.NoSuchProcess:
                continue
    rounded = {what: {role: round(value, 2) for role, value in by.items()} for what, by in found.items()}
    return Look(round(at, 1), disk=_disk(network, shares), **rounded)


def _disk(network: Network, shares: Mapping[str, int]) -> dict[str, float]:
    used: dict[str, float] = defaultdict(float)
    for name, disk in network.disks.items():
        kind = name.partition("-")[0]
        used[kind] += psutil.disk_usage(str(disk.folder)).used / MIB / shares.get(kind, 1)
    used["artifact store"] = sum(file.stat().st_blocks * 512 for file in network.settings.artifacts.rglob("*")) / MIB
    used["journals"] = sum(file.stat().st_size for file in network.logs().iterdir()) / MIB
    return {name: round(value, 3) for name, value in used.items()}


def _growth(looks: list[Look], tasks: list[dict[str, Any]]) -> dict[str, Any]:
    """After the warm-up. Of processes that last: per hour, by least squares. Of those of a task: how much more the
    later half of a task has than the former, on average. Of disks: per round, from the first task's end to the last
    one's, for what a task needs goes with it; and the most at any time.
    """
    late = [one for one in looks if one.at >= WARM_UP * looks[-1].at]
    grown: dict[str, Any] = {}
    for what in ("pss", "handles", "threads"):
        lasting = {}
        for role in LASTING:
            points = [(one.at / 3600, getattr(one, what)[role]) for one in late if role in getattr(one, what)]
            if len(points) > 2:
                slope = linear_regression(*zip(*points, strict=True)).slope
                lasting[role] = {"mean": round(mean(y for _, y in points), 2), "per_hour": round(slope, 2)}
        of_a_task = {}
        for role in OF_A_TASK:
            halves = [_halves(looks, what, role, one["from"], one["to"]) for one in tasks]
            known = [one for one in halves if one is not None]
            if known:
                former, latter = (mean(one[k] for one in known) for k in (0, 1))
                of_a_task[role] = {"mean": round((former + latter) / 2, 2), "later_half": round(latter - former, 2)}
        grown[what] = {"lasting": lasting, "of_a_task": of_a_task}
    ends = [next((look for look in looks if look.at >= one["from"]), looks[-1]) for one in tasks[1:]]
    first, last, between = (ends[0], ends[-1], tasks[1:-1]) if len(ends) > 1 else (looks[0], looks[-1], tasks)
    rounds = sum(sum(one["outcomes"].values()) for one in between) or 1
    grown["disk"] = {
        name: {
            "most": max(one.disk[name] for one in looks),
            "kib_per_round": round(1024 * (last.disk[name] - first.disk[name]) / rounds, 2),
        }
        for name in last.disk
    }
    return grown


def _halves(looks: list[Look], what: str, role: str, begin: float, end: float) -> tuple[float, float] | None:
    """Means of the second and the last third of a task: in the first, processes start."""
    third = (end - begin) / 3
    parts = [
        [getattr(one, what)[role] for one in looks if low <= one.at < low + third and role in getattr(one, what)]
        for low in (begin + third, begin + 2 * third)
    ]
    return (mean(parts[0]), mean(parts[1])) if all(parts) else None


def brief(result: Mapping[str, Any]) -> dict[str, Any]:
    """The looks as series of means of a few neighbours each: `at` in minutes, then by what was looked at, by role."""
    looks = result["looks"]
    digits = {"pss": 1, "handles": 1, "threads": 1, "disk": 2}
    kept = {
        "pss": (*LASTING, *OF_A_TASK),
        "handles": HANDLES,
        "threads": LASTING,
        "disk": looks[-1]["disk"] if looks else (),
    }
    series: dict[str, Any] = {"at": thinned([one["at"] / 60 for one in looks], POINTS, 2)}
    for what, names in kept.items():
        series[what] = {name: thinned([one[what].get(name) for one in looks], POINTS, digits[what]) for name in names}
    return {**result, "looks": series}


def plot(result: dict[str, Any], folder: Path) -> None:
    """Of whatever was looked at, from the brief result."""
    looks = result["looks"]
    minutes = looks["at"]
    if not minutes:
        return
    far_apart = ("plain", "committing", "publishing", "drawing", "scoring", "uploading", "revealing")
    shades = [*(COLOURS[name] for name in far_apart), "#30343b", COLOURS["forming"], COLOURS["joining"]]
    drawn, axes = figure(10.5, 7.5, columns=2, rows=2)
    of_a_task = [role for role in looks["pss"] if role not in LASTING]  # the roles of when it was measured
    for axis, roles, title in (
        (axes[0], LASTING, "Memory of processes that last, MiB"),
        (axes[1], of_a_task, "Memory of processes of a task, MiB"),
    ):
        for shade, role in zip(shades, roles, strict=False):
            axis.plot(minutes, looks["pss"][role], color=shade, label=role, linewidth=1)
        axis.set_title(title, loc="left")
        axis.set_ylim(bottom=0)
    for shade, role in zip(shades, HANDLES, strict=False):
        axes[2].plot(minutes, looks["handles"][role], color=shade, label=role, linewidth=1)
    axes[2].set_title("Open handles", loc="left")
    axes[2].set_ylim(bottom=0)
    for shade, name in zip(shades, looks["disk"], strict=False):
        axes[3].plot(minutes, looks["disk"][name], color=shade, label=name, linewidth=1)
    axes[3].set_title("On disks, MiB", loc="left")
    for axis in axes:
        axis.set_xlabel("minutes")
        axis.legend(frameon=False, fontsize=7, ncols=2)
    write_figure(folder, "soak", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [
        ("rounds", f"{result['rounds']} in {result['minutes']:.0f} minutes, {len(result['tasks'])} tasks"),
        ("what did not hold", "; ".join(result["broken"]) or "nothing"),
    ]
    if broke := result["broke"]:
        rows.append(("what ended it", ", ".join(f"{name} {value}" for name, value in broke.items())))
    growth = result["growth"]
    if growth is None:
        return rows
    for role, one in growth["pss"]["lasting"].items():
        handles = growth["handles"]["lasting"][role]
        rows.append(
            (role, f"{one['mean']:.0f} MiB, {one['per_hour']:+.1f} an hour; {handles['mean']:.0f} handles,"
             f" {handles['per_hour']:+.1f} an hour")
        )  # fmt: skip
    for role, one in growth["pss"]["of_a_task"].items():
        rows.append((role, f"{one['mean']:.0f} MiB, {one['later_half']:+.1f} in a task's last third"))
    for name, one in growth["disk"].items():
        rows.append((f"disk: {name}", f"at most {one['most']:.1f} MiB, {one['kib_per_round']:+.1f} KiB a round"))
    return rows
