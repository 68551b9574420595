"""Updates that a hospital signs and another commits: the hospital needs no ether.

What is signed is EIP-712 typed data that names chain, contract, task, round and points. It carries no nonce, for a
hospital commits once a round; the opening is not signed, for points and challenge leave no other one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from consilium_zk.constants import BYTES_PER_EIP2537_G1
from consilium_zk.curve import Commitment, from_eip2537, to_eip2537
from consilium_zk.kzg import Opening
from eth_account.signers.local import LocalAccount

_WORD = 32
# Above what an update adds to a batch's gas (snapshots/relaying.json), so that a batch fits a transaction (EIP-7825).
_GAS_PER_UPDATE = 40_000
_GAS_PER_BLOB = 36_000
_GAS_PER_BATCH = 16_000_000


@dataclass(frozen=True)
class SignedUpdate:
    """A hospital's commitments (G1, EIP-2537, 128 bytes per blob), their opening, and its signature (EIP-2098)."""

    hospital: str
    points: bytes
    opening: Opening
    r: bytes
    vs: bytes

    def to_chain(self) -> tuple[str, bytes, bytes, tuple[int, ...], bytes, bytes]:
        """As `commitUpdates` takes it, with the proof as the four words of its point. Raises PointMalformed."""
        proof = to_eip2537(Commitment(self.opening.proof))
        words = tuple(int.from_bytes(proof[i : i + _WORD], "big") for i in range(0, len(proof), _WORD))
        return (self.hospital, self.points, self.opening.value.to_bytes(_WORD, "big"), words, self.r, self.vs)


def sign_update(
    account: LocalAccount, chain_id: int, contract: str, task: int, round_: int, points: bytes, opening: Opening
) -> SignedUpdate:
    """Signs with the hospital's own account. Raises PointMalformed.

    One update per round and no more: whoever holds two may choose.
    """
    signed = account.sign_typed_data(full_message=commitment_message(chain_id, contract, task, round_, points))
    vs = (signed.v - 27) << 255 | signed.s
    return SignedUpdate(account.address, points, opening, signed.r.to_bytes(_WORD, "big"), vs.to_bytes(_WORD, "big"))


def commitment_message(chain_id: int, contract: str, task: int, round_: int, points: bytes) -> dict[str, Any]:
    """The EIP-712 message whose digest is `ITasks.commitmentDigest` of the compressed points. Raises PointMalformed."""
    rows = [points[i : i + BYTES_PER_EIP2537_G1] for i in range(0, len(points), BYTES_PER_EIP2537_G1)]
    return {
        "types": {
            "EIP712Domain": [
                {"name": "name", "type": "string"},
                {"name": "version", "type": "string"},
                {"name": "chainId", "type": "uint256"},
                {"name": "verifyingContract", "type": "address"},
            ],
            "UpdateCommitment": [
                {"name": "taskId", "type": "uint256"},
                {"name": "round", "type": "uint256"},
                {"name": "points", "type": "bytes"},
            ],
        },
        "primaryType": "UpdateCommitment",
        "domain": {"name": "Consilium", "version": "1", "chainId": chain_id, "verifyingContract": contract},
        "message": {"taskId": task, "round": round_, "points": b"".join(map(from_eip2537, rows))},
    }


def batches(updates: Sequence[SignedUpdate]) -> Iterator[list[SignedUpdate]]:
    """Updates in order, cut so that each batch fits into one transaction."""
    batch: list[SignedUpdate] = []
    gas = 0
    for update in updates:
        cost = _GAS_PER_UPDATE + _GAS_PER_BLOB * (len(update.points) // BYTES_PER_EIP2537_G1)
        if batch and gas + cost > _GAS_PER_BATCH:
            yield batch
            batch, gas = [], 0
        batch.append(update)
        gas += cost
    if batch:
        yield batch
