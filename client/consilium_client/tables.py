"""A hospital's or voter's CSV file becomes a typed table: the only door through which rows enter.

The file is CSV with a header line, UTF-8, commas; its columns are the schema's features and label in any order, and
nothing else, so that no patient number slips in. An empty cell or `?` is a missing value. `csv` rather than
pandas reads it: pandas pads short lines with missing values and renames duplicate columns without a word.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from consilium_chain.task_spec import CategoryFeature, DataSchema, Feature
from numpy.typing import NDArray

from consilium_client.errors import (
    ColumnsWrong,
    DataFileEmpty,
    DataFileMalformed,
    DataFileMissing,
    LabelOutOfSchema,
    OneClassOnly,
    TooFewRows,
    ValueNotFinite,
    ValueNotNumeric,
)

MISSING = frozenset({"", "?"})


@dataclass(frozen=True)
class Table:
    """Encoded rows: features float64 (n, columns) in [0, 1], NaN where missing; labels int64 (n,) of 0 and 1.

    A numeric column holds u = (x - min) / (max - min) of the schema's public range, a one-hot column 0 or 1.
    """

    features: NDArray[np.float64]
    labels: NDArray[np.int64]

    @property
    def rows(self) -> int:
        return len(self.labels)

    @property
    def classes_present(self) -> tuple[int, ...]:
        return tuple(int(label) for label in np.unique(self.labels))


@dataclass(frozen=True)
class _Cells:
    """Raw text of a file, with the line on which each row ends (line 1 is the header)."""

    path: Path
    header: list[str]
    rows: list[list[str]]
    lines: list[int]


def read_table(path: Path, schema: DataSchema, *, minimum_rows: int = 1, allow_one_class: bool = True) -> Table:
    """Read, check and encode a CSV file.

    Numbers are clamped to the schema's range and scaled by it to [0, 1]; a category becomes one 0/1 column per value
    after the first, and a code that the schema does not know counts as missing. A hospital may have one class only;
    held-out data may not (`allow_one_class=False`). Raises a DataError that names file, line and column, never a
    cell's content.
    """
    cells = _read_cells(Path(path))
    position = _column_positions(cells, schema)
    blocks = [_encode(_numbers(cells, position[feature.name], feature.name), feature) for feature in schema.features]
    table = Table(features=np.hstack(blocks), labels=_labels(cells, position[schema.label], schema.label))
    if table.rows < minimum_rows:
        raise TooFewRows(table.rows, minimum_rows)
    if not allow_one_class and len(table.classes_present) < 2:
        raise OneClassOnly(cells.path, schema.label, table.classes_present[0])
    return table


def _read_cells(path: Path) -> _Cells:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DataFileMissing(path) from None
    except OSError as error:
        raise DataFileMissing(path, error.strerror or type(error).__name__) from None
    try:
        text = raw.decode("utf-8-sig")  # spreadsheets put a byte order mark in front
    except UnicodeDecodeError as error:
        bad_line = raw.count(b"\n", 0, error.start) + 1
    else:
        return _split(path, text)
    raise DataFileMalformed(path, "the text is not UTF-8", bad_line)  # outside: the cause carries the whole file


def _split(path: Path, text: str) -> _Cells:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    kept: list[list[str]] = []
    lines: list[int] = []
    try:
        for row in reader:
            if not row:
                continue  # a blank line is no row
            if kept and len(row) != len(kept[0]):
                raise DataFileMalformed(path, f"{len(row)} fields where the header has {len(kept[0])}", reader.line_num)
            kept.append([cell.strip() for cell in row])
            lines.append(reader.line_num)
    except csv.Error:
        raise DataFileMalformed(path, "the line is not CSV", reader.line_num) from None
    if len(kept) < 2:
        raise DataFileEmpty(path)
    return _Cells(path, kept[0], kept[1:], lines[1:])


def _column_positions(cells: _Cells, schema: DataSchema) -> dict[str, int]:
    expected = [*(feature.name for feature in schema.features), schema.label]
    counts = Counter(cells.header)
    missing = [name for name in expected if name not in counts]
    unexpected = [name for name in counts if name not in expected]
    duplicate = [name for name, count in counts.items() if count > 1 and name in expected]
    if len(missing) == len(expected):
        # Without a header line the first row would be quoted as "unexpected columns": a patient in a log.
        raise DataFileMalformed(cells.path, "the first line names none of the task's columns", 1)
    if missing or unexpected or duplicate:
        raise ColumnsWrong(cells.path, missing, unexpected, duplicate)
    return {name: cells.header.index(name) for name in expected}


def _numbers(cells: _Cells, position: int, column: str) -> NDArray[np.float64]:
    """One column (n,), NaN where missing."""
    values = np.empty(len(cells.rows))
    for i, row in enumerate(cells.rows):
        text = row[position]
        number = math.nan if text in MISSING else _parse(text)
        if number is None:
            raise ValueNotNumeric(cells.path, cells.lines[i], column)
        if text not in MISSING and not math.isfinite(number):
            raise ValueNotFinite(cells.path, cells.lines[i], column)
        values[i] = number
    return values


def _parse(text: str) -> float | None:
    """A number, or None: returning keeps the text, which float's error quotes, out of every chain of errors."""
    if "_" in text:  # Python's digit grouping, 1_000, is no data format
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _encode(values: NDArray[np.float64], feature: Feature) -> NDArray[np.float64]:
    """One column's numbers (n,) to its encoded block (n, 1) or (n, values - 1)."""
    if not isinstance(feature, CategoryFeature):
        clamped = np.clip(values, feature.min, feature.max)  # passes NaN through
        unit: NDArray[np.float64] = ((clamped - feature.min) / (feature.max - feature.min)).reshape(-1, 1)
        return unit
    matches = values[:, None] == np.array(feature.values)[None, :]
    block: NDArray[np.float64] = matches[:, 1:].astype(np.float64)
    block[~matches.any(axis=1)] = np.nan
    return block


def _labels(cells: _Cells, position: int, column: str) -> NDArray[np.int64]:
    labels = np.empty(len(cells.rows), dtype=np.int64)
    for i, row in enumerate(cells.rows):
        number = _parse(row[position])
        if number not in (0.0, 1.0):
            raise LabelOutOfSchema(cells.path, cells.lines[i], column)
        labels[i] = int(number)
    return labels
