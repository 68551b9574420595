"""The file of measurements, a part at a time. A row has all variables at one time (wide), or one of them (narrow)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from consilium_chain.tasks.features import UNKNOWN, NumericFeature
from consilium_chain.tasks.series_schema import SeriesSchema
from consilium_core.kinds import of_kind
from numpy.typing import NDArray

from consilium_client.data.clock import seconds_of
from consilium_client.data.mapping import VALUE, VARIABLE, FileFormat
from consilium_client.data.mapping import Mapping as FileMapping
from consilium_client.data.series.stays import ranges
from consilium_client.data.table.blocks import Block, Column, Names, Wanted, csv_blocks, parquet_blocks
from consilium_client.data.table.cells import Cell, Reading, key
from consilium_client.data.table.columns import Columns
from consilium_client.data.table.csv_rows import CsvRows
from consilium_client.data.table.parquet_rows import ParquetRows
from consilium_client.data.table.ranges import ROUNDING, require_within

Numbers = NDArray[np.float64]
Indices = NDArray[np.int64]
AT_A_TIME = 4_096  # rows that are read cell by cell
MICROSECONDS = 1_000_000  # of a second
_UNLISTED, _MISSING = -1, -2
_REMEMBERED = 1 << 17  # cells


class Part(NamedTuple):
    """Measurements (n,): their stays' indices, -1 without an outcome; times; indices in the schema; and values."""

    stays: Indices
    times: Numbers
    variables: Indices
    values: Numbers


@lru_cache(_REMEMBERED)
def stay_key(cell: Cell) -> str | float | None:
    """A stay's or patient's name in one form: Parquet may have numbers. None without one."""
    return None if cell is None or cell in ("", UNKNOWN) else key(cell, ".")


class _Form(ABC):
    """`used`: the file's columns beside stay and time, by names of a mapping, with the rules of their numbers."""

    used: dict[str, Reading | None]

    @abstractmethod
    def plain(self, columns: Mapping[str, Column]) -> tuple[Indices, Indices, Numbers] | None:
        """Known values (m,), as their rows' and variables' indices and the values; None if some are not plain."""

    @abstractmethod
    def found(self, cells: Mapping[str, Cell]) -> Iterator[tuple[int, float | str]]:
        """A row's variables with their numbers, NaN if missing, or names of errors."""


class _Wide(_Form):
    def __init__(self, rules: Mapping[int, Reading], names: list[str]) -> None:
        self.used = {names[at]: rule for at, rule in rules.items()}
        self._rules = {at: (names[at], rule) for at, rule in rules.items()}

    def plain(self, columns: Mapping[str, Column]) -> tuple[Indices, Indices, Numbers] | None:
        rows, variables, values = list[Indices](), list[Indices](), list[Numbers]()
        for at, (name, _) in self._rules.items():
            column = columns[name]
            if isinstance(column, np.ndarray):
                rows.append(known := np.flatnonzero(~np.isnan(column)))
                variables.append(np.full(len(known), at))
                values.append(column[known])
        return np.concatenate(rows), np.concatenate(variables), np.concatenate(values)

    def found(self, cells: Mapping[str, Cell]) -> Iterator[tuple[int, float | str]]:
        return ((at, rule.number(cells[name])) for at, (name, rule) in self._rules.items())


class _Narrow(_Form):
    """`codes`: each variable's text in the file."""

    def __init__(
        self, rules: Mapping[int, Reading], codes: Mapping[str | float | None, int], format_: FileFormat
    ) -> None:
        self.used = {VARIABLE: None, VALUE: _of_numbers(FileMapping(file=format_), VALUE)}
        self._rules, self._codes = rules, codes

    def plain(self, columns: Mapping[str, Column]) -> tuple[Indices, Indices, Numbers] | None:
        names, column = columns[VARIABLE], columns[VALUE]
        if not isinstance(names, Names) or not isinstance(column, np.ndarray):
            return None
        codes = np.array([self._codes.get(stay_key(one), _UNLISTED) for one in names.distinct])
        variables, values = codes[names.indices], column.copy()
        for at, rule in self._rules.items():
            own = variables == at
            found = rule.numbers(values[own])
            if found is None:
                return None
            values[own] = found
        known = np.flatnonzero(~np.isnan(values) & (variables >= 0))
        return known, variables[known], values[known]

    def found(self, cells: Mapping[str, Cell]) -> Iterator[tuple[int, float | str]]:
        at = self._codes.get(stay_key(cells[VARIABLE]))
        if at is not None:
            yield at, self._rules[at].number(cells[VALUE])


