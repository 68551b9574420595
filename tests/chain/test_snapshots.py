"""Tasks read once per block, for all threads of a node: what the contracts say, in one request."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from address_books import made_up_book
from chain_driver import BOND, LocalChain, TaskDriver, refused
from consilium_chain.errors import ChainUnreachable, DeploymentInvalid
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Role
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.looks import MOST_CALLS, Asked, parse_look, program
from consilium_chain.rpc.pace import Pace
from consilium_chain.transport_keys import TransportKey
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st
from rehearsal.provider import Provider, provider

WHO = "node"


@pytest.fixture(scope="module")
def between(local_chain: LocalChain) -> Iterator[Provider]:
    with provider(local_chain.node.url) as found:
        yield found


@pytest.fixture
def ledger(local_chain: LocalChain, between: Provider) -> Ledger:
    """A reader whose requests are counted."""
    found = Ledger(Connection(between.of(WHO)), local_chain.deployment)
    between.asked[WHO].clear()
    return found


def slow_down(ledger: Ledger) -> None:
    """As after many blocks of a minute: the next one is not due yet."""
    heartbeat = ledger.connection.blocks.heartbeat
    heartbeat.pace = replace(heartbeat.pace, gaps=(60.0,) * 20, block_seconds=60.0, next_at=time.monotonic() + 60)


def test_snapshot_is_the_chains_at_one_block(local_chain: LocalChain, ledger: Ledger, between: Provider) -> None:
    task = TaskDriver(local_chain).to_committing()
    seen = ledger.snapshots.of(task.task, Role.HOSPITAL)
    assert seen.state == task.operator.tasks.state(task.task)
    assert seen.round == task.round_state
    assert seen.time == ledger.connection.blocks.time_of(seen.block)
    assert seen.roster is None  # nothing can undo joining any more
    between.asked[WHO].clear()
    ledger.snapshots.of(task.task, Role.HOSPITAL)
    assert between.asked[WHO] == {"eth_call": 1}


def test_roster_changes_with_members_and_their_order(local_chain: LocalChain, ledger: Ledger) -> None:
    task = TaskDriver(local_chain)
    task.aggregator.aggregator.join(task.task)
    rosters = [ledger.snapshots.of(task.task, Role.HOSPITAL).roster]
    for order in ((0, 1), (1, 0)):
        with local_chain.undone():
            for index in order:
                task.nodes[index].hospital.join(task.task, 10, TransportKey.generate())
                rosters.append(ledger.snapshots.of(task.task, Role.HOSPITAL).roster)
            accounts, roster = ledger.snapshots.members(task.task, Role.HOSPITAL)
            assert accounts == [task.nodes[index].address for index in order]
            assert roster == rosters[-1]
    assert len(set(rosters)) == 5


def test_many_tasks_share_few_requests(local_chain: LocalChain, ledger: Ledger, between: Provider) -> None:
    tasks = [TaskDriver(local_chain, hospitals=1).task for _ in range(MOST_CALLS)]
    for task in tasks:
        ledger.snapshots.of(task, Role.HOSPITAL)
    slow_down(ledger)
    ledger.connection.blocks.heartbeat.reach(1 << 62)
    between.asked[WHO].clear()
    for task in tasks:
        assert ledger.snapshots.of(task, Role.HOSPITAL).state == local_chain.treasury.tasks.state(task)
    assert between.asked[WHO] == {"eth_call": 3}  # for three values of each
    for task in tasks:
        ledger.snapshots.forget(task)
    assert not ledger.connection.blocks.heartbeat._wanted


def test_snapshot_is_kept_until_the_next_block_is_due(
    local_chain: LocalChain, between: Provider, ledger: Ledger
) -> None:
    task = TaskDriver(local_chain).join()
    first = ledger.snapshots.of(task.task, Role.VOTER)
    slow_down(ledger)
    between.asked[WHO].clear()
    assert ledger.snapshots.of(task.task, Role.VOTER) == first
    assert between.asked[WHO] == {}


@pytest.mark.deep
def test_own_transaction_makes_an_older_snapshot_void(local_chain: LocalChain) -> None:
    """Else a node would take a step again that it took a moment ago."""
    task = TaskDriver(local_chain)
    node = task.nodes[0]
    task.aggregator.aggregator.join(task.task)
    before = node.snapshots.of(task.task, Role.HOSPITAL)
    slow_down(node)
    node.hospital.join(task.task, 10, TransportKey.generate(), stake=BOND)
    after = node.snapshots.of(task.task, Role.HOSPITAL)
    assert (before.state.active_hospitals, after.state.active_hospitals) == (0, 1)
    assert after.block > before.block


def test_threads_that_wait_ask_once(local_chain: LocalChain, between: Provider, ledger: Ledger) -> None:
    heartbeat = ledger.connection.blocks.heartbeat
    seen = heartbeat.wait_after(-1, 0)
    heartbeat.pace = replace(
        heartbeat.pace, gaps=(60.0,), block_seconds=60.0, lag=0.0, next_at=time.monotonic() + 1
    )  # by then anvil has another block
    between.asked[WHO].clear()
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(heartbeat.wait_after(seen, 30))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert found[0] > seen
    assert between.asked[WHO] == {"eth_call": 1}


def test_a_wait_ends_without_a_block(ledger: Ledger, between: Provider) -> None:
    seen = ledger.connection.blocks.wait_after(-1)
    slow_down(ledger)
    between.asked[WHO].clear()
    started = time.monotonic()
    assert ledger.connection.blocks.wait_after(seen, 0.2) == seen
    assert 0.2 <= time.monotonic() - started < 30
    assert between.asked[WHO] == {}


def test_snapshot_names_what_is_missing(local_chain: LocalChain, ledger: Ledger) -> None:
    with refused("TaskUnknown"):
        ledger.snapshots.of(1 << 40, Role.HOSPITAL)
    elsewhere = replace(made_up_book(), chain_id=local_chain.deployment.chain_id)
    with pytest.raises(DeploymentInvalid, match="no contract at"):
        Ledger(Connection(local_chain.node.url), elsewhere).snapshots.of(1, Role.HOSPITAL)


def test_a_node_that_fails_is_asked_again(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = ledger.connection.blocks
    blocks.wait_after(-1)
    slow_down(ledger)
    blocks.heartbeat.reach(1 << 62)
    with monkeypatch.context() as patch:
        patch.setattr(ledger.connection.endpoint, "ask", lambda *_: "0x00")
        for _ in range(2):  # no kept answer hides that
            with pytest.raises(ChainUnreachable, match="not a chain node"):
                ledger.snapshots.task_count()
    assert ledger.snapshots.task_count() == ledger.tasks.count()


def words(*values: int | bytes) -> bytes:
    return b"".join(value.to_bytes(32, "big") if isinstance(value, int) else value for value in values)


def test_look_is_parsed_or_refused() -> None:
    asked = [Asked(b"a" * 20, b"1"), Asked(b"a" * 20, b"2", hashed=True), Asked(b"a" * 20, b"3")]
    right = words(7, 1_700_000_000, 1, 3, b"abc", 1, 900, keccak(b"long"), 0, 4, b"fail")
    look = parse_look(asked, "0x" + right.hex())
    assert (look.number, look.time) == (7, 1_700_000_000)
    assert look.answers == {asked[0]: b"abc", asked[1]: keccak(b"long"), asked[2]: None}
    for wrong in (right[:-1], right + b"\0", b"", words(1 << 64, 1) + right[64:], words(7, 1, 1, 1 << 255)):
        with pytest.raises(ValueError, match="the answer"):
            parse_look(asked, "0x" + wrong.hex())
    others: tuple[object, ...] = (None, 7, "7", [], {})
    for other in others:
        with pytest.raises(TypeError):
            parse_look(asked, other)


@given(st.text(max_size=300), st.binary(max_size=300))
def test_look_of_any_answer_is_parsed_or_refused(text: str, raw: bytes) -> None:
    asked = [Asked(b"a" * 20, b""), Asked(b"b" * 20, b"", hashed=True)]
    for answer in (text, "0x" + text, "0x" + raw.hex()):
        try:
            parse_look(asked, answer)
        except (TypeError, ValueError):
            continue


def test_largest_program_fits_into_a_request() -> None:
    """EIP-3860 allows 49,152 bytes of code."""
    asked = [Asked(bytes(20), bytes([number]) * 100) for number in range(MOST_CALLS)]
    assert len(program(asked)) < 4_096
    assert Pace().is_fast
