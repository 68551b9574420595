"""Commitments of a voter to its held-out rows and to its evaluation of them, and the batches that it must disclose.

Rows go in batches. Before a voter joins, it commits to all batches of its rows (`held_out_root`). With a ballot it
commits to a fingerprint of every batch (`fingerprints_root`, hidden in the ballot's salt by `ballot_salt`). After the
round a seed that nobody knew before (`draw_seed`) says which batches it opens (`drawn`): 22 of them miss a voter that
skipped a tenth less than once in ten times, 0.9^22 = 0.098.

Leaves are salted, each with its own salt out of one secret, so that nobody can try guesses of what is in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eth_utils.crypto import keccak

from .encoding import address, bytes32, uint256
from .errors import ArgumentInvalid
from .merkle import leaf_hash, root_above, tree_root

BATCH_ROWS: Final = 16
"""Rows of a batch; the last one has what is left."""

OPENINGS: Final = 22
"""Batches that a voter opens, or all where there are fewer."""

ROWS_TAG: Final[bytes] = keccak(b"CONSILIUM-V1-HELD-OUT-ROWS")
FINGERPRINT_TAG: Final[bytes] = keccak(b"CONSILIUM-V1-FINGERPRINTS")
_SALT_TAG: Final[bytes] = keccak(b"CONSILIUM-V1-LEAF-SALT")
_HELD_OUT_TAG: Final[bytes] = keccak(b"CONSILIUM-V1-HELD-OUT")
_BALLOT_TAG: Final[bytes] = keccak(b"CONSILIUM-V1-BALLOT-SALT")
_DRAW_TAG: Final[bytes] = keccak(b"CONSILIUM-V1-EVALUATION-DRAW")


def batch_count(rows: int) -> int:
    """Raises ArgumentInvalid."""
    if rows < 1:
        raise ArgumentInvalid("rows", rows, "at least 1")
    return -(-rows // BATCH_ROWS)


def leaf_salt(secret: bytes, index: int) -> bytes:
    """The salt of the batch at `index`: 32 bytes. `secret`: 32 random bytes, of this tree alone."""
    return keccak(_SALT_TAG + bytes32("secret", secret) + uint256("index", index))


def batch_leaf(tag: bytes, salt: bytes, content: bytes) -> bytes:
    """A batch's leaf in the tree that `tag` names."""
    return leaf_hash(tag + bytes32("salt", salt) + content)


def batch_leaves(tag: bytes, secret: bytes, contents: Sequence[bytes]) -> list[bytes]:
    """All leaves of a tree, by index of batch."""
    return [batch_leaf(tag, leaf_salt(secret, index), content) for index, content in enumerate(contents)]


def held_out_root(secret: bytes, rows: Sequence[bytes]) -> bytes:
    """The commitment of a voter on chain: its rows' number, and the tree over them in batches. 32 bytes.

    rows: keccak256 of each one's canonical bytes, in the order of the batches. Raises ArgumentInvalid, ShapeWrong.
    """
    words = [bytes32("rows", row) for row in rows]
    contents = [b"".join(words[k * BATCH_ROWS : (k + 1) * BATCH_ROWS]) for k in range(batch_count(len(rows)))]
    return keccak(_HELD_OUT_TAG + uint256("rows", len(rows)) + tree_root(batch_leaves(ROWS_TAG, secret, contents)))


def fingerprints_root(secret: bytes, fingerprints: Sequence[bytes]) -> bytes:
    """The root of the tree over the fingerprints, by index of batch. 32 bytes."""
    return tree_root(batch_leaves(FINGERPRINT_TAG, secret, fingerprints))


def root_of_opening(index: int, batches: int, salt: bytes, fingerprint: bytes, path: Sequence[bytes]) -> bytes:
    """The root that an opened batch is beneath. Raises ArgumentInvalid, PathMalformed, ShapeWrong."""
    return root_above(batch_leaf(FINGERPRINT_TAG, salt, fingerprint), index, batches, path)


def ballot_salt(root: bytes, blinding: bytes) -> bytes:
    """The salt of a ballot, which binds it to its fingerprints; `blinding`, 32 random bytes, hides their root."""
    return keccak(_BALLOT_TAG + bytes32("root", root) + bytes32("blinding", blinding))


def draw_seed(block_hash: bytes, chain_id: int, contract: bytes, task: int, round: int, voter: bytes) -> bytes:
    """The seed of a voter's draw: 32 bytes. block_hash: of the block in which the round ended; addresses: 20 bytes."""
    return keccak(
        b"".join(
            [
                _DRAW_TAG,
                bytes32("block_hash", block_hash),
                uint256("chain_id", chain_id),
                address("contract", contract),
                uint256("task", task),
                uint256("round", round),
                address("voter", voter),
            ]
        )
    )


def drawn(seed: bytes, batches: int) -> tuple[int, ...]:
    """The batches to open, ascending: those whose hashes under the seed are least. Every choice is as likely."""
    ranked = sorted(range(batches), key=lambda index: keccak(bytes32("seed", seed) + uint256("index", index)))
    return tuple(sorted(ranked[:OPENINGS]))
