"""Tables, as one of the kinds of examples. Their profile: how columns were read, and their possible faults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.features import CategoryFeature, Feature, NumericFeature
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_core.kinds import of_kind
from numpy.typing import NDArray

from consilium_client.data.answers import answers_of
from consilium_client.data.examples import REQUEST, Refusal, Row, unlabelled
from consilium_client.data.kinds import Kind
from consilium_client.data.mapping import read_mapping
from consilium_client.data.profile import (
    INVERTED,
    ONE_CLASS,
    Finding,
    Profile,
    inverted,
    repeats,
    statistics_of,
)
from consilium_client.data.table.cells import Ages, Reading
from consilium_client.data.table.doubts import (
    BY_CHANCE,
    conversion,
    filled,
    leaks,
    mixed,
    placeholders,
    repeated_by_chance,
    swapped,
)
from consilium_client.data.table.ranges import read_in_use, within
from consilium_client.data.table.reader import RawTable, Table, checked, encoded, foreign, read_raw, rules
from consilium_client.data.table.row_doubts import copied, is_numbering, is_summed, near_repeats, swapped_rows
from consilium_client.data.use import Use, Used

MOSTLY = 0.5
BINS = 30  # of a histogram
ZERO_DEVIATIONS = 3.0  # how far below the mean of the other values a zero is none of them


class Concern(StrEnum):
    """Possible faults of a readable table, with the check to make."""

    ALL_MISSING = "no row has a value: if the hospital does not record it, write absent = true in the mapping"
    MOSTLY_MISSING = "more than half of the values are missing"
    OUTSIDE = "values outside the task's range, which are clamped to it: check units (scale and offset in the mapping)"
    UNKNOWN_CODES = "codes that the task does not know, which count as missing: add codes for them to the mapping"
    ZEROS = 'zeros that look like missing values: if they are, add "0" to the column\'s missing in the mapping'
    PLACEHOLDERS = (
        "values that repeat at one end of the column, far from all others, as codes for missing values do (-1, 999): if"
        " they are, add them to the column's missing in the mapping"
    )
    UNIT = "the values are typical only after a conversion: check their unit (scale and offset in the mapping)"
    MIXED_UNITS = "a part of the values is like the others only after a conversion: check that all rows are in one unit"
    FILLED = (
        "one value at the middle stands in many rows, as where gaps were filled in: leave gaps empty, and the model"
        " fills them alike for all"
    )
    NUMBERING = "the column counts the rows: check that it is no number of a row or a patient"
    COPIED = "all values are those of another column: check the mapping's columns"
    SWAPPED = (
        "the values fit another column's typical ones, and its values fit this one: check that they are not swapped"
    )
    LEAK = (
        "the column gives (nearly) every label away: check that it is known before the diagnosis, and no form of the"
        " label"
    )
    CONSTANT = "all values are the same"
    ONE_CLASS = ONE_CLASS
    DUPLICATES = "rows that repeat an earlier one: check that the export lists each patient once"
    NEAR_DUPLICATES = (
        "rows that equal an earlier one but for one column or for rounding: check that the export lists each patient"
        " once, or name the patients' column in the mapping"
    )
    TOTALS = "the last row has the sums or the means of the others: remove it"
    ONE_PATIENT = "all rows are of one patient: check the mapping's patient"
    INVERTED = INVERTED
    CONTRADICTING = "rows that repeat an earlier one under another label: check which label is right"


@dataclass(frozen=True)
class ColumnProfile:
    """One of the task's columns in `rows` rows.

    `source`: its name in the file, None if it is absent. `outside`: number of values beyond the range. `unknown`:
    number of codes that the task does not know. `smallest`, `mean`, `largest`: measurements in the task's unit, before
    clamping; None for codes, or without values. `histogram`: of the clamped measurements in steps of the range, or of
    the codes in the task's order.
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
    histogram: tuple[int, ...] = field(repr=False)

    @property
    def range_in_words(self) -> str:
        """The task's, or its codes."""
        if isinstance(self.feature, CategoryFeature):
            return ", ".join(self.feature.names)
        return f"{self.feature.min:g} to {self.feature.max:g}"


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
        outside=foreign(values, feature) if isinstance(feature, NumericFeature) else 0,
        unknown=foreign(values, feature) if isinstance(feature, CategoryFeature) else 0,
        smallest=float(known.min()) if measured else None,
        mean=float(known.mean()) if measured else None,
        largest=float(known.max()) if measured else None,
        histogram=_histogram(known, feature),
    )


def _histogram(known: NDArray[np.float64], feature: Feature) -> tuple[int, ...]:
    if isinstance(feature, CategoryFeature):
        return tuple(int((known == code).sum()) for code in feature.codes)
    counts, _ = np.histogram(np.clip(known, feature.min, feature.max), BINS, (feature.min, feature.max))
    return tuple(map(int, counts))


