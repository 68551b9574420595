"""Merkle trees: one hash for a list of entries, and short paths that prove one entry and its index.

The tree is that of Certificate Transparency (RFC 6962, section 2.1), with keccak256 instead of SHA-256. Leaves and
inner nodes have different prefixes, so that neither passes for the other. A path proves an entry at `index` in a tree
of known `size`, so a commitment to a root must also commit to the size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from eth_utils.crypto import keccak

from .encoding import WORD
from .errors import ArgumentInvalid, Malformed

Hash = Callable[[bytes], bytes]

LEAF: Final = b"\x00"
NODE: Final = b"\x01"


def leaf_hash(entry: bytes, hash_: Hash = keccak) -> bytes:
    """An entry's leaf, 32 bytes."""
    return hash_(LEAF + entry)


def tree_root(leaves: Sequence[bytes], hash_: Hash = keccak) -> bytes:
    """The root of leaves as `leaf_hash` gives them; of none, the hash of nothing. 32 bytes."""
    if not leaves:
        return hash_(b"")
    if len(leaves) == 1:
        return leaves[0]
    left = _left(len(leaves))
    return _node(tree_root(leaves[:left], hash_), tree_root(leaves[left:], hash_), hash_)


def path_of(leaves: Sequence[bytes], index: int, hash_: Hash = keccak) -> list[bytes]:
    """The path of the leaf at `index` to the root: the sibling hashes, from below. Raises ArgumentInvalid."""
    _require_index(index, len(leaves))
    if len(leaves) == 1:
        return []
    left = _left(len(leaves))
    if index < left:
        return [*path_of(leaves[:left], index, hash_), tree_root(leaves[left:], hash_)]
    return [*path_of(leaves[left:], index - left, hash_), tree_root(leaves[:left], hash_)]


def root_above(leaf: bytes, index: int, size: int, path: Sequence[bytes], hash_: Hash = keccak) -> bytes:
    """The root of the tree of `size` with `leaf` at `index` and this path, for the reader to compare.

    Raises ArgumentInvalid; PathMalformed for a path of the wrong length.
    """
    _require_index(index, size)
    if size == 1:
        if path:
            raise Malformed("PathMalformed", reason=f"it has {len(path)} hashes too many")
        return leaf
    if not path or len(path[-1]) != WORD:
        raise Malformed("PathMalformed", reason=f"a hash of {WORD} bytes is missing")
    left, beside = _left(size), path[-1]
    if index < left:
        return _node(root_above(leaf, index, left, path[:-1], hash_), beside, hash_)
    return _node(beside, root_above(leaf, index - left, size - left, path[:-1], hash_), hash_)


def _node(left: bytes, right: bytes, hash_: Hash) -> bytes:
    return hash_(NODE + left + right)


def _left(size: int) -> int:
    """Leaves of the left half: the largest power of two below `size` (at least 2)."""
    return 1 << (size - 1).bit_length() - 1


def _require_index(index: int, size: int) -> None:
    if not 0 <= index < size:
        raise ArgumentInvalid("index", index, f"in [0, {size})")
