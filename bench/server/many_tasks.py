"""The cost of tasks to their operator: an index of ten thousand tasks, and a worker with hundreds of live ones.

The index is made up (`seeded_index.py`). The live tasks are real ones on a local chain with a block in two seconds.
Each has its aggregator and its SuperLink, and waits for hospitals. They are measured twice: with processes that each
load their own libraries, and forked from one that has loaded them, as the worker does.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil
from chain_driver import STAKE, LocalChain
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Role
from consilium_chain.rpc.local_node import free_ports
from consilium_chain.tasks.proposal import task_params as params_of
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_lab.demo.datasets import deal_wdbc
from consilium_lab.demo.task_file import TaskSettings, task_toml
from consilium_server.database.engine import open_database, reading
from consilium_server.jobs.ticking import open_tasks
from worker_driver import Worker, until

from bench.process_watch import pss_mib
from bench.results_store import COLOURS, figure, say, spread, write_figure
from bench.server.dashboard import serving
from bench.server.seeded_index import NAME, Invented, Size, write

ARMS = {"anew": "each process loads its libraries", "forked": "forked from one that has loaded them"}
LIVE = {"anew": (10, 40), "forked": (10, 100, 300)}
QUICK_LIVE = {"anew": (2,), "forked": (2, 4)}
INDEXED, QUICK_INDEXED = (1_000, 10_000), (20, 40)
BLOCK = 2  # seconds
SETTLED, WATCHED = 20.0, 60.0  # seconds: after the last task was joined, and of processors and handles
JOINED = 3_600.0
TRIES = 20
WINDOWS = dict.fromkeys(("join", "commit", "upload", "publish", "score", "reveal"), 10**5)  # seconds
ASKED = {"network": "/v1/network", "tasks": "/v1/tasks", "nodes": "/v1/nodes?role=hospital"}
# The worker of the arm `anew`: as it was before it forked.
ANEW = """
import subprocess, sys
from consilium_core.children import child_environment
from consilium_server.jobs.supervisor import COMMAND, Supervisor
def start(self, config, journal, name):
    command = [sys.executable, "-m", COMMAND, config]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=journal, stderr=journal,
                            env=child_environment(), start_new_session=True).pid
