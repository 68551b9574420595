"""Reads a hospital's or voter's CSV or Parquet file into a typed table.

The first bytes show the format. Without a mapping, the columns must be the schema's features and label in any order,
and no others, so that no patient number gets in; a CSV file has a header line, UTF-8 and commas. A mapping (`mapping`)
can describe another form, and columns that the task does not have are ignored. An empty cell, `?`, or a null in Parquet
is a missing value.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.features import UNKNOWN, CategoryFeature, Feature
from numpy.typing import NDArray

from consilium_client.data.answers import answers_of
from consilium_client.data.examples import Examples, Labels, Source
from consilium_client.data.foreign import opened, way_for
from consilium_client.data.mapping import ON, PATIENT, Mapping
from consilium_client.data.table.cells import Ages, Cell, Reading, key
from consilium_client.data.table.columns import Columns
from consilium_client.data.table.doubts import LEAST, MOST_OUTSIDE
from consilium_client.errors import DataError

CANONICAL = "<f8"  # of a value in `row_bytes`
# Steps of a feature's range in `contents`. They are coarse against the rounding of file formats, such as float32: fewer
# than one in a thousand values is so near to a border between two steps that rounding moves it across.
STEPS = 4096
MISSING = -1


@dataclass(frozen=True)
class Table(Examples):
    """Encoded rows: features float64 (n, columns) in [0, 1], NaN where missing; labels as `answers` gives them.

    A numeric column holds u = (x - min) / (max - min) of the schema's public range, a one-hot column 0 or 1.
    `patients`: each row's, if a mapping names their column; they stay in memory.
    """

    features: NDArray[np.float64]
    labels: Labels
    patients: tuple[str, ...] = field(default=(), repr=False)

    def row_bytes(self) -> Iterator[bytes]:
        """After the label each feature in 8 bytes, with one NaN and one zero."""
        canonical = np.where(self.features == 0, 0.0, self.features).astype(CANONICAL)
        canonical[np.isnan(canonical)] = np.nan
        for label, row in zip(self.label_bytes, canonical, strict=True):
            yield label + row.tobytes()

    def contents(self) -> Iterator[bytes]:
        return (row.tobytes() for row in row_codes(self))

    def units(self) -> Iterable[bytes]:
        return map(str.encode, self.patients) if self.patients else self.contents()

    def sums(self) -> NDArray[np.float64]:
        """Each column's values, then all Σu, then all Σu², float64 (3 · columns,)."""
        present = ~np.isnan(self.features)
        filled = np.where(present, self.features, 0.0)
        return np.concatenate([present.sum(axis=0).astype(np.float64), filled.sum(axis=0), (filled**2).sum(axis=0)])


def row_codes(table: Table) -> NDArray[np.int32]:
    """Features in whole steps of their range, little-endian int32 (n, columns); MISSING without a value."""
    steps = np.where(np.isnan(table.features), MISSING, np.rint(table.features * STEPS))
    return np.ascontiguousarray(steps, dtype="<i4")


@dataclass(frozen=True)
class RawTable:
    """A file's rows in the task's own units and codes, before they are clamped and encoded.

    `values`: by the schema's features, float64 (n,), NaN where missing; labels as `answers` gives them. `patients`: as
    a `Table` has them.
    """

    source: Source
    values: dict[str, NDArray[np.float64]] = field(repr=False)
    labels: Labels = field(repr=False)
    patients: tuple[str, ...] = field(default=(), repr=False)

    @property
    def rows(self) -> int:
        return len(self.labels)


