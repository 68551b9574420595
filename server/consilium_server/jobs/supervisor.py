"""The supervisor of this account's aggregators: a process and a folder for each task.

home/tls/             the authority and the certificate of all SuperLinks here
home/tasks/TASK_KEY/  node.toml   its settings          journal   its log
                      pid         of the process,       lock      held while it runs
                                  and when it started

An aggregator survives a worker that is killed, and the next worker finds it running. All state is in the folder, and
none in the memory of a worker.

Aggregators and SuperLinks are forked from one process that has their libraries loaded (`consilium_core.starter`): they
share its pages, so that hundreds fit into a machine.

Workers with a PostgreSQL database share their account's tasks with those of other machines (`aggregator.sharing`): one
that is lost leaves its tasks to the others.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import tomli_w
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase
from consilium_chain.settings import read_settings
from consilium_core.children import child_environment, started_at
from consilium_core.errors import ConfigInvalid, StarterLost
from consilium_core.locks import in_turn, is_locked
from consilium_core.logs import emit
from consilium_core.private_files import write_private_file
from consilium_core.starter import Starter
from sqlalchemy import Engine

from consilium_server.aggregator.sharing import holder, known_owner, owner_of, port_of, take
from consilium_server.certificates import ensure_certificates
from consilium_server.config import (
    POSTGRESQL,
    SUPERLINK_DATABASE,
    AggregatorSettings,
    KeyFiles,
    WorkerSettings,
)
from consilium_server.errors import ServerError
from consilium_server.jobs.processes import STARTED, Started, last_error
from consilium_server.jobs.store import Ended

LASTING = 60.0  # seconds after which a running aggregator counts as stable
LOOK_AGAIN = 10  # watches from one look at an aggregator that runs to the next
GRACE = 25.0  # seconds in which aggregators must end by themselves
HIGHEST_PORT = 65_535
TASKS = "tasks"  # folder in a worker's home
TLS = "tls"  # folder in a worker's home, and formerly in each task's
SETTINGS = "node.toml"
COMMAND = "consilium_cli.aggregator"  # by name, because this room must not import it
# Everything that an aggregator and its SuperLink load while they start, and what both look up.
PRELOADED = (
    COMMAND, "consilium_server.aggregator.node", "consilium_server.flower.bounded_superlink", "httpcore", "uvloop",
    "uvicorn.lifespan.on", "uvicorn.loops.auto", "uvicorn.protocols.http.auto", "uvicorn.protocols.websockets.auto",
    "anyio._backends._asyncio", "consilium_chain.rpc.cell_proofs", "consilium_chain.rpc.abi:load_artifacts",
    "consilium_zk.kzg:setup",
)  # fmt: skip


def task_folder(home: Path, ledger: Ledger, task: int) -> Path:
    """Folder of a task's aggregator in a worker's `home`. It has `SETTINGS` after the aggregator's first start."""
    return home / TASKS / ledger.folder_name(task)


