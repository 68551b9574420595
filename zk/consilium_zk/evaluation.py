"""A voter's commitments to its held-out rows and to its evaluation of them, and the batches that it must disclose.

A voter commits to all batches of its rows before it joins (`held_out_root`), and with a ballot to a fingerprint of
every batch (`fingerprints_root`, hidden in the ballot's salt by `ballot_salt`). After the round a fresh seed
(`draw_seed`) selects the batches that it discloses (`drawn`). A voter that skipped a tenth of them passes 22
disclosures with a chance of 0.9^22 = 0.098.

Each leaf has its own salt from one secret, so that nobody can guess its content.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eth_utils.crypto import keccak

from .encoding import address, bytes32, round_words, uint256
from .errors import ArgumentInvalid
from .merkle import leaf_hash, root_above, tree_root

BATCH_ROWS: Final = 16
"""Rows of a batch; the last one may have fewer."""

DISCLOSED_BATCHES: Final = 22
"""Batches that a voter discloses, or all where there are fewer."""

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
    """A voter's commitment on chain: the number of its rows, and the tree over them in batches. 32 bytes.

    rows: keccak256 of each row's canonical bytes, in order. Raises ArgumentInvalid, ShapeWrong.
    """
    words = [bytes32("rows", row) for row in rows]
    contents = [b"".join(words[k * BATCH_ROWS : (k + 1) * BATCH_ROWS]) for k in range(batch_count(len(rows)))]
    return keccak(_HELD_OUT_TAG + uint256("rows", len(rows)) + tree_root(batch_leaves(ROWS_TAG, secret, contents)))


def fingerprints_root(secret: bytes, fingerprints: Sequence[bytes]) -> bytes:
    """The root of the tree over the fingerprints, by index of batch. 32 bytes."""
    return tree_root(batch_leaves(FINGERPRINT_TAG, secret, fingerprints))


def root_of_disclosure(index: int, batches: int, salt: bytes, fingerprint: bytes, path: Sequence[bytes]) -> bytes:
    """The root above a disclosed batch. Raises ArgumentInvalid, PathMalformed, ShapeWrong."""
    return root_above(batch_leaf(FINGERPRINT_TAG, salt, fingerprint), index, batches, path)


def ballot_salt(root: bytes, blinding: bytes) -> bytes:
    """The salt that binds a ballot to its fingerprints; `blinding`, 32 random bytes, hides their root."""
    return keccak(_BALLOT_TAG + bytes32("root", root) + bytes32("blinding", blinding))


def draw_seed(block_hash: bytes, chain_id: int, contract: bytes, task: int, round: int, voter: bytes) -> bytes:
    """The seed of a voter's draw: 32 bytes. block_hash: of the round's last block. contract, voter: 20 bytes."""
    of_round = round_words(chain_id, contract, task, round)
    return keccak(_DRAW_TAG + bytes32("block_hash", block_hash) + of_round + address("voter", voter))


def drawn(seed: bytes, batches: int) -> tuple[int, ...]:
    """The batches to disclose, ascending: those with the smallest hashes under the seed. All choices are equally
    likely.
    """
    ranked = sorted(range(batches), key=lambda index: keccak(bytes32("seed", seed) + uint256("index", index)))
    return tuple(sorted(ranked[:DISCLOSED_BATCHES]))
