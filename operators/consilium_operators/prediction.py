"""Rows from outside become examples of the task's schema, and these a model's probabilities.

A request is JSON: {"rows": [{column: value, …}, …]}, each row with the columns that hospitals' tables have, but
for the label. Of a table a value is a number, a text that reads as one, or null where it is missing; a text is text; an
image is the base64 of a PNG, JPEG, BMP or TIFF file, as "image". They are read as the nodes read their own: what is
refused is refused whole, by the same names, with its row and column and never with what it holds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_client.data.examples import Examples, Row
from consilium_client.data.kinds import kind_of
from consilium_client.models import model_of
from numpy.typing import NDArray
from pydantic_core import from_json

from consilium_operators.errors import RowsInvalid
from consilium_operators.model_folder import SavedModel

MOST_ROWS = 1_000
MOST_VALUES = 1 << 25  # that a model is given at once: images are many to a row
ROWS = "rows"


class Predictor:
    def __init__(self, saved: SavedModel) -> None:
        """Raises ModelNotInstalled, EncoderAltered."""
        self.saved, self._model = saved, model_of(saved.spec)
        self._model.require_installed()
        self.most_rows = max(1, min(MOST_ROWS, MOST_VALUES // math.prod(self._model.input_shape)))

    def predict(self, body: bytes) -> NDArray[np.float64]:
        """Probabilities by class, float64 (n, classes). Raises RowsInvalid, and the client room's DataErrors."""
        examples = examples_of(rows_of(body, self.saved.spec.data, self.most_rows), self.saved.spec.data)
        inputs = self._model.inputs(examples, self.saved.sums)
        return self._model.evaluate(self.saved.parameters, inputs).probabilities


def rows_of(body: bytes, schema: DataSchema, at_most: int) -> Sequence[Row]:
    """Rows that have the schema's columns and no others. Raises RowsInvalid."""
    asked = _parsed(body)
    if not isinstance(asked, dict) or list(asked) != [ROWS] or not isinstance(asked[ROWS], list):
        raise _invalid('the request is not {"rows": [{column: value, …}, …]}')
    rows: list[Any] = asked[ROWS]
    if not rows:
        raise _invalid("there is no row")
    if len(rows) > at_most:
        raise RowsInvalid("TooManyAtOnce", at_most=at_most)
    wanted = columns(schema)
    for at, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise _invalid(f"row {at} is no object of columns and values")
        missing, foreign = [name for name in wanted if name not in row], len(row.keys() - set(wanted))
        if missing or foreign:  # whose names are not repeated: they are the sender's
            faults = [f"missing: {', '.join(missing)}"] * bool(missing)
            faults += [f"{foreign} that the task does not have"] * bool(foreign)
            raise _invalid(
                f"row {at}: its columns are not those wanted ({'; '.join(faults)}); send each of"
                f" {', '.join(wanted)}, with null where a value is missing"
            )
    return rows


def _invalid(why: str) -> RowsInvalid:
    return RowsInvalid("RowsInvalid", why=why)


def columns(schema: DataSchema) -> list[str]:
    """The columns of a row to predict for: a hospital's, but for the label."""
    return [name for name in schema.used if name != schema.label]


def examples_of(rows: Sequence[Row], schema: DataSchema) -> Examples:
    """Examples labelled 0. Raises RowsInvalid, DataError."""
    return kind_of(schema).requested(rows, schema, _invalid)


# --- JSON ----------------------------------------------------------------------------------------------------------


class _Twice(ValueError):
    pass


def _parsed(body: bytes) -> object:
    """Reads it twice: by Rust, which bounds nesting at any limit of Python's, and by Python, which sees repeated names.
    Raises BodyMalformed; errors of the parsers may quote what they read, and are not chained."""
    try:
        from_json(body, allow_inf_nan=False)
        found: object = json.loads(body, object_pairs_hook=_once)
        return found
    except _Twice:
        why = "a name stands twice in one object"
    except (ValueError, RecursionError):
        why = "it is no JSON in UTF-8, has NaN or a number of thousands of digits, or is nested too deeply"
    raise RowsInvalid("BodyMalformed", why=why)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Twice
    return found
