"""A task's cost at given prices; tests/chain/test_estimate.py has the bytes of played tasks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from consilium_chain.rpc.abi import contract_artifact
from consilium_chain.tasks.chain_terms import ChainTerms
from consilium_chain.tasks.costs import Prices, _relayed, byte_price, posted_bytes, task_costs
from consilium_chain.tasks.estimate import estimate
from consilium_chain.tasks.fees import DRAND, LEVELS, assumed_fees, network_costs
from consilium_chain.tasks.task_spec import TaskSpec
from hypothesis import given
from hypothesis import strategies as st
from web3 import Web3

DATA = {"label": "sick", "classes": ["no", "yes"], "features": [{"name": "age", "min": 0.0, "max": 120.0}]}
FIELDS = ("gas", "blob_gas", "byte", "ether")
SIGNED = 130  # bytes of a signed transaction without its data, at most
FREE = Prices(0, 0, 0, 300_000)
PRICES = st.builds(Prices, *(st.integers(0, 10**12) for _ in FIELDS))


def task(publication: str = "blobs") -> TaskSpec:
    return TaskSpec.model_validate({
        "name": "priced", "data": DATA, "model": {"name": "logistic"}, "update": {"publication": publication},
        "rounds": {"rounds": 5, "cohorts": 2, "min_hospitals": 6, "max_hospitals": 8},
        "judging": {"max_voters": 3, "seats": 3, "min_reveals": 2},
        "money": {"pool": 100_000, "aggregator_bond": 8_000},
    })  # fmt: skip


SPECS = {name: task(name) for name in ("blobs", "digests")}


@pytest.mark.parametrize("publication", SPECS)
def test_nothing_costs_nothing_where_nothing_has_a_price(publication: str) -> None:
    found = task_costs(SPECS[publication], FREE)
    assert {(cost.wei, cost.cents) for cost in found.values()} == {(0, 0)}
    worthless = task_costs(SPECS[publication], Prices(1, 1, 1, 0))
    assert {cost.cents for cost in worthless.values()} == {0}
    assert all(cost.wei for cost in worthless.values())


@given(PRICES, st.sampled_from(FIELDS), st.integers(0, 10**12), st.sampled_from(sorted(SPECS)), st.integers(1, 50))
def test_a_higher_price_never_lowers_a_cost(
    prices: Prices, field: str, more: int, publication: str, tasks: int
) -> None:
    spec = SPECS[publication]
    dearer = replace(prices, **{field: getattr(prices, field) + more})
    below, above = task_costs(spec, prices, tasks), task_costs(spec, dearer, tasks)
    for party, cost in below.items():
        assert cost.wei <= above[party].wei
        assert cost.cents <= above[party].cents
        assert cost.wei == tasks * task_costs(spec, prices)[party].wei


@given(PRICES, st.integers(0, 10**24))
def test_cents_are_rounded_up_by_less_than_one(prices: Prices, wei: int) -> None:
    exact = wei * prices.ether
    assert exact <= prices.cents(wei) * 10**18 < exact + 10**18


@given(*(st.integers(0, 10**12) for _ in range(2)), *(st.integers(0, 10**7) for _ in range(2)), st.integers(0, 10**12))
def test_a_posted_byte_costs_by_each_price_of_ethereum(gas: int, blob: int, g: int, b: int, more: int) -> None:
    found = byte_price(gas, blob, g, b)
    assert found <= byte_price(gas + more, blob, g, b)
    assert found <= byte_price(gas, blob + more, g, b)
    assert 16 * gas * g + blob * b <= found * 10**6 < 16 * gas * g + blob * b + 10**6


def test_gas_is_the_estimates_and_only_the_aggregator_pays_for_blobs() -> None:
    prices, chain = Prices(2, 3, 5, 100), ChainTerms(7, 7, 12, 33, has_drand=True)
    found, said = task_costs(SPECS["blobs"], prices, 1, chain), estimate(SPECS["blobs"], chain)
    posted = posted_bytes(SPECS["blobs"])
    assert found["hospital"].wei == 2 * said.hospital.total + 5 * posted["hospital"]
    assert found["aggregator"].wei == 2 * said.aggregator.total + 5 * posted["aggregator"] + 3 * said.blob_gas
    assert [party for party, cost in found.items() if cost.blob_gas] == ["aggregator"]
    assert not any(cost.blob_gas for cost in task_costs(SPECS["digests"], prices).values())


@pytest.mark.parametrize(("hospitals", "blobs"), [(1, 1), (20, 1), (20, 16)])
def test_relayed_commits_are_no_longer_than_said(hospitals: int, blobs: int) -> None:
    word = bytes(32)
    update = ("0x" + "11" * 20, 0, [word] * blobs, word, word, word, word)
    tasks = Web3().eth.contract(abi=contract_artifact("Tasks").abi)
    call = tasks.encode_abi("commitUpdates", [1, 1, [update] * hospitals])
    assert len(call) // 2 - 1 + SIGNED <= _relayed(hospitals, blobs)


@pytest.mark.parametrize("publication", SPECS)
def test_a_tasks_cost_by_network_is_its_parties_sum(publication: str) -> None:
    spec, fees = SPECS[publication], assumed_fees()
    found = {(one.network, one.level): one for one in network_costs(spec)}
    assert len(found) == len(fees.network) * len(LEVELS)
    assert any(network.blobs for network in fees.network)
    for (name, level), cost in found.items():
        (network,) = (one for one in fees.network if one.name == name)
        own = spec if network.blobs else SPECS["digests"]
        assert cost.parties == task_costs(own, fees.prices(network, level), chain=DRAND)
        parties = cost.parties
        counted = [parties["operator"], parties["aggregator"], *[parties["hospital"]] * 8, *[parties["seated"]] * 3]
        assert cost.all_cents == fees.prices(network, level).cents(sum(one.wei for one in counted))
    for network in fees.network:
        by_level = [found[network.name, level].all_cents for level in LEVELS]
        assert by_level == sorted(by_level)
        assert by_level[0] > 0


def test_seatless_voters_and_empty_roles_are_counted() -> None:
    more = SPECS["blobs"].model_dump(mode="json", exclude_none=True)
    more["judging"] |= {"max_voters": 7}
    wider = TaskSpec.model_validate(more)
    for one, other in zip(network_costs(SPECS["blobs"]), network_costs(wider), strict=True):
        assert other.all_cents > one.all_cents


def test_a_rollup_pays_for_bytes_and_ethereum_does_not() -> None:
    fees = assumed_fees()
    assert {network.blobs: fees.prices(network, "low").byte > 0 for network in fees.network} == {
        True: False,
        False: True,
    }
