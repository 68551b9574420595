"""What a voter's evaluation is bound by, and how its batches are drawn."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from consilium_zk.errors import ArgumentInvalid, Malformed, ShapeWrong
from consilium_zk.evaluation import (
    BATCH_ROWS,
    DISCLOSED_BATCHES,
    FINGERPRINT_TAG,
    ballot_salt,
    batch_count,
    batch_leaves,
    draw_seed,
    drawn,
    fingerprints_root,
    held_out_root,
    leaf_salt,
    root_of_disclosure,
)
from consilium_zk.merkle import path_of
from hypothesis import given
from hypothesis import strategies as st
from raised_faults import raises_fault

WORDS = st.binary(min_size=32, max_size=32)
SECRET = bytes(range(32))
ADDRESS = bytes(20)


@given(WORDS, st.integers(1, 400))
def test_as_many_batches_are_drawn_as_are_opened_and_none_twice(seed: bytes, batches: int) -> None:
    found = drawn(seed, batches)
    assert len(set(found)) == len(found) == min(DISCLOSED_BATCHES, batches)
    assert list(found) == sorted(found)
    assert set(found) <= set(range(batches))
    assert found == drawn(seed, batches)


def test_every_batch_is_drawn_as_often_as_any() -> None:
    """2,000 draws of 22 in 200: each batch 220 times, within five deviations of 14."""
    seeds = (number.to_bytes(32, "big") for number in range(2_000))
    counts = Counter(index for seed in seeds for index in drawn(seed, 200))
    assert set(counts) == set(range(200))
    assert all(abs(count - 220) < 5 * 14.1 for count in counts.values())


def test_skipping_a_tenth_is_missed_less_than_once_in_ten() -> None:
    """Exactly: all of 22 fall among the 180 of 200 that were evaluated; of any number of batches, less than 0.9^22."""
    missed = math.comb(180, DISCLOSED_BATCHES) / math.comb(200, DISCLOSED_BATCHES)
    assert missed == pytest.approx(0.0857, abs=5e-5)
    bound = 0.9**DISCLOSED_BATCHES
    assert bound == pytest.approx(0.0985, abs=5e-5)
    for batches in (30, 100, 1_000, 10_000):
        assert math.comb(batches - batches // 10, DISCLOSED_BATCHES) / math.comb(batches, DISCLOSED_BATCHES) < bound
    assert 0.9 ** (DISCLOSED_BATCHES - 1) > 0.1  # no fewer would do


@given(st.lists(WORDS, min_size=1, max_size=3 * BATCH_ROWS), st.data())
def test_a_root_is_of_these_rows_in_this_order_under_this_secret(rows: list[bytes], data: st.DataObject) -> None:
    root = held_out_root(SECRET, rows)
    assert root == held_out_root(SECRET, list(rows))
    assert root != held_out_root(bytes(32), rows)
    assert root != held_out_root(SECRET, [*rows, rows[-1]])
    if len(rows) > 1:
        assert root != held_out_root(SECRET, rows[:-1])
    place = data.draw(st.integers(0, len(rows) - 1))
    other = bytes([rows[place][0] ^ 1]) + rows[place][1:]
    assert root != held_out_root(SECRET, [*rows[:place], other, *rows[place + 1 :]])
    assert (root == held_out_root(SECRET, rows[::-1])) == (rows[::-1] == rows)


def test_only_digests_are_committed_to() -> None:
    """Of other lengths, one row could be taken for two."""
    with pytest.raises(ShapeWrong):
        held_out_root(SECRET, [bytes(64)])
    with pytest.raises(ArgumentInvalid):
        held_out_root(SECRET, [])


@given(st.lists(st.binary(max_size=8), min_size=1, max_size=40), st.data())
def test_an_opening_shows_this_batchs_fingerprint_and_no_other(prints: list[bytes], data: st.DataObject) -> None:
    root, leaves = fingerprints_root(SECRET, prints), batch_leaves(FINGERPRINT_TAG, SECRET, prints)
    index = data.draw(st.integers(0, len(prints) - 1))
    salt, path = leaf_salt(SECRET, index), path_of(leaves, index)
    assert root_of_disclosure(index, len(prints), salt, prints[index], path) == root
    assert root_of_disclosure(index, len(prints), salt, prints[index] + b"\0", path) != root
    assert root_of_disclosure(index, len(prints), leaf_salt(SECRET, index + 1), prints[index], path) != root
    with raises_fault(Malformed, "PathMalformed"):
        root_of_disclosure(index, len(prints), salt, prints[index], [*path, root])
    with pytest.raises(ShapeWrong):
        root_of_disclosure(index, len(prints), salt[1:], prints[index], path)


@given(WORDS, WORDS)
def test_a_ballots_salt_is_of_one_root(root: bytes, blinding: bytes) -> None:
    assert ballot_salt(root, blinding) != ballot_salt(blinding, root) or root == blinding
    with pytest.raises(ShapeWrong):
        ballot_salt(root[1:], blinding + b"\0")


def test_everybody_draws_for_itself() -> None:
    other = b"\x01" * 20
    seeds = {
        draw_seed(bytes(32), 1, ADDRESS, 1, 1, ADDRESS),
        draw_seed(b"\x01" * 32, 1, ADDRESS, 1, 1, ADDRESS),
        draw_seed(bytes(32), 2, ADDRESS, 1, 1, ADDRESS),
        draw_seed(bytes(32), 1, other, 1, 1, ADDRESS),
        draw_seed(bytes(32), 1, ADDRESS, 2, 1, ADDRESS),
        draw_seed(bytes(32), 1, ADDRESS, 1, 2, ADDRESS),
        draw_seed(bytes(32), 1, ADDRESS, 1, 1, other),
    }
    assert len(seeds) == 7


def test_batches_hold_sixteen_rows_and_the_last_one_the_rest() -> None:
    assert [batch_count(rows) for rows in (1, 15, 16, 17, 3_200)] == [1, 1, 1, 2, 200]
    with pytest.raises(ArgumentInvalid):
        batch_count(0)
