"""The indexer on a real chain and in both databases: its tables equal the contracts' state after any reorganisation."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from chain_driver import LocalChain, TaskDriver
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import ChainUnreachable
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Outcome, Phase, Role, Stake
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.event_logs import Event
from consilium_chain.rpc.logs import Logs
from consilium_server.database.engine import open_database, reading, writing
from consilium_server.database.tables import (
    Base,
    Block,
    Checkpoint,
    Cohort,
    EventRow,
    Funding,
    OutcomeRow,
    Participant,
    Payment,
    PhaseStart,
    PoolRow,
    Position,
    Spec,
    TaskRow,
    UnbondingRow,
)
from consilium_server.errors import DatabaseUnfit
from consilium_server.index import indexer as indexing
from consilium_server.index import store
from consilium_server.index.indexer import Indexer
from consilium_server.index.rebuilding import reindex
from index_driver import Traffic, changeable_chain
from raised_faults import raises_fault
from sqlalchemy import Engine, delete, func, select, update
from task_files import DATA

TASK = f"""
name = "a task"
{DATA}
[model]
name = "logistic"
[update]
bits = 24
[rounds]
max_hospitals = 4
"""


# How the chain is read has nothing to do with where it is kept.
ONE_DATABASE = pytest.mark.parametrize(
    "database_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.deep)], indirect=True
)


@pytest.fixture(scope="module")
def traffic() -> Iterator[Traffic]:
    """A chain for one test, which reorganises it."""
    with changeable_chain() as chain:
        yield Traffic(chain, seed=7).steps(150)


def reader(chain: LocalChain, kind: type[Logs] = Logs) -> Ledger:
    connection = Connection(chain.node.url)
    connection.logs = kind(connection.endpoint, connection.blocks)
    return Ledger(connection, chain.deployment)


def rows(database: Engine, kind: type[Base], *where: Any) -> list[Any]:
    """Rows in the order of the chain."""
    with reading(database) as connection:
        table = store.table_of(kind)
        found = connection.execute(select(table).where(*where).order_by(*table.primary_key))
        return [kind(**row._mapping) for row in found]


def same_as_anew(database: Engine, ledger: Ledger, folder: Path) -> int:
    """The number of rows; raises IndexDiffers if a fresh index has others."""
    return reindex(ledger, database, None, folder, replace=False)


# What is kept


def test_pools_and_positions_are_the_chains_own(traffic: Traffic, database: Engine) -> None:
    """Compares totals that come from events only with the contract's answers at the last event's block."""
    traffic.steps(100).touch()
    ledger = reader(traffic.chain)
    Indexer(ledger, database).catch_up()
    pools = {(row.node, row.role): row for row in rows(database, PoolRow)}
    assert set(pools) == {(node, int(role)) for node, role in traffic.nodes}
    assert any(pool.generation for pool in pools.values())
    assert any(pool.unbonding_shares for pool in pools.values())
    for (node, role), pool in pools.items():
        said = ledger.staking.pool(node, Role(role), pool.block)
        for kept, name in (
            ("assets", "assets"), ("shares", "shares"), ("unbonding_shares", "unbondingShares"), ("locked", "locked"),
            ("generation", "generation"), ("commission_bps", "commissionBps"),
        ):  # fmt: skip
            assert getattr(pool, kept) == said[name], (node, role, kept)
        assert 0 <= said["indexX48"] - pool.index_x48 <= said["indexX48"] // 100  # vested since: the call is later
        announced = (said["nextCommissionBps"], said["nextCommissionAt"]) if said["nextCommissionAt"] else (None, None)
        assert (pool.next_commission_bps, pool.next_commission_at) == announced
        paid = ledger.withdrawal.of(node, Role(role))
        kept_address = (pool.withdrawal_address, pool.next_withdrawal_address, pool.next_withdrawal_at or 0)
        if pool.next_withdrawal_at and pool.next_withdrawal_at <= ledger.connection.blocks.now():
            kept_address = (pool.next_withdrawal_address, None, 0)
        assert kept_address == (paid.current, paid.next, paid.next_at)
        earning = pool.shares - pool.unbonding_shares
        active = earning * pool.assets // pool.shares if pool.shares else 0
        stake = Stake(active, max(0, active - pool.locked), pool.locked, pool.assets - active)
        assert ledger.staking.stake_of(node, Role(role)) == stake
    positions = {(row.delegator, row.node, row.role): row for row in rows(database, Position)}
    for delegator in traffic.actors:
        for node, role in traffic.nodes:
            position = positions.get((delegator, node, int(role)))
            held = position.shares if position and position.generation == pools[node, int(role)].generation else 0
            shares, _, _ = ledger.connection.call(
                ledger.contracts.staking.contract.functions.positionOf(delegator, node, role)
            )
            assert held == shares
    requests = {(row.delegator, row.request): row for row in rows(database, UnbondingRow)}
    open_ = [row for row in requests.values() if row.shares]
    assert open_
    assert len(open_) < len(requests)
    for actor in traffic.actors:
        kept_open = {row.request: row.matures_at for row in open_ if row.delegator == actor}
        assert kept_open == {one.request: one.matures_at for one in ledger.staking.unbondings(actor)}


def test_a_task_is_kept_as_the_contract_tells_it(traffic: Traffic, database: Engine) -> None:
    driver = TaskDriver(traffic.chain, hospitals=2, voters=1, terms={"rounds": 2, "tick_bounty": 3, "pool": 10_000_001})
    driver.operator.operator.fund(driver.task, 500)
    driver.to_scoring().judge([[50_000]])  # round 1 is settled; nobody commits in round 2
    driver.form().pass_deadline()
    driver.tick()
    assert driver.phase is Phase.ENDED
    ledger, task = reader(traffic.chain), driver.task
    Indexer(ledger, database).catch_up()

    (proposed,) = rows(database, TaskRow, TaskRow.task == task)
    assert (proposed.operator, proposed.aggregator) == (driver.operator.address, driver.aggregator.address)
    assert (proposed.pool, proposed.spec_hash) == (10_000_001, driver.params.spec_hash)
    assert proposed.params["pool"] == 10_000_001
    assert [row.pool for row in rows(database, Funding, Funding.task == task)] == [10_000_501]
    assert proposed.params["hospital_bond"] == str(driver.params.hospital_bond)  # above 2^53
    assert (proposed.params["rounds"], proposed.params["decoys"]) == (2, False)
    phases = rows(database, PhaseStart, PhaseStart.task == task)
    assert (phases[0].phase, phases[-1].phase) == (Phase.JOINING, Phase.ENDED)
    joined = rows(database, Participant, Participant.task == task)
    hospitals = [(row.account, row.weight) for row in joined if row.role == Role.HOSPITAL]
    assert hospitals == [(one.node, one.weight) for one in ledger.tasks.hospitals(task)]
    assert [row.account for row in joined if row.role == Role.VOTER] == [one.node for one in ledger.tasks.voters(task)]
    assigned = {(row.round, row.item): row.members for row in rows(database, Cohort, Cohort.task == task)}
    assert assigned == {(round_, 0): ledger.tasks.cohort_members(task, round_, 0) for round_ in (1, 2)}
    for outcome in rows(database, OutcomeRow, OutcomeRow.task == task):
        said = ledger.tasks.round_state(task, outcome.round)
        assert (outcome.outcome, outcome.reason) == (said.outcome, said.void_reason)
        assert (tuple(outcome.medians), outcome.accepted) == (said.medians, said.accepted_cohorts)
    assert {row.outcome for row in rows(database, OutcomeRow, OutcomeRow.task == task)} == {
        Outcome.SETTLED, Outcome.VOID,
    }  # fmt: skip
    payments = rows(database, Payment, Payment.task == task)
    for account in [row.account for row in joined]:
        rewarded = [row.amount for row in payments if (row.account, row.kind) == (account, "reward")]
        assert sum(rewarded) == ledger.tasks.explain(task, 1, account).reward > 0
    assert [row.amount for row in payments if row.kind == "bounty"] == [3]
    in_all = sum(row.amount for row in payments if row.kind in ("reward", "bounty", "refund"))
    assert in_all == 10_000_501


def test_a_pool_that_grows_is_followed_and_never_told_twice(traffic: Traffic, database: Engine, tmp_path: Path) -> None:
    """The task is indexed before and after its pool grows, and after a reorganisation of the addition."""

    def kept() -> list[int]:
        follower.catch_up()
        assert same_as_anew(database, reader(traffic.chain), tmp_path)
        return [row.pool for row in rows(database, Funding, Funding.task == driver.task)]

    follower = Indexer(reader(traffic.chain), database)
    driver = TaskDriver(traffic.chain, terms={"pool": 1_000})
    assert kept() == []
    driver.operator.operator.fund(driver.task, 1)
    driver.operator.operator.fund(driver.task, 2)
    assert kept() == [1_001, 1_003]
    traffic.reorganise(1)  # the second one's allowance stays
    assert kept() == [1_001]
    driver.operator.operator.fund(driver.task, 3)
    assert kept() == [1_001, 1_004]
    (proposed,) = rows(database, TaskRow, TaskRow.task == driver.task)
    assert (proposed.pool, proposed.params["pool"]) == (1_000, 1_000)


def test_every_event_is_kept_with_its_place_and_its_blocks_time(traffic: Traffic, database: Engine) -> None:
    ledger = reader(traffic.chain)
    last = Indexer(ledger, database).catch_up()
    events = list(ledger.logs.between(None, last))
    kept = rows(database, EventRow)
    places = [(event.block, event.index, event.name, event.transaction) for event in events]
    assert [(row.block, row.log_index, row.name, "0x" + row.transaction.hex()) for row in kept] == places
    for block in random.Random(1).sample(rows(database, Block), 20):
        head = ledger.connection.blocks.head(block.number)
        assert head is not None
        assert (block.hash, block.time) == (head.hash, head.time)


# How it is read


class Narrow(Logs):
    """A node that returns events of seven blocks at most."""

    asked: int = 0

    def events_of(self, contracts: Sequence[Any], first_block: int, last_block: int) -> list[Event]:
        self.asked += 1
        if last_block - first_block >= 7:
            raise ChainUnreachable(self._endpoint.shown_url, "query exceeds max block range")
        return super().events_of(contracts, first_block, last_block)


@ONE_DATABASE
def test_ranges_shrink_until_the_node_gives_them(traffic: Traffic, database: Engine, tmp_path: Path) -> None:
    ledger = reader(traffic.chain, Narrow)
    last = Indexer(ledger, database).catch_up()
    assert isinstance(ledger.connection.logs, Narrow)
    assert ledger.connection.logs.asked < 2 * last / 4 + 20  # of seven blocks at least four are read at once
    assert same_as_anew(database, reader(traffic.chain), tmp_path) > 500


@ONE_DATABASE
def test_ranges_shrink_where_there_are_many_events(
    traffic: Traffic,
    database: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(indexing, "MANY_EVENTS", 20)
    monkeypatch.setattr(indexing, "MOST_EVENTS", 40)
    Indexer(reader(traffic.chain), database).catch_up()
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    ranges = [one for one in told if one["event"] == "indexed"]
    assert len(ranges) > 5
    assert all(one["events"] <= 40 or one["first"] == one["last"] for one in ranges)
    monkeypatch.undo()
    assert same_as_anew(database, reader(traffic.chain), tmp_path)


@ONE_DATABASE
def test_a_node_that_gives_no_events_is_told_and_nothing_kept(traffic: Traffic, database: Engine) -> None:
    class Silent(Logs):
        def events_of(self, contracts: Sequence[Any], first_block: int, last_block: int) -> list[Event]:
            raise ChainUnreachable(self._endpoint.shown_url, "rate limit")

    with pytest.raises(ChainUnreachable, match="rate limit"):
        Indexer(reader(traffic.chain, Silent), database).catch_up()
    assert rows(database, Block) == []
    assert rows(database, Checkpoint) == []


@ONE_DATABASE
def test_the_chain_may_be_reorganised_while_it_is_read(traffic: Traffic, database: Engine, tmp_path: Path) -> None:
    chain = traffic.chain

    class Moving(Logs):
        """Another branch wins after each of the first three answers."""

        moves = 3

        def events_of(self, contracts: Sequence[Any], first_block: int, last_block: int) -> list[Event]:
            found = super().events_of(contracts, first_block, last_block)
            if self.moves:
                self.moves -= 1
                traffic.reorganise(5)
                traffic.steps(8)
            return found

    Indexer(reader(chain), database).catch_up()
    traffic.steps(8)
    ledger = reader(chain, Moving)
    Indexer(ledger, database).catch_up()
    assert isinstance(ledger.connection.logs, Moving)
    assert ledger.connection.logs.moves == 0
    assert same_as_anew(database, reader(chain), tmp_path)


@ONE_DATABASE
def test_a_log_of_another_branch_is_not_kept(traffic: Traffic, database: Engine, tmp_path: Path) -> None:
    class Astray(Logs):
        """Another machine at the same address, on another branch, gives one answer."""

        strays = 2

        def events_of(self, contracts: Sequence[Any], first_block: int, last_block: int) -> list[Event]:
            found = super().events_of(contracts, first_block, last_block)
            if self.strays and found:
                self.strays -= 1
                found[-1] = replace(found[-1], block_hash=bytes(32), values={})
            return found

    traffic.steps(10)
    ledger = reader(traffic.chain, Astray)
    Indexer(ledger, database).catch_up()
    assert same_as_anew(database, reader(traffic.chain), tmp_path)


@ONE_DATABASE
@pytest.mark.parametrize("name", ["NodeRegistered", "UnbondingStarted", "StakeLocked"])
def test_a_node_that_leaves_events_out_is_found_out_where_they_do_not_add_up(
    traffic: Traffic, database: Engine, name: str
) -> None:
    class Forgetful(Logs):
        def events_of(self, contracts: Sequence[Any], first_block: int, last_block: int) -> list[Event]:
            found = super().events_of(contracts, first_block, last_block)
            return [event for event in found if event.name != name]

    ledger = reader(traffic.chain, Forgetful)
    with raises_fault(DatabaseUnfit, "EventsInconsistent"):
        Indexer(ledger, database).catch_up()
    assert rows(database, Block) == []


# Reorganisations


@pytest.mark.parametrize(
    ("database_url", "seed"),
    [
        ("sqlite", 0), ("postgresql", 1),
        *(pytest.param(*one, marks=pytest.mark.deep) for one in (("sqlite", 1), ("postgresql", 0))),
    ],
    indirect=["database_url"],
)  # fmt: skip
def test_reorganisations_of_any_depth_leave_what_a_fresh_index_has(
    traffic: Traffic, database: Engine, tmp_path: Path, seed: int
) -> None:
    source, chain = random.Random(seed), traffic.chain
    follower = Indexer(reader(chain), database)
    follower.catch_up()
    for _ in range(4):
        traffic.steps(source.randint(1, 30))
        if source.random() < 0.7:
            follower.catch_up()
        traffic.reorganise(source.randint(1, 60))
        if source.random() < 0.5:
            traffic.steps(source.randint(1, 10))
        follower.catch_up()
    assert same_as_anew(database, reader(chain), tmp_path)


@ONE_DATABASE
def test_a_chain_that_became_shorter_is_followed(traffic: Traffic, database: Engine, tmp_path: Path) -> None:
    follower = Indexer(reader(traffic.chain), database)
    with traffic.chain.undone():
        traffic.steps(30)
        longest = follower.catch_up()
    assert follower.catch_up() < longest
    assert same_as_anew(database, reader(traffic.chain), tmp_path)


@ONE_DATABASE
def test_a_fork_below_all_checkpoints_is_found_by_its_blocks(
    traffic: Traffic, database: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    follower = Indexer(reader(traffic.chain), database)
    traffic.steps(60)
    last = traffic.chain.treasury.connection.blocks.number()
    follower.catch_up(last)
    with writing(database) as connection:
        connection.execute(delete(store.table_of(Checkpoint)).where(Checkpoint.number < last))
    before = rows(database, Block)
    traffic.reorganise(30)
    follower.catch_up(last)
    kept = [block for block in before if block in rows(database, Block)]
    assert 0 < len(kept) < len(before)  # not everything was read anew for it, and what is gone is gone
    assert "reorganised" in (told := capsys.readouterr().out)
    assert f'"fork": {kept[-1].number}' in told
    assert same_as_anew(database, reader(traffic.chain), tmp_path)


# Several at once, and others' tables


@pytest.fixture(scope="module")
def untouched() -> Iterator[Traffic]:
    """A chain that nobody takes back: anvil (1.7.1) may be left without one of its blocks then, for which ranges that
    end there wait for good.
    """
    with changeable_chain() as chain:
        yield Traffic(chain, seed=5).steps(100)


def test_two_indexers_at_once_keep_everything_once(
    untouched: Traffic, database_url: str, database: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "FIRST_SPAN", 5)
    monkeypatch.setattr(indexing, "LONGEST_SPAN", 20)
    failures: list[BaseException] = []

    def follow() -> None:
        own = open_database(database_url)
        try:
            Indexer(reader(untouched.chain), own).catch_up()
        except BaseException as error:
            failures.append(error)
        finally:
            own.dispose()

    threads = [Thread(target=follow) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert same_as_anew(database, reader(untouched.chain), tmp_path)


def test_tables_of_other_contracts_are_left_alone(traffic: Traffic, database: Engine) -> None:
    Indexer(reader(traffic.chain), database).catch_up()
    before = len(rows(database, EventRow))
    ledger = reader(traffic.chain)
    other = replace(ledger.deployment, tasks=ledger.deployment.staking)
    with raises_fault(DatabaseUnfit, "SourceMismatch", match=other.tasks):
        Indexer(Ledger(ledger.connection, other), database).catch_up()
    assert len(rows(database, EventRow)) == before


# Building anew


def _drop(database: Engine) -> None:
    with writing(database) as connection:
        first = select(func.min(Block.number)).scalar_subquery()
        connection.execute(delete(store.table_of(Block)).where(Block.number == first))


def _change(database: Engine) -> None:
    with writing(database) as connection:
        first = select(func.min(Position.block)).scalar_subquery()
        table = store.table_of(Position)
        connection.execute(update(table).where(Position.block == first).values(shares=2**127))


def _invent(database: Engine) -> None:
    (block, *_) = rows(database, Block)
    with writing(database) as connection:
        store.add(connection, [Cohort(block.number, 10**6, 0, task=1, round=1, members=1)])


@pytest.mark.parametrize(
    ("database_url", "tamper"),
    [
        ("sqlite", _drop), ("sqlite", _change), ("sqlite", _invent), ("postgresql", _change),
        *(pytest.param("postgresql", tamper, marks=pytest.mark.deep) for tamper in (_drop, _invent)),
    ],
    indirect=["database_url"],
)  # fmt: skip
def test_reindex_tells_what_differs_and_puts_it_right(
    traffic: Traffic, database: Engine, tmp_path: Path, tamper: Callable[[Engine], None]
) -> None:
    ledger = reader(traffic.chain)
    Indexer(ledger, database).catch_up()
    good = same_as_anew(database, ledger, tmp_path)
    tamper(database)
    with raises_fault(DatabaseUnfit, "IndexDiffers") as caught:
        same_as_anew(database, ledger, tmp_path)
    assert caught.value.values["rows"] >= 1
    assert reindex(ledger, database, None, tmp_path, replace=True) >= good
    assert same_as_anew(database, ledger, tmp_path) >= good
    assert list(tmp_path.glob("reindex-*")) == []


def test_tables_that_cannot_be_brought_on_are_replaced(traffic: Traffic, database: Engine, tmp_path: Path) -> None:
    ledger = reader(traffic.chain)
    Indexer(ledger, database).catch_up()
    with writing(database) as connection:
        connection.execute(delete(store.table_of(PoolRow)))
    traffic.touch()
    with raises_fault(DatabaseUnfit, "EventsInconsistent"):
        reindex(ledger, database, None, tmp_path, replace=False)
    assert reindex(ledger, database, None, tmp_path, replace=True) > 200
    assert same_as_anew(database, ledger, tmp_path) > 200


@ONE_DATABASE
def test_task_files_are_fetched_when_the_store_has_them(
    traffic: Traffic, database: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, ledger = ArtifactStore(tmp_path / "artifacts"), reader(traffic.chain)
    right, wrong = TASK.encode(), b'no = "task"'
    elsewhere = ArtifactStore(tmp_path / "elsewhere")
    digests = [elsewhere.put_file(right), elsewhere.put_file(wrong)]
    for digest in digests:
        TaskDriver(traffic.chain, terms={"spec_hash": digest})
    follower = Indexer(ledger, database, store)
    follower.catch_up()  # there is not even a folder
    follower.catch_up()
    assert rows(database, Spec) == []
    told = capsys.readouterr().out
    assert told.count(digests[0].hex()) == 1  # once
    for digest, raw in zip(digests, (right, wrong), strict=True):
        assert store.put_file(raw) == digest
    (tmp_path / "artifacts" / f"file-{digests[0].hex()}").write_bytes(right + b"#")
    follower.catch_up()
    assert rows(database, Spec) == []
    store.put_file(right)
    follower.catch_up()
    assert rows(database, Spec) == [Spec(digests[0], right.decode())]
    assert reindex(ledger, database, store, tmp_path, replace=False)
