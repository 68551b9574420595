"""Going live, rehearsed: a whole task by everybody's own commands, on a chain that takes blocks back in every phase."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from consilium_chain.deploying.networks import read_networks
from rehearsal.play import plan
from rehearsal.settings import testnet as live

from bench.chain import testnet as bench

ROUNDS = 1


def test_the_page_has_the_tables_of_the_results() -> None:
    """After a change of settings, prices or results, `python -m bench.chain.testnet --page` writes the page anew."""
    page = bench.PAGE.read_text()
    for name, lines in bench.tables(bench.read()).items():
        assert "\n".join([bench.MARK.format(name), *lines, bench.END]) in page, name


def test_the_settings_are_those_of_the_network_that_ships() -> None:
    shipped = read_networks(None).networks[live().network.name]
    assert (shipped.chain_id, shipped.beacon.lookahead) == (live()["chain_id"], live().network.drand_lookahead_s)


def assert_sound(told: dict[str, Any]) -> None:
    assert [one["outcome"] for one in told["rounds"]] == ["settled"] * (ROUNDS + 1), told
    assert [one["slashed"] for one in told["rounds"]] == [0] * (ROUNDS + 1), told
    assert (told["books"]["difference"], told["books"]["pools"], told["stuck"]) == ("0", "0", []), told
    assert told["sidecars"]["blobs"] >= ROUNDS + 1


@pytest.mark.deep
@pytest.mark.timeout(1_800)
def test_a_task_outlasts_blocks_taken_back_in_every_phase(tmp_path: Path) -> None:
    """As `bench/chain/testnet.py`, with blocks every two seconds and one round."""
    told = bench.measure(tmp_path / "net", ROUNDS, block_seconds=2)
    assert_sound(told)
    planned = {(one.round, one.phase.name.lower()) for one in plan(ROUNDS, bench.DEPTHS)}
    assert planned <= {(one["round"], one["phase"]) for one in told["upheavals"]}
