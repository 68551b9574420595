"""A voter's process: it watches all tasks, joins those that its policy allows and its data fits, and judges them side
by side until it is told to stop.

Nothing is lost with the process: the chain lists its tasks, and its unrevealed ballots are on disk.
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
from consilium_client.home import VoterHome, running_alone
from consilium_client.polling import ROUND_ERRORS
from consilium_client.task import load_task
from consilium_client.voter.node import VoterNode
from consilium_client.voter.registration import has_key

FIRST_WAIT = 2.0  # seconds after a fault, the next time twice as many
LOOK_ANYWAY = 15.0  # seconds without a block
LOOK_AGAIN = 60.0  # seconds until a task that could not be joined is looked at again: files arrive, stake gets free


class _Judge:
    """A task's node in a thread of its own: judging takes long, and what another task waits for has a deadline."""

    def __init__(self, node: VoterNode) -> None:
        self._node, self._due = node, threading.Event()
        self.ended = False
        self.fault: Exception | None = None
        # A daemon: told to stop, nobody waits for it.
        self.thread = threading.Thread(target=self._run, name=f"task-{node.number}", daemon=True)
        self.thread.start()

    def look(self) -> None:
        """There may be something to do. While it is at work, that is remembered."""
        self._due.set()

    def _run(self) -> None:
        wait = FIRST_WAIT
        with about(task=self._node.number):
            while not self.ended:
                self._due.wait()
                self._due.clear()
                try:
                    if Step.STOP in self._node.poll():
                        self._node.leave()
                        self.ended = True
                    wait = FIRST_WAIT
                except ChainUnreachable:
                    continue  # whoever waits for blocks tells it, and calls again once there are some
                except Exception as fault:  # nobody thought of it: others go on, and there may be a ballot to reveal
                    self.fault = fault
                    traceback.print_exc()
                    emit("task-failed", error=name_of(fault))
                    time.sleep(wait)
                    wait = min(2 * wait, LONGEST_WAIT)


@dataclass
class _Aside:
    """A task that could be joined, and is not."""

    why: str = ""
    look_at: float = 0.0  # by the monotonic clock


class Voter:
    def __init__(self, home: VoterHome, kind: type[VoterNode] = VoterNode) -> None:
        self.home, self._kind = home, kind
        self.ledger: Ledger = home.settings.connect()
        self.store = ArtifactStore(home.settings.artifacts, passing=home.folder / CACHE)
        self._judges: dict[int, _Judge] = {}
        self._aside: dict[int, _Aside] = {}
        self._seen = 0  # so many tasks, from the first on
        self._block = 0

    def run(self) -> None:
        """Judges until the process is told to stop. Raises NotRegistered, AlreadyRunning."""
        with running_alone(self.home.folder):
            retry_policy()(self._begin)
            while True:
                retry_policy()(self._poll)

    def run_one(self, task: int) -> None:
        """Judges one task until it ends. Raises also what is wrong with it."""
        with running_alone(self.home.folder):
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

    def _begin(self) -> None:
        """Collects what has vested, and goes on with what it is in."""
        self._require_registered()
        with suppress(Refused, TransactionRejected):  # whatever keeps it from that, `claim` says
            self.ledger.staking.claim(Role.VOTER)
        for task in self.ledger.record.tasks_of_voter(self.ledger.address):
            if task not in self._judges and not self._is_over(task):
                with about(task=task):
                    self._start(task)
        emit("watching", tasks=self.ledger.tasks.count(), judged=len(self._judges))

    def _poll(self) -> None:
        for task in range(self._seen + 1, self.ledger.tasks.count() + 1):
            if task not in self._judges:
                self._aside[task] = _Aside()
            self._seen = task
        for task, aside in list(self._aside.items()):
            if aside.look_at <= time.monotonic() and not self.home.paused:
                with about(task=task):
                    self._consider(task, aside)
        self._look()

    def _look(self) -> None:
        """Has each task's node look, and waits for the next block."""
        for task, judge in list(self._judges.items()):
            if judge.ended:
                del self._judges[task]
            judge.look()
        self._block = self.ledger.connection.blocks.wait_after(self._block, LOOK_ANYWAY)

    def _consider(self, task: int, aside: _Aside) -> None:
        """Joins, or says once why not."""
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
            aside.why, aside.look_at = why, time.monotonic() + LOOK_AGAIN

    def _require_allowed(self, task: int) -> None:
        """Raises PolicyInvalid, NotAllowed, TooManyTasks, and what reading the task raises."""
        policy = self.home.policy()
        policy.require(load_task(self.ledger, self.store, task).spec, self.ledger.tasks.state(task).operator)
        if len(self._judges) >= policy.max_tasks:
            raise ConsentError("TooManyTasks", task=task, at_most=policy.max_tasks)

    def _start(self, task: int) -> None:
        node = self._kind(self.home.node_settings(task, self.ledger.folder_name(task)), self.ledger)
        node.join()
        self._judges[task] = _Judge(node)

    def _is_over(self, task: int) -> bool:
        """True if it has ended, and left nothing of this account's behind."""
        bonds = (voter.bond for voter in self.ledger.tasks.voters(task) if voter.node == self.ledger.address)
        return has_ended(self.ledger.tasks.state(task)) and not any(bonds)

    def _require_registered(self) -> None:
        """Raises NotRegistered."""
        address = self.ledger.address
        if not self.ledger.staking.is_registered(address, Role.VOTER):
            raise ConsentError("NotRegistered", account=address, why="is no voter yet")
        if not has_key(self.ledger):
            raise ConsentError(
                "NotRegistered", account=address, why="has no voter's key registered, or another than this home's"
            )
