"""Rows of a readable table that are probably wrong: other rows or columns show it. Pure.

As in `doubts`, every rule needs many rows, and nothing here keeps or shows a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from consilium_chain.tasks.features import Feature, NumericFeature

from consilium_client.data.table.doubts import BY_CHANCE, FAR, FEW, LEAKS, LEAST, Values, typical

SOME_ROWS, MOSTLY = 0.05, 0.5  # of the rows, and of those with an untypical value: fewer are the ends of a column
CELL = 0.05  # of a column's deviation: values in one such cell count as equal
LEAST_COLUMNS, LEAST_FINE = 6, 4  # that must be alike; of them with many different values
MANY = 20  # different values
MOSTLY_KNOWN = 0.75  # of a row's values
FEW_ALIKE = 0.01  # of the rows
LIKE_THE_SUM = 1e-3  # of a sum or a mean, by which the last row may differ from it
LEAST_SUMS = 3  # columns
LEAST_NUMBERED = 50  # rows


def swapped_rows(features: Sequence[NumericFeature], values: Mapping[str, Values]) -> dict[str, tuple[str, int]]:
    """By column another one, and in how many rows their values are typical only if exchanged."""
    told = [one for one in features if one.mean is not None and one.deviation is not None]
    found: dict[str, tuple[str, int]] = {}
    if not told:
        return found
    table = np.stack([values[one.name] for one in told], axis=1)
    means, deviations = np.array([typical(one) for one in told]).T
    for at, one in enumerate(told):
        rows = table[np.abs(table[:, at] - means[at]) > FAR * deviations[at]]
        would_fit = np.abs(rows[:, [at]] - means) < FAR / 2 * deviations
        would_fit &= np.abs(rows - means[at]) < FAR / 2 * deviations[at]
        counts = (would_fit & (np.abs(rows - means) > FAR / 2 * deviations)).sum(axis=0)
        if counts.max() >= max(LEAST, SOME_ROWS * len(table), MOSTLY * len(rows)):
            other, count = told[int(counts.argmax())].name, int(counts.max())
            found[one.name] = other, count
            found.setdefault(other, (one.name, count))
    return found


def is_summed(features: Sequence[Feature], values: Mapping[str, Values]) -> bool:
    """True if nearly all measurements of the last row are the sums, or the means, of those above."""
    rows = [values[one.name] for one in features if isinstance(one, NumericFeature)]
    told = [one for one in rows if len(np.unique(one[:-1])) > FEW and not np.isnan(one[-1])]
    if len(told) < LEAST_SUMS or len(told[0]) <= LEAST:
        return False
    last = np.array([one[-1] for one in told])
    means = np.array([np.nanmean(one[:-1]) for one in told])
    known = np.array([np.count_nonzero(~np.isnan(one[:-1])) for one in told])
    return any(
        np.count_nonzero(np.abs(last - whole) <= LIKE_THE_SUM * np.abs(whole))
        >= max(LEAST_SUMS, MOSTLY_KNOWN * len(told))
        for whole in (means, means * known)
    )


def is_numbering(values: Values) -> bool:
    """True if the column (n,) counts the rows, up or down."""
    steps = np.diff(values)
    return len(values) >= LEAST_NUMBERED and max(np.mean(steps == one) for one in (1, -1)) >= LEAKS


def copied(features: Sequence[NumericFeature], values: Mapping[str, Values]) -> Iterator[tuple[str, str]]:
    """Columns of many values, each with an earlier one that has the same in all rows."""
    first: dict[bytes, str] = {}
    for name in (one.name for one in features if len(np.unique(values[one.name])) > MANY):
        if (earlier := first.setdefault(values[name].tobytes(), name)) != name:
            yield name, earlier


def near_repeats(columns: Values) -> int:
    """Counts rows (n, k) that equal an earlier one but in one column, or by rounding; 0 if that may be chance."""
    known = ~np.isnan(columns)
    is_told = [len(np.unique(one[here])) > 1 for one, here in zip(columns.T, known.T, strict=True)]
    rows = columns[:, is_told][known[:, is_told].mean(axis=1) >= MOSTLY_KNOWN] if any(is_told) else columns[:0]
    if len(rows) < LEAST or rows.shape[1] < LEAST_COLUMNS:
        return 0
    rows = rows / [_deviation(one) for one in rows.T]
    found = [np.unique(np.rint(one / CELL), return_inverse=True, return_counts=True) for one in rows.T]
    if sum(len(numbers) > MANY for numbers, _, _ in found) < LEAST_FINE:
        return 0
    factors = np.random.default_rng(0).integers(0, 1 << 63, len(found), dtype=np.uint64) * 2 + 1
    parts = [codes.astype(np.uint64) * factor for (_, codes, _), factor in zip(found, factors, strict=True)]
    whole = np.stack(parts).sum(axis=0)
    near = np.zeros(len(rows), dtype=bool)
    for part in parts:
        near |= _repeated(whole - part)
    count = int((near & ~_repeated(whole)).sum())
    pairs = len(rows) * (len(rows) - 1)
    alike = np.array([max((counts * (counts - 1)).sum(), 1) / pairs for _, _, counts in found])
    by_chance = float((alike.prod() / alike).sum()) * pairs / 2
    return count if count > max(BY_CHANCE * by_chance, FEW_ALIKE * len(rows), 2) else 0


def _deviation(values: Values) -> float:
    known = values[~np.isnan(values)]
    return float(known.std()) or 1.0 if len(known) else 1.0


def _repeated(keys: np.typing.NDArray[np.uint64]) -> np.typing.NDArray[np.bool_]:
    """Marks rows whose key an earlier row has."""
    _, first = np.unique(keys, return_index=True)
    found = np.ones(len(keys), dtype=bool)
    found[first] = False
    return found
