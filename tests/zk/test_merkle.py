"""Merkle trees, against Certificate Transparency's own figures, and against whoever shows what is not there."""

from __future__ import annotations

import hashlib

import pytest
from consilium_zk.errors import ArgumentInvalid, Malformed
from consilium_zk.merkle import leaf_hash, path_of, root_above, tree_root
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st
from raised_faults import raises_fault

# Of the tests of Google's Certificate Transparency (cpp/merkletree/merkle_tree_test.cc): entries, roots over the first
# 0 … 8 of them, and paths by (index, size).
ENTRIES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
PATHS = {
    (0, 1): [],
    (0, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (5, 8): [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 3): ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"],
    (1, 5): [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}


def sha256(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


LEAVES = [leaf_hash(bytes.fromhex(entry), sha256) for entry in ENTRIES]


@pytest.mark.parametrize("size", range(9))
def test_roots_are_those_of_certificate_transparency(size: int) -> None:
    assert tree_root(LEAVES[:size], sha256).hex() == ROOTS[size]


@pytest.mark.parametrize(("index", "size"), PATHS)
def test_paths_are_those_of_certificate_transparency(index: int, size: int) -> None:
    path = path_of(LEAVES[:size], index, sha256)
    assert [one.hex() for one in path] == PATHS[index, size]
    assert root_above(LEAVES[index], index, size, path, sha256).hex() == ROOTS[size]


SIZES = st.integers(1, 70)


def numbered(size: int) -> list[bytes]:
    return [leaf_hash(bytes([number])) for number in range(size)]


@given(SIZES, st.data())
def test_every_path_leads_to_the_root_and_from_no_other_place(size: int, data: st.DataObject) -> None:
    leaves = numbered(size)
    index, other = (data.draw(st.integers(0, size - 1)) for _ in range(2))
    path = path_of(leaves, index)
    assert root_above(leaves[index], index, size, path) == tree_root(leaves)
    assert len(path) <= (size - 1).bit_length()
    if other != index:
        try:
            assert root_above(leaves[index], other, size, path) != tree_root(leaves)
        except Malformed:
            assert len(path_of(leaves, other)) != len(path)


@given(SIZES, st.data())
def test_a_changed_path_or_leaf_leads_elsewhere(size: int, data: st.DataObject) -> None:
    leaves = numbered(size)
    index = data.draw(st.integers(0, size - 1))
    shown = [leaves[index], *path_of(leaves, index)]
    place, bit = data.draw(st.integers(0, len(shown) - 1)), data.draw(st.integers(0, 255))
    shown[place] = (int.from_bytes(shown[place], "big") ^ 1 << bit).to_bytes(32, "big")
    assert root_above(shown[0], index, size, shown[1:]) != tree_root(leaves)


@given(SIZES, st.data())
def test_a_path_of_another_length_is_none(size: int, data: st.DataObject) -> None:
    leaves = numbered(size)
    index = data.draw(st.integers(0, size - 1))
    path = path_of(leaves, index)
    with raises_fault(Malformed, "PathMalformed"):
        root_above(leaves[index], index, size, [bytes(32), *path])
    if path:
        with raises_fault(Malformed, "PathMalformed"):
            root_above(leaves[index], index, size, path[1:])
        with raises_fault(Malformed, "PathMalformed"):
            root_above(leaves[index], index, size, [*path[:-1], path[-1][1:]])


def test_an_inner_node_is_no_leaf() -> None:
    """Whoever shows two leaves as one entry would have a tree of half the size with the same root."""
    leaves = numbered(4)
    pairs = [leaf_hash(leaves[k] + leaves[k + 1]) for k in (0, 2)]
    assert tree_root(pairs) != tree_root(leaves)
    assert tree_root([]) == keccak(b"")


@pytest.mark.parametrize(("index", "size"), [(-1, 3), (3, 3), (0, 0)])
def test_there_is_nothing_outside_a_tree(index: int, size: int) -> None:
    with pytest.raises(ArgumentInvalid):
        path_of(numbered(size), index)
    with pytest.raises(ArgumentInvalid):
        root_above(bytes(32), index, size, [])
