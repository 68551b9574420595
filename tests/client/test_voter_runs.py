"""A voter's process: what it joins, that no task keeps another waiting, and that no restart costs a bond."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from chain_driver import LocalChain
from consilium_chain.ledger.structs import PayoutReason, Phase, Role, RoundState
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.transport_keys import TransportKey
from consilium_client.errors import ConsentError, OwnersRefusal
from consilium_client.home import OwnTable, VoterHome
from consilium_client.voter import judging
from consilium_client.voter.judging import Voter
from consilium_client.voter.node import VoterNode
from consilium_client.voter.registration import register
from consilium_core.logs import log_to
from raised_faults import raises_fault
from voter_driver import PATIENCE, TASK, Door, FiledTask, VoterProcess, voter_home


@pytest.fixture
def chain(local_chain: LocalChain, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalChain]:
    """Without the tasks of other tests, which a voter would join, and without their judges, whose tasks are gone with
    them and have the numbers of the next test's.
    """
    judges: list[judging._TaskThread] = []

    class Known(judging._TaskThread):
        def __init__(self, node: VoterNode) -> None:
            super().__init__(node)
            judges.append(self)

    monkeypatch.setattr(judging, "_TaskThread", Known)
    with local_chain.undone():
        yield local_chain
        for judge in judges:
            judge.ended = True
            judge.look()
            judge.thread.join(PATIENCE)


@pytest.fixture
def own_chain() -> Iterator[LocalChain]:
    """One whose mining may be stopped: it would be slower afterwards, for it takes whole seconds alone."""
    with LocalChain() as made:
        yield made


def begin(task: FiledTask) -> None:
    """Begins the task's statistics round, which the voter's joining does not do."""
    task.aggregator.aggregator.join(task.task)
    task.nodes[0].hospital.join(task.task, 8, TransportKey.generate())
    wait_until(lambda: task.phase is Phase.COMMITTING)


def wait_until(what: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def in_mempool(chain: LocalChain) -> int:
    return int(chain.rpc("txpool_status")["pending"], 16)


# Processes


def test_told_to_stop_while_it_judges_it_ends_as_it_was_told() -> None:
    program = """
import sys, threading, torch
from consilium_cli.voter.commands import ends_at_once
judging = threading.Event()
def judge():
    weights = torch.randn(200, 200, requires_grad=True)
    while True:
        (weights @ weights).sum().backward()
        judging.set()
with ends_at_once():
    threading.Thread(target=judge, daemon=True).start()
    judging.wait()
    sys.exit(143)
