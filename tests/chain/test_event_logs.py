"""Logs are decoded here as web3 decodes them, whichever event; and an answer that holds none is no trace."""

from __future__ import annotations

from typing import Any

import pytest
from chain_driver import LocalChain, TaskDriver
from consilium_chain.errors import ChainUnreachable
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc.connection import Connection
from index_driver import Traffic


def test_events_are_what_web3_makes_of_their_logs() -> None:
    with LocalChain() as chain:
        Traffic(chain, 3).steps(60).touch()
        TaskDriver(chain).to_scoring().judge([[50_000]])
        ledger = Ledger(Connection(chain.node.url), chain.deployment)
        found = {(event.block, event.index): event for event in ledger.logs.between()}
        names = {event.name for event in found.values()}
        assert {"Claimed", "CohortsFormed", "HospitalJoined", "RoundSettled", "TaskProposed", "Unbonded"} - names <= {
            "Claimed", "Unbonded",  # as it happens
        }  # fmt: skip
        count = 0
        for contract in (ledger.contracts.tasks.contract, ledger.contracts.staking.contract):
            kinds = {entry["name"] for entry in contract.abi if entry["type"] == "event"}
            for name in kinds:
                for log in contract.events[name]().get_logs(from_block=0):
                    event = found[log["blockNumber"], log["logIndex"]]
                    assert (event.name, _plain(event.values)) == (name, _plain(dict(log["args"])))
                    assert (event.contract, event.block_hash) == (contract.address, bytes(log["blockHash"]))
                    assert event.transaction == log["transactionHash"].to_0x_hex()
                    head = ledger.connection.blocks.head(event.block)
                    assert head is not None
                    assert event.time == head.time
                    count += 1
        assert count == len(found) > 100


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, list | tuple) else value for name, value in values.items()}


@pytest.mark.parametrize("result", [None, 5, ["0x"], [{}], [{"address": "0x1"}], {"address": 1}, "no topics"])
def test_an_answer_that_holds_no_logs_is_named(
    local_chain: LocalChain, monkeypatch: pytest.MonkeyPatch, result: object
) -> None:
    ledger = Ledger(Connection(local_chain.node.url), local_chain.deployment)
    if result == "no topics":
        result = [{"address": local_chain.deployment.tasks, "topics": []}]
    monkeypatch.setattr(ledger.connection.web3.provider, "make_request", lambda *_: {"result": result})
    with pytest.raises(ChainUnreachable, match="gives no logs"):
        ledger.logs.between(0, 1)


def test_head_is_of_a_block_or_of_none(local_chain: LocalChain) -> None:
    connection = Connection(local_chain.node.url)
    first = connection.blocks.head(0)
    assert first is not None
    assert (first.number, first.hash) == (0, connection.blocks.hash_of(0))
    assert connection.blocks.head(10**9) is None
