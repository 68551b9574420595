"""Committee seats: BLS keys, tickets, proofs of possession, and the draw.

A ticket is a BLS signature with keys in G2 and signatures in G1 (IETF draft-irtf-cfrg-bls-signature, "minimal signature
size"), under this protocol's own tags. A key and a message have exactly one valid signature: nobody can grind a ticket,
and only the key's holder can foresee it. Points are in EIP-2537 encoding, as in the contract.

Neither arkworks nor Python's integers are constant-time: sign where nobody untrusted can time it.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final, NewType, final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from eth_utils.crypto import keccak
from py_arkworks_bls12381 import G1Point, G2Point, Scalar

from .bls import PublicKey, key_to_eip2537, signature_point, verify
from .constants import BLS_MODULUS, POSSESSION_DST, TICKET_DST
from .curve import point_to_eip2537
from .encoding import address, bytes32, round_words, uint256, words_then_bytes
from .errors import ArgumentInvalid, Malformed

Ticket = NewType("Ticket", bytes)
"""A G1 signature on `ticket_message`, not the identity: x, y, each padded to 64 bytes; 128 bytes."""

ALWAYS: Final = 1 << 256
"""The threshold that every draw is below."""

_KEYGEN_OUTPUT: Final = 48


@final
class SecretKey:
    """A BLS secret key: an integer in [1, BLS_MODULUS). Its `repr` hides it. Raises KeyMalformed."""

    __slots__ = ("_scalar",)

    def __init__(self, scalar: int) -> None:
        if not 0 < scalar < BLS_MODULUS:
            raise Malformed("KeyMalformed", reason="a secret key must be an integer in [1, BLS_MODULUS)")
        self._scalar = scalar

    def __repr__(self) -> str:
        return "SecretKey(hidden)"

    def __reduce__(self) -> Any:
        raise TypeError("a SecretKey cannot be pickled; store it in an encrypted key file")

    def reveal(self) -> int:
        """The integer itself, for a keystore to encrypt."""
        return self._scalar


def generate_secret_key(seed: bytes) -> SecretKey:
    """IETF BLS draft's KeyGen with empty key_info, from a seed of at least 32 secret bytes. Raises KeyMalformed."""
    if len(seed) < 32:
        raise Malformed("KeyMalformed", reason=f"the seed has {len(seed)} bytes; it must have at least 32")
    salt = b"BLS-SIG-KEYGEN-SALT-"
    scalar = 0
    while scalar == 0:
        salt = hashlib.sha256(salt).digest()
        # HKDF (RFC 5869) with info = key_info || I2OSP(48, 2).
        hkdf = HKDF(algorithm=SHA256(), length=_KEYGEN_OUTPUT, salt=salt, info=_KEYGEN_OUTPUT.to_bytes(2, "big"))
        scalar = int.from_bytes(hkdf.derive(seed + b"\x00"), "big") % BLS_MODULUS
    return SecretKey(scalar)


def public_key(secret_key: SecretKey) -> PublicKey:
    """The key that others verify with."""
    return key_to_eip2537(G2Point() * Scalar(secret_key.reveal()))


def parse_ticket(raw: bytes) -> Ticket:
    """`raw` as a ticket: on the curve, in the subgroup, not the identity. Raises PointMalformed."""
    signature_point(raw)
    return Ticket(bytes(raw))


def ticket_message(chain_id: int, contract: bytes, task: int, round: int, seed: bytes, voter: bytes) -> bytes:
    """The message of a ticket: abi.encode(chain id, contract, task, round, seed, voter), 192 bytes.

    The account in it makes draws independent. contract, voter: 20 bytes; seed: 32. Raises ArgumentInvalid, ShapeWrong.
    """
    return round_words(chain_id, contract, task, round) + bytes32("seed", seed) + address("voter", voter)


def sign_ticket(secret_key: SecretKey, message: bytes) -> Ticket:
    """The one ticket of this key on this message."""
    return Ticket(_sign(secret_key, message, TICKET_DST))


def verify_ticket(key: PublicKey, message: bytes, ticket: Ticket) -> bool:
    """True if `ticket` is `key`'s ticket on `message`. Raises KeyMalformed, PointMalformed; identities are refused."""
    return verify(key, message, ticket, TICKET_DST)


def possession_message(chain_id: int, staking: bytes, voter: bytes, key: PublicKey) -> bytes:
    """The message of a proof of possession: abi.encode(chain id, staking contract, voter, key), as in IStaking.

    Addresses are 20 bytes. Raises ArgumentInvalid, ShapeWrong.
    """
    words = [uint256("chain_id", chain_id), address("staking", staking), address("voter", voter)]
    return words_then_bytes(words, key)


def prove_possession(secret_key: SecretKey, chain_id: int, staking: bytes, voter: bytes) -> bytes:
    """The proof that the holder of `public_key(secret_key)` registers it for `voter`: 128 bytes.

    Without it, a key computed from others' keys could be registered. Raises ArgumentInvalid, ShapeWrong.
    """
    message = possession_message(chain_id, staking, voter, public_key(secret_key))
    return _sign(secret_key, message, POSSESSION_DST)


def verify_possession(key: PublicKey, chain_id: int, staking: bytes, voter: bytes, proof: bytes) -> bool:
    """True if `proof` shows possession. Raises KeyMalformed, PointMalformed, ArgumentInvalid, ShapeWrong."""
    return verify(key, possession_message(chain_id, staking, voter, key), proof, POSSESSION_DST)


def draw(ticket: Ticket) -> int:
    """The ticket's number in [0, 2^256): keccak256 of its 128 bytes."""
    return int.from_bytes(keccak(ticket), "big")


def seat_threshold(seats: int, bond: int, total: int) -> int:
    """A draw below this number wins a seat: a chance of min(1, seats · bond / total).

    floor((2^256 - 1) · seats · bond / total), or 2^256 if seats · bond >= total. Raises ArgumentInvalid (negative seats
    or bond, total below 1).
    """
    for name, value, least in (("seats", seats, 0), ("bond", bond, 0), ("total", total, 1)):
        if value < least:
            raise ArgumentInvalid(name, value, f"at least {least}")
    if seats * bond >= total:
        return ALWAYS
    return (ALWAYS - 1) * seats * bond // total


def _sign(secret_key: SecretKey, message: bytes, tag: bytes) -> bytes:
    return point_to_eip2537(G1Point.hash_to_curve(message, tag) * Scalar(secret_key.reveal()))
