"""A deployment's contracts, their arguments, and their cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from consilium_core.units import ether
from eth_utils.address import to_checksum_address

from consilium_chain.deploying.networks import TOKEN, Network, PrevrandaoTerms
from consilium_chain.deploying.node import DeployNode
from consilium_chain.errors import DeployFailed
from consilium_chain.rpc.abi import ContractName, contract_artifact

RUNTIME_LIMIT = 24_576  # bytes, EIP-170
INIT_LIMIT = 49_152  # bytes, EIP-3860
WIRING = "Staking.connect"
WIRING_GAS = 80_000
# What constructors store, call and create, and the check of a BLS key: 149,000 at most is measured.
CONSTRUCTOR_GAS = 155_000
STAND_IN = to_checksum_address("0x" + "ff" * 20)  # for an address that is not known yet


def contracts_of(network: Network) -> tuple[ContractName, ...]:
    """The contracts in the order in which they need one another's addresses."""
    token: tuple[ContractName, ...] = () if network.token.address else ("ConsiliumToken",)
    beacon = network.beacon.contract
    tasks: tuple[ContractName, ...] = ("TaskRegistry", "TaskSettlement", "Tasks", "ModelShares")
    return (*token, "Staking", beacon, *tasks, "SponsoredAccount")


def constructor_arguments(
    name: ContractName, network: Network, deployer: str, at: Mapping[str, str]
) -> tuple[Any, ...]:
    """`at`: the addresses of earlier contracts. The supply of tokens goes to `deployer`."""
    token = network.token.address or at.get("ConsiliumToken", STAND_IN)
    staking, registry = at.get("Staking", STAND_IN), at.get("TaskRegistry", STAND_IN)
    settlement, tasks = at.get("TaskSettlement", STAND_IN), at.get("Tasks", STAND_IN)
    beacon = at.get(network.beacon.contract, STAND_IN)
    terms = network.beacon
    arguments: dict[ContractName, tuple[Any, ...]] = {
        "ConsiliumToken": ((network.token.supply or 0) * TOKEN, deployer),
        "Staking": (token, network.unbonding, network.vesting),
        "PrevrandaoBeacon": (terms.lookahead,),
        "TaskRegistry": (token, staking, beacon, network.guardian),
        "TaskSettlement": (token, staking, beacon),
        "Tasks": (token, staking, beacon, registry, settlement),
        "ModelShares": (token, staking, tasks),
        "SponsoredAccount": (),
    }
    if not isinstance(terms, PrevrandaoTerms):
        drand = terms.chain
        arguments["DrandBeacon"] = (drand.genesis, drand.period, drand.public_key, terms.lookahead)
    return arguments[name]


@dataclass(frozen=True)
class GasPrice:
    """Wei per gas: the present price, and the most that a transaction offers."""

    now: int
    most: int


@dataclass(frozen=True)
class PlannedContract:
    """Sizes in bytes. `gas`: an upper estimate. `address`: of an earlier run's contract."""

    name: str
    runtime_bytes: int
    init_bytes: int
    gas: int
    address: str | None


@dataclass(frozen=True)
class Survey:
    """The state before anything is sent. Money in wei, sizes in bytes. `node`: its URL, without secrets."""

    runtime_limit: ClassVar[int] = RUNTIME_LIMIT
    init_limit: ClassVar[int] = INIT_LIMIT
    wiring: ClassVar[str] = WIRING
    wiring_gas: ClassVar[int] = WIRING_GAS
    chain_id: int
    node: str
    deployer: str
    balance: int
    fees: GasPrice
    contracts: tuple[PlannedContract, ...]
    wired: bool

    @property
    def gas(self) -> int:
        """The gas of all missing steps."""
        return sum(c.gas for c in self.contracts if c.address is None) + (0 if self.wired else WIRING_GAS)

    @property
    def cost(self) -> int:
        return self.gas * self.fees.now

    @property
    def most(self) -> int:
        """The wei that the account must have: transactions offer more than they pay."""
        return self.gas * self.fees.most

    def check(self) -> None:
        """Raises DeployFailed (ContractTooLarge, DeployerUnfunded)."""
        for contract in self.contracts:
            for part, size, limit, rule in (
                ("code", contract.runtime_bytes, RUNTIME_LIMIT, "EIP-170"),
                ("init code", contract.init_bytes, INIT_LIMIT, "EIP-3860"),
            ):
                if size > limit:
                    raise DeployFailed(
                        "ContractTooLarge", contract=contract.name, part=part, size=size, limit=limit, rule=rule
                    )
        if self.balance < self.most:
            needed, missing = ether(self.most), ether(self.most - self.balance)
            raise DeployFailed("DeployerUnfunded", account=self.deployer, needed=needed, missing=missing)


def creation_gas(init: bytes, runtime_bytes: int) -> int:
    """Upper estimate of a creation's gas: EIP-2028 (data), EIP-3860 (init code), 200 for each byte of code,
    constructor.
    """
    zeros = init.count(0)
    data = 4 * zeros + 16 * (len(init) - zeros)
    return 21_000 + 32_000 + data + 2 * -(-len(init) // 32) + 200 * runtime_bytes + CONSTRUCTOR_GAS


def survey(node: DeployNode, network: Network, there: Mapping[str, str], wired: bool) -> Survey:
    """`there`: the contracts of an earlier, interrupted run."""
    planned = []
    for name in contracts_of(network):
        init = node.creation_code(name, *constructor_arguments(name, network, node.address, there))
        runtime_bytes = len(contract_artifact(name).runtime) // 2 - 1
        planned.append(
            PlannedContract(name, runtime_bytes, len(init), creation_gas(init, runtime_bytes), there.get(name))
        )
    fees = GasPrice(node.fees.present(), node.fees.highest())
    return Survey(node.chain_id, node.shown_url, node.address, node.ether(), fees, tuple(planned), wired)
