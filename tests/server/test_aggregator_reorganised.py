"""A reorganised chain: the aggregator follows the new state, and sends lost transactions again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from chain_driver import LocalChain
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.publishing import CohortsFate
from consilium_chain.ledger.structs import Phase, Role
from consilium_chain.rounds.machine import Step
from consilium_chain.transport_keys import TransportKey, pem_of
from consilium_server.aggregator.node import Aggregator
from index_driver import changeable_chain
from test_decoys_kept import aggregator_of, attempt, give_uploads, party, weighted
from voter_driver import TASK, FiledTask

KEYS = [TransportKey.generate() for _ in range(2)]


@pytest.fixture(scope="module")
def chain() -> Iterator[LocalChain]:
    """A chain that mines a block only for a transaction, so that none comes during a reorganisation."""
    with changeable_chain() as made:
        yield made


@pytest.fixture
def task(chain: LocalChain, tmp_path: Path) -> FiledTask:
    """A task of two hospitals that have not joined."""
    text = TASK.replace("max_hospitals = 1", "max_hospitals = 2")
    made = FiledTask(chain, tmp_path, text)
    made.judges = chain.staked(Role.VOTER, 1)
    made.nodes = chain.staked(Role.HOSPITAL, 2)
    ArtifactStore(tmp_path / "store").put_file(text.encode())
    return made


@pytest.fixture
def aggregator(task: FiledTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Aggregator:
    made = aggregator_of(*party(task, tmp_path))
    registered: dict[bytes, int] = {}
    monkeypatch.setattr(made.membership, "register", lambda key: registered.setdefault(key, 100 + len(registered)))
    return made


def join(task: FiledTask, *hospitals: int) -> None:
    for index in hospitals:
        task.nodes[index].hospital.join(task.task, 8, KEYS[index])


def test_it_joins_again(task: FiledTask, aggregator: Aggregator) -> None:
    aggregator._join()
    task.chain.rpc("anvil_reorg", 1, [])
    assert not task.operator.tasks.state(task.task).aggregator_joined
    waiting = threading.Thread(target=aggregator._wait_for_participants)
    waiting.start()
    joined = threading.Event()
    for _ in range(200):
        if task.operator.tasks.state(task.task).aggregator_joined:
            break
        joined.wait(0.05)
    task.judges[0].voter.join(task.task)
    join(task, 0, 1)
    waiting.join(30)
    assert not waiting.is_alive()
    assert task.phase is Phase.COMMITTING


def test_hospitals_that_join_again_in_another_order_are_asked_by_it(
    task: FiledTask, aggregator: Aggregator, capsys: pytest.CaptureFixture[str]
) -> None:
    task.aggregator.aggregator.join(task.task)
    task.judges[0].voter.join(task.task)
    join(task, 0, 1)
    nodes = aggregator.membership.nodes()
    assert nodes == {0: 100, 1: 101}
    aggregator._follow_order(aggregator._seen().roster, nodes)
    kept = aggregator.task.replies_folder / "round-0"
    kept.mkdir(parents=True)
    aggregator._follow_order(aggregator._seen().roster, nodes)
    assert (nodes, kept.exists()) == ({0: 100, 1: 101}, True)
    task.chain.rpc("anvil_reorg", 2, [])
    join(task, 1, 0)
    aggregator._follow_order(aggregator._seen().roster, nodes)
    assert (nodes, kept.exists()) == ({0: 101, 1: 100}, False)
    assert "hospitals-moved" in capsys.readouterr().out


def test_hospitals_are_known_that_the_chain_does_not_list_for_a_moment(task: FiledTask, aggregator: Aggregator) -> None:
    """A reply of one would end the process, whose state of the round was made in that moment."""
    task.aggregator.aggregator.join(task.task)
    task.judges[0].voter.join(task.task)
    join(task, 0, 1)
    nodes, seen = aggregator.membership.nodes(), aggregator._seen()
    task.chain.rpc("anvil_reorg", 1, [])
    assert len(task.operator.tasks.hospitals(task.task)) == 1
    grid: Any = SimpleNamespace(get_node_ids=list)
    aggregator._collect(grid, nodes, seen.state, seen.round)
    collection = aggregator.rounds.of(0).collection
    assert collection is not None
    assert list(collection._addresses) == [one.address for one in task.nodes]


def test_a_phase_that_is_taken_back_ends_nothing(task: FiledTask, aggregator: Aggregator) -> None:
    """A refusal at that moment must not be final for the round."""
    task.aggregator.aggregator.join(task.task)
    task.judges[0].voter.join(task.task)
    join(task, 0, 1)
    task.hospitals = 2
    task.commit_all()
    give_uploads(aggregator, weighted(task, 0), 0)
    task.aggregator.aggregator.publish_digests(task.task, 0, CohortsFate(0b11), [])
    state, round_state = task.operator.tasks.state(task.task), task.round_state
    assert state.phase is Phase.PUBLISHING
    task.chain.rpc("anvil_reorg", 1, [])
    aggregator._attempt(Step.PUBLISH, state, round_state)
    assert (task.phase, aggregator.rounds.of(0).refused) == (Phase.UPLOADING, None)
    attempt(aggregator, Step.PUBLISH)
    assert task.round_state.published_cohorts == 1


def test_it_conducts_on_where_the_end_is_taken_back(
    task: FiledTask, aggregator: Aggregator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    account = task.aggregator
    before = account.staking.stake_of(account.address, Role.AGGREGATOR).locked  # by other tests' tasks
    account.aggregator.join(task.task)
    task.judges[0].voter.join(task.task)
    join(task, 0, 1)
    began = []

    def conduct() -> None:
        """Ends the task: nobody commits. The first time, its block is taken back."""
        began.append(task.phase)
        task.pass_deadline()
        task.tick()
        assert task.phase is Phase.ENDED
        if len(began) == 1:
            task.chain.rpc("anvil_reorg", 1, [])

    monkeypatch.setattr(aggregator, "_conduct_with_provers", conduct)
    aggregator.run()
    assert began == [Phase.COMMITTING] * 2
    told = capsys.readouterr().out
    assert told.index('"end-undone", "role": "aggregator"') < told.index('"left"')
    assert account.staking.stake_of(account.address, Role.AGGREGATOR).locked == before


def test_what_hospitals_sent_is_there_where_the_round_before_comes_back(
    task: FiledTask, aggregator: Aggregator
) -> None:
    """By then hospitals wait for the next round, and send nothing again."""
    grid: Any = None
    first = aggregator.rounds.ask(0).connect(grid, {}, [])
    kept = aggregator.task.replies_folder / "round-0" / "signed-0"
    kept.write_bytes(b"")
    assert aggregator.rounds.ask(0).connect(grid, {}, []) is first
    second = aggregator.rounds.ask(1).connect(grid, {}, [])
    assert (second.round, kept.exists()) == (1, True)
    assert aggregator.rounds.ask(0).connect(grid, {}, []) is first
    assert aggregator.rounds.ask(1).connect(grid, {}, []) is second
    aggregator.rounds.ask(2).connect(grid, {}, [])
    assert not kept.exists()


def test_one_unusable_key_makes_its_hospital_absent_and_nobody_else(
    task: FiledTask, aggregator: Aggregator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The contract refuses such a key. If one is there anyway, the other hospitals still take part."""
    keys = {0: KEYS[0].public, 1: b"", 2: KEYS[0].public, 3: KEYS[1].public}
    monkeypatch.setattr(aggregator.ledger.record, "transport_keys", lambda _: keys)
    known: dict[bytes, int] = {}
    register: Any = lambda key: known.setdefault(pem_of(key), 100 + len(known))  # noqa: E731
    monkeypatch.setattr(aggregator.membership, "register", register)
    assert aggregator.membership.nodes() == {0: 100, 3: 101}
    told = capsys.readouterr().out
    assert "transport-key-unusable" in told
    assert "transport-key-repeated" in told
