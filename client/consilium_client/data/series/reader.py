"""Reads a folder of a hospital's or voter's stays: their measurements, and each stay's outcome.

    measurements.parquet or .csv    a row for each time: the stay, the time, and a column for each variable
    outcomes.parquet or .csv        a row for each stay: the stay and the columns of the answer

Both files have exactly these columns without a mapping. A mapping (`mapping`) describes other forms of both, also
measurements with one value a row. Rows may be in any order, and memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
from consilium_chain.tasks.series_schema import SeriesSchema
from numpy.typing import NDArray

from consilium_client.data.answers import answers_of
from consilium_client.data.clock import Clock
from consilium_client.data.examples import MOST_ROWS, Labels, Source, reading
from consilium_client.data.mapping import PATIENT, SINCE, Mapping
from consilium_client.data.series.measurements import Measurements, stay_key
from consilium_client.data.series.stays import MOST_VALUES, Grid, Measured, Stays
from consilium_client.data.table.cells import Cell
from consilium_client.data.table.columns import Columns
from consilium_client.data.use import Use, Used, in_text, without_column
from consilium_client.errors import DataError

MEASUREMENTS, OUTCOMES = "measurements", "outcomes"
ENDINGS = (".parquet", ".csv")


@dataclass(frozen=True)
class Listed:
    """Stays in the order of a file. `cells`: of each stay, by its key. `patients`: each one's, if a mapping names their
    column. `own`: cells of a column that the task does not have. `zero`: each stay's time zero in microseconds (n,), if
    a column has it, `twice` of them in an hour that the clock showed twice.
    """

    source: Source
    cells: dict[str | float, Cell] = field(repr=False)
    labels: Labels = field(repr=False)
    patients: tuple[str, ...] = field(default=(), repr=False)
    own: tuple[str, ...] | None = field(default=None, repr=False)
    zero: NDArray[np.float64] | None = field(default=None, repr=False)
    twice: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(in_text, self.cells.values()))


@dataclass(frozen=True)
class RawStays:
    """`stays`: clamped to the ranges of the schema. `measured`: before that. `ambiguous`: as `Grid` has it. `grouped`:
    a mapping names the patients. `dated`: times are by its clock.
    """

    source: Source
    stays: Stays = field(repr=False)
    measured: Measured = field(repr=False)
    ambiguous: int
    grouped: bool = False
    dated: bool = False


def read_raw(folder: Path, schema: SeriesSchema, mapping: Mapping | None) -> RawStays:
    """`mapping` fits the schema (`require_fits`). Raises a DataError that names file, line and column, never a cell."""
    with _opened(folder, OUTCOMES) as (file, path):
        columns = _columns(file, path, mapping, [schema.stay, *schema.asked.columns])
        listed = _listed(columns, schema, mapping or Mapping())
    return _gridded(folder, schema, mapping, listed)


def read_in_use(folder: Path, schema: SeriesSchema, use: Use) -> Used:
    """Stays for a finished model: those of the outcomes, or without this file all that have measurements.

    Raises DataError, and RangeError unless `use.clamp`.
    """
    clock = use.columns.clock
    is_needed = use.labelled or use.own is not None or (clock is not None and clock.since is not None)
    has_outcomes = is_needed or _files(folder, OUTCOMES)
    listed = _outcomes_in_use(folder, schema, use) if has_outcomes else _stays_in_use(folder, schema, use)
    raw = _gridded(folder, schema, use.columns, listed, clamp=use.clamp)
    return Used(raw.source, raw.stays, listed.own, listed.names)


def _columns(file: BinaryIO, path: Path, mapping: Mapping | None, used: list[str]) -> Columns:
    """The outcomes' columns, and the one of time zero if the mapping names it."""
    if mapping is None or mapping.of_outcomes() is mapping:
        return Columns(file, path, mapping, used)
    return Columns(file, path, mapping.of_outcomes(), [*used, SINCE], dates=[SINCE])


def _outcomes_in_use(folder: Path, schema: SeriesSchema, use: Use) -> Listed:
    own = [] if use.own is None or use.own == schema.stay else [use.own]
    with _opened(folder, OUTCOMES) as (file, path):
        asked = schema.asked.columns if use.labelled else []
        columns = _columns(file, path, use.columns, [schema.stay, *asked, *(one for one in own if one not in asked)])
        if use.own is not None and use.own not in columns.at:
            raise without_column(path, use.own)
        return _listed(columns, schema, use.columns, use.own, labelled=use.labelled)


def _stays_in_use(folder: Path, schema: SeriesSchema, use: Use) -> Listed:
    with _opened(folder, MEASUREMENTS) as (file, path):
        measurements = Measurements(file, path, schema, use.columns, clamp=use.clamp)
        cells = measurements.stays()
    if len(cells) > MOST_ROWS:
        raise DataError("TooManyRows", rows=len(cells), at_most=MOST_ROWS)
    return Listed(measurements.source, cells, np.zeros(len(cells), np.int64))


