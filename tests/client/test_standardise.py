"""Summed statistics standardise exactly as the pooled rows would."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.features import CategoryFeature, NumericFeature
from consilium_chain.tasks.task_spec import STATISTICS_BITS, STATISTICS_RANGE, parse_task_spec
from consilium_client.data.standardise import Standardiser, public_sums, round_0_values, sums_of
from consilium_client.data.table.reader import Table
from consilium_client.errors import ClientError, DataError, ModelError
from consilium_zk.quantise import Quantiser
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from raised_faults import raises_fault

SCHEMA = TableSchema(
    features=[
        NumericFeature(name="age", min=20, max=90),
        NumericFeature(name="pressure", min=-3, max=7),
        CategoryFeature(kind="category", name="pain", values=[1, 2]),
    ],
    label="ill",
    classes=["healthy", "ill"],
)


def _table(unit: np.ndarray) -> Table:
    return Table(features=unit, labels=np.zeros(len(unit), dtype=np.int64))


cells = st.one_of(st.floats(0, 1, width=32), st.just(float("nan")))
tables = st.integers(1, 40).flatmap(lambda rows: arrays(np.float64, (rows, 3), elements=cells)).map(_table)


@given(tables, st.integers(0, 40))
def test_sums_of_of_split_add_up_to_sums_of_whole(table: Table, cut: int) -> None:
    parts = [Table(table.features[part], table.labels[part]) for part in (slice(0, cut), slice(cut, None))]
    np.testing.assert_allclose(sum(sums_of(part, SCHEMA) for part in parts), sums_of(table, SCHEMA), atol=1e-9)


@given(st.lists(tables, min_size=1, max_size=4))
def test_standardiser_from_quantised_sums_equals_pooled(hospitals: list[Table]) -> None:
    """Through round 0's rounding: transformed values match numpy's on pooled rows, and are never NaN."""
    quantiser = Quantiser(STATISTICS_BITS, STATISTICS_RANGE)
    lanes = sum(quantiser.quantise(sums_of(table, SCHEMA)) for table in hospitals)
    sums = quantiser.dequantise_sum(np.asarray(lanes, dtype=np.uint64), len(hospitals))
    features = np.concatenate([table.features for table in hospitals])
    pooled = Table(features, np.zeros(len(features), dtype=np.int64))
    transformed = Standardiser.from_sums(sums).transform(pooled)
    assert np.isfinite(transformed).all()
    for column, unit in zip(transformed.T, pooled.features.T, strict=True):
        present = unit[~np.isnan(unit)]
        if len(present) == 0 or present.std() < 1e-8:
            assert not column.any()  # constant or absent: switched off
        elif present.std() > 1e-2:
            expected = np.where(np.isnan(unit), 0.0, (unit - present.mean()) / present.std())
            np.testing.assert_allclose(column, expected, atol=0.02)


@given(arrays(np.float64, 9, elements=st.floats(-1e5, 1e5)))
def test_from_sums_survives_any_finite_sums(sums: np.ndarray) -> None:
    """A hospital that lies in round 0 cannot stop the run."""
    standardiser = Standardiser.from_sums(sums)
    assert np.isfinite(standardiser.transform(_table(np.full((2, 3), 0.5)))).all()


def test_from_sums_refuses_wrong_shape_and_not_finite() -> None:
    with raises_fault(ModelError, "ShapeMismatch"):
        Standardiser.from_sums(np.zeros(8))
    with raises_fault(ClientError, "StatisticsInvalid"):
        Standardiser.from_sums(np.array([1.0] * 8 + [np.inf]))


def test_transform_refuses_other_schema() -> None:
    standardiser = Standardiser.from_sums(np.ones(9))
    other = Table(np.zeros((2, 4)), np.zeros(2, dtype=np.int64))
    with raises_fault(ModelError, "ShapeMismatch"):
        standardiser.transform(other)
    with raises_fault(ModelError, "ShapeMismatch"):
        sums_of(other, SCHEMA)


def test_sums_of_refuses_more_rows_than_round_zero_counts() -> None:
    rows = int(STATISTICS_RANGE)
    with raises_fault(DataError, "TooManyRows"):
        sums_of(Table(np.zeros((rows, 3)), np.zeros(rows, dtype=np.int64)), SCHEMA)


@pytest.mark.parametrize(
    ("stated", "mean", "deviation"),
    [
        ({}, 55, 70 / 6), ({"mean": 40}, 40, 70 / 6), ({"deviation": 7}, 55, 7), ({"mean": 40, "deviation": 7}, 40, 7),
    ],
)  # fmt: skip
def test_public_sums_are_those_of_values_that_vary_as_the_schema_says(
    stated: dict[str, Any], mean: float, deviation: float
) -> None:
    schema = TableSchema(
        features=[
            NumericFeature(name="age", min=20, max=90, **stated),
            CategoryFeature(kind="category", name="pain", values=[1, 2, 3, 4]),
        ],
        label="ill",
        classes=["healthy", "ill"],
    )
    ages, codes = np.meshgrid([mean - deviation, mean + deviation], np.arange(4))
    one_hot = codes.reshape(-1, 1) == np.arange(1, 4)
    table = _table(np.hstack([(ages.reshape(-1, 1) - 20) / 70, one_hot]))
    np.testing.assert_allclose(public_sums(schema), sums_of(table, schema) / table.rows, atol=1e-12)
    standard = Standardiser.from_sums(public_sums(schema)).transform(table).astype(np.float64)
    np.testing.assert_allclose(standard.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(standard.std(axis=0), 1, atol=1e-5)


def test_round_0_holds_the_schemas_constants_or_the_exact_sums() -> None:
    table = _table(np.full((5, 3), 0.25))
    text = 'name = "t"\n{}[model]\nname = "logistic"\n[data]\nlabel = "ill"\nclasses = ["no", "yes"]\nfeatures = [{}]\n'
    features = ", ".join(f'{{name = "x{at}", min = 0, max = 1}}' for at in range(3))
    schema, exact = (parse_task_spec(text.format(said, features).encode()) for said in ("", 'statistics = "exact"\n'))
    np.testing.assert_array_equal(round_0_values(table, schema), public_sums(schema.data))
    np.testing.assert_array_equal(round_0_values(table, exact), sums_of(table, exact.data))
