"""All nodes, added up block by block, are the same as read anew."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from consilium_chain.ledger.structs import Role
from consilium_server.api import nodes
from consilium_server.api.nodes import AllNodes, NodeTable
from consilium_server.api.reading import at_head
from indexed_network import DELEGATORS, HOSPITALS, VOTERS, IndexedNetwork, account, populated

NODES = [*((one, Role.HOSPITAL) for one in HOSPITALS), *((one, Role.VOTER) for one in VOTERS)]


@pytest.fixture
def network(tmp_path: Path) -> Iterator[IndexedNetwork]:
    network = populated(tmp_path)
    yield network
    network.engine.dispose()


def seen(network: IndexedNetwork, table: NodeTable, days: int = 30) -> AllNodes:
    with at_head(network.engine, network.deployment) as at:
        return table.at(at, days)


def play(network: IndexedNetwork, chance: random.Random) -> None:
    """A block with a few events that change nodes."""
    with network.mined():
        for _ in range(chance.randint(1, 4)):
            node, role = chance.choice(NODES)
            match chance.randrange(5):
                case 0:
                    before = chance.choice((0, 5))
                    network.delegate(chance.choice([node, *DELEGATORS]), node, role, chance.randint(1, 9), before)
                case 1:
                    network.pay(2, chance.randint(0, 9), node, role, "reward", chance.randint(1, 99))
                case 2 if network.pools[node, role]["assets"] > 1:
                    network.pay(2, chance.randint(0, 9), node, role, "slash", 1)
                case 3:  # a slash of all stake: shares of before are worth nothing
                    place = network.told("staking", "StakeSlashed", {"amount": "0"}, account=node, role=role)
                    generation = network.pools[node, role]["generation"] + 1
                    network.pool(place, node, role, generation=generation, shares=0, assets=0, unbonding_shares=0)
                case _:
                    newcomer = account(f"newcomer {network.block} {network.fork} {network.log}")
                    network.register(newcomer, Role.HOSPITAL)
                    if chance.random() < 0.5:  # the others stake later, or never
                        network.delegate(newcomer, newcomer, Role.HOSPITAL, 7)


@pytest.mark.parametrize("seed", range(3))
def test_a_table_that_follows_equals_one_that_is_read_anew(network: IndexedNetwork, seed: int) -> None:
    chance, table = random.Random(seed), NodeTable()
    for step in range(40):
        if step and chance.random() < 0.2:
            pools = {key: dict(pool) for key, pool in network.pools.items()}
            network.reorganise(max(2, network.block - chance.randint(0, 2)))
            network.pools = pools
        play(network, chance)
        if chance.random() < 0.6:  # not every block has a reader
            for days in (1, 30):
                assert seen(network, table, days) == seen(network, NodeTable(), days)


def test_a_failure_in_the_middle_of_a_block_leaves_no_half_of_it(
    network: IndexedNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = NodeTable()
    seen(network, table)
    with network.mined():
        network.pay(2, 1, HOSPITALS[3], Role.HOSPITAL, "slash", 1)
    with monkeypatch.context() as patch:
        patch.setattr(nodes, "_all_nodes", lambda *_: (_ for _ in ()).throw(OSError("the database went away")))
        with pytest.raises(OSError, match="went away"):
            seen(network, table)
    assert seen(network, table) == seen(network, NodeTable())


def test_a_reader_of_the_last_state_does_not_undo_the_newer_one(network: IndexedNetwork) -> None:
    table = NodeTable()
    with at_head(network.engine, network.deployment) as old:
        before = table.at(old, 30)
        with network.mined():
            network.pay(2, 1, HOSPITALS[3], Role.HOSPITAL, "slash", 1)
        after = seen(network, table)
        assert table.at(old, 30) is before
    assert seen(network, table) is after != before


def test_a_table_rebuilt_under_the_same_blocks_is_read_anew_in_time(
    network: IndexedNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = NodeTable()
    seen(network, table)
    assert table._gathered is not None
    table._gathered.slashes[HOSPITALS[0], Role.HOSPITAL] += 1  # as an index of an older version had it
    monkeypatch.setattr(nodes, "RELOADED", 0.0)
    with network.mined():
        network.pay(2, 1, HOSPITALS[3], Role.HOSPITAL, "slash", 1)
    assert seen(network, table) == seen(network, NodeTable())