def _gridded(
    folder: Path, schema: SeriesSchema, mapping: Mapping | None, listed: Listed, *, clamp: bool = True
) -> RawStays:  # fmt: skip
    """Raises SeriesTooLarge, DataFileEmpty, and as `Measurements.parts` does."""
    of_stay = len(schema.features) * schema.steps
    if len(listed.cells) * of_stay > MOST_VALUES:
        raise DataError("SeriesTooLarge", path=folder, stays=len(listed.cells), values=of_stay)
    grid, indices = Grid(len(listed.cells), schema), {stay: at for at, stay in enumerate(listed.cells)}
    with _opened(folder, MEASUREMENTS) as (file, path):
        measurements = Measurements(file, path, schema, mapping, clamp=clamp)
        is_first = mapping is not None and mapping.clock is not None and mapping.clock.first
        zero = measurements.first(indices) if is_first else listed.zero
        for part in measurements.parts(indices, zero):
            grid.add(*part)
    grid.measured.twice = measurements.twice + listed.twice
    stays = Stays(grid.values, listed.labels, listed.patients or listed.names)
    source = _source(folder, measurements.source, listed.source)
    dated = mapping is not None and mapping.clock is not None
    return RawStays(source, stays, grid.measured, grid.ambiguous, bool(listed.patients), dated)


def _listed(
    columns: Columns, schema: SeriesSchema, mapping: Mapping, own: str | None = None, *, labelled: bool = True
) -> Listed:  # fmt: skip
    """Raises StayMissing, StayTwice, PatientMissing, TimeMissing, and the errors of answers, times and files."""
    answers, source, stays = answers_of(schema), columns.source, dict[str | float, Cell]()
    rules = {name: mapping.reading(name) for name in schema.asked.columns} if labelled else {}
    values: dict[str, list[float]] = {name: [] for name in rules}
    patients, copied, zero, twice = list[str](), list[str](), list[float](), 0
    for row, by_position in columns:
        cells = dict(zip(columns.at, by_position, strict=True))
        stay = stay_key(cells[schema.stay])
        if stay is None or stay in stays:
            raise source.cell_error("StayMissing" if stay is None else "StayTwice", row, schema.stay)
        stays[stay] = cells[schema.stay]
        if PATIENT in cells:
            patients.append(_patient(cells[PATIENT], row, source))
        if SINCE in cells and (clock := mapping.clock) is not None:
            zero.append(_zero(cells[SINCE], row, source, clock))
            twice += clock.is_twice(cells[SINCE])
        if own is not None:
            copied.append(in_text(cells[own]))
        for name, rule in rules.items():
            found = answers.accepted(name, cells[name], rule.number(cells[name]))
            if isinstance(found, str):
                raise source.cell_error(found, row, name)
            values[name].append(found)
    labels = np.zeros(len(stays), np.int64)
    if labelled:
        labels = answers.labels({name: np.array(found) for name, found in values.items()})
    began = np.array(zero) if zero else None
    return Listed(source, stays, labels, tuple(patients), None if own is None else tuple(copied), began, twice)


def _zero(cell: Cell, row: int, source: Source, clock: Clock) -> float:
    found = clock.microseconds(cell)
    if isinstance(found, str) or np.isnan(found):
        raise source.cell_error(found if isinstance(found, str) else "TimeMissing", row, str(clock.since))
    return found


def _patient(cell: Cell, row: int, source: Source) -> str:
    patient = stay_key(cell)
    if patient is None:
        raise source.cell_error("PatientMissing", row, "patient")
    return str(patient)


def _source(folder: Path, measurements: Source, outcomes: Source) -> Source:
    both = measurements, outcomes
    names = {name: called for one in both for name, called in one.names.items() if "\0" not in name}
    aside = tuple(name for one in both for name in one.left_aside_names)
    return Source(folder, "folder", names, sum(one.left_aside for one in both), aside)


@contextmanager
def _opened(folder: Path, name: str) -> Iterator[tuple[BinaryIO, Path]]:
    """One of a folder's two files. Raises DataFileMissing."""
    found = _files(folder, name)
    if len(found) != 1:
        why = f"a series is a folder with {' or '.join(name + ending for ending in ENDINGS)}"
        raise DataError("DataFileMissing", path=folder, why=f"{why}, not with both" if found else why)
    with reading(found[0]), found[0].open("rb") as file:
        yield file, found[0]


def _files(folder: Path, name: str) -> list[Path]:
    return [path for ending in ENDINGS if (path := folder / f"{name}{ending}").is_file()]
