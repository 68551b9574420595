"""A chain that takes blocks back: nodes do again what is gone, and stand where they stand then."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from chain_driver import LocalChain, TaskDriver
from consilium_chain.errors import Refused
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, Role, RoundState
from consilium_chain.rounds.machine import Step
from consilium_chain.rpc.connection import Connection
from consilium_chain.transport_keys import TransportKey
from consilium_client.errors import NodeError
from consilium_client.home import VoterHome
from consilium_client.hospital.node import HospitalNode
from consilium_client.voter.judging import _TaskThread
from consilium_client.voter.node import VoterNode
from hospital_driver import start, take
from index_driver import changeable_chain
from raised_faults import raises_fault
from rehearsal.provider import provider
from voter_driver import PATIENCE, TASK, FiledTask, voter_home


@pytest.fixture(scope="module")
def chain() -> Iterator[LocalChain]:
    """Blocks come with transactions alone, so that none is mined while others are taken back."""
    with changeable_chain() as made:
        yield made


def take_back(chain: LocalChain, blocks: int = 1) -> None:
    chain.rpc("anvil_reorg", blocks, [])


def node_of(home: VoterHome, ledger: Ledger, task: TaskDriver) -> VoterNode:
    return VoterNode(home.node_settings(task.task, ledger.folder_name(task.task)), ledger)


def test_a_voter_joins_votes_and_reveals_again(chain: LocalChain, tmp_path: Path) -> None:
    task = FiledTask(chain, tmp_path)
    node = node_of(*voter_home(chain, tmp_path / "voter"), task)
    node.join()
    take_back(chain, 2)  # its joining, and what it said of its rows
    assert task.operator.tasks.voters(task.task) == []
    node.poll()
    assert [voter.node for voter in task.operator.tasks.voters(task.task)] == [node.ledger.address]
    assert node.ledger.votes.held_out_root(task.task, node.ledger.address) is not None

    task.aggregator.aggregator.join(task.task)
    task.nodes[0].hospital.join(task.task, 8, TransportKey.generate())
    task.to_drawing().draw()
    for _ in range(2):
        node.poll()
        moved_to = task.phase
        assert moved_to is Phase.REVEALING  # the only voter's ballot ends the phase
        take_back(chain)
        assert task.phase is Phase.SCORING
    node.poll()
    for _ in range(2):
        node.poll()
        assert task.round_state.revealed == 0b1
        take_back(chain)
    node.poll()
    task.operator.phases.settle(task.task, 0)
    assert task.round == 1


@pytest.mark.parametrize("taken_back", [0, 1])
def test_a_voter_gives_up_what_fails_while_the_chain_stands(
    chain: LocalChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken_back: int
) -> None:
    """And judges anew what came of blocks that are gone."""
    task = FiledTask(chain, tmp_path)
    node = node_of(*voter_home(chain, tmp_path / "voter"), task)
    node.join()
    task.aggregator.aggregator.join(task.task)
    task.nodes[0].hospital.join(task.task, 8, TransportKey.generate())
    task.to_drawing().draw()

    def failing(round_: int, _: RoundState) -> tuple[int, ...]:
        if taken_back:
            take_back(chain, taken_back)
        raise NodeError("NotAssigned", round=round_)

    with monkeypatch.context() as patch:
        patch.setattr(node, "scores", failing)
        assert node.poll() == (Step.SCORE,)
    if taken_back:
        assert task.phase is Phase.DRAWING
        task.draw()
    node.poll()
    assert task.phase is (Phase.REVEALING if taken_back else Phase.SCORING)


def test_a_voter_stands_where_others_joining_puts_it(chain: LocalChain, tmp_path: Path) -> None:
    task = FiledTask(chain, tmp_path, TASK.replace("max_voters = 1", "max_voters = 2"))
    with provider(chain.node.url) as front:
        nodes = []
        for name in ("first", "second"):
            home, own = voter_home(chain, tmp_path / name)
            ledger = Ledger(Connection(front.of(name), own.connection.signer), chain.deployment)
            nodes.append(node_of(home, ledger, task))
        for node in nodes:
            node.join()
        assert [node.index for node in nodes] == [0, 1]
        sent = list(front.sent.values())
        take_back(chain, len(sent))
        for signed in sent[2:] + sent[:2]:  # what the second one said comes first
            front.ask("eth_sendRawTransaction", "0x" + signed.hex())
        for node in nodes:
            node.poll()
        assert [node.index for node in nodes] == [1, 0]


def test_a_voter_whose_place_another_took_does_nothing(chain: LocalChain, tmp_path: Path) -> None:
    task = FiledTask(chain, tmp_path)
    node = node_of(*voter_home(chain, tmp_path / "voter"), task)
    node.join()
    take_back(chain)
    task.judges = chain.staked(Role.VOTER, 1)
    task.join()
    task.to_drawing().draw()
    assert (task.phase, node.poll()) == (Phase.SCORING, ())
    assert task.round_state.seated == 0
    with pytest.raises(Refused, match="WrongPhase"):
        node.join()


def test_a_hospital_joins_and_commits_again(
    chain: LocalChain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    committing = start(chain, tmp_path, 2, masked=False)
    nodes = [committing.node(index) for index in range(2)]
    for node in nodes:
        committing.set_ether(node, 10**18)
    take_back(chain, 3)  # the last one's joining, with allowance and stake
    last = nodes[1]
    state = committing.aggregator.tasks.state(committing.task)
    assert (state.phase, last.context.membership.find()) == (Phase.JOINING, None)
    committing.set_ether(last, 10**18)
    assert nodes[0].context.membership.stands(state)
    take(last, Step.JOIN)
    assert (last.context.membership.find(), committing.aggregator.tasks.state(committing.task).phase) == (
        1,
        Phase.COMMITTING,
    )

    own = committing.node(0, commits="own")
    committing.set_ether(own, 10**18)
    committing.signed(own)
    capsys.readouterr()
    for _ in range(2):
        committing.look(own)
        assert committing.round_state.committed == 0b01
        take_back(chain)
        committing.set_ether(own, 10**18)
        assert committing.round_state.committed == 0
    committing.look(own)
    assert committing.round_state.committed == 0b01
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["by"] for line in told if line["event"] == "committed"] == ["own"] * 3


def test_a_hospital_that_sees_no_cohorts_looks_again(
    chain: LocalChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are taken back after it saw that commitments are taken, and before it saw from whom."""
    committing = start(chain, tmp_path, 2, masked=False)
    nodes = [committing.node(index) for index in range(2)]
    seen = committing.aggregator.tasks.state(committing.task)
    assert seen.phase is Phase.COMMITTING
    take_back(chain, 3)
    with monkeypatch.context() as patch:
        patch.setattr(nodes[0].ledger.tasks, "state", lambda _: seen)
        assert nodes[0].updates.of(0) is None
        with raises_fault(NodeError, "NotAssigned"):
            nodes[0].context.cohort(0)
    committing.set_ether(nodes[1], 10**18)
    take(nodes[1], Step.JOIN)
    assert committing.aggregator.tasks.state(committing.task).phase is Phase.COMMITTING
    assert nodes[0].updates.of(0) is not None


