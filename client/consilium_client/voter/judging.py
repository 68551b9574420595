"""A voter's process: it watches all tasks, joins those that fit its policy and data, and judges them in parallel until
it is stopped.

A crash loses nothing: the chain lists its tasks, and its unrevealed ballots are on disk.
"""

from __future__ import annotations

import threading
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass

from consilium_chain.artifacts.store import CACHE, ArtifactStore
from consilium_chain.errors import ChainUnreachable, Refused, TransactionRejected, name_of
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Role
from consilium_chain.rounds.machine import Step, has_ended, is_joining
from consilium_chain.rpc.retry import LONGEST_WAIT, retry_policy
from consilium_core.logs import about, emit

from consilium_client.errors import ConsentError
from consilium_client.evaluation.handing_in import hand_in
from consilium_client.home import VoterHome, running_alone
from consilium_client.membership import ROUND_ERRORS
from consilium_client.monitoring.serving import Watched, watched
from consilium_client.task import load_task
from consilium_client.voter.node import VoterNode
from consilium_client.voter.registration import has_key

FIRST_WAIT = 2.0  # seconds after a fault, the next time twice as many
POLL_ANYWAY = 15.0  # seconds without a block
TRY_AGAIN = 60.0  # seconds until the next try to join a task: files arrive, and stake gets free


class _TaskThread:
    """A task's node in its own thread, because judging takes long, and other tasks have deadlines."""

    def __init__(self, node: VoterNode) -> None:
        self._node, self._due = node, threading.Event()
        self.ended = False
        self.fault: Exception | None = None
        # A daemon: a stopped process does not wait for it.
        self.thread = threading.Thread(target=self._run, name=f"task-{node.number}", daemon=True)
        self.thread.start()

    @property
    def index(self) -> int:
        return self._node.index

    def look(self) -> None:
        """Makes the node poll, now or after its current work."""
        self._due.set()

    def _run(self) -> None:
        wait = FIRST_WAIT
        with about(task=self._node.number):
            while not self.ended:
                self._due.wait()
                self._due.clear()
                try:
                    if Step.STOP in self._node.poll() and self._node.leave():
                        hand_in(self._node.settings, self._node.ledger, self._node.store, self._node.number)
                        self.ended = True
                    wait = FIRST_WAIT
                except ChainUnreachable:
                    continue  # the main thread, which waits for blocks, logs this and wakes the node again
                except Exception as fault:  # an unknown fault: other tasks go on, and a ballot may have to be revealed
                    self.fault = fault
                    traceback.print_exc()
                    emit("task-failed", error=name_of(fault))
                    time.sleep(wait)
                    wait = min(2 * wait, LONGEST_WAIT)


@dataclass
class _Aside:
    """An open task that was not joined."""

    why: str = ""
    try_at: float = 0.0  # by the monotonic clock


class Voter:
    def __init__(self, home: VoterHome, kind: type[VoterNode] = VoterNode) -> None:
        self.home, self._kind = home, kind
        self.ledger: Ledger = home.settings.connect()
        self.store = ArtifactStore(home.settings.artifacts, passing=home.folder / CACHE)
        self._judges: dict[int, _TaskThread] = {}
        self._aside: dict[int, _Aside] = {}
        self._seen = 0  # so many tasks, from the first on
        self._block = 0

    def run(self) -> None:
        """Judges until the process is stopped. Raises NotRegistered, AlreadyRunning."""
        with running_alone(self.home.folder), watched(self.home.settings.metrics, self._watched):
            retry_policy()(self._begin)
            while True:
                retry_policy()(self._poll)

    def run_one(self, task: int) -> None:
        """Judges one task until it ends. Raises also the errors of joining it."""
        with running_alone(self.home.folder), watched(self.home.settings.metrics, self._watched):
            self._require_registered()
            if task not in self.ledger.record.tasks_of_voter(self.ledger.address):
                self._require_allowed(task)
            with about(task=task):
                self._start(task)
            judge = self._judges[task]
            while not judge.ended:
                if judge.fault is not None:
                    raise judge.fault
                retry_policy()(self._look)

    @property
    def _watched(self) -> Watched:
        def seats() -> dict[int, int]:
            return {task: judge.index for task, judge in list(self._judges.items()) if not judge.ended}

        return Watched(Role.VOTER, self.home.folder, self.ledger, seats)

    def _begin(self) -> None:
        """Collects vested rewards, and continues with its tasks."""
        self._require_registered()
        with suppress(Refused, TransactionRejected):  # `consilium voter claim` shows the reason
            self.ledger.staking.claim(Role.VOTER)
        for task in self.ledger.record.tasks_of_voter(self.ledger.address):
            if task not in self._judges and not self._is_over(task):
                with about(task=task):
                    self._start(task)
        emit("watching", tasks=self.ledger.tasks.count(), judged=len(self._judges))

    def _poll(self) -> None:
        for task in range(self._seen + 1, self.ledger.snapshots.task_count() + 1):
            if task not in self._judges:
                self._aside[task] = _Aside()
            self._seen = task
        for task, aside in list(self._aside.items()):
            if aside.try_at <= time.monotonic() and not self.home.paused:
                with about(task=task):
                    self._consider(task, aside)
        self._look()

    def _look(self) -> None:
        """Makes each task's node poll, and waits for the next block."""
        for task, judge in list(self._judges.items()):
            if judge.ended:
                del self._judges[task]
            judge.look()
        self._block = self.ledger.connection.blocks.wait_after(self._block, POLL_ANYWAY)

    def _consider(self, task: int, aside: _Aside) -> None:
        """Joins, or logs once why not."""
        if not is_joining(self.ledger.tasks.state(task)):
            del self._aside[task]
            return
        try:
            self._require_allowed(task)
            self._start(task)
            del self._aside[task]
        except ChainUnreachable:
            raise
        except ROUND_ERRORS as error:
            why = name_of(error)
            if why != aside.why:
                emit("set-aside", error=why)
            aside.why, aside.try_at = why, time.monotonic() + TRY_AGAIN

    def _require_allowed(self, task: int) -> None:
        """Raises PolicyInvalid, NotAllowed, TooManyTasks, and the errors of reading the task."""
        policy = self.home.policy()
        policy.require(load_task(self.ledger, self.store, task).spec, self.ledger.tasks.state(task).operator)
        if len(self._judges) >= policy.max_tasks:
            raise ConsentError("TooManyTasks", task=task, at_most=policy.max_tasks)

    def _start(self, task: int) -> None:
        node = self._kind(self.home.node_settings(task, self.ledger.folder_name(task)), self.ledger)
        node.join()
        self._judges[task] = _TaskThread(node)

    def _is_over(self, task: int) -> bool:
        """True if it has ended, and this account's bond is free again."""
        bonds = (voter.bond for voter in self.ledger.tasks.voters(task) if voter.node == self.ledger.address)
        return has_ended(self.ledger.tasks.state(task)) and not any(bonds)

    def _require_registered(self) -> None:
        """Raises NotRegistered."""
        address = self.ledger.address
        if not self.ledger.staking.is_registered(address, Role.VOTER):
            raise ConsentError("NotRegistered", account=address, why="is not a voter yet")
        if not has_key(self.ledger):
            raise ConsentError("NotRegistered", account=address, why="has not registered the voter key of this home")
