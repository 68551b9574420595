"""Shared standardisation: every hospital's sums, added in round 0, give one mean and deviation for all.

Sums are of u in [0, 1] (the schema's public range), so no hospital's sum can exceed its row count. A missing value
does not count towards its column, and becomes 0 after standardising, which is the mean. In a private task nobody's rows
have a part in it: mean and deviation are those of the schema itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from consilium_chain.task_spec import STATISTICS_RANGE, CategoryFeature, DataSchema
from numpy.typing import NDArray

from consilium_client.errors import ShapeMismatch, StatisticsInvalid, TooManyRows
from consilium_client.tables import Table

# Round 0 rounds each hospital's sums to 2 · 65536 / 2^40 = 1.2e-7. With at least one row per hospital, that moves a
# variance by less than 2e-7; below twice that a column counts as constant, and is switched off rather than blown up.
LEAST_VARIANCE = 4e-7


def table_sums(table: Table, schema: DataSchema) -> NDArray[np.float64]:
    """float64 (3 · columns,): all counts of present values, then all Σu, then all Σu².

    Raises TooManyRows, or ShapeMismatch if the table was read by another schema.
    """
    if table.features.ndim != 2 or table.features.shape[1] != schema.columns:
        raise ShapeMismatch("table's features", ("n", schema.columns), table.features.shape)
    if table.rows >= STATISTICS_RANGE:
        raise TooManyRows(table.rows, int(STATISTICS_RANGE) - 1)
    present = ~np.isnan(table.features)
    filled = np.where(present, table.features, 0.0)
    return np.concatenate([present.sum(axis=0).astype(np.float64), filled.sum(axis=0), (filled**2).sum(axis=0)])


def public_sums(schema: DataSchema) -> NDArray[np.float64]:
    """What `table_sums` has of a row on average, were every value that the schema allows as likely: (3 · columns,)."""
    totals, squares = [], []
    for feature in schema.features:
        if isinstance(feature, CategoryFeature):  # 0 or 1, which is its own square
            share = [1 / len(feature.values)] * (len(feature.values) - 1)
            totals += share
            squares += share
        else:
            totals.append(1 / 2)
            squares.append(1 / 3)
    return np.array([*np.ones(schema.columns), *totals, *squares])


@dataclass(frozen=True)
class Standardiser:
    """Mean and inverse deviation of u per encoded column, float64 (columns,); inverse 0 switches a column off."""

    mean: NDArray[np.float64]
    inverse_deviation: NDArray[np.float64]

    @classmethod
    def from_sums(cls, sums: NDArray[np.float64]) -> Standardiser:
        """From the (summed) vector of `table_sums`, (3 · columns,). Raises ShapeMismatch or StatisticsInvalid.

        Finite sums never fail, however implausible: a hospital that lies in round 0 may shift the means, within
        [0, 1], but may not stop the run.
        """
        if sums.ndim != 1 or sums.size == 0 or sums.size % 3:
            raise ShapeMismatch("summed statistics", ("3 · columns",), sums.shape)
        if not np.isfinite(sums).all():
            raise StatisticsInvalid(int(np.flatnonzero(~np.isfinite(sums))[0]))
        counts, totals, squares = np.split(sums.astype(np.float64), 3)
        counts = np.rint(counts)  # whole by nature; rounding removes what quantising left
        known = counts >= 1
        divisor = np.where(known, counts, 1.0)
        mean = np.where(known, np.clip(totals / divisor, 0.0, 1.0), 0.0)
        variance = np.where(known, squares / divisor - mean**2, 0.0)
        usable = variance >= LEAST_VARIANCE
        inverse = np.where(usable, 1.0 / np.sqrt(np.where(usable, variance, 1.0)), 0.0)
        return cls(mean=mean, inverse_deviation=inverse)

    def transform(self, table: Table) -> NDArray[np.float32]:
        """Standardised features float32 (n, columns), free of NaN. Raises ShapeMismatch."""
        if table.features.ndim != 2 or table.features.shape[1] != len(self.mean):
            raise ShapeMismatch("table's features", ("n", len(self.mean)), table.features.shape)
        standard = (table.features - self.mean) * self.inverse_deviation
        return np.where(np.isnan(standard), 0.0, standard).astype(np.float32)