def test_a_hospital_whose_place_another_took_does_nothing(
    chain: LocalChain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (other,) = chain.staked(Role.HOSPITAL, 1)
    committing = start(chain, tmp_path, 2, masked=False)
    last = committing.node(1)
    take_back(chain, 3)
    seen = committing.aggregator.tasks.state(committing.task)
    other.hospital.join(committing.task, 8, TransportKey.generate())
    committing.set_ether(last, 10**18)
    assert (seen.phase, committing.aggregator.tasks.state(committing.task).phase) == (Phase.JOINING, Phase.COMMITTING)
    assert not last.context.membership.stands(seen)
    last.context.membership.join_again(last.join)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["error"] for line in told if line["event"] == "refused"] == ["WrongPhase"]
    assert last.due()[1] == ()


def end(ledger: Ledger, task: int, chain: LocalChain) -> None:
    """Ends a task without commitments."""
    state = ledger.tasks.state(task)
    chain.pass_time(max(0, state.deadline - ledger.connection.blocks.now()) + 1)
    ledger.phases.tick(task)
    assert ledger.tasks.state(task).phase is Phase.ENDED


def test_a_hospital_leaves_once_the_end_stands(chain: LocalChain, tmp_path: Path) -> None:
    committing = start(chain, tmp_path, 3, masked=True)
    node = committing.node(0)
    committing.set_ether(node, 10**18)
    end(committing.aggregator, committing.task, chain)
    take_back(chain)
    assert not node.leave()
    end(committing.aggregator, committing.task, chain)
    assert node.leave()
    assert node.ledger.tasks.hospitals(committing.task)[node.index].bond == 0


def test_a_voter_goes_on_with_a_task_whose_end_is_taken_back(
    chain: LocalChain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else its ballot, whose block may be gone too, would stay hidden, and cost a part of its bond."""
    task = FiledTask(chain, tmp_path)
    home, ledger = voter_home(chain, tmp_path / "voter")
    left = threading.Event()

    class Late(VoterNode):
        def leave(self) -> bool:
            if not left.is_set():
                take_back(chain)
            has_left = super().leave()
            left.set()
            return has_left

    node = Late(home.node_settings(task.task, ledger.folder_name(task.task)), ledger)
    node.join()
    task.aggregator.aggregator.join(task.task)
    task.nodes[0].hospital.join(task.task, 8, TransportKey.generate())
    end(task.operator, task.task, chain)
    judge = _TaskThread(node)
    judge.look()
    assert left.wait(PATIENCE)
    assert (task.phase, judge.ended) == (Phase.COMMITTING, False)
    assert '"event": "end-undone"' in capsys.readouterr().out
    end(task.operator, task.task, chain)
    judge.look()
    judge.thread.join(PATIENCE)
    assert judge.ended
    assert ledger.staking.stake_of(ledger.address, Role.VOTER).locked == 0


def test_a_hospital_that_is_not_listed_says_so(
    chain: LocalChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committing = start(chain, tmp_path, 1, masked=False)
    node = HospitalNode(committing.settings[0])
    monkeypatch.setattr(node.ledger.connection.blocks, "wait_after", lambda seen, longest=0.0: seen)
    monkeypatch.setattr(node.context.membership, "find", lambda: None)
    with raises_fault(NodeError, "NotInTask", match=f"{node.ledger.address} joined task {committing.task}"):
        node.context.membership.require()