def _findings(
    column: ColumnProfile, values: NDArray[np.float64], classes: Sequence[NDArray[np.int64]]
) -> Iterator[Finding]:
    """`classes`: as `Answers.classes` gives them."""

    def of(concern: Concern, count: int, asks: bool = False, hint: str = "") -> Iterator[Finding]:
        if count:
            yield Finding(concern, column.feature.name, count, column.rows, asks, hint)

    if column.source is None:
        return
    feature, gone = column.feature, column.missing + column.unknown
    yield from of(Concern.UNKNOWN_CODES, column.unknown)
    if gone == column.rows:
        yield from of(Concern.ALL_MISSING, gone)
        return
    known = values[~np.isnan(values)]
    yield from of(Concern.MOSTLY_MISSING, gone if gone > MOSTLY * column.rows else 0)
    zeros = 0
    if isinstance(feature, NumericFeature):
        width = feature.max - feature.min
        least = 0.0 if feature.min >= 0 else feature.min - width
        is_far = bool(((known > feature.max + width) | (known < least)).any())
        codes = placeholders(known, feature)
        yield from of(Concern.OUTSIDE, column.outside, asks=is_far and not codes)
        zeros = _zeros(known) if feature.min >= 0 else 0
        yield from of(Concern.ZEROS, zeros, asks=True)
        yield from of(Concern.PLACEHOLDERS, codes, asks=True)
        yield from of(Concern.FILLED, filled(known), asks=True)
        yield from of(Concern.NUMBERING, len(known) if is_numbering(values) else 0, asks=True)
        if unit := conversion(known, feature):
            hint = f"perhaps {unit.words}: scale = {unit.scale:.6g}" + f", offset = {unit.offset:.6g}" * bool(
                unit.offset
            )
            yield from of(Concern.UNIT, len(known), asks=True, hint=hint)
        elif part := mixed(known, feature.name):
            yield from of(Concern.MIXED_UNITS, part[1], asks=True, hint=f"perhaps {part[0].words}")
    is_leak = any(leaks(values, one, feature) for one in classes)
    yield from of(Concern.LEAK, len(known) if is_leak else 0, asks=True)
    constant = len(known) > 1 and len(np.unique(known)) == 1 and not zeros
    yield from of(Concern.CONSTANT, len(known) if constant else 0)


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


def _of_columns(features: Sequence[Feature], raw: RawTable) -> Iterator[Finding]:
    """Of columns that another column shows to be wrong."""
    numeric = [one for one in features if isinstance(one, NumericFeature)]
    whole = swapped(numeric, raw.values)
    for column, other in whole.items():
        yield Finding(Concern.SWAPPED, column, raw.rows, raw.rows, asks=True, hint=f"with {other}")
    for column, (other, count) in swapped_rows(numeric, raw.values).items():
        if column not in whole:
            yield Finding(Concern.SWAPPED, column, count, raw.rows, asks=True, hint=f"with {other}, in some rows")
    for column, other in copied(numeric, raw.values):
        yield Finding(Concern.COPIED, column, raw.rows, raw.rows, asks=True, hint=f"of {other}")


def _of_rows(features: Sequence[Feature], raw: RawTable) -> Iterator[Finding]:
    """Of rows that other rows show to be wrong."""
    if is_summed(features, raw.values):
        yield Finding(Concern.TOTALS, None, 1, raw.rows, asks=True)
    if raw.patients and raw.rows > 1 and len(set(raw.patients)) == 1:
        yield Finding(Concern.ONE_PATIENT, None, raw.rows, raw.rows, asks=True)
    alike = 0 if raw.patients else near_repeats(np.stack([raw.values[one.name] for one in features], axis=1))
    if alike:
        yield Finding(Concern.NEAR_DUPLICATES, None, alike, raw.rows, asks=True)


def _repeats(table: Table, label: str, answers_vary: bool) -> Iterator[Finding]:
    """Rows that equal another one. They ask unless so coarse columns have many equal rows by chance."""
    features = np.nan_to_num(table.features, nan=-1.0)
    repeated = table.rows - len(np.unique(np.column_stack([features, table.labels]), axis=0))
    _, contradicting = repeats((row.tobytes() for row in features), table.label_bytes)
    asks_above = BY_CHANCE * repeated_by_chance(features)
    if repeated:
        yield Finding(Concern.DUPLICATES, None, repeated, table.rows, repeated > asks_above)
    if contradicting and not answers_vary:
        yield Finding(Concern.CONTRADICTING, label, contradicting, table.rows, contradicting > asks_above)


class TableKind(Kind[RawTable, TableSchema]):
    def read(self, path: Path, schema: TableSchema, mapping: Path | None) -> RawTable:
        return read_raw(path, schema, read_mapping(mapping, schema))

    def examples(self, raw: RawTable, schema: TableSchema) -> Table:
        return checked(raw, schema)

    def profile(self, raw: RawTable, spec: TaskSpec) -> TableProfile:
        schema = of_kind(TableSchema, spec.data)
        table = encoded(raw, schema)
        columns = tuple(_column(feature, raw) for feature in schema.features)
        answers, label = answers_of(schema), " and ".join(schema.asked.columns)
        classes = answers.classes(table.labels)
        findings = [finding for one in columns for finding in _findings(one, raw.values[one.feature.name], classes)]
        findings += [*_of_columns(schema.features, raw), *_of_rows(schema.features, raw)]
        if inverted(answers.counts(raw.labels), spec):
            findings.append(Finding(Concern.INVERTED, label, raw.rows, raw.rows, asks=True))
        if answers.alike(raw.labels):
            findings.append(Finding(Concern.ONE_CLASS, label, raw.rows, raw.rows))
        findings += _repeats(table, label, answers.vary)
        repeated = sum(one.count for one in findings if one.concern is Concern.DUPLICATES)
        statistics = statistics_of(table, spec)
        return TableProfile(
            raw.source, spec, raw.rows, answers.counts(raw.labels), repeated, tuple(findings), statistics, columns,
            len(set(raw.patients)) or None,
        )  # fmt: skip

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
