"""Deploys the contracts, and the address book that tells nodes where they are."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

from consilium_zk.drand import DrandChain
from eth_utils.address import is_hex_address

from consilium_chain.errors import DeploymentInvalid
from consilium_chain.rpc.connection import Connection

SUPPLY = 1_000_000_000 * 10**18
# Blocks between a request and the block whose randomness answers it, on a local chain: a public one takes 128 or more.
BEACON_LOOKAHEAD = 2
# Seconds between a request and its drand round: two slots of Ethereum, in which their proposers may hold back the block
# that asks, and two rounds for drand nodes whose clocks run ahead.
DRAND_LOOKAHEAD = 30
LOCAL_UNBONDING = 3600  # seconds
LOCAL_VESTING = 60
ZERO_ADDRESS = "0x" + "00" * 20

BeaconKind = Literal["PrevrandaoBeacon", "DrandBeacon"]


@dataclass(frozen=True)
class Deployment:
    """The contracts' addresses, the first block of their events, and whether the chain takes blobs.

    `sponsored_account` is code that accounts without ether may point to; it has no state and answers to no contract.
    """

    chain_id: int
    first_block: int
    token: str
    staking: str
    beacon: str
    tasks: str
    sponsored_account: str
    beacon_kind: BeaconKind = "PrevrandaoBeacon"
    blobs: bool = True

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def read(cls, path: Path) -> Deployment:
        """Raises DeploymentInvalid."""
        try:
            book = cls(**json.loads(path.read_text()))
        except FileNotFoundError as error:
            raise DeploymentInvalid(f"the address book {path} does not exist; deploy first") from error
        except OSError as error:
            raise DeploymentInvalid(f"the address book {path} cannot be read: {error.strerror}") from error
        except (ValueError, TypeError, RecursionError) as error:  # no JSON, no UTF-8, no object, or other fields
            raise DeploymentInvalid(f"the address book {path} is malformed: {error}") from error
        numbers = (book.chain_id, book.first_block)
        addresses = (book.token, book.staking, book.beacon, book.tasks, book.sponsored_account)
        if not all(type(number) is int for number in numbers) or not all(map(is_hex_address, addresses)):
            raise DeploymentInvalid(f"the address book {path} is malformed: a value is no number or no address")
        if type(book.blobs) is not bool:
            raise DeploymentInvalid(f"the address book {path} is malformed: blobs is neither true nor false")
        if book.beacon_kind not in get_args(BeaconKind):
            raise DeploymentInvalid(
                f"the address book {path} names the beacon {book.beacon_kind!r}; known are {get_args(BeaconKind)}"
            )
        return book


def deploy(
    connection: Connection,
    unbonding: int = LOCAL_UNBONDING,
    vesting: int = LOCAL_VESTING,
    drand: DrandChain | None = None,
    drand_lookahead: int = DRAND_LOOKAHEAD,
    guardian: str = ZERO_ADDRESS,
    token: str | None = None,
) -> Deployment:
    """Deploys everything from the connection's account, which receives the whole supply of tokens; or, beside contracts
    that are there, all for their `token`.

    `guardian` may stop the proposal of new tasks, and nothing else.
    Randomness comes from the rounds of `drand`, asked for `drand_lookahead` seconds ahead; without, from prevrandao.
    """
    first_block = connection.blocks.number()
    token = token or connection.transactions.deploy("ConsiliumToken", SUPPLY, connection.address)
    staking = connection.transactions.deploy("Staking", token, unbonding, vesting)
    kind: BeaconKind = "PrevrandaoBeacon" if drand is None else "DrandBeacon"
    if drand is None:
        beacon = connection.transactions.deploy(kind, BEACON_LOOKAHEAD)
    else:
        beacon = connection.transactions.deploy(kind, drand.genesis, drand.period, drand.public_key, drand_lookahead)
    registry = connection.transactions.deploy("TaskRegistry", token, staking, beacon, guardian)
    settlement = connection.transactions.deploy("TaskSettlement", token, staking, beacon)
    tasks = connection.transactions.deploy("Tasks", token, staking, beacon, registry, settlement)
    connection.transactions.send(connection.contract("Staking", staking).functions.setTasks(tasks))
    sponsored_account = connection.transactions.deploy("SponsoredAccount")
    return Deployment(connection.chain_id, first_block, token, staking, beacon, tasks, sponsored_account, kind)
