"""The networks that contracts are deployed to, read from one typed file."""

from __future__ import annotations

import os
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from consilium_core.errors import ConfigInvalid
from consilium_core.typed_toml import parse_toml
from consilium_zk.bls import decompress_public_key
from consilium_zk.drand import QUICKNET, DrandChain
from consilium_zk.errors import ZkError
from eth_utils.address import is_checksum_address
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, model_validator

from consilium_chain.deploying.address_book import ZERO_ADDRESS, BeaconKind
from consilium_chain.errors import DeployFailed
from consilium_chain.rpc.local_node import CHAIN_ID

TOKEN = 10**18
LARGEST_SUPPLY = (2**96 - 1) // TOKEN  # whole tokens: Staking counts in uint96
UINT32 = 2**32 - 1
SHIPPED = "networks.toml"
# Blocks: four epochs of 32 slots, as EIP-4399 advises. At a request, the proposers of two epochs are known.
LEAST_PUBLIC_LOOKAHEAD = 128
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"  # refuses a URL there, which errors would then show


def _checksummed(address: str) -> str:
    if not is_checksum_address(address):
        raise ValueError("is not an address with a valid checksum (EIP-55)")
    return address


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PrevrandaoTerms(_Table):
    """Randomness of a later block."""

    contract: ClassVar[BeaconKind] = "PrevrandaoBeacon"
    kind: Literal["prevrandao"]
    lookahead: Annotated[int, Field(ge=1, le=8191, description="blocks; EIP-2935 keeps the hashes of 8191")] = (
        LEAST_PUBLIC_LOOKAHEAD
    )


class QuicknetTerms(_Table):
    """Randomness of a later round of drand's quicknet."""

    contract: ClassVar[BeaconKind] = "DrandBeacon"
    chain: ClassVar[DrandChain] = QUICKNET
    kind: Literal["quicknet"]
    lookahead: Annotated[int, Field(ge=1, le=86_400, description="seconds")]


class DrandTerms(_Table):
    """Randomness of a later round of another drand chain, which signs as quicknet does (bls-unchained-g1-rfc9380)."""

    contract: ClassVar[BeaconKind] = "DrandBeacon"
    kind: Literal["drand"]
    lookahead: Annotated[int, Field(ge=1, le=86_400, description="seconds")]
    genesis: Annotated[int, Field(ge=0, le=UINT32, description="when round 1 starts, in seconds of Unix time")]
    period: Annotated[int, Field(ge=1, le=86_400, description="seconds of a round")]
    public_key: Annotated[str, Field(pattern="^[0-9a-f]{192}$", description="in G2, compressed, as relays give it")]

    @model_validator(mode="after")
    def _has_key(self) -> DrandTerms:
        try:
            decompress_public_key(bytes.fromhex(self.public_key))
        except ZkError as error:
            raise ValueError(f"public_key is not a valid key: {error}") from None
        return self

    @property
    def chain(self) -> DrandChain:
        return DrandChain(self.genesis, self.period, decompress_public_key(bytes.fromhex(self.public_key)))


class TokenTerms(_Table):
    """Either a supply to mint to the deployer, or the address of an existing token."""

    supply: Annotated[int | None, Field(ge=1, le=LARGEST_SUPPLY, description="whole tokens")] = None
    address: Annotated[str, AfterValidator(_checksummed)] | None = None

    @model_validator(mode="after")
    def _is_one(self) -> TokenTerms:
        if (self.supply is None) == (self.address is None):
            raise ValueError("set either supply or address")
        return self


class Network(_Table):
    """Terms of a deployment; periods in seconds."""

    chain_id: Annotated[int, Field(ge=1)]
    url: Annotated[SecretStr | None, Field(description="HTTP endpoint, where it holds no key")] = None
    url_env: Annotated[str | None, Field(pattern=VARIABLE, description="environment variable with the URL")] = None
    blobs: Annotated[bool, Field(description="the chain takes blob transactions (EIP-4844)")]
    confirmations: Annotated[int, Field(ge=1, le=1000, description="blocks, the transaction's own counted")]
    unbonding: Annotated[int, Field(ge=1, le=UINT32)]
    vesting: Annotated[int, Field(ge=1, le=UINT32)]
    guardian: Annotated[
        str, AfterValidator(_checksummed), Field(description="may stop new tasks, once; zero is nobody")
    ] = ZERO_ADDRESS
    beacon: Annotated[PrevrandaoTerms | QuicknetTerms | DrandTerms, Field(discriminator="kind")]
    token: TokenTerms

    @model_validator(mode="after")
    def _fits(self) -> Network:
        if (self.url is None) == (self.url_env is None):
            raise ValueError("set either url or url_env")
        beacon = self.beacon
        if isinstance(beacon, PrevrandaoTerms) and beacon.lookahead < LEAST_PUBLIC_LOOKAHEAD and not self.is_local:
            raise ValueError(
                f"beacon.lookahead ({beacon.lookahead} blocks) is too short: on a public chain, proposers may know or"
                f" choose so near a value; set at least {LEAST_PUBLIC_LOOKAHEAD} blocks, or use drand (kind = quicknet)"
            )
        if self.unbonding < self.vesting:
            raise ValueError(f"unbonding ({self.unbonding} s) must be at least vesting ({self.vesting} s)")
        return self

    @property
    def is_local(self) -> bool:
        return self.chain_id == CHAIN_ID

    def endpoint(self) -> str:
        """The node's URL, which may have a key. Raises ConfigInvalid if its environment variable is not set."""
        if self.url is not None:
            return self.url.get_secret_value()
        if found := os.environ.get(str(self.url_env), "").strip():
            return found
        raise ConfigInvalid(f"the environment variable {self.url_env} is not set; set it to the URL of a chain node")


class Networks(_Table):
    """A networks file."""

    networks: Annotated[dict[str, Network], Field(min_length=1)]


def read_networks(path: Path | None) -> Networks:
    """The networks in a file, or those that ship with this package. Raises ConfigInvalid."""
    what = f"the networks file {path or SHIPPED}"
    try:
        raw = path.read_bytes() if path else (resources.files(__package__) / SHIPPED).read_bytes()
    except OSError as error:
        raise ConfigInvalid(f"{what} cannot be read: {error.strerror}; pass the right path with --networks") from error
    return parse_toml(raw, Networks, what, ConfigInvalid)


@cache
def confirmations_of(chain_id: int) -> int:
    """Blocks behind which this chain's shipped terms count a transaction as final; 1 for an unknown chain."""
    found = (network for network in read_networks(None).networks.values() if network.chain_id == chain_id)
    return next((network.confirmations for network in found), 1)


def pick_network(networks: Networks, name: str) -> Network:
    """Raises DeployFailed (NetworkUnknown)."""
    if name not in networks.networks:
        raise DeployFailed("NetworkUnknown", network=name, known=", ".join(sorted(networks.networks)))
    return networks.networks[name]
