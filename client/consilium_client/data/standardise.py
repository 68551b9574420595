"""Shared standardisation: all parties scale by one mean and deviation, from the sums of round 0.

By default, every hospital brings the same public vector of the schema (`public_sums`), without any rows. In a task with
exact statistics, each brings the sums of its own rows. Sums are of u in [0, 1] (the schema's public range; for an
image or a stay, the mean and mean square of each channel or variable), so a hospital's sum cannot exceed its row count.
A missing value does not count in its column, and becomes 0 after standardising, which is the mean. Texts are not
scaled: their sum is the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.summary_counts import columns_of, summed_counts
from consilium_chain.tasks.summary_spec import Part
from consilium_chain.tasks.task_spec import STATISTICS_RANGE, TaskSpec
from numpy.typing import NDArray

from consilium_client.data.examples import Examples
from consilium_client.data.image.reader import ImageSet
from consilium_client.data.series.stays import Stays, carried
from consilium_client.data.summary import counted_bias, counts_of
from consilium_client.data.table.reader import Table
from consilium_client.errors import ClientError, DataError, ModelError
from consilium_client.privacy.discrete_noise import noise

# Round 0 rounds each hospital's sums to 2 · 65536 / 2^40 = 1.2e-7. With at least one row per hospital, that changes a
# variance by less than 2e-7. Below twice that, a column counts as constant and is switched off, not amplified.
LEAST_VARIANCE = 4e-7


def round_0_values(examples: Examples, spec: TaskSpec, summary: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    """A hospital's values for round 0: float64 (spec.statistics_values,). `summary`: its counts, with the task's noise;
    by default drawn now. Raises as `sums_of` does.
    """
    exact = spec.statistics == "exact"
    parts: list[NDArray[Any]] = [sums_of(examples, spec.data) if exact else public_sums(spec.data)]
    if spec.summary is not None:
        parts.append(summary_of(examples, spec) if summary is None else summary)
    if spec.counted_classes:
        parts.append(np.bincount(examples.labels.astype(np.int64), minlength=spec.counted_classes))
    return np.concatenate(parts)


def summary_of(examples: Examples, spec: TaskSpec) -> NDArray[np.int64]:
    """A hospital's counts for the summary (spec.summary_values,), with the task's noise, which is drawn now."""
    return counts_of(examples, spec) + noise(spec.summary_values, spec.summary_variance)


def counted_start(sums: NDArray[np.float64], spec: TaskSpec) -> NDArray[np.float32]:
    """The last biases (outputs,) of the base rate, by round 0's sums (spec.statistics_values,): of the summary, or else
    of the counted classes.
    """
    asked = spec.data.asked
    for column in columns_of(summed_counts(sums, spec), spec) if spec.summary else []:
        if column.part.answers:
            return counted_bias(column.counts, int(np.rint(sums[spec.data.statistics_values])), asked, column.part)
    counts = np.rint(sums[-spec.counted_classes :]).astype(np.int64)
    return counted_bias(counts, int(counts.sum()), asked, Part("classes", tuple(spec.data.classes)))


def class_weights(sums: NDArray[np.float64], spec: TaskSpec) -> NDArray[np.float32] | None:
    """The weight of a row of each class, float32 (classes,), from round 0's sums (spec.statistics_values,): all rows
    over those of the class and the number of classes. So classes weigh alike, and a row 1 on average. A class without
    rows has weight 0. None if all rows count alike.
    """
    if spec.counted_classes == 0:
        return None
    rows = np.maximum(np.rint(sums[-spec.counted_classes :]), 0.0)  # whole numbers, as they were before rounding
    present = np.count_nonzero(rows)
    weights = np.where(rows > 0, rows.sum() / (np.maximum(rows, 1.0) * max(present, 1)), 0.0)
    return weights.astype(np.float32)


def sums_of(examples: Examples, schema: DataSchema) -> NDArray[np.float64]:
    """Sums over one hospital's rows, exactly: float64 (schema.statistics_values,).

    Raises TooManyRows, or ShapeMismatch if the examples were read by another schema.
    """
    if examples.rows >= STATISTICS_RANGE:
        raise DataError("TooManyRows", rows=examples.rows, at_most=int(STATISTICS_RANGE) - 1)
    sums = examples.sums()
    if sums.shape != (schema.statistics_values,):
        raise ModelError("ShapeMismatch", what="statistics", expected=(schema.statistics_values,), found=sums.shape)
    return sums


def public_sums(schema: DataSchema) -> NDArray[np.float64]:
    """The sums of an average row, by the schema alone: float64 (schema.statistics_values,)."""
    if not schema.encoded:
        return np.ones(1)
    _, means, squares = zip(*schema.encoded, strict=True)
    return np.array([*np.ones(len(means)), *means, *squares])


@dataclass(frozen=True)
class Standardiser:
    """Mean and inverse deviation of u for each encoded column or channel, float64 (columns,). An inverse of 0 switches
    a column off.
    """

    mean: NDArray[np.float64]
    inverse_deviation: NDArray[np.float64]

    @classmethod
    def from_sums(cls, sums: NDArray[np.float64]) -> Standardiser:
        """From the (summed) vector of `sums_of`, (3 · columns,). Raises ShapeMismatch or StatisticsInvalid.

        Finite sums never fail, even if they are not plausible. A hospital that lies in round 0 can shift the means
        within [0, 1], but cannot stop the task.
        """
        if sums.ndim != 1 or sums.size == 0 or sums.size % 3:
            raise ModelError("ShapeMismatch", what="summed statistics", expected=("3 · columns",), found=sums.shape)
        if not np.isfinite(sums).all():
            raise ClientError("StatisticsInvalid", index=int(np.flatnonzero(~np.isfinite(sums))[0]))
        counts, totals, squares = np.split(sums.astype(np.float64), 3)
        counts = np.rint(counts)  # whole numbers, once rounding removes the quantisation error
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
            raise ModelError(
                "ShapeMismatch", what="table's features", expected=("n", len(self.mean)), found=table.features.shape
            )
        standard = (table.features - self.mean) * self.inverse_deviation
        return np.where(np.isnan(standard), 0.0, standard).astype(np.float32)

    def transform_stays(self, stays: Stays) -> NDArray[np.float32]:
        """Inputs float32 (n, 2 · variables, steps): standardised values, carried forward, then 1 in steps with a
        measurement and 0 in others. Raises ShapeMismatch.
        """
        many = stays.values.shape[1]
        if many != len(self.mean):
            raise ModelError("ShapeMismatch", what="variables", expected=(len(self.mean),), found=(many,))
        found = np.empty((stays.rows, 2 * many, stays.values.shape[2]), np.float32)
        for at, (mean, factor) in enumerate(zip(self.mean, self.inverse_deviation, strict=True)):
            own = stays.values[:, at : at + 1]
            standard = (carried(own).astype(np.float64) - mean) * factor
            found[:, at : at + 1] = np.where(np.isnan(standard), 0.0, standard)
            found[:, many + at : many + at + 1] = ~np.isnan(own)
        return found

    def transform_images(self, images: ImageSet) -> NDArray[np.float32]:
        """Standardised pixels float32 (n, channels, height, width). Raises ShapeMismatch."""
        if images.pixels.ndim != 4 or images.pixels.shape[1] != len(self.mean):
            raise ModelError(
                "ShapeMismatch",
                what="images",
                expected=("n", len(self.mean), "height", "width"),
                found=images.pixels.shape,
            )
        scale = (self.inverse_deviation / images.white).astype(np.float32)[:, None, None]
        shift = (self.mean * self.inverse_deviation).astype(np.float32)[:, None, None]
        standard = images.pixels.astype(np.float32)
        standard *= scale
        standard -= shift
        return standard
