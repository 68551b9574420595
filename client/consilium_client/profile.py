"""What a hospital's owner should know of the table before it joins a task: how it was read, and what leaves the house.

For the hospital's own screen: it holds values of its patients. Nothing of it goes into a journal; what a log might show
by accident, a dataclass's representation, leaves the values out. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal

import numpy as np
from consilium_chain.data_schemas import CategoryFeature, Feature, NumericFeature, TableSchema
from consilium_chain.task_spec import STATISTICS_BITS, STATISTICS_RANGE, PrivacySpec, TaskSpec
from consilium_zk.constants import BYTES_PER_BLOB
from consilium_zk.quantise import Quantiser
from numpy.typing import NDArray

from consilium_client.standardise import sums_of
from consilium_client.tables import RawTable, Table, encoded

MOSTLY = 0.5
ZERO_DEVIATIONS = 3.0  # how far below the mean of the other values a zero is none of them


class Concern(StrEnum):
    """What may be wrong with a table that can be read, in words that say what to look at."""

    ALL_MISSING = "no row has a value: where the hospital does not record it, say absent = true in the mapping"
    MOSTLY_MISSING = "more than half of the values are missing"
    OUTSIDE = "values outside the task's range, which are clamped to it: check units (scale and offset in the mapping)"
    UNKNOWN_CODES = "codes that the task does not know, which count as missing: give the mapping codes for them"
    ZEROS = 'zeros that look like missing values: if they are, add "0" to the column\'s missing in the mapping'
    CONSTANT = "all values are the same"
    ONE_CLASS = "all labels are the same: the model can learn little here, and voters need both classes"
    DUPLICATES = "rows that repeat an earlier one: check that the export lists each patient once"


@dataclass(frozen=True)
class Finding:
    """`count` of `of` rows are a concern, in a column of the task's (None: in the table as a whole)."""

    concern: Concern
    column: str | None
    count: int
    of: int


@dataclass(frozen=True)
class ColumnProfile:
    """One of the task's columns in `rows` rows.

    `source`: its name in the file, None where it is absent. `outside`: values beyond the range, `unknown`: codes that
    the task does not know. `smallest`, `mean`, `largest`: of measurements as read, in the task's unit, before they are
    clamped; None without any, and for codes.
    """

    feature: Feature
    source: str | None
    rows: int
    missing: int
    outside: int
    unknown: int
    smallest: float | None = field(repr=False)
    mean: float | None = field(repr=False)
    largest: float | None = field(repr=False)


@dataclass(frozen=True)
class Statistic:
    """What round 0 sums of one encoded column: values that are known, Σu and Σu² of them, u in [0, 1]."""

    column: str
    known: float = field(repr=False)
    total: float = field(repr=False)
    squares: float = field(repr=False)


@dataclass(frozen=True)
class Preview:
    """What is computed from the table and leaves the hospital: round 0's statistics, then an update in each round.

    `statistics` are rounded to multiples of `step`; there are none in a private task, whose round 0 is the schema's. An
    update is `parameters` values, clipped to the norm `clip_norm`
    and rounded to `bits` bits in ± `value_range`. Both travel in blobs; `masked` ones nobody can read alone.
    """

    statistics: tuple[Statistic, ...]
    step: float
    statistics_blobs: int
    rounds: int
    parameters: int
    bits: int
    value_range: float
    clip_norm: float
    update_blobs: int
    masked: bool
    privacy: PrivacySpec | None = None

    @property
    def statistics_bytes(self) -> int:
        return self.statistics_blobs * BYTES_PER_BLOB

    @property
    def update_bytes(self) -> int:
        """Of one round."""
        return self.update_blobs * BYTES_PER_BLOB


@dataclass(frozen=True)
class Profile:
    """`classes`: name and rows of each. `duplicates`: rows that equal an earlier one."""

    path: Path
    kind: Literal["CSV", "Parquet"]
    rows: int
    columns: tuple[ColumnProfile, ...]
    label: str
    label_source: str | None
    classes: tuple[tuple[str, int], ...] = field(repr=False)
    left_aside: int
    left_aside_names: tuple[str, ...]
    duplicates: int
    findings: tuple[Finding, ...]
    preview: Preview


