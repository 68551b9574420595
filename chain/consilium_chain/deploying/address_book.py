"""Deploys the contracts; and the address book that tells nodes their addresses."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from consilium_core.typed_toml import validation_faults
from consilium_zk.drand import DrandChain
from eth_utils.address import is_hex_address
from pydantic import AfterValidator, ConfigDict, TypeAdapter, ValidationError

from consilium_chain.errors import DeploymentInvalid
from consilium_chain.rpc.connection import Connection

SUPPLY = 1_000_000_000 * 10**18
# Blocks from a request to the block with its random value, on a local chain; on a public one 128 or more.
BEACON_LOOKAHEAD = 2
# Seconds from a request to its drand round: two slots of Ethereum, whose proposers may hold back the request's block,
# and two rounds for drand nodes whose clocks run ahead.
DRAND_LOOKAHEAD = 30
LOCAL_UNBONDING = 3600  # seconds
LOCAL_VESTING = 60
ZERO_ADDRESS = "0x" + "00" * 20

BeaconKind = Literal["PrevrandaoBeacon", "DrandBeacon"]


def _address(value: str) -> str:
    if not is_hex_address(value):
        raise ValueError("it is not an address: 0x and 40 hexadecimal digits")
    return value


Address = Annotated[str, AfterValidator(_address)]


@dataclass(frozen=True)
class Deployment:
    """The contracts' addresses, and the first block of their events. `blobs`: the chain takes blob transactions.

    `sponsored_account`: code that accounts without ether may point to.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    chain_id: int
    first_block: int
    token: Address
    staking: Address
    beacon: Address
    tasks: Address
    model_shares: Address
    sponsored_account: Address
    beacon_kind: BeaconKind = "PrevrandaoBeacon"
    blobs: bool = True

    def folder_name(self, task: int) -> str:
        """The name of a node's folder for a task. It names the deployment too, for each one counts tasks from one."""
        return f"{self.chain_id}-{self.tasks}-{task}"

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def read(cls, path: Path) -> Deployment:
        """Raises DeploymentInvalid."""
        try:
            return TypeAdapter(cls).validate_json(path.read_bytes())
        except FileNotFoundError as error:
            raise DeploymentInvalid(
                f"the address book {path} does not exist; deploy first, or pass the right path"
            ) from error
        except OSError as error:
            raise DeploymentInvalid(f"the address book {path} cannot be read: {error.strerror}") from error
        except ValidationError as error:
            faults = validation_faults(error)
            raise DeploymentInvalid(f"the address book {path} is malformed: {faults}; copy it again") from error


def deploy(connection: Connection, drand: DrandChain | None = None, token: str | None = None) -> Deployment:
    """Deploys everything with local terms from the connection's account, which receives the whole supply of tokens.

    `drand`: the source of randomness, by default prevrandao. `token`: an existing token instead of a new one.
    """
    transactions, first_block = connection.transactions, connection.blocks.number()
    token = token or transactions.deploy("ConsiliumToken", SUPPLY, connection.address)
    staking = transactions.deploy("Staking", token, LOCAL_UNBONDING, LOCAL_VESTING)
    kind: BeaconKind = "PrevrandaoBeacon" if drand is None else "DrandBeacon"
    if drand is None:
        beacon = transactions.deploy(kind, BEACON_LOOKAHEAD)
    else:
        beacon = transactions.deploy(kind, drand.genesis, drand.period, drand.public_key, DRAND_LOOKAHEAD)
    registry = transactions.deploy("TaskRegistry", token, staking, beacon, ZERO_ADDRESS)
    settlement = transactions.deploy("TaskSettlement", token, staking, beacon)
    tasks = transactions.deploy("Tasks", token, staking, beacon, registry, settlement)
    model_shares = transactions.deploy("ModelShares", token, staking, tasks)
    sponsored_account = transactions.deploy("SponsoredAccount")
    transactions.send(connection.contract("Staking", staking).functions.connect(tasks, model_shares))
    return Deployment(
        connection.chain_id, first_block, token, staking, beacon, tasks, model_shares, sponsored_account, kind
    )
