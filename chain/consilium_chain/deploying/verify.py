"""Checks of a chain's precompiles, of the deployed code, and of the contracts' references to one another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from consilium_zk.constants import BYTES_PER_EIP2537_G1

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.deploying.networks import TOKEN, Network, PrevrandaoTerms
from consilium_chain.deploying.node import DeployNode
from consilium_chain.errors import DeployFailed
from consilium_chain.rpc.abi import ContractName, contract_artifact


@dataclass(frozen=True)
class Precompile:
    """`answers`: inputs with the known answers to them."""

    name: str
    rule: str
    address: int
    answers: tuple[tuple[bytes, bytes], ...]


ONE = (1).to_bytes(32, "big")
IDENTITY = bytes(BYTES_PER_EIP2537_G1)
GENERATOR = bytes.fromhex(
    "0000000000000000000000000000000017f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb"
    "0000000000000000000000000000000008b3f481e3aaa0f1a09e30ed741d8ae4fcf5e095d5d00af600db18cb2c04b3edd03cc744a2888ae40caa232946c5e7e1"
)
# The first of EIP-2537's own vectors for this map.
FIELD_ELEMENT = bytes.fromhex(
    "0000000000000000000000000000000014406e5bfb9209256a3820879a29ac2f62d6aca82324bf3ae2aa7d3c54792043bd8c791fccdb080c1a52dc68b8b69350"
)
MAPPED = bytes.fromhex(
    "000000000000000000000000000000000d7721bcdb7ce1047557776eb2659a444166dc6dd55c7ca6e240e21ae9aa18f529f04ac31d861b54faf3307692545db7"
    "00000000000000000000000000000000108286acbdf4384f67659a8abe89e712a504cb3ce1cba07a716869025d60d499a00d1da8cdc92958918c222ea93d87f0"
)
# The first of EIP-7951's own vectors: hash, r, s, x, y. The answer to a wrong signature is empty.
SIGNED = bytes.fromhex(
    "4cee90eb86eaa050036147a12d49004b6b9c72bd725d39d4785011fe190f0b4d"
    "a73bd4903f0ce3b639bbbf6e8e80d16931ff4bcf5993d58468e8fb19086e8cac"
    "36dbcd03009df8c59286b162af3bd7fcc0450c9aa81be5d10d312af6c66b1d60"
    "4aebd3099c618202fcfe16ae7770b0c49ab5eadf74b754204a3bb6060e44eff3"
    "7618b065f9832de4ca6ca971a7a1adc826d0f7c00181a5fb2ddf79ae00b4e10e"
)
NOT_SIGNED = bytes(32) + SIGNED[32:]

PRECOMPILES = (
    Precompile("BLS12_G1ADD", "EIP-2537", 0x0B, ((GENERATOR + IDENTITY, GENERATOR),)),
    Precompile("BLS12_G1MSM", "EIP-2537", 0x0C, ((GENERATOR + ONE, GENERATOR),)),
    Precompile("BLS12_PAIRING_CHECK", "EIP-2537", 0x0F, ((bytes(3 * BYTES_PER_EIP2537_G1), ONE),)),
    Precompile("BLS12_MAP_FP_TO_G1", "EIP-2537", 0x10, ((FIELD_ELEMENT, MAPPED),)),
    Precompile("P256VERIFY", "EIP-7951", 0x100, ((SIGNED, ONE), (NOT_SIGNED, b""))),
)


def require_precompiles(node: DeployNode) -> None:
    """Asks each precompile for a known answer. A call without the precompile succeeds with an empty answer, so a task
    would stop later. Raises DeployFailed (PrecompileMissing), ChainUnreachable.
    """
    for one in PRECOMPILES:
        for given, answer in one.answers:
            if node.ask_precompile(one.address, given) != answer:
                raise DeployFailed(
                    "PrecompileMissing", chain_id=node.chain_id, url=node.shown_url, precompile=one.name,
                    rule=one.rule, address=one.address,
                )  # fmt: skip


def same_but(left: bytes, right: bytes, ranges: Iterable[tuple[int, int]]) -> bool:
    """True if two codes are equal outside `ranges`, each with start and length."""
    if len(left) != len(right):
        return False
    masked = [bytearray(left), bytearray(right)]
    for start, length in ranges:
        for code in masked:
            code[start : start + length] = bytes(length)
    return masked[0] == masked[1]


# These store an address that a trial run of their constructors cannot know: their own, or that of what they create.
STORING_OWN: tuple[ContractName, ...] = ("ConsiliumToken", "TaskRegistry", "ModelShares", "SponsoredAccount")


def verify_code(node: DeployNode, name: ContractName, address: str, creation: bytes) -> None:
    """Raises DeployFailed (CodeMismatch) unless the compiled code is there with the immutables of `creation`."""
    artifact = contract_artifact(name)
    found, compiled = node.code(address), bytes.fromhex(artifact.runtime[2:])
    if not found:
        raise DeployFailed("CodeMismatch", contract=name, address=address, why="no contract has this address")
    if not same_but(found, compiled, artifact.immutables):
        raise DeployFailed("CodeMismatch", contract=name, address=address, why="its code is not the compiled code")
    if name not in STORING_OWN and found != node.runtime_of(creation):
        why = "its constructor had other arguments"
        raise DeployFailed("CodeMismatch", contract=name, address=address, why=why)


_Reads = list[tuple[ContractName, str, str, object]]  # contract, address, function, expected answer


def _references(deployment: Deployment) -> _Reads:
    """The contracts' references to one another that an address book has."""
    token, staking, tasks, shares = deployment.token, deployment.staking, deployment.tasks, deployment.model_shares
    return [
        ("Tasks", tasks, "token", token),
        ("Tasks", tasks, "staking", staking),
        ("Tasks", tasks, "beacon", deployment.beacon),
        ("Staking", staking, "token", token),
        ("Staking", staking, "tasks", tasks),
        ("Staking", staking, "modelShares", shares),
        ("ModelShares", shares, "token", token),
        ("ModelShares", shares, "staking", staking),
        ("ModelShares", shares, "tasks", tasks),
    ]


