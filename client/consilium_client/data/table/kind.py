"""Tables, as one of the kinds of examples. Their profile: how columns were read, and their possible faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from consilium_chain.tasks.data_schemas import CategoryFeature, Feature, NumericFeature, TableSchema
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_core.kinds import of_kind
from numpy.typing import NDArray

from consilium_client.data.examples import REQUEST, Refusal, Row, unlabelled
from consilium_client.data.kinds import Kind
from consilium_client.data.mapping import read_mapping
from consilium_client.data.profile import ONE_CLASS, Finding, Profile, classes_of, statistics_of
from consilium_client.data.table.cells import Ages, Reading
from consilium_client.data.table.ranges import read_in_use, within
from consilium_client.data.table.reader import RawTable, Table, checked, encoded, read_raw, rules
from consilium_client.data.use import Use, Used

MOSTLY = 0.5
ZERO_DEVIATIONS = 3.0  # how far below the mean of the other values a zero is none of them


class Concern(StrEnum):
    """Possible faults of a readable table, with the check to make."""

    ALL_MISSING = "no row has a value: if the hospital does not record it, write absent = true in the mapping"
    MOSTLY_MISSING = "more than half of the values are missing"
    OUTSIDE = "values outside the task's range, which are clamped to it: check units (scale and offset in the mapping)"
    UNKNOWN_CODES = "codes that the task does not know, which count as missing: add codes for them to the mapping"
    ZEROS = 'zeros that look like missing values: if they are, add "0" to the column\'s missing in the mapping'
    CONSTANT = "all values are the same"
    ONE_CLASS = ONE_CLASS
    DUPLICATES = "rows that repeat an earlier one: check that the export lists each patient once"


@dataclass(frozen=True)
class ColumnProfile:
    """One of the task's columns in `rows` rows.

    `source`: its name in the file, None if it is absent. `outside`: number of values beyond the range. `unknown`:
    number of codes that the task does not know. `smallest`, `mean`, `largest`: measurements in the task's unit, before
    clamping; None for codes, or without values.
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
    """`patients`: their number; None if no mapping names their column."""

    columns: tuple[ColumnProfile, ...]
    patients: int | None


def _column(feature: Feature, raw: RawTable) -> ColumnProfile:
    values = raw.values[feature.name]
    known = values[~np.isnan(values)]
    measured = isinstance(feature, NumericFeature) and len(known) > 0
    return ColumnProfile(
        feature=feature,
        source=raw.source.names[feature.name],
        rows=raw.rows,
        missing=raw.rows - len(known),
        outside=int(((known < feature.min) | (known > feature.max)).sum())
        if isinstance(feature, NumericFeature)
        else 0,
        unknown=int((~np.isin(known, feature.codes)).sum()) if isinstance(feature, CategoryFeature) else 0,
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
    """Counts zeros that seem to stand for missing values: all values are zero, or all others are far from zero.

    If there are only two values, 0 and another, they are a no and a yes.
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


class TableKind(Kind[RawTable, TableSchema]):
    def read(self, path: Path, schema: TableSchema, mapping: Path | None) -> RawTable:
        return read_raw(path, schema, read_mapping(mapping, schema))

    def examples(self, raw: RawTable, schema: TableSchema) -> Table:
        return checked(raw, schema)

    def profile(self, raw: RawTable, spec: TaskSpec) -> TableProfile:
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
        statistics = statistics_of(table, spec)
        return TableProfile(
            raw.source, spec, classes, repeated, tuple(findings), statistics, columns, len(set(raw.patients)) or None
        )

    def in_use(self, path: Path, schema: TableSchema, use: Use) -> Used:
        return read_in_use(path, schema, use)

    def requested(self, rows: Sequence[Row], schema: TableSchema, refusal: Refusal, clamp: bool = False) -> Table:
        """A value is a number, a text that reads as one, a named value, or null where it is missing."""
        by_rule = rules(schema, None)
        values = {
            one.name: np.array(
                [
                    within(_found(row[one.name], by_rule[one.name]), one, REQUEST, at, clamp)
                    for at, row in enumerate(rows, 1)
                ]
            )
            for one in schema.features
        }
        return encoded(RawTable(REQUEST, values, unlabelled(rows)), schema)


def _found(value: Any, rule: Reading | Ages) -> float | str:
    """A value of JSON as its column's rule finds it."""
    if value is None or isinstance(value, str):
        return rule.number(value.strip() if value else None)
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return rule.number(float(value))
        except OverflowError:
            return "ValueNotFinite"
    return "ValueNotNumeric"


KIND = TableKind()
