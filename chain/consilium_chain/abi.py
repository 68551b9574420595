"""ABI and bytecode of the contracts, as `make contracts` exports them into this package."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal, get_args

from consilium_chain.errors import ContractsNotBuilt

ContractName = Literal["ConsiliumToken", "Staking", "PrevrandaoBeacon", "DrandBeacon", "TaskRegistry", "Tasks"]
CONTRACT_NAMES: tuple[ContractName, ...] = get_args(ContractName)


@dataclass(frozen=True)
class ContractArtifact:
    abi: list[dict[str, Any]]
    bytecode: str


@cache
def contract_artifact(name: ContractName) -> ContractArtifact:
    """Raises ContractsNotBuilt where the contracts were not compiled in this checkout."""
    file = resources.files(__package__) / "contracts" / f"{name}.json"
    try:
        raw = json.loads(file.read_text())
    except FileNotFoundError as error:
        raise ContractsNotBuilt(str(file)) from error
    return ContractArtifact(abi=raw["abi"], bytecode=raw["bytecode"])
