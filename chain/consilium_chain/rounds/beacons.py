"""Proofs of the beacon values for the contracts: one prover for each implementation of IBeacon."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

from consilium_zk.bls import PublicKey
from consilium_zk.drand import DrandChain

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.rounds.drand_relays import fetch_signature
from consilium_chain.rpc.connection import Connection


class Beacon(Protocol):
    """A source of randomness. A request is the number that IBeacon.request gave."""

    def ready(self, request: int) -> bool:
        """True if the chain takes a proof now."""

    def expired(self, request: int) -> bool:
        """True if the chain never takes a proof any more."""

    def proof(self, request: int) -> bytes:
        """The proof that IBeacon.seed takes, once `ready`. Raises ChainUnreachable, RandomnessUnavailable."""

    def wait(self, block_seconds: float) -> float:
        """About the seconds from a request to `ready`, by the block time. Raises ChainUnreachable."""


class PrevrandaoProver:
    """A request is a block's number; its proof is that block's header."""

    def __init__(self, connection: Connection, address: str) -> None:
        self._connection = connection
        self._contract = connection.contract("PrevrandaoBeacon", address)

    def ready(self, request: int) -> bool:
        """Provable from the next block on."""
        return self._connection.blocks.number() > request

    def expired(self, request: int) -> bool:
        return bool(self._connection.call(self._contract.functions.expired(request)))

    def proof(self, request: int) -> bytes:
        return self._connection.blocks.header(request)

    def wait(self, block_seconds: float) -> float:
        return (int(self._connection.call(self._contract.functions.lookahead())) + 1) * block_seconds


class DrandProver:
    """A request is a drand round; its proof is that round's signature, from any of the relays."""

    def __init__(self, connection: Connection, address: str, relays: Sequence[str]) -> None:
        self._connection = connection
        self._contract = connection.contract("DrandBeacon", address)
        self._relays = relays

    @cached_property
    def chain(self) -> DrandChain:
        """The drand chain of the contract, which decides about proofs."""
        functions = self._contract.functions
        return DrandChain(
            genesis=int(self._connection.call(functions.genesis())),
            period=int(self._connection.call(functions.period())),
            public_key=PublicKey(bytes(self._connection.call(functions.publicKey()))),
        )

    def ready(self, request: int) -> bool:
        """By the chain's clock, as the contract decides; relays may still lag behind."""
        return self._connection.blocks.now() >= self.chain.start(request)

    def expired(self, request: int) -> bool:
        """Never: a round's signature stays a proof."""
        return False

    def proof(self, request: int) -> bytes:
        return fetch_signature(self._relays, self.chain, request)

    def wait(self, block_seconds: float) -> float:
        return int(self._connection.call(self._contract.functions.lookahead())) + self.chain.period


def open_beacon(connection: Connection, deployment: Deployment, relays: Sequence[str]) -> Beacon:
    """The prover for the address book's beacon. `relays`: used for a drand chain."""
    if deployment.beacon_kind == "DrandBeacon":
        return DrandProver(connection, deployment.beacon, relays)
    return PrevrandaoProver(connection, deployment.beacon)
