"""ABI and bytecode of the contracts, as `make contracts` exports them into this package."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any, Literal, get_args

from consilium_chain.errors import NotPossible

ContractName = Literal[
    "ConsiliumToken",
    "Staking",
    "PrevrandaoBeacon",
    "DrandBeacon",
    "TaskRegistry",
    "TaskSettlement",
    "Tasks",
    "ModelShares",
    "Till",
    "SponsoredAccount",
]
CONTRACT_NAMES: tuple[ContractName, ...] = get_args(ContractName)


@dataclass(frozen=True)
class ContractArtifact:
    """A compiled contract; code as 0x-prefixed hex. `immutables`: (start, length) in bytes of the runtime code's parts
    that the constructor sets. `source`: "file:contract". `compiler`: solc's version with its commit.
    """

    abi: list[dict[str, Any]]
    bytecode: str
    runtime: str
    immutables: tuple[tuple[int, int], ...]
    compiler: str
    source: str


@cache
def contract_artifact(name: ContractName) -> ContractArtifact:
    """Raises ContractsNotBuilt if the contracts are not compiled, or by an older version."""
    raw = json.loads(_exported(f"{name}.json"))
    if raw.keys() != {field.name for field in fields(ContractArtifact)}:
        raise NotPossible("ContractsNotBuilt", path=f"{name}.json of this version")
    return ContractArtifact(**raw | {"immutables": tuple((start, length) for start, length in raw["immutables"])})


def load_artifacts() -> None:
    """Reads those of all contracts, so that forks of this process have them. Raises ContractsNotBuilt."""
    for name in CONTRACT_NAMES:
        contract_artifact(name)


def compiler_input(name: ContractName) -> dict[str, Any]:
    """solc's standard JSON input of the contract, with sources. Raises ContractsNotBuilt."""
    parsed: dict[str, Any] = json.loads(_exported(f"{name}.input.json"))
    return parsed


def _exported(file_name: str) -> str:
    file = resources.files("consilium_chain") / "contracts" / file_name
    try:
        return file.read_text()
    except FileNotFoundError as error:
        raise NotPossible("ContractsNotBuilt", path=file) from error
