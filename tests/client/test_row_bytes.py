"""Canonical bytes of examples: each its own, in the examples' order, and the same whatever form the array has."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
from consilium_client.data.image.reader import ImageSet
from consilium_client.data.series.stays import Stays
from consilium_client.data.table.reader import Table
from consilium_client.data.text.reader import TextSet
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

labels = st.integers(0, 2**31)
values = st.floats(0, 1) | st.sampled_from([0.0, -0.0, np.nan, -np.nan])
rows = st.lists(st.tuples(st.tuples(values, values), labels), min_size=1, max_size=8)
words = st.lists(st.tuples(st.text(st.characters(codec="utf-8")), labels), min_size=1, max_size=8)


def table(examples: Sequence[tuple[tuple[float, float], int]]) -> Table:
    return Table(np.array([row for row, _ in examples]), np.array([label for _, label in examples]))


def texts(examples: Sequence[tuple[str, int]]) -> TextSet:
    return TextSet(tuple(text for text, _ in examples), np.array([label for _, label in examples]))


def same(a: float, b: float) -> bool:
    return a == b or (np.isnan(a) and np.isnan(b))


@given(rows)
def test_rows_have_the_same_bytes_only_where_they_are_the_same(examples: list[tuple[tuple[float, float], int]]) -> None:
    found = list(table(examples).row_bytes())
    assert len(found) == len(examples)
    for one, (row, label) in zip(found, examples, strict=True):
        for other, (another, second) in zip(found, examples, strict=True):
            equal = label == second and all(map(same, row, another))
            assert (one == other) == equal
    assert found == [next(table([example]).row_bytes()) for example in examples]


def test_a_row_is_its_label_and_its_features_little_endian() -> None:
    nan = struct.unpack("<d", bytes.fromhex("010000000000f0ff"))[0]  # another of the many
    (found,) = table([((0.5, nan), 258)]).row_bytes()
    assert found == bytes.fromhex("02010000") + struct.pack("<d", 0.5) + bytes.fromhex("000000000000f87f")
    (zero,) = table([((-0.0, 0.0), 0)]).row_bytes()
    assert zero == bytes(20)
    big = Table(np.array([[0.25, 1.0]], dtype=">f8", order="F"), np.array([1], dtype=">i8"))
    assert list(big.row_bytes()) == list(table([((0.25, 1.0), 1)]).row_bytes())


@given(words)
def test_texts_have_the_same_bytes_only_where_they_are_the_same(examples: list[tuple[str, int]]) -> None:
    found = list(texts(examples).row_bytes())
    for one, example in zip(found, examples, strict=True):
        assert [one == other for other in found] == [example == other for other in examples]
        size = int.from_bytes(one[4:12], "little")
        assert (int.from_bytes(one[:4], "little"), one[12:].decode()) == (example[1], example[0])
        assert size == len(one) - 12


@given(arrays(np.uint8, (4, 1, 2, 3)), st.lists(labels, min_size=4, max_size=4))
def test_images_have_the_same_bytes_only_where_they_are_the_same(pixels: NDArray[np.uint8], kinds: list[int]) -> None:
    found = list(ImageSet(pixels, np.array(kinds)).row_bytes())
    for at, one in enumerate(found):
        equal = [kinds[at] == kind and (pixels[at] == other).all() for kind, other in zip(kinds, pixels, strict=True)]
        assert [one == other for other in found] == equal
    assert list(ImageSet(np.asfortranarray(pixels), np.array(kinds)).row_bytes()) == found


@given(arrays(np.float32, (4, 2, 3), elements=st.floats(0, 1, width=32) | st.just(np.nan)), st.integers(0, 3))
def test_stays_have_the_same_bytes_only_where_they_are_the_same(values: NDArray[np.float32], at: int) -> None:
    found = list(Stays(values, np.array([0, 0, 1, 1])).row_bytes())
    equal = [
        np.array_equal(values[at], one, equal_nan=True) and at // 2 == kind // 2 for kind, one in enumerate(values)
    ]
    assert [found[at] == one for one in found] == equal
    other = np.copysign(values, -1)  # of zero and of NaN
    other[values != 0] = values[values != 0]
    assert list(Stays(np.asfortranarray(other), np.array([0, 0, 1, 1])).row_bytes()) == found
    wide = Stays(values.reshape(4, 3, 2), np.array([0, 0, 1, 1]))
    assert not set(found) & set(wide.row_bytes())


def test_images_of_other_shapes_have_other_bytes() -> None:
    shapes = [(1, 2, 6), (1, 6, 2), (1, 3, 4), (3, 2, 2), (3, 4, 1)]
    sets = [ImageSet(np.zeros((1, *shape), np.uint8), np.array([1])) for shape in shapes]
    assert len({next(one.row_bytes()) for one in sets}) == len(shapes)
