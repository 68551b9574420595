"""Two hours of rounds on the small internet of `tests/internet`: what grows, and what does not.

One operator, four hospitals, three voters, each on a host of its own, with TLS, PostgreSQL and Redis; private rounds
one after the other, without a pause, in tasks of 50 rounds; meanwhile somebody reads the API through the proxy. Every
ten seconds: memory (PSS, what a process costs), open handles and threads of every process, and what is on each disk.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import linear_regression, mean
from typing import Any

import httpx
import psutil
from results_store import COLOURS, Skipped, figure, say, write_figure

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from internet.faults import Play
from internet.hosts import why_not_here
from internet.network import Network, small_internet

MINUTES, QUICK_MINUTES = 120.0, 1.0
ROUNDS, QUICK_ROUNDS = 50, 2
LOOK, QUICK_LOOK = 10.0, 2.0
READER_PAUSE = 1.0
WARM_UP = 0.25  # of the whole: caches fill, tables get their first rows
MIB = 2**20

# The first whose words are all in a process's command line, by host. "task": such a process ends with its task.
ROLES: dict[str, list[tuple[str, str]]] = {
    "operator": [
        ("aggregator (task)", "server run --config"),
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
        ("SuperNode (task)", "flower_internals supernode"),
        ("relay (task)", "flower_internals executor"),
        ("hospital (task)", "hospital run"),
    ],
    "voter": [("voter", "voter run")],
    "chain": [("anvil, which is the chain", "anvil")],
}
LASTING = ("API", "index", "worker", "nginx", "Redis", "PostgreSQL", "voter")
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


def measure(quick: bool) -> dict[str, Any]:
    if missing := why_not_here():
        raise Skipped(missing)
    minutes, rounds, look = (QUICK_MINUTES, QUICK_ROUNDS, QUICK_LOOK) if quick else (MINUTES, ROUNDS, LOOK)
    looks: list[Look] = []
    tasks: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="net-") as name, small_internet(Path(name)) as network:
        began = time.monotonic()
        with _watching(network, looks, began, look) as problems, _reading(network) as told:
            while not problems and time.monotonic() - began < 60 * minutes:
                tasks.append(_task(network, rounds, began, minutes))
        say(f"the chain has {network.operator.connection.block_number()} blocks")
        if problems:
            raise RuntimeError(f"not looked at: {problems[0]}")
        restarts = {one: network.services[one].starts - 1 for one in network.services.names()}
        unmade = network.books().difference
    return {
        "what": __doc__,
        "minutes": round((looks[-1].at - looks[0].at) / 60, 1),
        "tasks": tasks,
        "rounds": dict(sum((Counter(one["outcomes"]) for one in tasks), Counter())),
        "broken": [what for one in tasks for what in one["broken"]],
        "tokens_that_are_nowhere": unmade,
        "started_again": {one: count for one, count in restarts.items() if count and one in ("api", "worker", "index",
                          "redis", "postgres", *network.voters)},
        "reader": {"answers": dict(told.answers), "slowest_s": round(told.slowest, 2)},
        "growth": _growth(looks, tasks),
        "looks": [vars(one) for one in looks],
    }  # fmt: skip


def _task(network: Network, rounds: int, began: float, minutes: float) -> dict[str, Any]:
    """Plays a task to its end; the operator stops it when the time is over."""
    start = time.monotonic() - began
    play = Play(network, rounds)
    outcomes, broken, seconds = Counter([play.first.outcome]), list(play.first.broken), []
    while not play.over:
        played = play.play()
        outcomes[played.outcome] += 1
        broken += [f"task {play.task}, round {played.round}: {what}" for what in played.broken]
        seconds.append(played.seconds)
        if time.monotonic() - began > 60 * minutes and not play.over:
            network.operator.stop(play.task)
    broken += play.finish()
    end = time.monotonic() - began
    say(f"task {play.task} from {start:.0f} to {end:.0f} s: {dict(outcomes)}, {broken or 'nothing broken'}")
    return {
        "task": play.task, "from": round(start), "to": round(end), "outcomes": dict(outcomes), "broken": broken,
        "round_s": {"median": sorted(seconds)[len(seconds) // 2], "most": max(seconds)} if seconds else None,
    }  # fmt: skip


@contextmanager
def _watching(network: Network, looks: list[Look], began: float, pause: float) -> Iterator[list[BaseException]]:
    over, problems = threading.Event(), []

    def watch() -> None:
        try:
            while not over.wait(pause):
                looks.append(_look(network, time.monotonic() - began))
        except BaseException as error:
            problems.append(error)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield problems
    finally:
        over.set()
        thread.join()


@contextmanager
def _reading(network: Network) -> Iterator[Told]:
    over, told = threading.Event(), Told()

    def read() -> None:
        paths = ("/v1/network", "/v1/tasks", "/v1/tasks/{}", "/v1/tasks/{}/rounds", "/v1/nodes", "/ready")
        number = 0
        while not over.wait(READER_PAUSE):
            tasks = network.operator.task_count()
            path = paths[number % len(paths)].format(tasks)
            number += 1
            asked = time.monotonic()
            try:
                network.get(path)
                told.answers["200"] += 1
            except httpx.HTTPStatusError as error:
                told.answers[str(error.response.status_code)] += 1
            except httpx.HTTPError as error:
                told.answers[type(error).__name__] += 1
            told.slowest = max(told.slowest, time.monotonic() - asked)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield told
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
    used["artifact store"] = sum(file.stat().st_blocks * 512 for file in network.place.artifacts.rglob("*")) / MIB
    used["journals"] = sum(file.stat().st_size for file in network.logs().iterdir()) / MIB
    return {name: round(value, 3) for name, value in used.items()}


def _growth(looks: list[Look], tasks: list[dict[str, Any]]) -> dict[str, Any]:
    """After the warm-up. Of processes that last: per hour, by least squares. Of those of a task: how much more the
    later half of a task has than the former, on average. Of disks: per round.
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
    rounds = sum(sum(one["outcomes"].values()) for one in tasks if one["from"] >= late[0].at) or 1
    grown["disk"] = {
        name: {
            "last": late[-1].disk[name],
            "kib_per_round": round(1024 * (late[-1].disk[name] - late[0].disk[name]) / rounds, 2),
        }
        for name in late[-1].disk
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


def plot(result: dict[str, Any], folder: Path) -> None:
    looks = result["looks"]
    minutes = [one["at"] / 60 for one in looks]
    shades = [*COLOURS.values()]
    drawn, axes = figure(10.5, 7.5, columns=2, rows=2)
    for axis, roles, title in (
        (axes[0], LASTING, "Memory of processes that last, MiB"),
        (axes[1], OF_A_TASK, "Memory of processes of a task, MiB"),
    ):
        for shade, role in zip(shades, roles, strict=False):
            axis.plot(minutes, [one["pss"].get(role) for one in looks], color=shade, label=role, linewidth=1)
        axis.set_title(title, loc="left")
        axis.set_ylim(bottom=0)
    for shade, role in zip(shades, (*LASTING, "hospital (task)"), strict=False):
        axes[2].plot(minutes, [one["handles"].get(role) for one in looks], color=shade, label=role, linewidth=1)
    axes[2].set_title("Open handles", loc="left")
    axes[2].set_ylim(bottom=0)
    for shade, name in zip(shades, looks[-1]["disk"], strict=False):
        axes[3].plot(minutes, [one["disk"].get(name) for one in looks], color=shade, label=name, linewidth=1)
    axes[3].set_title("On disks, MiB", loc="left")
    for axis in axes:
        axis.set_xlabel("minutes")
        axis.legend(frameon=False, fontsize=7, ncols=2)
    write_figure(folder, "soak", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    growth = result["growth"]
    rows = [
        ("rounds", f"{result['rounds']} in {result['minutes']:.0f} minutes, {len(result['tasks'])} tasks"),
        ("what did not hold", "; ".join(result["broken"]) or "nothing"),
    ]
    for role, one in growth["pss"]["lasting"].items():
        handles = growth["handles"]["lasting"][role]
        rows.append(
            (role, f"{one['mean']:.0f} MiB, {one['per_hour']:+.1f} an hour; {handles['mean']:.0f} handles,"
             f" {handles['per_hour']:+.1f} an hour")
        )  # fmt: skip
    for role, one in growth["pss"]["of_a_task"].items():
        rows.append((role, f"{one['mean']:.0f} MiB, {one['later_half']:+.1f} in a task's last third"))
    for name, one in growth["disk"].items():
        rows.append((f"disk: {name}", f"{one['last']:.1f} MiB, {one['kib_per_round']:+.1f} KiB a round"))
    return rows