Supervisor._forked = start
"""


def measure(quick: bool) -> Iterator[dict[str, Any]]:
    found: dict[str, Any] = {
        "what": "tasks in the index, and live tasks of one worker, with an aggregator and a SuperLink each, that wait"
        f" for hospitals; blocks of {BLOCK} s; memory with shared pages by parts (PSS), of all the worker's processes;"
        f" processors over {WATCHED:.0f} s once nothing happens",
        "index": [],
        "live": [],
    }
    with tempfile.TemporaryDirectory(prefix="bench-") as name, LocalChain() as chain:
        for tasks in QUICK_INDEXED if quick else INDEXED:
            folder = Path(name) / f"index-{tasks}"
            folder.mkdir()
            found["index"].append(_indexed(chain, folder, tasks))
            yield found
        for arm, counts in (QUICK_LIVE if quick else LIVE).items():
            for count in counts:
                folder = Path(name) / f"{arm}-{count}"
                found["live"].append(_live(chain, folder, arm, count, 5.0 if quick else WATCHED))
                yield found


# The index


def _indexed(chain: LocalChain, folder: Path, tasks: int) -> dict[str, Any]:
    """Disk, memory of the API after its first pages, and the times of its questions and the worker's."""
    say(f"an index of {tasks:,} tasks")
    path = folder / "index.sqlite"
    url = f"sqlite:///{path}"
    text = task_toml(deal_wdbc(3, 3, 0), TaskSettings(4, 1)).replace('name = "', f'name = "{NAME} ', 1)
    size = Size(tasks=tasks, nodes=min(1_000, 10 * tasks), delegations=1_000, running=min(300, tasks // 2))
    events = write(Invented(chain.deployment, text, size), url)
    database = open_database(url)
    with reading(database) as connection:
        watched = [_ms(lambda: open_tasks(connection)) for _ in range(TRIES)]
    database.dispose()
    with serving(folder, chain, url) as api, httpx.Client(base_url=api, timeout=60) as client:
        asked = {name: [_ms(partial(_get, client, asks)) for _ in range(TRIES)] for name, asks in ASKED.items()}
        memory = sum(pss_mib(one) for one in _tree() if "api" in one.cmdline())
    return {
        "tasks": tasks, "events": events, "disk_bytes": path.stat().st_size, "api_pss_mib": round(memory, 1),
        "open_tasks_ms": spread(watched), **{f"{name}_ms": spread(times) for name, times in asked.items()},
    }  # fmt: skip


def _get(client: httpx.Client, path: str) -> None:
    client.get(path).raise_for_status()


def _ms(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return 1_000 * (time.perf_counter() - started)


# Live tasks


def _live(chain: LocalChain, folder: Path, arm: str, count: int, watched: float) -> dict[str, Any]:
    """All tasks are there when the worker starts, as after the machine's restart."""
    say(f"{count} live tasks, {ARMS[arm]}")
    account = chain.funded()
    account.staking.stake(Role.AGGREGATOR, STAKE)
    tasks = [_proposed(chain, folder, account, f"{arm} {at} of {count}") for at in range(count)]
    chain.rpc("evm_setAutomine", False)
    chain.rpc("evm_setIntervalMining", BLOCK)
    settings = {"artifacts": [str(folder / "artifacts")], "first_superlink_port": free_ports(count)}
    started = time.monotonic()
    with Worker(chain, folder, account, ANEW if arm == "anew" else "", watch_seconds=3.0, **settings) as worker:
        for task in tasks:
            until(partial(_waits, worker, chain, task), JOINED)
        joined = time.monotonic() - started
        time.sleep(SETTLED)
        cost = _cost(worker, watched)
        worker.end()
    chain.rpc("evm_setIntervalMining", 0)
    chain.rpc("evm_setAutomine", True)
    return {"arm": arm, "tasks": count, "joined_s": round(joined), **cost}


def _proposed(chain: LocalChain, folder: Path, account: Ledger, name: str) -> int:
    text = task_toml(deal_wdbc(3, 3, 0), TaskSettings(4, 1, windows=WINDOWS))
    text = re.sub(r"(?m)^name = .*$", f'name = "{name}"', text, count=1)
    digest = ArtifactStore(folder / "artifacts").put_file(text.encode())
    return chain.treasury.operator.propose(params_of(parse_task_spec(text.encode()), digest, account.address))


def _waits(worker: Worker, chain: LocalChain, task: int) -> bool:
    """True once its aggregator has joined, and so its SuperLink is up."""
    journal = worker.home / "tasks" / chain.treasury.folder_name(task) / "journal"
    return journal.exists() and b'"event": "joined"' in journal.read_bytes()


def _cost(worker: Worker, watched: float) -> dict[str, Any]:
    before, started = _spent(), time.monotonic()
    time.sleep(watched)
    spent, took = _spent(), time.monotonic() - started
    processes = _tree()
    tasks = worker.home / "tasks"
    return {
        "pss_mib": round(sum(pss_mib(one) for one in processes), 1),
        "processes": len(processes),
        "threads": sum(one.num_threads() for one in processes),
        "handles": sum(one.num_fds() for one in processes),
        "most_handles_of_one": max(one.num_fds() for one in processes),
        "disk_bytes": sum(file.stat().st_size for file in tasks.rglob("*") if file.is_file()),
        "processors": round((spent - before) / took, 3),
    }


def _tree() -> list[psutil.Process]:
    """All processes of Consilium below this one, without the chain."""
    return [one for one in psutil.Process().children(recursive=True) if "python" in one.exe()]


def _spent() -> float:
    return sum(sum(one.cpu_times()[:2]) for one in _tree())


def plot(result: dict[str, Any], folder: Path) -> None:
    drawn, axes = figure(9, 3.2, columns=2)
    for arm, colour in (("anew", COLOURS["plain"]), ("forked", COLOURS["committing"])):
        rows = [row for row in result["live"] if row["arm"] == arm]
        counts = [row["tasks"] for row in rows]
        axes[0].plot(counts, [row["pss_mib"] / 1024 for row in rows], "o-", color=colour, label=ARMS[arm])
        axes[1].plot(counts, [row["processors"] for row in rows], "o-", color=colour)
    for one, title in zip(axes, ("memory, GiB", "processors while nothing happens"), strict=True):
        one.set_title(title, loc="left")
        one.set_xlabel("live tasks")
        one.set_ylim(0)
    axes[0].legend(frameon=False, fontsize=9)
    write_figure(folder, "many_tasks", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    live = [
        (f"{row['tasks']} live tasks, {row['arm']}", f"{row['pss_mib'] / row['tasks']:.0f} MiB a task")
        for row in result["live"]
    ]
    return live + [
        (f"{row['tasks']:,} indexed tasks", f"{row['disk_bytes'] / row['tasks'] / 1024:.1f} KiB a task")
        for row in result["index"]
    ]
