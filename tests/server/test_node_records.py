"""A node's record and rates: against a round that the chain settles and explains, and by their properties."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from chain_driver import LocalChain
from consilium_chain.ledger.structs import PayoutReason, Role
from consilium_chain.tasks.money_spec import TOKEN
from consilium_server.api import schemas
from consilium_server.api.nodes import annualised, is_new, realised_yield
from consilium_server.api.reading import at_head, open_engine
from consilium_server.api.record_reads import record_of
from consilium_server.api.record_schemas import Record
from consilium_server.index.indexer import Indexer
from decoy_driver import DecoyDriver
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from indexed_network import DAY, HOSPITALS, IndexedNetwork, app_of
from settled_rounds import expected

GOOD, BAD = [60_000, 40_000], [-80_000, -90_000]
ACCEPTED = (PayoutReason.PAID, PayoutReason.NO_IMPROVEMENT)
JUDGED = (*ACCEPTED, PayoutReason.HARMFUL, PayoutReason.REJECTED)


@pytest.mark.parametrize("database_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.deep)], indirect=True)
def test_a_record_agrees_with_what_the_contract_explains(
    local_chain: LocalChain, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hospital is silent, one withholds its upload; a voter is off, one takes decoys for sums, one never reveals."""
    monkeypatch.setattr(local_chain, "_pools", {role: [] for role in Role})  # accounts without a past
    task = DecoyDriver(local_chain, hospitals=4, voters=5, flipped=0b01, terms={"cohorts": 2, "rounds": 1})
    task.to_committing()
    silent, withheld = task.cohort(0)[0], task.cohort(1)[0]
    task.commit_all([i for i in range(4) if i != silent]).pass_deadline()
    task.tick().publish(survivors=[i for i in range(4) if i not in (silent, withheld)])
    off = task.ballot([60_100, 40_300], [-80_100, -90_100])
    ballots = [task.ballot(GOOD, BAD), task.ballot(GOOD, BAD), off, task.ballot(BAD, GOOD), None]
    task.draw().vote(ballots).pass_deadline()
    task.tick().open()
    wanted = expected(task, ballots, 0b01)

    engine = open_engine(database_url)
    Indexer(local_chain.treasury, engine).catch_up()
    with at_head(engine, local_chain.deployment) as at:
        hospitals = [record_of(at, node.address, Role.HOSPITAL) for node in task.nodes]
        voters = [record_of(at, judge.address, Role.VOTER) for judge in task.judges]
        aggregator = record_of(at, task.aggregator.address, Role.AGGREGATOR)
    engine.dispose()

    def reason(account: str) -> PayoutReason:
        return task.operator.tasks.explain(task.task, 1, account).reason

    for index, (node, found) in enumerate(zip(task.nodes, hospitals, strict=True)):
        why = reason(node.address)
        assert (found.accepted, found.rejected) == (why in ACCEPTED, why in JUDGED and why not in ACCEPTED), why
        # Round 0 and round 1. A hospital that committed nothing has nothing to upload.
        assert met(found) == {"commit": (2, 1 if index == silent else 2), "upload": uploads(index, silent, withheld)}
        assert found.cohort_median in (wanted.medians if why in JUDGED else [None])
        assert slashed(found) == ({"withheld_upload": 1} if index == withheld else {})
        assert found.last_duty is not None
        assert found.last_duty.made == (index not in (silent, withheld))
    for judge, ballot, found in zip(task.judges, ballots, voters, strict=True):
        why = reason(judge.address)
        assert (found.seats, met(found)) == (1, {"reveal": (1, ballot is not None)})
        assert (found.decoys_failed > 0) == (why is PayoutReason.FAILED_DECOY)
        assert found.decoys_passed + found.decoys_failed == (2 if ballot else 0)
        assert found.accepted + found.rejected == 0
    assert [found.distance for found in voters] == [0, 0, 200, mean_far(wanted.medians), None]
    assert slashed(voters[3]) == {"failed_decoy": 1}
    assert slashed(voters[4]) == {"not_revealed": 1}
    assert met(aggregator) == {"fix_survivors": (2, 2), "publish": (2, 2), "disclose": (1, 1)}
    assert (aggregator.accepted, aggregator.rejected) == (2, 0)
    assert sum(int(period.rewarded) for period in aggregator.periods) == sum(
        event["amount"] for event in task.events("Rewarded") if event["account"] == task.aggregator.address
    )


def met(found: Record) -> dict[str, tuple[int, int]]:
    return {one.duty: (one.due, one.made) for one in found.deadlines}


def slashed(found: Record) -> dict[str, int]:
    return {one.reason: one.count for one in found.slashes}


def uploads(index: int, silent: int, withheld: int) -> tuple[int, int]:
    return (1, 1) if index == silent else (2, 1) if index == withheld else (2, 2)


