"""The aggregator's process is killed, alone and at once, in the middle of a task: started again, it goes on with it.

A whole network as the demo starts it, every party a process of its own on a real chain.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from consilium_chain.ledger.structs import Outcome, Phase
from consilium_chain.ledger.structs import Role as NodeRole
from consilium_chain.rpc.local_node import LocalNode
from consilium_lab.demo.chronicle import Chronicle
from consilium_lab.demo.datasets import deal_wdbc
from consilium_lab.demo.network import Network, Party, Role, build, start_party
from consilium_lab.demo.options import DemoOptions
from consilium_lab.demo.processes import Processes
from consilium_lab.demo.tally import balances, conservation
from consilium_lab.demo.task_file import TaskSettings, task_toml
from consilium_verify.verification import verify_round, verify_task

pytestmark = pytest.mark.timeout(580)

# Long enough for a busy machine; a phase ends as soon as all have done their part.
WINDOWS = {"join": 400, "commit": 200, "upload": 160, "publish": 120, "score": 120, "reveal": 120}
PATIENCE = 500.0
VOTERS = 2

Moment = tuple[int, Phase]


@dataclass
class Play:
    """A network that is played, and what its aggregator told."""

    network: Network
    processes: Processes
    chronicle: Chronicle
    told: list[dict[str, Any]] = field(default_factory=list)

    @property
    def aggregator(self) -> Party:
        return self.network.of(Role.AGGREGATOR)[0]

    def look(self) -> list[Moment]:
        """The phases that have begun since the last look."""
        lines = self.processes.lines()
        self.told += [line.fields for line in lines if line.process == self.aggregator.name]
        new = [seen.event for seen in self.chronicle.update(lines)]
        return [(e.values["round"], Phase(e.values["phase"])) for e in new if e.name == "PhaseStarted"]

    def wait_for(self, event: str, count: int = 1) -> None:
        """For the aggregator's own words."""
        end = time.monotonic() + PATIENCE
        while [line["event"] for line in self.told].count(event) < count:
            self.assert_alive(end)
            self.look()
            time.sleep(0.05)

    def assert_alive(self, end: float) -> None:
        assert self.processes.ended_badly() == {}, self.processes.errors_of(self.aggregator.name)
        assert time.monotonic() < end, self.told[-5:]

    def family(self, of: Party | None = None) -> list[psutil.Process]:
        """What the aggregator's process has started."""
        config = str((of or self.aggregator).home / "node.toml")
        return [c for p in psutil.Process().children() if config in p.cmdline() for c in p.children(recursive=True)]

    def start_aggregator(self) -> None:
        start_party(self.network, self.aggregator, self.processes)

    def kill(self, away: float = 0.0, of: Party | None = None, before_start: Callable[[], None] = lambda: None) -> None:
        """The aggregator's process alone; what it started must end by itself. Then it is started again. `of`: the party
        that is killed, if another home is used from now on.
        """
        family = self.family(of)
        self.processes.kill(self.aggregator.name)
        _, alive = psutil.wait_procs(family, timeout=30)
        assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
        time.sleep(away)
        before_start()
        self.start_aggregator()

    def kill_superlink(self) -> None:
        (superlink,) = [one for one in self.family() if "--enable-supernode-auth" in one.cmdline()]
        superlink.kill()

    def to_the_end(self, kills: Sequence[Moment], kill: Callable[[], None] | None = None) -> None:
        """Kills the aggregator, or what else `kill` does, as soon as each of these phases has begun."""
        kill = kill or self.kill
        pending, end = set(kills), time.monotonic() + PATIENCE
        while True:
            for moment in self.look():
                if moment in pending:
                    pending.discard(moment)
                    kill()
            if self.network.treasury.tasks.state(self.network.task).phase is Phase.ENDED:
                break
            self.assert_alive(end)
            time.sleep(0.05)
        if any(phase is Phase.ENDED for _, phase in pending):
            pending = {moment for moment in pending if moment[1] is not Phase.ENDED}
            kill()
        assert pending == set()
        assert self.processes.wait(120) == []
        self.look()
        self.assert_alive(end + 120)

    @property
    def outcomes(self) -> list[Outcome]:
        ledger, task = self.network.treasury, self.network.task
        return [ledger.tasks.round_state(task, n).outcome for n in range(self.network.spec.rounds.rounds + 1)]

    def events(self, name: str) -> list[dict[str, Any]]:
        return [seen.event.values for seen in self.chronicle.seen if seen.event.name == name]

    def assert_as_without_a_kill(self) -> None:
        """Every round settled and proven, nobody slashed, the aggregator paid for each and its bond released."""
        ledger, task, rounds = self.network.treasury, self.network.task, self.network.spec.rounds.rounds
        assert self.outcomes == [Outcome.SETTLED] * (rounds + 1)
        assert self.events("Slashed") == []
        for number in range(rounds + 1):
            report = verify_round(ledger, self.network.store, task, number)
            assert report.holds, report
        money = conservation(self.network)
        assert (money["difference"], money["minted"]) == ("0", money["held"])
        fees = [e["amount"] for e in self.events("Rewarded") if e["account"] == self.aggregator.address]
        assert (len(fees), len(set(fees))) == (rounds, 1)
        own = balances(self.network)[self.aggregator.address]
        assert 0 <= sum(fees) - (int(own["after"]) - int(own["before"])) <= 2  # what vests is read rounded down
        assert ledger.staking.stake_of(self.aggregator.address, NodeRole.AGGREGATOR).locked == 0


