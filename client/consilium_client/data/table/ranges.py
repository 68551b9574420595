"""The ranges of a finished model, and the reading of a table within them."""

from __future__ import annotations

import math
from array import array
from pathlib import Path

import numpy as np
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.features import CategoryFeature, Feature

from consilium_client.data.answers import answers_of
from consilium_client.data.examples import Source
from consilium_client.data.foreign import opened
from consilium_client.data.mapping import ON
from consilium_client.data.table.reader import RawTable, encoded, rules
from consilium_client.data.use import Use, Used, UsedRows
from consilium_client.errors import RangeError

_FOREIGN = -1.0  # the code of no named value
ROUNDING = 1e-6  # of a range: a mapping's scale and 32-bit floats may move a bound that far


def read_in_use(path: Path, schema: TableSchema, use: Use) -> Used:
    """A CSV or Parquet file's rows for a finished model. Raises DataError, and RangeError unless `use.clamp`."""
    by_rule, answers = rules(schema, use.columns), answers_of(schema)
    columns = [(feature, by_rule[feature.name], array("d")) for feature in schema.features]
    asked = {name: array("d") for name in schema.asked.columns if use.labelled}
    with opened(path, use.columns.way, schema) as file:
        rows = UsedRows(file, path, [*(feature.name for feature in schema.features), *asked], use)
        for row, cells in rows:
            for feature, rule, values in columns:
                found = rule.number(cells.get(feature.name), cells.get(feature.name + ON))
                values.append(within(found, feature, rows.source, row, use.clamp))
            for name, values in asked.items():
                found = answers.accepted(name, cells[name], by_rule[name].number(cells[name]))
                if isinstance(found, str):
                    raise rows.source.cell_error(found, row, name)
                values.append(found)
    by_name = {feature.name: np.array(values) for feature, _, values in columns}
    count = len(by_name[schema.features[0].name])
    labels = answers.labels({name: np.array(values) for name, values in asked.items()}) if asked else None
    raw = RawTable(rows.source, by_name, np.zeros(count, np.int64) if labels is None else labels)
    return Used(rows.source, encoded(raw, schema), rows.own)


def within(found: float | str, feature: Feature, source: Source, row: int, clamp: bool) -> float:
    """A cell's number, as its column's rule found it, or NaN; `clamp`: also for a text that is no named value.

    Raises CellError for the name of one, and RangeError unless `clamp`.
    """
    is_foreign = found == "CodeUnknown" and isinstance(feature, CategoryFeature) and feature.is_named
    if is_foreign:
        found = _FOREIGN
    if isinstance(found, str):
        raise source.cell_error(found, row, feature.name)
    if not clamp:
        require_within(found, feature, source, row)
    return math.nan if is_foreign else found


def require_within(value: float, feature: Feature, source: Source, row: int) -> None:
    """Raises RangeError if a value is outside the feature's range, or is not one of its codes. NaN is missing."""
    if math.isnan(value):
        return
    cell = {"path": source.path, "at": source.where(row, feature.name), "row": row, "column": feature.name}
    if isinstance(feature, CategoryFeature):
        if value not in feature.codes:
            raise RangeError("CodeOutOfRange", **cell, codes=", ".join(feature.names))
        return
    margin = ROUNDING * (feature.max - feature.min)
    if not feature.min - margin <= value <= feature.max + margin:
        side = "below" if value < feature.min else "above"
        raise RangeError("ValueOutOfRange", **cell, side=side, low=feature.min, high=feature.max)