def mean_far(medians: tuple[int, ...]) -> int:
    return sum(abs(bad - median) for bad, median in zip(BAD, medians, strict=True)) // 2


# Rates


def pool(**values: int) -> Any:
    return SimpleNamespace(**({"generation": 0, "index_x48": 1} | values))


SUPPLY = 10**27


@given(
    shares=st.integers(TOKEN, SUPPLY),
    rewards=st.lists(st.integers(0, SUPPLY), max_size=5),
    commission=st.integers(0, 10_000),
    burnt=st.integers(0, 10_000),
)
def test_a_yield_is_what_shares_get_after_commission_and_slashes(
    shares: int, rewards: list[int], commission: int, burnt: int
) -> None:
    """The index as `Pools.sol` raises it. Rounding down takes at most a millionth for each reward."""
    index = 1
    for reward in rewards:
        vested = reward << 48
        index += (vested - vested * commission // 10_000) // shares
    left = shares - shares * burnt // 10_000
    end = pool(assets=left, shares=shares if left else 0, index_x48=index, generation=0 if left else 1)
    found = realised_yield(pool(assets=shares, shares=shares), end, 0, DAY)
    exact = sum(rewards) * (10_000 - commission) * 10**6 // (10_000 * shares)
    assert 0 <= exact - found.earned <= len(rewards) + 1
    assert abs(found.lost - burnt * 100) <= 1
    assert found.net == found.earned - found.lost


@given(net=st.integers(-(10**6), 10**9), seconds=st.integers(0, 400 * DAY))
def test_no_rate_comes_from_less_than_a_day_and_none_is_rounded_up(net: int, seconds: int) -> None:
    rate = annualised(schemas.Yield(since=1, until=1 + seconds, earned=max(net, 0), lost=max(-net, 0), net=net))
    if seconds < DAY:
        assert rate is None
    else:
        assert rate is not None
        assert rate * seconds <= net * 365 * DAY < (rate + 1) * seconds


@given(age=st.integers(0, 60 * DAY), paid=st.integers(0, 10))
def test_a_node_is_new_until_both_its_age_and_its_paid_rounds_say_something(age: int, paid: int) -> None:
    assert is_new(1, paid, 1 + age) == (age < 30 * DAY or paid < 5)
    assert is_new(None, paid, age)


def test_new_nodes_have_no_annual_rate_and_come_last_by_yield(tmp_path: Path) -> None:
    network = IndexedNetwork(tmp_path)
    old, best, late, idle, unstaked = HOSPITALS[:5]

    def pay(node: str, amount: int, rounds: range) -> None:
        for round_ in rounds:
            network.pay(1, round_, node, Role.HOSPITAL, "reward", amount)

    with network.mined(DAY):
        for node in (old, best, idle, unstaked):
            network.register(node, Role.HOSPITAL)
        for node in (old, best, idle):
            network.delegate(node, node, Role.HOSPITAL, 100 * TOKEN)
    network.block = 39
    with network.mined(DAY):
        network.register(late, Role.HOSPITAL)
        network.delegate(late, late, Role.HOSPITAL, 100 * TOKEN)
    with network.mined(DAY):
        pay(old, TOKEN, range(1, 6))
        pay(best, 2 * TOKEN, range(1, 6))
        pay(late, 50 * TOKEN, range(1, 6))
        pay(idle, 50 * TOKEN, range(1, 5))
    with TestClient(app_of(network)) as client:

        def listed(sort: str) -> list[dict[str, Any]]:
            return client.get(f"/v1/nodes?sort={sort}&days=30").json()["items"]  # type: ignore[no-any-return]

        nodes = listed("-yield")
        assert [one["node"] for one in nodes[:2]] == [best, old]
        assert [one["node"] for one in listed("yield")[:2]] == [old, best]
        assert all(one["is_new"] and one["annual_rate"] is None for one in nodes[2:])
        nets = [one["realised_yield"]["net"] for one in nodes[:2]]
        assert nets == [pytest.approx(100_000, abs=1), pytest.approx(50_000, abs=1)]
        assert [one["annual_rate"] for one in nodes[:2]] == [net * 365 // 30 for net in nets]
        month, quarter = (client.get(f"/v1/nodes/{best}/hospital?days={days}").json() for days in (30, 90))
        assert month["quarter"] == {name: quarter[name] for name in ("is_new", "realised_yield", "annual_rate")}
        assert month["quarter"]["realised_yield"]["since"] < month["realised_yield"]["since"]
        assert {one["own"] for one in nodes} == {str(100 * TOKEN), "0"}
        record = client.get(f"/v1/nodes/{late}/hospital/record").json()
        assert [(int(one["assets"]), int(one["rewarded"])) for one in record["periods"]] == [
            (100 * TOKEN, 0), (100 * TOKEN, 250 * TOKEN),
        ]  # fmt: skip
        assert client.get(f"/v1/nodes/{late}/voter/record").status_code == 404
    network.engine.dispose()
