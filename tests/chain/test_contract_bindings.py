"""Names that the ledger calls, reads and decodes are those of the contracts' ABI."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from consilium_chain.ledger import ledger as ledger_module
from consilium_chain.ledger.structs import (
    Hospital,
    Payout,
    RoundState,
    Stake,
    TaskParams,
    TaskState,
    Voter,
)
from consilium_chain.rpc.abi import ContractName, contract_artifact

FOLDER = Path(ledger_module.__file__).parent
CLIENTS: dict[str, ContractName] = {"_tasks": "Tasks", "_contract": "Tasks", "tasks": "Tasks", "_staking": "Staking"}
CLIENTS |= {"_token": "ConsiliumToken", "token": "ConsiliumToken", "model_shares": "ModelShares"}
METHODS = ("read", "send", "function", "encode")
STRUCTS = [
    ("params", TaskParams), ("state", TaskState), ("roundState", RoundState), ("hospitals", Hospital),
    ("voters", Voter), ("explain", Payout), ("stakeOf", Stake),
]  # fmt: skip


def names(contract: ContractName, kind: str) -> set[str]:
    return {entry["name"] for entry in contract_artifact(contract).abi if entry["type"] == kind}


def called() -> list[tuple[str, str, str]]:
    """The receiver, the method and the first argument of each call in the ledger's modules that names something."""
    trees = [ast.parse(path.read_text()) for path in sorted(FOLDER.glob("*.py"))]
    return [
        (node.func.value.attr, node.func.attr, node.args[0].value)
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Attribute)
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    ]


def test_every_function_that_is_called_is_in_the_abi() -> None:
    found = [(CLIENTS[where], name) for where, method, name in called() if method in METHODS and where in CLIENTS]
    assert len(found) > 50
    assert [(contract, name) for contract, name in found if name not in names(contract, "function")] == []
    in_rounds = re.findall(r'self\._call\("(\w+)"', (FOLDER / "publishing.py").read_text())
    assert len(in_rounds) > 5
    assert set(in_rounds) <= names("Tasks", "function")


def test_every_event_that_is_read_is_in_the_abi() -> None:
    found = [(method, name) for _, method, name in called() if method in ("of_tasks", "of_staking")]
    assert len(found) > 12
    contracts: dict[str, ContractName] = {"of_tasks": "Tasks", "of_staking": "Staking"}
    assert [(method, name) for method, name in found if name not in names(contracts[method], "event")] == []


@pytest.mark.parametrize(("function", "kind"), STRUCTS)
def test_every_field_of_a_struct_is_the_abis_component(function: str, kind: type[Any]) -> None:
    contract: ContractName = "Staking" if kind is Stake else "Tasks"
    (entry,) = [one for one in contract_artifact(contract).abi if one.get("name") == function]
    components = [component["name"] for component in entry["outputs"][0]["components"]]
    snake = [re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() for name in components]
    assert [field.name for field in fields(kind)] == snake