class Measurements:
    def __init__(
        self, file: BinaryIO, path: Path, schema: SeriesSchema, mapping: FileMapping | None, *, clamp: bool
    ) -> None:  # fmt: skip
        """`clamp`: else a value outside its variable's range is a RangeError. Raises as `Columns` does."""
        self._file, self._schema, self._clamp = file, schema, clamp
        given = mapping or FileMapping()
        names = {one: given.source(one) for one in schema.inputs}
        present = [(at, one) for at, one in enumerate(schema.features) if names[one.name] is not None]
        rules = {at: _of_numbers(given, one.name, one) for at, one in present}
        self._form: _Form = _Wide(rules, schema.inputs)
        if given.file.variable is not None:
            codes = {stay_key(str(names[schema.inputs[at]])): at for at in rules}
            self._form = _Narrow(rules, codes, given.file)
        self._columns = Columns(
            file, path, mapping and mapping.of_measurements(), [schema.stay, schema.time, *self._form.used],
            dates=[schema.time] if given.clock else [],
        )  # fmt: skip
        called = {one: None if name is None else str(name) for one, name in names.items()}
        self.source = self._columns.source.with_names(called)
        self._format, self._clock = given.file, given.clock
        self._time = _of_numbers(given, schema.time)
        self._unit = (seconds_of(schema.unit) or 1) * MICROSECONDS
        self.twice = 0  # rows in an hour that the clock showed twice
        self._low, self._high = ranges(schema)

    def parts(self, indices: Mapping[str | float, int], zero: Numbers | None) -> Iterator[Part]:
        """All measurements. `zero`: each stay's time zero (n,), in the clock's microseconds; None without a clock.

        Raises StayMissing, TimeMissing, RangeError, and the errors of cells and files.
        """
        self.twice = 0
        for block in self._blocks():
            found = self._plain(block, indices)
            for part in self._by_cells(block, indices) if found is None else [found]:
                yield part if zero is None else part._replace(times=(part.times - zero[part.stays]) / self._unit)

    def first(self, indices: Mapping[str | float, int]) -> Numbers:
        """The time of each stay's first row (n,), infinite without one. Raises StayMissing, TimeMissing, and the
        errors of times and files.
        """
        found = np.full(len(indices) + 1, np.inf)  # the last one: of stays without an outcome
        for block in self._blocks():
            known = self._stays_and_times(block.columns(), indices)
            for stays, times in self._stays_and_times_by_cells(block, indices) if known is None else [known]:
                np.minimum.at(found, stays, times)
        return found[:-1]

    def stays(self) -> dict[str | float, Cell]:
        """A cell of each stay by its key, in the order of the file. Raises StayMissing, and the errors of files."""
        found = dict[str | float, Cell]()
        for block in self._blocks():
            for cell, row in self._distinct(block):
                found.setdefault(self._stay(cell, row), cell)
        return found

    def _distinct(self, block: Block) -> Iterator[tuple[Cell, int]]:
        """Cells of stays, each at least once, with a row."""
        at = list(self._columns.at).index(self._schema.stay)
        names = (block.columns() or {at: None})[at]
        if isinstance(names, Names):
            indices, first = np.unique(names.indices, return_index=True)
            cells = [names.distinct[one] for one in indices[np.argsort(first)].tolist()]
            if all(stay_key(one) is not None for one in cells):
                return ((one, 0) for one in cells)
        return ((cells[at], row) for row, cells in block.cells())

    def _blocks(self) -> Iterator[Block]:
        rules = {self._schema.stay: None, self._schema.time: None if self._clock else self._time} | self._form.used
        wanted = [Wanted(at, rules[name]) for name, at in self._columns.at.items()]
        rows = self._columns.rows
        if isinstance(rows, CsvRows):
            return csv_blocks(self._file, rows, self._format, wanted)
        if isinstance(rows, ParquetRows):
            return parquet_blocks(rows, wanted)
        raise AssertionError("a series has files")

    def _plain(self, block: Block, indices: Mapping[str | float, int]) -> Part | None:
        columns = block.columns()
        known = self._stays_and_times(columns, indices)
        found = None if columns is None else self._form.plain(dict(zip(self._columns.at, columns, strict=True)))
        if known is None or found is None:
            return None
        (stays, times), (rows, variables, values) = known, found
        if not (self._clamp or self._is_within(variables, values)):
            return None
        self.twice += self._count_twice(columns)
        return Part(stays[rows], times[rows], variables, values)

    def _stays_and_times(
        self, columns: Sequence[Column] | None, indices: Mapping[str | float, int]
    ) -> tuple[Indices, Numbers] | None:
        """Each row's stay and time, (n,) both; None if some are not plain."""
        if columns is None:
            return None
        by_name = dict(zip(self._columns.at, columns, strict=True))
        names, times = by_name[self._schema.stay], self._instants(by_name[self._schema.time])
        if not isinstance(names, Names) or times is None or np.isnan(times).any():
            return None
        keys = [stay_key(one) for one in names.distinct]
        stays = np.array([_MISSING if one is None else indices.get(one, _UNLISTED) for one in keys])[names.indices]
        return (stays, times) if (stays != _MISSING).all() else None

    def _instants(self, times: Column) -> Numbers | None:
        """Numbers, or the clock's microseconds, (n,)."""
        if self._clock is None or not isinstance(times, Names):
            return times if isinstance(times, np.ndarray) else None
        found = [self._clock.microseconds(one) for one in times.distinct]
        return None if any(isinstance(one, str) for one in found) else np.array(found)[times.indices]

    def _count_twice(self, columns: Sequence[Column] | None) -> int:
        times = (columns or [])[list(self._columns.at).index(self._schema.time)]
        if self._clock is None or not isinstance(times, Names):
            return 0
        return int(np.array([self._clock.is_twice(one) for one in times.distinct])[times.indices].sum())

    def _is_within(self, variables: Indices, values: Numbers) -> bool:
        margin = ROUNDING * (self._high - self._low)
        low, high = self._low - margin, self._high + margin
        return bool(((values >= low[variables]) & (values <= high[variables])).all())

    def _by_cells(self, block: Block, indices: Mapping[str | float, int]) -> Iterator[Part]:
        found = list[tuple[int, float, int, float]]()
        for row, by_position in block.cells():
            cells = dict(zip(self._columns.at, by_position, strict=True))
            stay, time = self._stay_and_time(cells, row, indices)
            self.twice += self._clock is not None and self._clock.is_twice(cells[self._schema.time])
            for at, number in self._form.found(cells):
                value = self._number(number, row, self._schema.inputs[at])
                if not self._clamp:
                    require_within(value, self._schema.features[at], self.source, row)
                if not np.isnan(value):
                    found.append((stay, time, at, value))
            if len(found) >= AT_A_TIME:
                yield _part(found)
                found.clear()
        if found:
            yield _part(found)

    def _stays_and_times_by_cells(
        self, block: Block, indices: Mapping[str | float, int]
    ) -> Iterator[tuple[int, float]]:  # fmt: skip
        for row, by_position in block.cells():
            yield self._stay_and_time(dict(zip(self._columns.at, by_position, strict=True)), row, indices)

    def _stay_and_time(
        self, cells: Mapping[str, Cell], row: int, indices: Mapping[str | float, int]
    ) -> tuple[int, float]:
        """A row's stay and time."""
        stay, cell = indices.get(self._stay(cells[self._schema.stay], row), _UNLISTED), cells[self._schema.time]
        found = self._clock.microseconds(cell) if self._clock else self._time.number(cell)
        time = self._number(found, row, self._schema.time)
        if np.isnan(time):
            raise self.source.cell_error("TimeMissing", row, self._schema.time)
        return stay, time

    def _stay(self, cell: Cell, row: int) -> str | float:
        stay = stay_key(cell)
        if stay is None:
            raise self.source.cell_error("StayMissing", row, self._schema.stay)
        return stay

    def _number(self, found: float | str, row: int, column: str) -> float:
        if isinstance(found, str):
            raise self.source.cell_error(found, row, column)
        return found


def _of_numbers(mapping: FileMapping, column: str, feature: NumericFeature | None = None) -> Reading:
    return of_kind(Reading, mapping.reading(column, feature))  # a mapping with an age here does not fit


def _part(found: list[tuple[int, float, int, float]]) -> Part:
    stays, times, variables, values = zip(*found, strict=True)
    return Part(np.array(stays), np.array(times), np.array(variables), np.array(values))
