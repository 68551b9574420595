"""The standard JSON input that is handed to block explorers compiles to the very bytes that are deployed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from consilium_chain.rpc.abi import CONTRACT_NAMES, ContractName, compiler_input, contract_artifact

CONTRACTS = Path(__file__).resolve().parents[2] / "chain" / "contracts"
SMALL = "PrevrandaoBeacon"


@pytest.mark.parametrize(
    "name", [SMALL, *(pytest.param(name, marks=pytest.mark.deep) for name in CONTRACT_NAMES if name != SMALL)]
)
def test_standard_input_compiles_to_the_artifact(name: ContractName) -> None:
    compiler = subprocess.run(
        ["node", str(CONTRACTS / "script" / "solc"), "--standard-json"],
        input=json.dumps(compiler_input(name)), capture_output=True, text=True, check=True,
    )  # fmt: skip
    output = json.loads(compiler.stdout)
    assert [fault for fault in output.get("errors", ()) if fault["severity"] == "error"] == []
    artifact = contract_artifact(name)
    file, contract = artifact.source.split(":")
    evm = output["contracts"][file][contract]["evm"]
    assert "0x" + evm["bytecode"]["object"] == artifact.bytecode
    assert "0x" + evm["deployedBytecode"]["object"] == artifact.runtime


def test_standard_input_holds_the_sources_of_this_checkout() -> None:
    for name in CONTRACT_NAMES:
        for path, source in compiler_input(name)["sources"].items():
            assert source["content"] == (CONTRACTS / path).read_text(), path