def profile(raw: RawTable, spec: TaskSpec) -> Profile:
    """What a table (read by `read_raw` with the task's schema) is, and what the task will compute from it."""
    schema = spec.data
    assert isinstance(schema, TableSchema)
    table = encoded(raw, schema)
    columns = tuple(_column(feature, raw) for feature in schema.features)
    counts = np.bincount(table.labels, minlength=len(schema.classes))
    duplicates = _duplicates(table)
    findings = [finding for column in columns for finding in _findings(column, raw.values[column.feature.name])]
    if raw.rows in counts:
        findings.append(Finding(Concern.ONE_CLASS, schema.label, raw.rows, raw.rows))
    if duplicates:
        findings.append(Finding(Concern.DUPLICATES, None, duplicates, raw.rows))
    return Profile(
        path=raw.path,
        kind=raw.kind,
        rows=raw.rows,
        columns=columns,
        label=schema.label,
        label_source=raw.sources[schema.label],
        classes=tuple(zip(schema.classes, map(int, counts), strict=True)),
        left_aside=raw.left_aside,
        left_aside_names=raw.left_aside_names,
        duplicates=duplicates,
        findings=tuple(findings),
        preview=_preview(table, schema, spec),
    )


def encoded_columns(schema: TableSchema) -> list[str]:
    """Names of the encoded columns, in their order: a code's is its feature's with the value."""
    names = []
    for feature in schema.features:
        if isinstance(feature, CategoryFeature):
            names += [f"{feature.name} = {value:g}" for value in feature.values[1:]]
        else:
            names.append(feature.name)
    return names


def _column(feature: Feature, raw: RawTable) -> ColumnProfile:
    values = raw.values[feature.name]
    known = values[~np.isnan(values)]
    measured = isinstance(feature, NumericFeature) and len(known) > 0
    return ColumnProfile(
        feature=feature,
        source=raw.sources[feature.name],
        rows=raw.rows,
        missing=raw.rows - len(known),
        outside=int(((known < feature.min) | (known > feature.max)).sum())
        if isinstance(feature, NumericFeature)
        else 0,
        unknown=int((~np.isin(known, feature.values)).sum()) if isinstance(feature, CategoryFeature) else 0,
        smallest=float(known.min()) if measured else None,
        mean=float(known.mean()) if measured else None,
        largest=float(known.max()) if measured else None,
    )


def _findings(column: ColumnProfile, values: NDArray[np.float64]) -> list[Finding]:
    def of(concern: Concern, count: int) -> list[Finding]:
        return [Finding(concern, column.feature.name, count, column.rows)] if count else []

    gone = column.missing + column.unknown
    unknown = of(Concern.UNKNOWN_CODES, column.unknown)
    if column.source is None:
        return []
    if gone == column.rows:
        return [*unknown, *of(Concern.ALL_MISSING, gone)]
    known = values[~np.isnan(values)]
    zeros = _zeros(known) if isinstance(column.feature, NumericFeature) and column.feature.min >= 0 else 0
    constant = len(known) > 1 and len(np.unique(known)) == 1 and not zeros
    return [
        *unknown,
        *of(Concern.MOSTLY_MISSING, gone if gone > MOSTLY * column.rows else 0),
        *of(Concern.OUTSIDE, column.outside),
        *of(Concern.ZEROS, zeros),
        *of(Concern.CONSTANT, len(known) if constant else 0),
    ]


def _zeros(known: NDArray[np.float64]) -> int:
    """How many zeros seem to stand for missing values: all values are, or they are far from all others.

    Of two values, 0 and another, neither is far from the others: a yes and a no.
    """
    others = known[known != 0]
    zeros = len(known) - len(others)
    if len(others) == 0:
        return zeros
    far = len(np.unique(others)) > 1 and others.mean() - ZERO_DEVIATIONS * others.std() > 0
    return zeros if far else 0


def _duplicates(table: Table) -> int:
    rows = np.column_stack([np.nan_to_num(table.features, nan=-1.0), table.labels])
    return table.rows - len(np.unique(rows, axis=0))


def _preview(table: Table, schema: TableSchema, spec: TaskSpec) -> Preview:
    statistics: tuple[Statistic, ...] = ()
    if spec.privacy is None:
        sums = sums_of(table, schema).reshape(3, -1)
        names = encoded_columns(schema)
        statistics = tuple(Statistic(name, *map(float, column)) for name, column in zip(names, sums.T, strict=True))
    return Preview(
        statistics=statistics,
        step=Quantiser(STATISTICS_BITS, STATISTICS_RANGE).step,
        statistics_blobs=spec.statistics_blobs,
        rounds=spec.rounds.rounds,
        parameters=spec.parameters,
        bits=spec.update.bits,
        value_range=spec.update.value_range,
        clip_norm=spec.update.clip_norm,
        update_blobs=spec.update_blobs,
        masked=spec.update.masked,
        privacy=spec.privacy,
    )
