"""Series, as one of the kinds of examples. Their profile: how often variables are measured, and possible faults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from consilium_chain.tasks.features import NumericFeature
from consilium_chain.tasks.series_schema import SeriesSchema
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_core.kinds import of_kind
from numpy.typing import NDArray

from consilium_client.data.answers import answers_of
from consilium_client.data.examples import REQUEST, Refusal, Row, unlabelled
from consilium_client.data.kinds import Kind
from consilium_client.data.mapping import read_mapping
from consilium_client.data.profile import ONE_CLASS, Finding, Profile, findings_of, repeats, statistics_of
from consilium_client.data.series.reader import RawStays, read_in_use, read_raw
from consilium_client.data.series.stays import Stays, moments, ranges, shares
from consilium_client.data.table.doubts import LEAST, MOST_OUTSIDE, conversion, leaks, swapped
from consilium_client.data.table.ranges import require_within
from consilium_client.data.use import Use, Used
from consilium_client.errors import DataError

MOSTLY = 0.5
CROWDED = 0.9  # of the measurements
MOST_NUMBER = 1e300  # of a request


class Concern(StrEnum):
    """Possible faults of readable series, with the check to make."""

    UNMEASURED = "stays without a measurement in the task's steps: check that both files name stays alike"
    TIMES = (
        "measurements in the first step or after the last one, far more than in all others: check the unit of time"
        " (scale of its column in the mapping)"
    )
    BEFORE = "measurements with a time below 0, which are ignored"
    TWICE = "times in the hour that the clock showed twice when summer time ended: the first one counts"
    UNLISTED = "measurements of stays without an outcome, which are ignored"
    AMBIGUOUS = "steps whose last measurements have one time and several values: the largest counts"
    MOSTLY_MISSING = "more than half of the stays have no value"
    OUTSIDE = "values outside the task's range, which are clamped to it: check units (scale and offset in the mapping)"
    UNIT = "the values are typical only after a conversion: check their unit (scale and offset in the mapping)"
    SWAPPED = (
        "the values fit another variable's typical ones, and its values fit this one: check that they are not swapped"
    )
    LEAK = "the variable gives (nearly) every label away: check that it is measured before the outcome is known"
    CONSTANT = "all values are the same"
    DUPLICATES = "stays that repeat an earlier one: check that the export lists each stay once"
    CONTRADICTING = "stays that repeat an earlier one under another label: check which label is right"
    ONE_CLASS = ONE_CLASS


ASKING = {Concern.UNMEASURED, Concern.TIMES, Concern.DUPLICATES, Concern.CONTRADICTING}


@dataclass(frozen=True)
class VariableProfile:
    """One of the task's variables. `source`: its name in the file, None if it is absent. `stays`: the number of those
    that have it, of `of`. `measurements`: their number in the task's steps; `outside` of these lie beyond the range.
    `smallest`, `mean`, `largest`: before clamping; None without any.
    """

    feature: NumericFeature
    source: str | None
    stays: int
    of: int
    measurements: int
    outside: int
    smallest: float | None = field(repr=False)
    mean: float | None = field(repr=False)
    largest: float | None = field(repr=False)


@dataclass(frozen=True)
class SeriesProfile(Profile):
    """`patients`: their number; None if no mapping names their column. `after`: measurements after the last step.
    `shares`: of stays measured in each step, float64 (variables, steps). `quartiles`: of these stays' values, in the
    task's unit, float64 (3, variables, steps); NaN without one.
    """

    variables: tuple[VariableProfile, ...]
    patients: int | None
    after: int
    shares: NDArray[np.float64] = field(repr=False)
    quartiles: NDArray[np.float64] = field(repr=False)

    @property
    def schema(self) -> SeriesSchema:
        return of_kind(SeriesSchema, self.spec.data)


def _variable(at: int, raw: RawStays, schema: SeriesSchema, known: NDArray[np.float64]) -> VariableProfile:
    measured, feature = raw.measured, schema.features[at]
    count = int(measured.count[at])
    return VariableProfile(
        feature, raw.source.names[feature.name], int(known.sum()), len(known), count, int(measured.outside[at]),
        smallest=float(measured.least[at]) if count else None,
        mean=float(measured.total[at] / count) if count else None,
        largest=float(measured.largest[at]) if count else None,
    )  # fmt: skip


def _findings(
    one: VariableProfile, means: NDArray[np.float64], classes: Sequence[NDArray[np.int64]]
) -> Iterator[Finding]:
    """`means`: of each stay's values, in the task's unit (n,), NaN without one. `classes`: as `Answers.classes`."""

    def of(concern: Concern, count: int, of: int = one.of, asks: bool = False, hint: str = "") -> Iterator[Finding]:
        if count:
            yield Finding(concern, one.feature.name, count, of, asks, hint)

    if not one.measurements:
        return
    known, gone = means[~np.isnan(means)], one.of - one.stays
    yield from of(Concern.MOSTLY_MISSING, gone if gone > MOSTLY * one.of else 0)
    yield from of(Concern.OUTSIDE, one.outside, one.measurements)
    if unit := conversion(known, one.feature):
        hint = f"perhaps {unit.words}: scale = {unit.scale:.6g}" + f", offset = {unit.offset:.6g}" * bool(unit.offset)
        yield from of(Concern.UNIT, len(known), asks=True, hint=hint)
    yield from of(
        Concern.LEAK, len(known) if any(leaks(means, each, one.feature) for each in classes) else 0, asks=True
    )
    yield from of(Concern.CONSTANT, len(known) if one.measurements > 1 and one.smallest == one.largest else 0)


class SeriesKind(Kind[RawStays, SeriesSchema]):
    def read(self, path: Path, schema: SeriesSchema, mapping: Path | None) -> RawStays:
        return read_raw(path, schema, read_mapping(mapping, schema))

    def examples(self, raw: RawStays, schema: SeriesSchema) -> Stays:
        """Raises ColumnAllMissing, ColumnOutOfRange."""
        path, every = raw.source.path, raw.measured.count.sum() + raw.measured.before + raw.measured.after
        if raw.dated and every >= LEAST and raw.measured.before > MOST_OUTSIDE * every:
            what, called = "lie before time zero (`since` under [clock] of the mapping)", raw.source.called(schema.time)
            raise DataError("ColumnOutOfRange", path=path, column=schema.time, called=called, what=what)
        for at, feature in enumerate(schema.features):
            called, is_there = raw.source.called(feature.name), raw.source.names[feature.name] is not None
            count, outside = raw.measured.count[at], raw.measured.outside[at]
            if is_there and not count:
                raise DataError("ColumnAllMissing", path=path, column=feature.name, called=called)
            if count >= LEAST and outside > MOST_OUTSIDE * count:
                what = f"lie outside the task's range, {feature.min:g} to {feature.max:g}"
                raise DataError("ColumnOutOfRange", path=path, column=feature.name, called=called, what=what)
        return raw.stays

    def profile(self, raw: RawStays, spec: TaskSpec) -> SeriesProfile:
        schema, stays, measured = of_kind(SeriesSchema, spec.data), raw.stays, raw.measured
        answers, rows = answers_of(schema), raw.stays.rows
        known, means, _ = moments(stays.values)
        low, high = ranges(schema)
        width = high - low
        units = np.where(known > 0, low + means * width, np.nan)
        variables = tuple(_variable(at, raw, schema, known[:, at]) for at in range(len(schema.features)))
        measured_ones = stays.chosen(known.any(axis=1))
        repeated, contradicting = repeats(measured_ones.contents(), measured_ones.label_bytes)
        within, first = measured.count.sum(), int((~np.isnan(stays.values[:, :, 0])).sum())
        counts: dict[StrEnum, int] = {
            Concern.UNMEASURED: rows - measured_ones.rows,
            Concern.DUPLICATES: repeated,
            Concern.CONTRADICTING: 0 if answers.vary else contradicting,
            Concern.ONE_CLASS: rows if answers.alike(stays.labels) else 0,
        }
        findings = list(findings_of(counts, rows, ASKING))
        every = int(within) + measured.before + measured.after
        steps = int((~np.isnan(stays.values)).sum())
        crowded = max(measured.after / max(every, 1), first / max(steps, 1))
        of_all: dict[StrEnum, int] = {
            Concern.TIMES: every if every >= LEAST and crowded > CROWDED else 0,
            Concern.BEFORE: measured.before,
            Concern.TWICE: measured.twice,
            Concern.UNLISTED: measured.unlisted,
            Concern.AMBIGUOUS: raw.ambiguous,
        }
        findings += findings_of(of_all, every + measured.unlisted, ASKING)
        classes = answers.classes(stays.labels)
        for one, column in zip(variables, units.T, strict=True):
            findings += _findings(one, column, classes)
        for column, other in swapped(schema.features, dict(zip(schema.inputs, units.T, strict=True))).items():
            findings.append(Finding(Concern.SWAPPED, column, rows, rows, asks=True, hint=f"with {other}"))
        measured_in, quartiles = _over_time(stays)
        return SeriesProfile(
            raw.source, spec, rows, answers.counts(stays.labels), repeated, tuple(findings),
            statistics_of(stays, spec), variables, len(set(stays.patients)) if raw.grouped else None, measured.after,
            measured_in, low[:, None] + quartiles * width[:, None],
        )  # fmt: skip

    def in_use(self, path: Path, schema: SeriesSchema, use: Use) -> Used:
        return read_in_use(path, schema, use)

    def requested(self, rows: Sequence[Row], schema: SeriesSchema, refusal: Refusal, clamp: bool = False) -> Stays:
        """A variable's value is a list of a number for each step, or null in a step without a measurement."""
        values = np.full((len(rows), len(schema.features), schema.steps), np.nan)
        for at, row in enumerate(rows, 1):
            for variable, feature in enumerate(schema.features):
                given, where = row[feature.name], REQUEST.where(at, feature.name)
                if not isinstance(given, list) or len(given) != schema.steps or not all(map(_is_number, given)):
                    raise refusal(f"{where}: the value is not a list of {schema.steps} numbers or nulls, one a step")
                own = values[at - 1, variable] = np.array(given, np.float64)
                for value in own.tolist() if not clamp else ():
                    require_within(value, feature, REQUEST, at)
        low, high = ranges(schema)
        return Stays(shares(values, low[:, None], high[:, None]), unlabelled(rows))


def _is_number(value: Any) -> bool:
    is_some = isinstance(value, int | float) and not isinstance(value, bool)
    return value is None or (is_some and abs(value) < MOST_NUMBER)


def _over_time(stays: Stays) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares (variables, steps) and quartiles of u (3, variables, steps), one variable at a time, for memory."""
    shape = stays.values.shape[1:]
    shares, quartiles = np.zeros(shape), np.full((3, *shape), np.nan)
    for at in range(shape[0]):
        own = stays.values[:, at]
        known = ~np.isnan(own)
        shares[at] = known.mean(axis=0)
        for step in np.flatnonzero(known.any(axis=0)).tolist():
            quartiles[:, at, step] = np.quantile(own[known[:, step], step], [0.25, 0.5, 0.75])
    return shares, quartiles


KIND = SeriesKind()
