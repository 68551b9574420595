"""A table's profile (`preview`): how its columns were read, and what may be wrong with them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from consilium_chain.tasks.data_schemas import CategoryFeature, Feature, NumericFeature, TableSchema
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_core.kinds import of_kind
from numpy.typing import NDArray

from consilium_client.data.preview import ONE_CLASS, Finding, Profile, classes_of, preview_of
from consilium_client.data.table.reader import RawTable, Table, encoded

MOSTLY = 0.5
ZERO_DEVIATIONS = 3.0  # how far below the mean of the other values a zero is none of them


class Concern(StrEnum):
    """Possible faults of a table that can be read, in words that say what to look at."""

    ALL_MISSING = "no row has a value: where the hospital does not record it, say absent = true in the mapping"
    MOSTLY_MISSING = "more than half of the values are missing"
    OUTSIDE = "values outside the task's range, which are clamped to it: check units (scale and offset in the mapping)"
    UNKNOWN_CODES = "codes that the task does not know, which count as missing: give the mapping codes for them"
    ZEROS = 'zeros that look like missing values: if they are, add "0" to the column\'s missing in the mapping'
    CONSTANT = "all values are the same"
    ONE_CLASS = ONE_CLASS
    DUPLICATES = "rows that repeat an earlier one: check that the export lists each patient once"


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
class TableProfile(Profile):
    columns: tuple[ColumnProfile, ...]


def profile(raw: RawTable, spec: TaskSpec) -> TableProfile:
    """The profile of a table that was read by `read_raw` with the task's schema."""
    schema = of_kind(TableSchema, spec.data)
    table = encoded(raw, schema)
    columns = tuple(_column(feature, raw) for feature in schema.features)
    classes = classes_of(table.labels, schema)
    repeated = _duplicates(table)
    findings = [finding for column in columns for finding in _findings(column, raw.values[column.feature.name])]
    if raw.rows in dict(classes).values():
        findings.append(Finding(Concern.ONE_CLASS, schema.label, raw.rows, raw.rows))
    if repeated:
        findings.append(Finding(Concern.DUPLICATES, None, repeated, raw.rows))
    return TableProfile(
        path=raw.path,
        kind=raw.kind,
        things=schema.things,
        rows=raw.rows,
        label=schema.label,
        label_source=raw.sources[schema.label],
        classes=classes,
        left_aside=raw.left_aside,
        left_aside_names=raw.left_aside_names,
        repeated=repeated,
        findings=tuple(findings),
        preview=preview_of(table, spec),
        columns=columns,
    )


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
    """Counts zeros that seem to stand for missing values: all values are, or they are far from all others.

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
