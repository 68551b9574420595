"""A task whose randomness comes from published rounds of drand's quicknet, on a chain at that time of 2023."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chain_driver import LocalChain, TaskDriver, refused
from consilium_chain.deploying.address_book import BEACON_LOOKAHEAD, DRAND_LOOKAHEAD, Deployment
from consilium_chain.errors import DeploymentInvalid, RandomnessUnavailable
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase
from consilium_chain.rounds.beacons import DrandProver, PrevrandaoProver, open_beacon
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import FAUCET_KEY
from consilium_chain.rpc.tip import LEAST_TIP
from consilium_zk.drand import QUICKNET, RoundSignature, seed
from drand_relay import QUICKNET as VECTORS
from drand_relay import ROUNDS, RelayServer, relay_server
from eth_account import Account
from eth_utils.crypto import keccak

ROUND = 1000
INVALID = VECTORS["invalid"]


def unhexed(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


@pytest.fixture(scope="module")
def drand_chain() -> Iterator[LocalChain]:
    """Its clock stands a while before the round, and moves with transactions alone."""
    with LocalChain(genesis=QUICKNET.start(ROUND) - 1_000, drand=QUICKNET) as chain:
        chain.rpc("evm_setAutomine", True)
        yield chain


@pytest.fixture(scope="module")
def relays() -> Iterator[RelayServer]:
    with relay_server() as server:
        yield server


def ledger_of(chain: LocalChain, *relays: str) -> Ledger:
    return Ledger(Connection(chain.node.url, Account.from_key(FAUCET_KEY)), chain.deployment, relays)


def test_task_runs_on_published_rounds(drand_chain: LocalChain, relays: RelayServer) -> None:
    task = TaskDriver(drand_chain).join().commit_all()
    drand_chain.rpc("evm_setNextBlockTimestamp", QUICKNET.start(ROUND) - DRAND_LOOKAHEAD)
    task.publish()
    published_in = task.phase
    assert published_in is Phase.FORMING
    assert task.round_state.beacon_request == ROUND

    honest = ledger_of(drand_chain, relays.url("another-rounds-signature"), relays.url("v1"))
    assert not honest.phases.beacon_ready(ROUND)
    with refused("SeedNotReady", request=ROUND):
        honest.phases.form_cohorts(task.task, ROUND)

    drand_chain.rpc("evm_setNextBlockTimestamp", QUICKNET.start(ROUND))
    drand_chain.rpc("evm_mine")
    assert honest.phases.beacon_ready(ROUND)
    lied_to = ledger_of(drand_chain, relays.url("another-rounds-signature"), relays.url("negated-signature"))
    sent = drand_chain.rpc("eth_getTransactionCount", lied_to.address, "latest")
    with pytest.raises(RandomnessUnavailable) as caught:
        lied_to.phases.form_cohorts(task.task, ROUND)
    assert [failure.name for failure in caught.value.failures] == ["RelaySignatureInvalid"] * 2
    assert drand_chain.rpc("eth_getTransactionCount", lied_to.address, "latest") == sent  # nobody paid for a lie
    form = honest.contracts.tasks.contract.functions.formCohorts
    for case in INVALID:
        with refused("SeedProofInvalid", request=ROUND):
            honest.connection.call(form(task.task, unhexed(case["proof"])))

    honest.phases.form_cohorts(task.task, ROUND)
    (formed,) = [event for event in task.events("CohortsFormed") if event["round"] == 1]
    point = RoundSignature(unhexed(ROUNDS[ROUND]["point"]))
    assert seed(ROUND, point) == unhexed(ROUNDS[ROUND]["seed"])
    assert formed["seed"] == keccak(keccak(text="CONSILIUM-V1-COHORTS") + seed(ROUND, point))
    assert task.phase is Phase.COMMITTING
    with refused("WrongPhase", taskId=task.task):
        honest.phases.form_cohorts(task.task, ROUND)


@pytest.mark.parametrize("ahead", range(4))
def test_request_names_the_first_round_after_the_lookahead(drand_chain: LocalChain, ahead: int) -> None:
    beacon = drand_chain.treasury.connection.contract("DrandBeacon", drand_chain.deployment.beacon)
    drand_chain.rpc("evm_setNextBlockTimestamp", drand_chain.treasury.connection.blocks.now() + 100 + ahead)
    drand_chain.rpc("evm_mine")
    block = drand_chain.rpc("eth_getBlockByNumber", "latest", False)  # the chain mines on by itself
    now = int(block["timestamp"], 16)
    request = int(beacon.functions.request().call(block_identifier=int(block["number"], 16)))
    assert now + DRAND_LOOKAHEAD <= QUICKNET.start(request)
    assert request == 1 or QUICKNET.start(request - 1) < now + DRAND_LOOKAHEAD


def test_prover_reads_the_chain_that_the_contract_believes(drand_chain: LocalChain) -> None:
    beacon = open_beacon(drand_chain.treasury.connection, drand_chain.deployment, ())
    assert isinstance(beacon, DrandProver)
    assert beacon.chain == QUICKNET
    assert not beacon.expired(1)


def test_an_operator_is_told_how_long_randomness_takes(drand_chain: LocalChain, local_chain: LocalChain) -> None:
    drand, prevrandao = ledger_of(drand_chain).chain_terms(), local_chain.treasury.chain_terms()
    assert (drand.has_drand, drand.beacon_seconds) == (True, DRAND_LOOKAHEAD + QUICKNET.period)
    assert (prevrandao.has_drand, prevrandao.beacon_seconds) == (
        False,
        (BEACON_LOOKAHEAD + 1) * prevrandao.block_seconds,
    )
    assert prevrandao.gas_price >= LEAST_TIP
    assert prevrandao.takes_blobs


def test_seeds_of_all_published_rounds_agree(relays: RelayServer) -> None:
    with LocalChain(drand=QUICKNET) as chain:  # at today's time, when all of them have started
        beacon = open_beacon(chain.treasury.connection, chain.deployment, [relays.url("v2")])
        contract = chain.treasury.connection.contract("DrandBeacon", chain.deployment.beacon)
        for round_, case in ROUNDS.items():
            assert beacon.ready(round_)
            proven = chain.treasury.connection.call(contract.functions.seed(round_, beacon.proof(round_)))
            assert bytes(proven) == unhexed(case["seed"])


def test_address_book_says_which_beacon(local_chain: LocalChain, tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    for kind in ("PrevrandaoBeacon", "DrandBeacon"):
        replace(local_chain.deployment, beacon_kind=kind).write(path)
        assert Deployment.read(path).beacon_kind == kind
    assert isinstance(open_beacon(local_chain.treasury.connection, local_chain.deployment, ()), PrevrandaoProver)


@pytest.mark.parametrize("kind", ["RandaoBeacon", "", None, 1, ["DrandBeacon"]])
def test_address_book_refuses_unknown_beacon(local_chain: LocalChain, tmp_path: Path, kind: Any) -> None:
    path = tmp_path / "book.json"
    local_chain.deployment.write(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"beacon_kind": kind}))
    with pytest.raises(DeploymentInvalid, match=r"beacon_kind: .*DrandBeacon"):
        Deployment.read(path)
