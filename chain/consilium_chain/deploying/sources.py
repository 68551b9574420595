"""Files for block explorers to verify sources: standard JSON input, compiler, constructor arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from consilium_chain.deploying.run import Deploying
from consilium_chain.rpc.abi import ContractName, compiler_input, contract_artifact

INDEX = "contracts.json"


def write_sources(folder: Path, deploying: Deploying) -> None:
    """Writes NAME.input.json for each contract that was deployed, and an index with the rest.

    The index's fields bear the names of Sourcify's API (v2, POST /v2/verify/{chainId}/{address}); Etherscan's
    `contractname` is `contractIdentifier`, and its `compilerversion` has a "v" in front.
    """
    folder.mkdir(parents=True, exist_ok=True)
    steps = deploying.journal.record.steps
    index: list[Mapping[str, object]] = []
    for name, creation in deploying.creations.items():
        (folder / f"{name}.input.json").write_text(json.dumps(compiler_input(name), indent=1) + "\n")
        artifact = contract_artifact(name)
        index.append(
            {
                "name": name,
                "chainId": deploying.node.chain_id,
                "address": deploying.addresses[name],
                "contractIdentifier": artifact.source,
                "compilerVersion": artifact.compiler,
                "constructorArguments": constructor_arguments_of(name, creation).hex(),
                "creationTransactionHash": steps[name].transaction,
                "stdJsonInput": f"{name}.input.json",
            }
        )
    (folder / INDEX).write_text(json.dumps(index, indent=2) + "\n")


def constructor_arguments_of(name: ContractName, creation: bytes) -> bytes:
    """ABI-encoded: what follows the compiled init code."""
    return creation[len(contract_artifact(name).bytecode) // 2 - 1 :]