@contextmanager
def playing(
    folder: Path,
    hospitals: int = 3,
    rounds: int = 2,
    windows: Mapping[str, int] = WINDOWS,
    starts: bool = True,
    **options: Any,
) -> Iterator[Play]:
    """The sponsor runs, and the aggregator if it `starts`; nobody else does."""
    chosen = DemoOptions(hospitals=hospitals, voters=VOTERS, seats=VOTERS, rounds=rounds, output=folder, **options)
    data = deal_wdbc(hospitals, VOTERS, 0)
    settings = TaskSettings(rounds, None, VOTERS, windows, digests=chosen.digests, masked=chosen.masked)
    with ExitStack() as stack:
        node = stack.enter_context(LocalNode())
        network = build(chosen, data, task_toml(data, settings).encode(), node)
        processes = stack.enter_context(Processes(folder / "logs"))
        config = ["--config", os.fspath(network.sponsor.home / "node.toml")]
        processes.serve(network.sponsor.name, "consilium_cli.main", "server", "sponsor", *config)
        play = Play(network, processes, Chronicle(network.treasury, network.task, time.monotonic()))
        if starts:
            play.start_aggregator()
        yield play


def start_others(play: Play) -> None:
    for party in play.network.parties:
        if party is not play.aggregator:
            start_party(play.network, party, play.processes)


@pytest.mark.deep  # test_internet.py kills one, too, in each `make test`
def test_killed_aggregator_goes_on_with_its_task_and_nothing_is_lost(tmp_path: Path) -> None:
    with playing(tmp_path) as play:
        start_others(play)
        play.to_the_end([(1, Phase.UPLOADING), (2, Phase.COMMITTING), (2, Phase.ENDED)])
        play.assert_as_without_a_kill()
        assert [line["event"] for line in play.told].count("joined") == 3  # the last one had nothing to conduct


# Depth: the other phases, the other kinds of tasks, and what it starts being killed instead of it.


@pytest.mark.deep
def test_aggregator_is_killed_in_every_other_phase(tmp_path: Path) -> None:
    with playing(tmp_path, rounds=3) as play:
        play.wait_for("joined")
        play.kill()
        play.wait_for("joined", count=2)
        start_others(play)
        play.to_the_end([
            (0, Phase.COMMITTING), (0, Phase.PUBLISHING), (1, Phase.PUBLISHING), (2, Phase.DRAWING), (2, Phase.SCORING),
            (3, Phase.REVEALING),
        ])  # fmt: skip
        play.assert_as_without_a_kill()


@pytest.mark.deep
@pytest.mark.parametrize("digests", [False, True])
def test_aggregator_of_a_plain_task_is_killed(tmp_path: Path, digests: bool) -> None:
    with playing(tmp_path, masked=False, digests=digests) as play:
        start_others(play)
        play.to_the_end([(0, Phase.UPLOADING), (1, Phase.UPLOADING), (2, Phase.SCORING)])
        play.assert_as_without_a_kill()


@pytest.mark.deep
def test_a_superlink_that_is_killed_is_started_again(tmp_path: Path) -> None:
    with playing(tmp_path) as play:
        start_others(play)
        play.to_the_end([(1, Phase.UPLOADING)], kill=play.kill_superlink)
        play.assert_as_without_a_kill()
        events = [line["event"] for line in play.told]
        assert (events.count("superlink-failed"), events.count("left")) == (1, 1)


@pytest.mark.deep
def test_aggregator_that_comes_too_late_for_a_round_goes_on_with_the_next(tmp_path: Path) -> None:
    """Only its own bond pays for the round that it left."""
    windows = WINDOWS | {"upload": 45}
    with playing(tmp_path, windows=windows) as play:
        start_others(play)
        play.to_the_end([(1, Phase.UPLOADING)], kill=lambda: play.kill(away=50))
        assert play.outcomes == [Outcome.SETTLED, Outcome.VOID, Outcome.SETTLED]
        assert {event["account"] for event in play.events("Slashed")} == {play.aggregator.address}
        checked = verify_task(play.network.treasury, play.network.store, play.network.task)
        assert (len(checked.rounds), checked.failed) == (3, {})
        assert conservation(play.network)["difference"] == "0"
