"""A local chain with a block every so many seconds of a clock that runs only while somebody waits."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from chain_driver import LocalChain
from consilium_chain.transport_keys import TransportKey
from consilium_client.hospital.node import HospitalNode
from consilium_client.hospital.relay_link import RelayLink
from consilium_client.voter.judging import Voter
from rehearsal.provider import provider
from training_driver import GOOD, TrainingTask, propose, task_file
from voter_driver import FiledTask, voter_home

DAY = 86_400
START = "start"  # of the process: four blocks
# Modules of the product that wait for the chain, or look at a clock while they do.
WAITING = (
    "consilium_chain.rpc.blocks", "consilium_chain.rpc.heartbeat", "consilium_chain.rpc.transactions",
    "consilium_client.hospital.relay_link", "consilium_client.voter.judging",
)  # fmt: skip
JUDGES_NEED = 0.003  # real seconds for a voter's threads, which nobody waits for
PROMPT = 0.002  # seconds of the slow clock that an answer takes


class Over(BaseException):
    """The time is over in which requests are counted."""


class SlowClock:
    """Stands for the module `time`. Who sleeps moves it, and the chain with it."""

    def __init__(self, chain: LocalChain, block_seconds: float) -> None:
        self.chain, self._block_seconds = chain, block_seconds
        self._now, self._mined, self._until = 0.0, 0, float("inf")
        self._began = chain.treasury.connection.blocks.now()
        self._owner = threading.get_ident()
        chain.rpc("evm_setIntervalMining", 0)
        chain.rpc("evm_setAutomine", False)

    def monotonic(self) -> float:
        self._now += PROMPT
        return self._now

    def sleep(self, seconds: float) -> None:
        if threading.get_ident() != self._owner:
            time.sleep(JUDGES_NEED)
            return
        time.sleep(JUDGES_NEED if threading.active_count() > 3 else 0)
        end = self._now + seconds
        while (at := (self._mined + 1) * self._block_seconds) <= end:
            self._mined += 1
            self._now = max(self._now, at)
            self.mine()
        self._now = max(self._now, end)
        if self._now >= self._until:
            raise Over

    def mine(self) -> None:
        """A block, at the time that the clock shows."""
        latest = int(self.chain.rpc("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
        self.chain.rpc("evm_setNextBlockTimestamp", max(latest + 1, self._began + int(self._now)))
        self.chain.rpc("evm_mine")

    def run(self, seconds: float, play: Callable[[], object]) -> None:
        """Calls `play`, which waits for blocks without end, for so long."""
        self._until = self._now + seconds
        try:
            play()
        except Over:
            pass
        finally:
            self._until = float("inf")


@contextmanager
def slow_clock(chain: LocalChain, block_seconds: float) -> Iterator[SlowClock]:
    clock = SlowClock(chain, block_seconds)
    with pytest.MonkeyPatch.context() as patch:
        for name in WAITING:
            try:
                module = import_module(name)
            except ModuleNotFoundError:
                continue
            if hasattr(module, "time"):
                patch.setattr(module, "time", clock)
        patch.setattr(chain, "mine", lambda blocks: clock.sleep(blocks * block_seconds))
        yield clock


def _watched(node: HospitalNode) -> Callable[[], object]:
    """The hospital's own loop, without the process that talks to the aggregator, which has asked for everything."""
    link = node.link
    link.reached.set()
    link.requested = 99
    link.raise_fault = link.keep_running = lambda: None  # type: ignore[method-assign]
    return node._take_part


def hospital_requests(folder: Path, block_seconds: float, phase_seconds: float) -> dict[str, Counter[str]]:
    """A hospital's requests by phase of its first training round, and by method. It commits by its own transaction."""
    found: dict[str, Counter[str]] = {}
    with LocalChain() as chain, provider(chain.node.url) as between, pytest.MonkeyPatch.context() as patch:
        patch.setattr(RelayLink, "__enter__", lambda self: self)
        patch.setattr(RelayLink, "__exit__", lambda self, *_: None)
        task = propose(chain, folder, task_file(""))
        with slow_clock(chain, block_seconds) as clock:
            task.aggregator.aggregator.join(task.task)
            task.nodes[0].hospital.join(task.task, 30, TransportKey.generate())
            node = task.start(0, commits="own", chain_url=between.of("hospital"))
            play = _watched(node)

            def count(phase: str) -> None:
                before = Counter(between.asked["hospital"])
                clock.run(4 * block_seconds if phase == START else phase_seconds, play)
                found[phase] = between.asked["hospital"] - before

            count(START)
            count("joining")
            task.nodes[1].hospital.join(task.task, 45, TransportKey.generate())
            task.judges[0].voter.join(task.task)
            task.start(1)
            count("committing statistics")
            task.commit(1)
            count("uploading statistics")
            _follow(task)
            task.publish()
            count("forming cohorts")
            task.form()
            count("committing")
            task.commit(1)
            count("uploading")
            _follow(task)
            task.publish()
            count("drawing seats")
            task.draw()
            count("scoring")
            task.score(0, GOOD[0])
            count("revealing")
    return found


def _follow(task: TrainingTask) -> None:
    """The driver publishes what the node committed itself."""
    for index, node in task.running.items():
        assert node.updates.work.number == task.round, index
        task.updates[task.round, index] = task.make_update(index)


def voter_requests(folder: Path, block_seconds: float, phase_seconds: float) -> dict[str, Counter[str]]:
    """A voter's, from joining until there is something to score."""
    found: dict[str, Counter[str]] = {}
    with LocalChain() as chain, provider(chain.node.url) as between:
        home, _ = voter_home(chain, folder / "voter", url=between.of("voter"))
        task = FiledTask(chain, folder)
        with slow_clock(chain, block_seconds) as clock:
            voter = Voter(home)
            voter._begin()
            voter._start(task.task)
            voter._seen = task.task

            def count(phase: str) -> None:
                before = Counter(between.asked["voter"])
                clock.run(4 * block_seconds if phase == START else phase_seconds, lambda: follow(voter))
                found[phase] = between.asked["voter"] - before

            count(START)
            count("joining")
            task.aggregator.aggregator.join(task.task)
            task.nodes[0].hospital.join(task.task, 8, TransportKey.generate())
            count("committing statistics")
            task.commit(0)
            count("uploading statistics")
    return found


def follow(voter: Voter) -> None:
    while True:
        voter._poll()


def a_day(found: Mapping[str, Counter[str]], phase_seconds: float) -> dict[str, Any]:
    """Requests a day by method, if each phase takes the same part of it, without those of the start."""
    phases = {phase: one for phase, one in found.items() if phase != START}
    total = sum(phases.values(), Counter())
    times = DAY / (phase_seconds * len(phases))
    return {method: round(count * times) for method, count in total.most_common()}