def read_raw(path: Path, schema: TableSchema, mapping: Mapping | None = None) -> RawTable:
    """Reads a CSV or Parquet file, or data by a plug-in, and keeps 8 bytes a value. `mapping` fits the schema
    (`require_fits`).

    Raises a DataError that names file, line and column, never a cell's content; and as `Columns` does.
    """
    with opened(path, way_for(mapping, schema), schema) as file:
        columns = Columns(file, path, mapping, schema.used)
        values = {name: array("d") for name in schema.used if name in columns.at}
        into = [
            (name, rule, values[name].append) for name, rule in rules(schema, mapping).items() if name in columns.at
        ]
        answers, asked, patients = answers_of(schema), set(schema.asked.columns), list[str]()
        for row, by_position in columns:
            cells = dict(zip(columns.at, by_position, strict=True))
            if PATIENT in cells:
                patients.append(_patient(cells[PATIENT], row, columns.source))
            for name, rule, append in into:
                cell = cells[name]
                found = rule.number(cell, cells.get(name + ON))
                if name in asked:
                    found = answers.accepted(name, cell, found)
                if not isinstance(found, float):
                    raise columns.source.cell_error(found, row, name)
                append(found)
    labels = answers.labels({name: np.array(values[name]) for name in schema.asked.columns})
    absent = np.full(len(labels), math.nan)
    features = {feature.name: np.array(values.get(feature.name, absent)) for feature in schema.features}
    return RawTable(columns.source, features, labels, tuple(patients))


def rules(schema: TableSchema, mapping: Mapping | None) -> dict[str, Reading | Ages]:
    """The way to read each column's cells, by the schema's names, the answer's last."""
    mapping = mapping or Mapping()
    found = {feature.name: mapping.reading(feature.name, feature) for feature in schema.features}
    return found | {name: mapping.reading(name) for name in schema.asked.columns}


def _patient(cell: Cell, row: int, source: Source) -> str:
    """A patient's name in one form, with or without zeros in front: Parquet has numbers. Raises PatientMissing."""
    if cell is None or cell in ("", UNKNOWN):
        raise source.cell_error("PatientMissing", row, "patient")
    return str(key(cell, "."))


def checked(raw: RawTable, schema: TableSchema) -> Table:
    """The table that a node works with. Raises ColumnAllMissing, ColumnOutOfRange."""
    table = encoded(raw, schema)
    for feature in schema.features:
        _require_plausible(raw, feature)
        is_there = raw.source.names[feature.name] is not None
        if is_there and np.isnan(_encode(raw.values[feature.name], feature)[:, 0]).all():
            called = raw.source.called(feature.name)
            raise DataError("ColumnAllMissing", path=raw.source.path, column=feature.name, called=called)
    return table


def _require_plausible(raw: RawTable, feature: Feature) -> None:
    """Raises ColumnOutOfRange where the task's range or codes are not this column's."""
    values = raw.values[feature.name]
    outside = foreign(values, feature)
    known = len(values) - int(np.isnan(values).sum())
    if known >= LEAST and outside > MOST_OUTSIDE * known:
        what = "are codes that the task does not know"
        if not isinstance(feature, CategoryFeature):
            what = f"lie outside the task's range, {feature.min:g} to {feature.max:g}"
        elif outside == known:
            return  # all are missing, then
        called = raw.source.called(feature.name)
        raise DataError("ColumnOutOfRange", path=raw.source.path, column=feature.name, called=called, what=what)


def foreign(values: NDArray[np.float64], feature: Feature) -> int:
    """Counts values (n,) outside the task's range, or that are none of its codes; NaN is neither."""
    if isinstance(feature, CategoryFeature):
        return int((~np.isin(values, feature.codes) & ~np.isnan(values)).sum())
    return int(((values < feature.min) | (values > feature.max)).sum())


def encoded(raw: RawTable, schema: TableSchema) -> Table:
    """Numbers are clamped to the schema's range and scaled by it to [0, 1]. A category becomes one 0/1 column per value
    after the first, and a code that the schema does not know counts as missing.
    """
    blocks = [_encode(raw.values[feature.name], feature) for feature in schema.features]
    return Table(np.hstack(blocks), raw.labels, raw.patients)


def _encode(values: NDArray[np.float64], feature: Feature) -> NDArray[np.float64]:
    """One column's numbers (n,) to its encoded block: (n, 1), with an indicator (n, 2), or (n, values - 1)."""
    if not isinstance(feature, CategoryFeature):
        clamped = np.clip(values, feature.min, feature.max)  # passes NaN through
        unit: NDArray[np.float64] = ((clamped - feature.min) / (feature.max - feature.min)).reshape(-1, 1)
        return np.hstack([unit, np.isnan(unit)]) if feature.missing == "indicator" else unit
    matches = values[:, None] == np.array(feature.codes)[None, :]
    block: NDArray[np.float64] = matches[:, 1:].astype(np.float64)
    block[~matches.any(axis=1)] = np.nan
    return block
