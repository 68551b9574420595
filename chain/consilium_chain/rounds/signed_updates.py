"""Updates that a hospital signs and another account commits: the hospital needs no ether.

The signature is on EIP-712 typed data with chain, contract, task, round, points, and the digests of secret shares and
of the base. It has no nonce, for a hospital commits once a round. The opening is not signed, for points and challenge
determine it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from consilium_zk.constants import BYTES_PER_COMPRESSED_G1, BYTES_PER_EIP2537_G1
from consilium_zk.curve import Commitment, decompress, from_eip2537, point_to_eip2537, to_eip2537
from consilium_zk.errors import ZkError
from consilium_zk.kzg import Opening, parse_opening
from eth_account.signers.local import LocalAccount

from consilium_chain.errors import SignedUpdateMalformed
from consilium_chain.messages import signed_update_bytes
from consilium_chain.rpc.batching import batches
from consilium_chain.typed_data import typed_data

DOMAIN = "Consilium"  # of all that hospitals sign for a task
_WORD = 32
_PROOF = 3 * _WORD  # where the opening's proof stands in the wire form
_SHARE_BUNDLE = _PROOF + BYTES_PER_COMPRESSED_G1
_BASE = _SHARE_BUNDLE + _WORD
NO_SHARE_BUNDLE = bytes(32)  # of a hospital that deals nothing
NO_BASE = bytes(32)  # of a hospital that states none
_POINTS = signed_update_bytes(0)
# Upper bounds of an update's gas in a batch (snapshots/relaying.json), so that a batch fits a transaction (EIP-7825).
_GAS_TO_RELAY = 200_000
_GAS_PER_UPDATE = 40_000
_GAS_PER_BLOB = 36_000
_GAS_PER_BATCH = 16_000_000


@dataclass(frozen=True)
class SignedUpdate:
    """A hospital's commitments (G1, EIP-2537, 128 bytes per blob), their opening, the digest of its secret shares (32
    bytes, `NO_SHARE_BUNDLE` in an unmasked task), the digest of the base that it trained from (32 bytes), and its
    signature (EIP-2098).
    """

    hospital: str
    points: bytes
    opening: Opening
    share_bundle: bytes
    base: bytes
    r: bytes
    vs: bytes

    @property
    def compressed(self) -> bytes:
        """The points as in events, 48 bytes per blob. Raises PointMalformed."""
        return b"".join(_compressed(self.points))

    def to_chain(self) -> tuple[str, bytes, bytes, tuple[int, ...], bytes, bytes, bytes, bytes]:
        """The argument of `commitUpdates`, with the proof as the four words of its point. Raises PointMalformed."""
        proof = to_eip2537(Commitment(self.opening.proof))
        words = tuple(int.from_bytes(proof[i : i + _WORD], "big") for i in range(0, len(proof), _WORD))
        value = self.opening.value.to_bytes(_WORD, "big")
        return (self.hospital, self.points, value, words, self.share_bundle, self.base, self.r, self.vs)

    def to_wire(self) -> bytes:
        """r, vs, value, proof, digests of secret shares and base, compressed points; without the hospital, which the
        channel names.

        Raises PointMalformed.
        """
        value = self.opening.value.to_bytes(_WORD, "big")
        digests = self.share_bundle, self.base
        return b"".join((self.r, self.vs, value, self.opening.proof, *digests, *_compressed(self.points)))


def parse_signed_update(raw: bytes, hospital: str, blobs: int) -> SignedUpdate:
    """A signed update of `blobs` blobs from its wire form. Points and opening are checked, the signature is not.

    `hospital`: the known sender. Raises SignedUpdateMalformed.
    """
    if len(raw) != signed_update_bytes(blobs):
        raise SignedUpdateMalformed(f"{len(raw)} bytes instead of {signed_update_bytes(blobs)} for {blobs} blobs")
    r, vs, value = (raw[i : i + _WORD] for i in range(0, _PROOF, _WORD))
    rows = [raw[i : i + BYTES_PER_COMPRESSED_G1] for i in range(_POINTS, len(raw), BYTES_PER_COMPRESSED_G1)]
    try:
        opening = parse_opening(value, raw[_PROOF:_SHARE_BUNDLE])
        points = [point_to_eip2537(decompress(row, f"point {index}")) for index, row in enumerate(rows)]
    except ZkError as error:
        raise SignedUpdateMalformed(str(error)) from error
    return SignedUpdate(hospital, b"".join(points), opening, raw[_SHARE_BUNDLE:_BASE], raw[_BASE:_POINTS], r, vs)


def sign_update(
    account: LocalAccount,
    chain_id: int,
    contract: str,
    task: int,
    round_: int,
    points: bytes,
    opening: Opening,
    share_bundle: bytes = NO_SHARE_BUNDLE,
    base: bytes = NO_BASE,
) -> SignedUpdate:
    """Signs with the hospital's own account, at most one update per round: a holder of two could choose. Raises
    PointMalformed.
    """
    message = commitment_message(chain_id, contract, task, round_, points, share_bundle, base)
    signed = account.sign_typed_data(full_message=message)
    vs = (signed.v - 27) << 255 | signed.s
    return SignedUpdate(
        account.address, points, opening, share_bundle, base, signed.r.to_bytes(_WORD, "big"), vs.to_bytes(_WORD, "big")
    )


def commitment_message(
    chain_id: int,
    contract: str,
    task: int,
    round_: int,
    points: bytes,
    share_bundle: bytes = NO_SHARE_BUNDLE,
    base: bytes = NO_BASE,
) -> dict[str, Any]:
    """The EIP-712 message whose digest is `ITasks.commitmentDigest` of compressed points and the digests of secret
    shares and of the base.

    Raises PointMalformed.
    """
    fields = {"taskId": "uint256", "round": "uint256", "points": "bytes", "dealing": "bytes32", "base": "bytes32"}
    compressed = b"".join(_compressed(points))
    values = {"taskId": task, "round": round_, "points": compressed, "dealing": share_bundle, "base": base}
    return typed_data(DOMAIN, chain_id, contract, {"UpdateCommitment": fields}, values)


def agreed_base(stated: Iterable[bytes], hospitals: int) -> bytes | None:
    """The digest of the base that more than half of a round's hospitals state; None without one."""
    known = Counter(base for base in stated if base != NO_BASE)
    base, count = max(known.items(), key=lambda item: item[1], default=(NO_BASE, 0))
    return base if 2 * count > hospitals else None


def _compressed(points: bytes) -> list[Commitment]:
    """Points in EIP-2537 encoding, one after another, compressed. Raises PointMalformed."""
    size = BYTES_PER_EIP2537_G1
    return [from_eip2537(points[i : i + size]) for i in range(0, len(points), size)]


def update_batches(updates: Sequence[SignedUpdate]) -> Iterator[list[SignedUpdate]]:
    """Updates in order, in batches that each fit into one transaction."""
    return batches([(update, relayed_gas([update]) - _GAS_TO_RELAY) for update in updates], _GAS_PER_BATCH)


def relayed_gas(updates: Sequence[SignedUpdate]) -> int:
    """An upper bound of the gas of committing them in one transaction, without the end of the phase."""
    blobs = sum(len(update.points) // BYTES_PER_EIP2537_G1 for update in updates)
    return _GAS_TO_RELAY + _GAS_PER_UPDATE * len(updates) + _GAS_PER_BLOB * blobs