class Supervisor:
    """`keys`: of the ledger's account. `is_over`: says if a task has ended, by the index. `database`: the worker's."""

    def __init__(
        self,
        settings: WorkerSettings,
        keys: KeyFiles,
        ledger: Ledger,
        is_over: Callable[[int], bool],
        database: Engine,
    ) -> None:
        """Makes the authority, so that this machine's proxy can trust it. Raises ServerError (CertificatesUnusable)."""
        self._settings, self._keys, self._ledger, self._is_over = settings, keys, ledger, is_over
        home = settings.home.absolute()
        self._tasks, self._tls = home / TASKS, home / TLS
        self._shared = database if settings.url.startswith(POSTGRESQL) else None
        self._starter: Starter | None = None
        ensure_certificates(self._tls)

    def supervise(self, task: int) -> Ended:
        """Starts this task's aggregator unless it runs. Raises ServerError (AggregatorEnded, MachineFull)."""
        with in_turn(self._tasks / "lock"):  # one process at a time chooses a port
            return self._supervise(task, self._folder(task))

    def _supervise(self, task: int, folder: Path) -> Ended:
        started = Started(folder)
        if started.runs:
            return Ended(lasts=started.seconds > LASTING)
        if is_locked(folder / "lock"):  # by an aggregator that no worker started
            return Ended()
        elsewhere = None if self._shared is None else holder(self._shared, folder.name)
        if elsewhere is not None and elsewhere.owner != known_owner(folder):
            started.clear_away()
            return Ended(lasts=elsewhere.seconds > LASTING)
        if self._ledger.tasks.state(task).phase is Phase.ENDED and not (folder / SUPERLINK_DATABASE).exists():
            return Ended()
        if started.pid is not None:
            started.clear_away()
            journal = folder / "journal"
            cause = last_error(journal) or "without a named error"
            raise ServerError("AggregatorEnded", task=task, cause=cause, journal=str(journal))
        if (most := self._settings.max_aggregators) is not None and self._running() >= most:
            raise ServerError("MachineFull", task=task, most=most)
        port = self._port(task, folder)
        if self._shared is None or take(self._shared, folder.name, port, owner_of(folder)):
            self._start(task, folder, port)
        return Ended(lasts=False)

    def unfinished(self) -> set[int]:
        """Tasks whose aggregator has not released its bond and left, as far as this machine has begun with them."""
        files = self._tasks.glob(f"*/{SUPERLINK_DATABASE}")
        names = {file.parent.name: file.parent.name.rpartition("-")[2] for file in files}
        tasks = {task_key: int(task) for task_key, task in names.items() if task.isdecimal()}
        return {task for task_key, task in tasks.items() if task_key == self._ledger.folder_name(task)}

    def due(self, tasks: Iterable[int], looked: Mapping[str, float]) -> list[int]:
        """Tasks to supervise now, those first that waited longest. `looked`: times of the last run, by task.

        Of hundreds of tasks most run: these get a look at each tenth watch.
        """
        at = {task: looked.get(str(task), 0.0) for task in tasks}
        late = time.time() - LOOK_AGAIN * self._settings.watch_seconds
        due = [task for task in at if at[task] < late or not Started(self._folder(task)).runs]
        return sorted(due, key=at.__getitem__)

    def end_all(self) -> None:
        """Ends every aggregator that workers of this home started."""
        running = [one for one in map(Started, sorted(self._tasks.glob("*/"))) if one.runs]
        for one in running:
            one.ask_to_end()
        end = time.monotonic() + GRACE
        while any(one.runs for one in running) and time.monotonic() < end:
            time.sleep(0.1)
        for one in running:
            one.clear_away()
            emit("aggregator-ended", folder=one.folder.name)
        if self._starter is not None:
            self._starter.close()

    def _start(self, task: int, folder: Path, port: int) -> None:
        settings = self._written(task, port)
        config = folder / SETTINGS
        write_private_file(config, tomli_w.dumps(settings))
        with open(folder / "journal", "ab", opener=_private) as journal:
            journal.write(json.dumps({"at": round(time.time(), 3), "event": STARTED}).encode() + b"\n")
            journal.flush()
            pid = self._forked(str(config), journal, f"aggregator-{task}")
        write_private_file(folder / "pid", f"{pid} {started_at(pid)}")
        emit("aggregator-started", pid=pid, superlink_port=settings["superlink_port"])

    def _running(self) -> int:
        return sum(Started(folder).runs for folder in self._tasks.glob("*/"))

    def _forked(self, config: str, journal: IO[bytes], name: str) -> int:
        """The number of a process that lives on without this one. Raises StarterLost: the next call has another."""
        if self._starter is None:
            self._starter = Starter(self._tasks, PRELOADED)
        try:
            child = self._starter.start([COMMAND, config], child_environment(), journal, journal, name, True)
        except StarterLost:
            self._starter.close()
            self._starter = None
            raise
        if child.stdin is not None:
            child.stdin.close()
        return child.pid

    def _written(self, task: int, port: int) -> dict[str, Any]:
        """An aggregator's settings for TOML. Paths are absolute, because it runs in another folder."""
        own, folder = self._settings, self._folder(task)
        shared = {} if self._shared is None else {"database_url": own.url}
        return {
            "home": str(folder),
            "chain_url": own.chain_url,
            "deployment": str(own.deployment.absolute()),
            "artifacts": [str(one.absolute() if isinstance(one, Path) else one) for one in own.artifacts],
            "keystore": str(self._keys.keystore.absolute()),
            "password_file": str(self._keys.password_file.absolute()),
            "drand_relays": list(own.drand_relays),
            "task": task,
            "superlink_port": port,
            "tls": str(folder / TLS if (folder / TLS).exists() else self._tls),
            **shared,
            **({} if own.tracing is None else {"tracing": own.tracing.written()}),
        }

    def _folder(self, task: int) -> Path:
        return task_folder(self._settings.home.absolute(), self._ledger, task)

    def _port(self, task: int, folder: Path) -> int:
        """The task's former port, which proxies know, or else the lowest free one. Raises ConfigInvalid."""
        if self._shared is not None:
            return port_of(self._shared, folder.name, lambda others: self._chosen_port(task, folder, others))
        return self._chosen_port(task, folder, {})

    def _chosen_port(self, task: int, folder: Path, others: Mapping[str, int]) -> int:
        """`others`: ports of the account's other tasks, by their folders' names, on any machine."""
        if (folder / SETTINGS).exists():
            return read_settings(folder / SETTINGS, AggregatorSettings).superlink_port
        taken = {port for task_key, port in others.items() if not self._is_free(task_key)}
        for config in self._tasks.glob(f"*/{SETTINGS}"):
            if not self._is_free(config.parent.name) or is_locked(config.parent / "lock"):
                taken.add(read_settings(config, AggregatorSettings).superlink_port)
        first = self._settings.first_superlink_port
        free = next((port for port in range(first, HIGHEST_PORT + 1) if port not in taken), None)
        if free is None:
            raise ConfigInvalid(
                f"no port from {first} to {HIGHEST_PORT} is free for task {task}: lower first_superlink_port"
            )
        return free

    def _is_free(self, task_key: str) -> bool:
        """True if a folder's task is one of this deployment that has ended."""
        task = task_key.rpartition("-")[2]
        return task.isdecimal() and task_key == self._folder(int(task)).name and self._is_over(int(task))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
