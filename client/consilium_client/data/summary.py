"""The summary of rows in round 0: a hospital's counts, and the start that follows from all hospitals' counts.

Counts are in the order of `consilium_chain.tasks.summary_spec.parts_of`. A row without a value counts as missing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.features import CategoryFeature
from consilium_chain.tasks.questions import Classification, Multilabel, Question, Regression, Segmentation, Survival
from consilium_chain.tasks.summary_counts import Column
from consilium_chain.tasks.summary_spec import LENGTHS, SHARES, Part
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_core.kinds import of_kind
from numpy.typing import NDArray

from consilium_client.data.examples import Examples, Labels
from consilium_client.data.image.reader import ImageSet
from consilium_client.data.series.stays import Stays, moments
from consilium_client.data.table.reader import Table
from consilium_client.data.text.reader import TextSet

Indices = NDArray[np.int64]  # (n,), the count of a part that each row is in
LEAST_COUNT = 0.5  # rows: of an answer that nobody counts


def counts_of(examples: Examples, spec: TaskSpec) -> NDArray[np.int64]:
    """A hospital's exact counts, (spec.summary_values,)."""
    if spec.summary is None:
        return np.zeros(0, np.int64)
    parts, bins = spec.summary_parts, spec.summary.bins
    of_columns = (part for part in parts[1:] if not part.answers)
    found = [np.array([examples.rows])]
    for part, indices in zip(of_columns, _indices(examples, spec, bins), strict=True):
        found.append(np.bincount(indices, minlength=len(part.counts)))
    found += [_of_answers(examples.labels, spec.data.asked, part, bins) for part in parts if part.answers]
    return np.concatenate(found).astype(np.int64)


def _indices(examples: Examples, spec: TaskSpec, bins: int) -> Iterator[Indices]:
    """By column."""
    if isinstance(examples, Table):
        start = 0
        for feature in of_kind(TableSchema, spec.data).features:
            block = examples.features[:, start : start + len(list(feature.encoded))]
            start += block.shape[1]
            yield _of_codes(block) if isinstance(feature, CategoryFeature) else _of_unit(block[:, 0], bins)
    elif isinstance(examples, Stays):
        known, means, _ = moments(examples.values)
        for column in np.where(known > 0, means, np.nan).T:
            yield _of_unit(column, bins)
        measured = np.array([(~np.isnan(stay)).any(axis=0).sum() for stay in examples.values], np.int64)
        steps = examples.values.shape[2]
        parts = min(bins, steps)
        yield np.minimum(measured * parts // steps, parts - 1)
    elif isinstance(examples, ImageSet):
        means = np.array([image.mean(axis=(1, 2)) for image in examples.pixels])  # one at a time, for memory
        for channel in (means / examples.white).T:
            yield _of_unit(channel, bins)
        if isinstance(spec.data.asked, Segmentation):
            for marked in range(1, len(spec.data.asked.classes)):
                yield _of_shares(np.array([(mask == marked).mean() for mask in examples.labels]))
    elif isinstance(examples, TextSet):
        yield np.clip([len(text).bit_length() - 1 for text in examples.texts], 0, len(LENGTHS) - 2)


def _of_unit(values: NDArray[np.float64], bins: int) -> Indices:
    """Values in [0, 1]; NaN after the last part."""
    indices = np.minimum(np.floor(np.nan_to_num(values) * bins), bins - 1)
    return np.where(np.isnan(values), bins, indices).astype(np.int64)


def _of_shares(shares: NDArray[np.float64]) -> Indices:
    """Shares of an image, from 0 to 1."""
    indices = np.minimum(np.searchsorted(SHARES, 100 * shares, side="right"), len(SHARES) - 1) - 1
    return np.where(shares > 0, indices, 0)


def _of_codes(block: NDArray[np.float64]) -> Indices:
    """Columns of 0 or 1 for all codes but the first (n, codes - 1); NaN after the last code."""
    indices = np.where(block.any(axis=1), block.argmax(axis=1) + 1, 0)
    return np.where(np.isnan(block[:, 0]), block.shape[1] + 1, indices).astype(np.int64)


def _of_answers(labels: Labels, asked: Question, part: Part, bins: int) -> NDArray[np.int64]:
    size = len(part.counts)
    if isinstance(asked, Multilabel):
        return np.asarray(labels.sum(axis=0), np.int64)
    if isinstance(asked, Regression):
        indices = _of_unit((labels[:, 0] - asked.min) / (asked.max - asked.min), bins)
    elif isinstance(asked, Survival):
        indices = _of_times(labels, asked)
    else:
        indices = labels.astype(np.int64)
    return np.bincount(indices, minlength=size)


def _of_times(labels: Labels, asked: Survival) -> Indices:
    """Events by interval; then rows without one by the intervals that they certainly survived. An event at a bound is
    in the interval that ends there.
    """
    times, bounds = labels[:, 0], np.array(asked.bounds)
    happened = (labels[:, 1] == 1) & (times <= bounds[-1])
    survived = np.where(labels[:, 1] == 1, len(bounds), np.searchsorted(bounds, times, side="right"))
    return np.where(happened, np.searchsorted(bounds, times, side="left"), len(bounds) + survived).astype(np.int64)


def counted_bias(counts: NDArray[np.int64], rows: int, asked: Question, part: Part) -> NDArray[np.float32]:
    """The last biases (outputs,) of a model that gives each row the answers' shares of all rows: by sums of counts
    (counts,) of the answers. An answer counts as half a row at least, and so does its absence.

    Everybody computes it alike: float64 in this order, then rounded to float32.
    """
    known = np.maximum(counts.astype(np.float64), LEAST_COUNT)
    if isinstance(asked, Classification):
        logs = np.log(known)
        found = logs[1:] - logs[:1] if asked.outputs == 1 else logs - logs.sum() / len(logs)
    elif isinstance(asked, Multilabel):
        found = np.log(known) - np.log(np.maximum(rows - counts, LEAST_COUNT))
    elif isinstance(asked, Survival):
        events, without = known[: asked.outputs], known[asked.outputs :]
        ended = np.cumsum((events + without[1:])[::-1])[::-1]  # rows that an interval's event could still have met
        found = np.log(events) - np.log(np.maximum(ended - events, LEAST_COUNT))
    elif isinstance(asked, Regression):
        mean = Column(part, counts).mean
        found = np.array([0.0 if mean is None else (mean - asked.mean) / asked.deviation])
    else:
        raise TypeError(type(asked))
    return found.astype(np.float32)
