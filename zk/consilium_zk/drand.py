"""Rounds of a drand chain of scheme bls-unchained-g1-rfc9380: their messages, start times and seeds.

A round's signature is a threshold BLS signature in G1 by the key in G2, on sha256 of the round as 8 bytes, big-endian.
Its randomness is sha256 of the compressed signature (https://docs.drand.love/docs/specification). DrandBeacon is the
same on chain.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final, NewType

from eth_utils.crypto import keccak

from .bls import PublicKey, decompress_public_key, verify
from .constants import DRAND_DST
from .curve import compressed, decompress, point_from_eip2537, point_to_eip2537
from .encoding import uint256
from .errors import ArgumentInvalid, Malformed

RoundSignature = NewType("RoundSignature", bytes)
"""A G1 point that a round was signed with: x, y, each padded to 64 bytes; 128 bytes."""

_LAST_ROUND: Final = 2**64 - 1


@dataclass(frozen=True)
class DrandChain:
    """A chain of rounds: `genesis` is when round 1 starts, in seconds of Unix time; `period` the seconds of each."""

    genesis: int
    period: int
    public_key: PublicKey

    def __post_init__(self) -> None:
        if self.period < 1:
            raise ArgumentInvalid("period", self.period, "at least 1 second")

    def start(self, round: int) -> int:
        """When a round starts, in seconds of Unix time. Raises ArgumentInvalid."""
        return self.genesis + (_valid(round) - 1) * self.period

    def parse_signature(self, round: int, raw: bytes) -> RoundSignature:
        """A relay's 48 bytes as the round's signature. Raises PointMalformed, RoundUnsigned, ArgumentInvalid."""
        signature = point_to_eip2537(decompress(raw, "drand signature"))
        if not verify(self.public_key, round_message(round), signature, DRAND_DST):
            raise Malformed("RoundUnsigned", round=round)
        return RoundSignature(signature)


QUICKNET: Final = DrandChain(
    genesis=1_692_803_367,
    period=3,
    public_key=decompress_public_key(
        bytes.fromhex(
            "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d106451"
            "0d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"
        )
    ),
)
"""The League of Entropy's chain of 3 seconds, as every relay serves under /{QUICKNET_HASH}/info."""

QUICKNET_HASH: Final = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"


def round_message(round: int) -> bytes:
    """The message that the nodes sign for a round, 32 bytes. Raises ArgumentInvalid."""
    return hashlib.sha256(_valid(round).to_bytes(8, "big")).digest()


def randomness(signature: RoundSignature) -> bytes:
    """The round's value as drand publishes it, 32 bytes."""
    return hashlib.sha256(compressed(point_from_eip2537(signature, "drand signature"))).digest()


def seed(round: int, signature: RoundSignature) -> bytes:
    """The result of DrandBeacon.seed: keccak256(abi.encode(randomness, round)), 32 bytes. Raises ArgumentInvalid."""
    return keccak(randomness(signature) + uint256("round", _valid(round)))


def _valid(round: int) -> int:
    if not 1 <= round <= _LAST_ROUND:
        raise ArgumentInvalid("round", round, f"in [1, {_LAST_ROUND}]")
    return round