"""
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60).returncode == 143


def test_killed_at_any_moment_it_reveals_what_it_committed_to(own_chain: LocalChain, tmp_path: Path) -> None:
    chain = own_chain
    task = FiledTask(chain, tmp_path)
    home, account = voter_home(chain, tmp_path / "voter")
    with VoterProcess(home) as voter:
        voter.wait_for("joined", task=task.task)
        voter.kill()
    begin(task)
    task.to_drawing()

    # Killed with its commitment in a transaction that is on no block: it must not make another ballot.
    with VoterProcess(home) as voter:
        voter.wait_for("in-task", task=task.task)
        voter.signal(signal.SIGSTOP)
        task.draw()
        chain.rpc("evm_setAutomine", False)
        chain.rpc("evm_setIntervalMining", 0)
        voter.signal(signal.SIGCONT)
        wait_until(lambda: in_mempool(chain) == 1)
        voter.kill()
    with VoterProcess(home) as voter:
        wait_until(lambda: in_mempool(chain) == 2)
        chain.rpc("evm_setAutomine", True)
        chain.rpc("evm_setIntervalMining", 1)
        chain.mine(1)
        voter.wait_for("revealed", round=0)
        task.operator.phases.settle(task.task, 0)

        # Killed between commitment and reveal, with table and task file gone when it starts again.
        task.to_drawing()
        task.draw()
        voter.wait_for("scored", round=1)
        voter.kill()
    revealed = task.round_state.revealed
    (home.folder / "held-out.csv").unlink()
    shutil.rmtree(tmp_path / "artifacts")
    with VoterProcess(home) as voter:
        if not revealed:
            voter.wait_for("revealed", round=1)
        task.operator.phases.settle(task.task, 1)
        told = voter.wait_for("settled", round=1)
        assert (told["slash"], told["reason"]) == ("0", PayoutReason.PAID.name)
        voter.wait_for("left", task=task.task)
        voter.signal(signal.SIGTERM)
        assert voter.process.wait(10) == 143
    stake = account.staking.stake_of(account.address, Role.VOTER)
    assert (stake.active, stake.free) == (10_000 * TOKEN, 10_000 * TOKEN)


def test_a_chain_that_does_not_answer_is_waited_for(chain: LocalChain, tmp_path: Path) -> None:
    task = FiledTask(chain, tmp_path)
    with Door(chain.node.url) as door:
        home, _ = voter_home(chain, tmp_path / "voter", url=door.url)
        with VoterProcess(home, "--task", str(task.task)) as voter:
            voter.wait_for("joined")
            begin(task)
            task.to_drawing()
            door.shut = True
            assert voter.wait_for("chain-unreachable")["tries"] == 1
            task.draw()
            voter.wait_for("chain-unreachable", tries=2)
            door.shut = False
            voter.wait_for("revealed", round=0)


def test_one_task_alone_ends_with_it(chain: LocalChain, tmp_path: Path) -> None:
    task, other = FiledTask(chain, tmp_path), FiledTask(chain, tmp_path)
    home, account = voter_home(chain, tmp_path / "voter")
    with VoterProcess(home, "--task", str(task.task)) as voter:
        voter.wait_for("joined")
        begin(task)
        for round_ in (0, 1):
            task.to_drawing()
            task.draw()
            voter.wait_for("revealed", round=round_)
            task.operator.phases.settle(task.task, round_)
        voter.wait_for("left")
        assert voter.process.wait(10) == 0
    assert other.operator.tasks.voters(other.task) == []
    assert account.staking.stake_of(account.address, Role.VOTER).locked == 0


def test_one_process_at_a_time_judges_from_a_home(chain: LocalChain, tmp_path: Path) -> None:
    FiledTask(chain, tmp_path)
    home, _ = voter_home(chain, tmp_path / "voter")
    with VoterProcess(home) as voter:
        voter.wait_for("watching")
        with raises_fault(ConsentError, "AlreadyRunning"):
            Voter(home).run()
        voter.kill()
    task = FiledTask(chain, tmp_path).task
    (home.folder / "policy.toml").write_text('operators = []\nmodels = "any"\nmetrics = "any"\n')
    with raises_fault(OwnersRefusal, "NotAllowed"):  # a killed one keeps nobody out
        Voter(home).run_one(task)


# Several tasks


Told = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def told() -> Iterator[Told]:
    heard: Told = []
    with log_to(lambda event, fields: heard.append((event, dict(fields)))):
        yield heard


def names(told: Told, task: FiledTask) -> list[str]:
    return [event for event, fields in told if fields.get("task") == task.task]


def turn_until(voter: Voter, what: Callable[[], object]) -> None:
    def polled() -> object:
        voter._poll()
        return what()

    wait_until(polled)


def test_what_does_not_fit_is_told_once_and_keeps_nothing_else_waiting(
    chain: LocalChain, tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "TRY_AGAIN", 0.0)
    home, account = voter_home(chain, tmp_path / "voter")
    unread = FiledTask(chain, tmp_path, TASK.replace("will fall", "has fallen"))
    (file,) = (path for path in (tmp_path / "artifacts").glob("file-*") if "has fallen" in path.read_text())
    text = file.read_bytes()
    file.unlink()
    broken = FiledTask(chain, tmp_path, TASK.replace("who will fall ill", "altered"))
    (altered,) = (path for path in (tmp_path / "artifacts").glob("file-*") if "altered" in path.read_text())
    altered.write_text("nonsense")
    foreign = FiledTask(chain, tmp_path, TASK.replace('name = "age"', 'name = "weight"'))
    dear = FiledTask(chain, tmp_path, TASK.replace("[money]", "[money]\nvoter_bond = 20000"))
    good = FiledTask(chain, tmp_path)
    voter = Voter(home)
    voter._begin()
    turn_until(voter, lambda: names(told, good) == ["joined"])
    for _ in range(3):
        voter._poll()
    aside = {task.task: fields["error"] for event, fields in told if event == "set-aside"
             for task in (unread, broken, foreign, dear) if task.task == fields["task"]}  # fmt: skip
    assert list(aside.values()) == ["ArtifactMissing", "ArtifactCorrupt", "ColumnsWrong", "StakeTooSmall"]
    assert all(names(told, task) == ["set-aside"] for task in (unread, broken, foreign, dear))

    # What is mended is joined, without a restart.
    file.write_bytes(text)
    (tmp_path / "held-out-weights.csv").write_text((tmp_path / "weight.csv").read_text())
    home.use_table(account.folder_name(foreign.task), OwnTable(data=tmp_path / "held-out-weights.csv"))
    register(account, 30_000 * TOKEN, 0)
    turn_until(voter, lambda: all(names(told, task)[-1] == "joined" for task in (unread, foreign, dear)))

    # A table that is spoilt by the next start costs that task's training rounds, and no other's.
    (tmp_path / "held-out-weights.csv").write_text("weight,sick\nDoe,0\n")
    again = Voter(home)
    again._begin()
    for task in (foreign, good):
        begin(task)
        task.to_drawing().draw()
    turn_until(again, lambda: "revealed" in names(told, good) and "revealed" in names(told, foreign))
    for task in (foreign, good):
        task.operator.phases.settle(task.task, 0)
        task.to_drawing().draw()
    turn_until(again, lambda: names(told, good).count("revealed") == 2 and "round-failed" in names(told, foreign))


class Slow(VoterNode):
    """Judges nothing before it is told to."""

    go = threading.Event()
    slow_task = 0

    def scores(self, round_: int, round_state: RoundState) -> tuple[int, ...]:
        if self.number == self.slow_task:
            assert self.go.wait(PATIENCE)
        return super().scores(round_, round_state)


def test_no_tasks_reveal_waits_for_anothers_judging(
    chain: LocalChain, tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, _ = voter_home(chain, tmp_path / "voter")
    slow, quick = FiledTask(chain, tmp_path), FiledTask(chain, tmp_path)
    monkeypatch.setattr(Slow, "slow_task", slow.task)
    voter = Voter(home, Slow)
    voter._begin()
    turn_until(voter, lambda: names(told, quick) == names(told, slow) == ["joined"])
    for task in (slow, quick):
        begin(task)
        task.to_drawing().draw()
    turn_until(voter, lambda: "revealed" in names(told, quick))
    assert names(told, slow) == ["joined"]
    Slow.go.set()
    turn_until(voter, lambda: "revealed" in names(told, slow))


class Faulty(VoterNode):
    """A program with a fault in it, of the kind that passes."""

    faults: ClassVar[dict[int, int]] = {}  # how many are to come, by task

    def scores(self, round_: int, round_state: RoundState) -> tuple[int, ...]:
        if self.faults.get(self.number):
            self.faults[self.number] -= 1
            raise ZeroDivisionError
        return super().scores(round_, round_state)


def test_a_fault_in_one_tasks_node_leaves_the_others_alone_and_is_tried_again(
    chain: LocalChain, tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, _ = voter_home(chain, tmp_path / "voter")
    faulty, sound = FiledTask(chain, tmp_path), FiledTask(chain, tmp_path)
    monkeypatch.setitem(Faulty.faults, faulty.task, 2)
    monkeypatch.setattr(judging, "FIRST_WAIT", 1.0)
    voter = Voter(home, Faulty)
    voter._begin()
    turn_until(voter, lambda: names(told, sound) == names(told, faulty) == ["joined"])
    for task in (faulty, sound):
        begin(task)
        task.to_drawing().draw()
    turn_until(voter, lambda: "revealed" in names(told, sound) and "revealed" in names(told, faulty))
    assert names(told, faulty) == ["joined", "task-failed", "task-failed", "scored", "revealed"]


def test_what_could_not_be_paid_for_is_tried_again(chain: LocalChain, tmp_path: Path, told: Told) -> None:
    home, account = voter_home(chain, tmp_path / "voter")
    task = FiledTask(chain, tmp_path)
    voter = Voter(home)
    voter._begin()
    turn_until(voter, lambda: names(told, task) == ["joined"])
    begin(task)
    chain.rpc("anvil_setBalance", account.address, "0x0")
    task.to_drawing().draw()
    turn_until(voter, lambda: "not-voted" in names(told, task))
    for _ in range(3):
        voter._poll()
    assert names(told, task) == ["joined", "not-voted"]
    chain.rpc("anvil_setBalance", account.address, hex(10**18))
    turn_until(voter, lambda: "revealed" in names(told, task))


def test_paused_it_joins_nothing_and_keeps_nobody_waiting(chain: LocalChain, tmp_path: Path, told: Told) -> None:
    home, account = voter_home(chain, tmp_path / "voter")
    task = FiledTask(chain, tmp_path)
    voter = Voter(home)
    voter._begin()
    turn_until(voter, lambda: names(told, task) == ["joined"])
    begin(task)
    home.pause()
    late = FiledTask(chain, tmp_path)
    task.to_drawing().draw()
    turn_until(voter, lambda: task.operator.tasks.round_state(task.task, 0).stood_down)
    assert late.operator.tasks.voters(late.task) == []
    home.resume()
    turn_until(voter, lambda: names(told, late) == ["joined"])
    assert account.tasks.explain(task.task, 0, account.address).slash == 0


def test_no_more_tasks_at_once_than_the_policy_has(chain: LocalChain, tmp_path: Path, told: Told) -> None:
    home, _ = voter_home(chain, tmp_path / "voter", max_tasks=1)
    first, second = FiledTask(chain, tmp_path), FiledTask(chain, tmp_path)
    voter = Voter(home)
    voter._begin()
    # Nodes of tests before this one may still tell of what they lost.
    turn_until(voter, lambda: "joined" in names(told, first) and "set-aside" in names(told, second))
    assert "joined" not in names(told, second)
    with raises_fault(ConsentError, "TooManyTasks", match="max_tasks"):
        voter._require_allowed(second.task)


# Money


def test_registering_twice_stakes_once(chain: LocalChain) -> None:
    account = chain.funded()
    register(account, 700 * TOKEN, 500)
    blocks, before = chain.treasury.connection.blocks.number, account.connection.ether()
    register(account, 700 * TOKEN, 500)
    register(account, 300 * TOKEN, 500)
    assert account.connection.ether() == before, blocks()
    assert account.staking.stake_of(account.address, Role.VOTER).active == 700 * TOKEN
    register(account, 900 * TOKEN, 250)
    assert account.staking.stake_of(account.address, Role.VOTER).active == 900 * TOKEN
    assert account.staking.commission(account.address, Role.VOTER) == 250
    register(account, 0, 600)
    register(account, 0, 600)
    assert account.staking.commission(account.address, Role.VOTER) == 600  # announced


def test_an_account_without_stake_or_key_judges_nothing(chain: LocalChain, tmp_path: Path) -> None:
    task = FiledTask(chain, tmp_path)
    home, account = voter_home(chain, tmp_path / "voter", stake=1)
    with raises_fault(ConsentError, "StakeTooSmall", match="consilium voter register --stake") as caught:
        Voter(home).run_one(task.task)
    assert (caught.value.values["bond"], caught.value.values["free"]) == ("200.00", "1.00")
    keyless = chain.funded()
    keyless.staking.stake(Role.VOTER, 1_000 * TOKEN)
    voter = Voter(home)
    voter.ledger = keyless
    with raises_fault(ConsentError, "NotRegistered", match="has not registered the voter key"):
        voter.run_one(task.task)
    assert account.record.tasks_of_voter(account.address) == []


def test_a_home_is_read_by_no_other_role(chain: LocalChain, tmp_path: Path) -> None:
    home, _ = voter_home(chain, tmp_path / "voter")
    assert VoterHome.open(home.folder).settings == home.settings
    command = [sys.executable, "-m", "consilium_cli.main", "hospital", "status", "--home", str(home.folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "columns: Field required" in done.stderr
