"""Row and salt alone decide the rows that are held out."""

from __future__ import annotations

import secrets
from pathlib import Path
from random import Random

import numpy as np
import pytest
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.features import CategoryFeature, NumericFeature
from consilium_client.data.image.reader import ImageSet
from consilium_client.data.mapping import parse_mapping
from consilium_client.data.table.reader import MISSING, Table, row_codes
from consilium_client.data.text.reader import TextSet
from consilium_client.hospital.training import held_out, split
from consilium_core.kinds import of_kind
from consilium_zk.errors import ArgumentInvalid
from examples_read import read_table
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

cells = st.one_of(st.floats(0, 1), st.sampled_from([0.0, -0.0, 1.0]), st.just(float("nan")))
tables = st.integers(0, 40).flatmap(
    lambda rows: st.builds(
        Table, arrays(np.float64, (rows, 3), elements=cells), arrays(np.int64, rows, elements=st.integers(0, 1))
    )
)
salts = st.binary(min_size=16, max_size=64)
shares = st.floats(0, 1)


@given(tables, shares, salts, st.randoms())
def test_order_of_rows_does_not_matter(table: Table, share: float, salt: bytes, random: Random) -> None:
    order = list(range(table.rows))
    random.shuffle(order)
    shuffled = Table(table.features[order], table.labels[order])
    np.testing.assert_array_equal(held_out(shuffled, share, salt), held_out(table, share, salt)[order])


@given(tables, shares, salts)
def test_duplicates_and_corrected_labels_stay_on_their_side(table: Table, share: float, salt: bytes) -> None:
    twice = Table(np.tile(table.features, (2, 1)), np.concatenate([table.labels, 1 - table.labels]))
    first, second = np.split(held_out(twice, share, salt), 2)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, held_out(table, share, salt))


@given(tables, shares, shares, salts)
def test_larger_share_holds_out_the_smaller_ones_rows(table: Table, one: float, other: float, salt: bytes) -> None:
    few, many = held_out(table, min(one, other), salt), held_out(table, max(one, other), salt)
    assert not (few & ~many).any()
    assert not held_out(table, 0.0, salt).any()
    assert held_out(table, 1.0, salt).all()


@given(tables, shares, salts)
def test_split_loses_and_doubles_no_row(table: Table, share: float, salt: bytes) -> None:
    kept, out = split(table, share, salt)
    together = np.concatenate([np.column_stack([of_kind(Table, part).features, part.labels]) for part in (kept, out)])
    whole = np.column_stack([table.features, table.labels])
    assert sorted(map(repr, together.tolist())) == sorted(map(repr, whole.tolist()))
    assert held_out(out, share, salt).all()
    assert not held_out(kept, share, salt).any()


@given(st.lists(st.text(max_size=8), max_size=30), shares, salts)
def test_texts_and_images_are_drawn_by_what_they_say(texts: list[str], share: float, salt: bytes) -> None:
    labels = np.arange(len(texts)) % 2
    kept, out = split(TextSet(tuple(texts), labels), share, salt)
    mine, others = (of_kind(TextSet, part).texts for part in (kept, out))
    assert sorted([*mine, *others]) == sorted(texts)
    assert not set(mine) & set(others)
    pixels = np.array([[[[len(text)]]] for text in texts], dtype=np.uint8).reshape(-1, 1, 1, 1)
    images = [split(ImageSet(pixels, given), share, salt) for given in (labels, 1 - labels)]
    one, other = (of_kind(ImageSet, pair[1]).pixels for pair in images)
    np.testing.assert_array_equal(one, other)
    assert images[0][0].rows + images[0][1].rows == len(texts)


@given(tables)
def test_missing_is_told_from_every_value(table: Table) -> None:
    np.testing.assert_array_equal(row_codes(table) == MISSING, np.isnan(table.features))


def test_rounding_to_float32_moves_hardly_a_row() -> None:
    """Ages with a decimal and pressures in whole units, as another form of file would round them."""
    draw = np.random.default_rng(7)
    ages, pressures = draw.integers(200, 900, 20_000) / 10, draw.integers(60, 220, 20_000) * 1.0
    precise, rounded = (
        Table(np.column_stack([(a - 20) / 70, (p - 60) / 160]), np.zeros(len(a), dtype=np.int64))
        for a, p in (
            (ages, pressures),
            (ages.astype(np.float32).astype(np.float64), pressures.astype(np.float32).astype(np.float64)),
        )
    )
    assert (precise.features != rounded.features).any()
    assert (row_codes(precise) != row_codes(rounded)).any(axis=1).mean() < 0.001


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_share_is_kept_and_salts_draw_differently(share: float) -> None:
    rows = np.random.default_rng(7).random((20_000, 4))
    table = Table(rows, np.zeros(len(rows), dtype=np.int64))
    one, other = (held_out(table, share, secrets.token_bytes(32)) for _ in range(2))
    for drawn in (one, other):
        assert abs(drawn.mean() - share) < 5 * np.sqrt(share * (1 - share) / len(rows))
    assert abs((one & other).mean() - share**2) < 0.03  # as independent draws would


@pytest.mark.parametrize(
    ("share", "salt"), [(-0.1, bytes(16)), (1.1, bytes(16)), (float("nan"), bytes(16)), (0.5, b""), (0.5, bytes(65))]
)
def test_impossible_share_and_weak_salt_are_refused(share: float, salt: bytes) -> None:
    with pytest.raises(ArgumentInvalid):
        held_out(Table(np.zeros((1, 1)), np.zeros(1, dtype=np.int64)), share, salt)


def test_same_patients_after_a_new_export(tmp_path: Path) -> None:
    """Other order, other columns' order, other form, a row more and one less."""
    schema = TableSchema(
        features=[
            NumericFeature(name="age", min=20, max=90),
            CategoryFeature(kind="category", name="pain", values=[1, 2, 3]),
        ],
        label="ill",
        classes=["healthy", "ill"],
    )
    (tmp_path / "first.csv").write_text(
        "age,pain,ill\n" + "".join(f"{20 + i * 0.7},{i % 3 + 1},{i % 2}\n" for i in range(99))
    )
    text = "Diagnose;Schmerz;Nr;Alter\n" + "".join(
        f"{i % 2};P{i % 3 + 1};{i};{str(20 + i * 0.7).replace('.', ',')}\n" for i in reversed(range(1, 100))
    )
    (tmp_path / "second.csv").write_text(text)
    mapping = parse_mapping(
        b"""
        [file]
        delimiter = ";"
        decimal = ","
        [columns]
        age = "Alter"
        pain = { column = "Schmerz", codes = { P1 = 1, P2 = 2, P3 = 3 } }
        ill = "Diagnose"
        """,
        schema,
    )
    first = read_table(tmp_path / "first.csv", schema)
    second = read_table(tmp_path / "second.csv", schema, mapping=mapping)
    salt = bytes(range(32))
    np.testing.assert_array_equal(held_out(first, 0.3, salt)[1:], held_out(second, 0.3, salt)[::-1][:-1])
    assert 10 < held_out(first, 0.3, salt).sum() < 50
