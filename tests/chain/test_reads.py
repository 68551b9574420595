"""Reads by `Read` against web3's own, on all answers that an ABI allows and on those that it does not."""

from __future__ import annotations

from typing import Any

import pytest
from consilium_chain.rpc.abi import CONTRACT_NAMES, contract_artifact
from consilium_chain.rpc.event_logs import MALFORMED
from consilium_chain.rpc.reads import Read
from eth_abi.abi import encode
from eth_abi.tools._strategies import get_abi_strategy
from eth_utils.abi import collapse_if_tuple
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from web3 import Web3
from web3.providers.base import BaseProvider
from web3.types import RPCEndpoint, RPCResponse

ADDRESS = "0x" + "11" * 20
READS = [
    (name, entry)
    for name in CONTRACT_NAMES
    for entry in contract_artifact(name).abi
    if entry["type"] == "function" and entry["stateMutability"] in ("view", "pure") and entry["outputs"]
]
ids = [f"{name}.{entry['name']}" for name, entry in READS]


class Answering(BaseProvider):
    """A node that gives one answer to every call, and keeps the call."""

    def __init__(self, answer: bytes) -> None:
        super().__init__()
        self.answer, self.asked = answer, ""

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        assert method == "eth_call", method
        self.asked = params[0]["data"]
        return {"jsonrpc": "2.0", "id": 1, "result": "0x" + self.answer.hex()}


def drawn(data: st.DataObject, parts: list[dict[str, Any]]) -> list[Any]:
    return [data.draw(get_abi_strategy(collapse_if_tuple(part))) for part in parts]


@pytest.mark.parametrize(("name", "entry"), READS, ids=ids)
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_read_asks_and_answers_as_web3(name: str, entry: dict[str, Any], data: st.DataObject) -> None:
    arguments = drawn(data, entry["inputs"])
    answer = encode([collapse_if_tuple(one) for one in entry["outputs"]], drawn(data, entry["outputs"]))
    node = Answering(answer)
    web3 = Web3(node)
    web3.middleware_onion.clear()
    contract = web3.eth.contract(address=Web3.to_checksum_address(ADDRESS), abi=[entry])
    expected = contract.functions[entry["name"]](*arguments).call({"gas": 1})
    read = Read(entry)
    assert read.data(arguments) == node.asked
    assert read.values("0x" + answer.hex()) == expected


@pytest.mark.parametrize("answer", [None, "", "0x", "0x0", "0xzz", "no hex", 5, ["0x"], "0x" + "00" * 31])
def test_another_answer_is_malformed(answer: object) -> None:
    entry = next(entry for name, entry in READS if (name, entry["name"]) == ("Tasks", "roundState"))
    with pytest.raises(MALFORMED):
        Read(entry).values(answer)