def _of_till(node: DeployNode, deployment: Deployment) -> _Reads:
    """The references of the code of all tills, which ModelShares deployed: other code could keep payments."""
    till = str(node.read("ModelShares", deployment.model_shares, "till"))
    return [("Till", till, "token", deployment.token), ("Till", till, "modelShares", deployment.model_shares)]


def verify_wiring(node: DeployNode, network: Network, deployment: Deployment, registry: str, settlement: str) -> None:
    """Raises DeployFailed (WiringWrong) for the first value that differs from the deployment."""
    token, staking, beacon, tasks = deployment.token, deployment.staking, deployment.beacon, deployment.tasks
    kind = deployment.beacon_kind
    expected: _Reads = [
        *_references(deployment),
        *_of_till(node, deployment),
        ("Staking", staking, "unbondingPeriod", network.unbonding),
        ("Staking", staking, "vestingPeriod", network.vesting),
        (kind, beacon, "lookahead", network.beacon.lookahead),
        ("Tasks", tasks, "registry", registry),
        ("Tasks", tasks, "settlement", settlement),
        ("Tasks", tasks, "guardian", network.guardian),
    ]
    further: list[tuple[ContractName, str]] = [("TaskRegistry", registry), ("TaskSettlement", settlement)]
    for name, address in further:
        expected += [
            (name, address, "token", token),
            (name, address, "staking", staking),
            (name, address, "beacon", beacon),
        ]
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
    till = str(node.read("ModelShares", deployment.model_shares, "till"))
    if code_at(node, "Till", till) is not Code.SAME:
        raise DeployFailed("CodeMismatch", contract="Till", address=till, why="its code is not the compiled code")


class Code(StrEnum):
    SAME = "the compiled code"
    OTHER = "other code than the compiled one"
    NONE = "no contract"


def codes_at(node: DeployNode, deployment: Deployment) -> dict[ContractName, Code]:
    """The code at the addresses of an address book, and at the further code of its Tasks, without immutables.

    Raises ChainUnreachable, ContractsNotBuilt.
    """
    addresses: dict[ContractName, str] = {
        "ConsiliumToken": deployment.token,
        "Staking": deployment.staking,
        deployment.beacon_kind: deployment.beacon,
        "Tasks": deployment.tasks,
        "ModelShares": deployment.model_shares,
        "SponsoredAccount": deployment.sponsored_account,
    }
    found = {name: code_at(node, name, address) for name, address in addresses.items()}
    if found["Tasks"] is Code.SAME:
        further: dict[ContractName, str] = {"TaskRegistry": "registry", "TaskSettlement": "settlement"}
        for name, what in further.items():
            found[name] = code_at(node, name, str(node.read("Tasks", deployment.tasks, what)))
    if found["ModelShares"] is Code.SAME:
        found["Till"] = code_at(node, "Till", str(node.read("ModelShares", deployment.model_shares, "till")))
    return found


def code_at(node: DeployNode, name: ContractName, address: str) -> Code:
    artifact, there = contract_artifact(name), node.code(address)
    if not there:
        return Code.NONE
    return Code.SAME if same_but(there, bytes.fromhex(artifact.runtime[2:]), artifact.immutables) else Code.OTHER


def strangers_of(node: DeployNode, deployment: Deployment) -> list[str]:
    """The references, as "Contract.name", that differ from the address book. Raises ChainUnreachable, DeploymentInvalid
    if no such contract is there.
    """
    return [
        f"{name}.{what}"
        for name, address, what, expected in [*_references(deployment), *_of_till(node, deployment)]
        if str(node.read(name, address, what)).lower() != str(expected).lower()
    ]
