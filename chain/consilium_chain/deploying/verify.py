"""Checks that the code on the chain is the compiled one, and that the contracts name one another."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.deploying.networks import TOKEN, Network, PrevrandaoTerms
from consilium_chain.deploying.node import DeployNode
from consilium_chain.errors import DeployFailed
from consilium_chain.rpc.abi import ContractName, contract_artifact


def same_but(left: bytes, right: bytes, places: Iterable[tuple[int, int]]) -> bool:
    """True if two codes are equal outside the (start, length) of `places`."""
    if len(left) != len(right):
        return False
    masked = [bytearray(left), bytearray(right)]
    for start, length in places:
        for code in masked:
            code[start : start + length] = bytes(length)
    return masked[0] == masked[1]


def verify_code(node: DeployNode, name: ContractName, address: str, creation: bytes) -> None:
    """Raises DeployFailed (CodeMismatch) unless the compiled code is there with the immutables of `creation`."""
    artifact = contract_artifact(name)
    found, compiled = node.code(address), bytes.fromhex(artifact.runtime[2:])
    if not found:
        raise DeployFailed("CodeMismatch", contract=name, address=address, why="no contract is there")
    if not same_but(found, compiled, artifact.immutables):
        raise DeployFailed("CodeMismatch", contract=name, address=address, why="its code is not the compiled one")
    # These keep their own address, which a trial run of their constructors cannot know.
    if name not in ("ConsiliumToken", "TaskRegistry", "SponsoredAccount") and found != node.runtime_of(creation):
        why = "it was constructed with other arguments"
        raise DeployFailed("CodeMismatch", contract=name, address=address, why=why)


def verify_wiring(node: DeployNode, network: Network, deployment: Deployment, registry: str, settlement: str) -> None:
    """Raises DeployFailed (WiringWrong) for the first value that is not what the deployment says."""
    token, staking, beacon, tasks = deployment.token, deployment.staking, deployment.beacon, deployment.tasks
    kind = deployment.beacon_kind
    expected: list[tuple[ContractName, str, str, object]] = [
        ("Staking", staking, "token", token),
        ("Staking", staking, "tasks", tasks),
        ("Staking", staking, "unbondingPeriod", network.unbonding),
        ("Staking", staking, "vestingPeriod", network.vesting),
        (kind, beacon, "lookahead", network.beacon.lookahead),
        ("Tasks", tasks, "registry", registry),
        ("Tasks", tasks, "settlement", settlement),
        ("Tasks", tasks, "guardian", network.guardian),
    ]
    for name, address in (("TaskRegistry", registry), ("TaskSettlement", settlement), ("Tasks", tasks)):
        pairs = (("token", token), ("staking", staking), ("beacon", beacon))
        expected += [(name, address, what, value) for what, value in pairs]  # type: ignore[misc]
    if not isinstance(network.beacon, PrevrandaoTerms):
        drand = network.beacon.chain
        expected += [
            (kind, beacon, "genesis", drand.genesis),
            (kind, beacon, "period", drand.period),
            (kind, beacon, "publicKey", bytes(drand.public_key)),
        ]
    if network.token.supply is not None:
        expected.append(("ConsiliumToken", token, "totalSupply", network.token.supply * TOKEN))
    for name, address, what, value in expected:
        found = node.read(name, address, what)
        if found != value:
            raise DeployFailed("WiringWrong", field=f"{name}.{what}", found=str(found), expected=str(value))


class Code(StrEnum):
    SAME = "the compiled code"
    OTHER = "other code than the compiled one"
    NONE = "no contract"


def codes_at(node: DeployNode, deployment: Deployment) -> dict[ContractName, Code]:
    """The code at the addresses of an address book, and at those of its Tasks' further code, immutables aside.

    Raises ChainUnreachable, ContractsNotBuilt.
    """
    places: dict[ContractName, str] = {
        "ConsiliumToken": deployment.token,
        "Staking": deployment.staking,
        deployment.beacon_kind: deployment.beacon,
        "Tasks": deployment.tasks,
        "SponsoredAccount": deployment.sponsored_account,
    }
    found = {name: _code_at(node, name, address) for name, address in places.items()}
    if found["Tasks"] is Code.SAME:
        further: dict[ContractName, str] = {"TaskRegistry": "registry", "TaskSettlement": "settlement"}
        for name, what in further.items():
            found[name] = _code_at(node, name, str(node.read("Tasks", deployment.tasks, what)))
    return found


def _code_at(node: DeployNode, name: ContractName, address: str) -> Code:
    artifact, there = contract_artifact(name), node.code(address)
    if not there:
        return Code.NONE
    return Code.SAME if same_but(there, bytes.fromhex(artifact.runtime[2:]), artifact.immutables) else Code.OTHER


def strangers_of(node: DeployNode, deployment: Deployment) -> list[str]:
    """The contracts that name another than the address book does, as "Contract.name". Raises ChainUnreachable,
    DeploymentInvalid if no such contract is there.
    """
    tasks, staking = deployment.tasks, deployment.staking
    known: list[tuple[ContractName, str, str, str]] = [
        ("Tasks", tasks, "token", deployment.token),
        ("Tasks", tasks, "staking", staking),
        ("Tasks", tasks, "beacon", deployment.beacon),
        ("Staking", staking, "token", deployment.token),
        ("Staking", staking, "tasks", tasks),
    ]
    return [
        f"{name}.{what}"
        for name, address, what, expected in known
        if str(node.read(name, address, what)).lower() != expected.lower()
    ]
