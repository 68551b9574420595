"""Turns rows from outside into examples of the task's schema, and these into a model's predictions.

A request is JSON: {"rows": [{column: value, …}, …]}. Each row has the columns of hospitals' tables except the label. A
table's value is a number, a text with a number, or null if it is missing. A text is a string. An image is the base64 of
a PNG, JPEG, BMP or TIFF file, as "image". A series' variable is a list of a number or null for each step. Rows are read
as nodes read theirs. A bad request is refused as a whole. The errors have the nodes' names, and say row and column but
never the value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from consilium_chain.tasks.data_schemas import CorpusSchema, DataSchema
from consilium_chain.tasks.questions import Segmentation
from consilium_client.data.examples import Examples, Row
from consilium_client.data.kinds import kind_of
from consilium_client.data.mapping import read_mapping
from consilium_client.data.use import Use, Used
from consilium_client.models import Evaluation, Inputs, model_of
from consilium_client.models.metrics import predicted
from consilium_core.strict_json import parse_json
from numpy.typing import NDArray

from consilium_operators.errors import OperatorError, RowsInvalid
from consilium_operators.model_folder import SavedModel

MOST_ROWS = 1_000
MOST_VALUES = 1 << 25  # input values of a model at once: an image has many
ROWS = "rows"


@dataclass(frozen=True)
class Answered:
    """`predictions`: float64 (n, answers). `activations`: of each model by itself, float64 (n, width)."""

    predictions: NDArray[np.float64]
    activations: tuple[NDArray[np.float64], ...]


class Answering(Protocol):
    """A model in use, or an ensemble of models, for those who sell its answers, check them or write them down."""

    @property
    def task(self) -> int:
        """The task's number, or the ensemble's."""

    @property
    def sha256(self) -> str:
        """The digest in receipts: of the model's parameters, or of the ensemble."""

    @property
    def schema(self) -> DataSchema:
        """The schema of rows."""

    @property
    def answers(self) -> tuple[str, ...]:
        """Names of the predictions' columns."""

    @property
    def clamp(self) -> bool:
        """True if values outside the model's range count as in training."""

    @property
    def most_rows(self) -> int:
        """The most rows of a request."""

    @property
    def about(self) -> Mapping[str, Any]:
        """Name, origin and card, as JSON has them."""

    def require_answers(self) -> None:
        """Raises OperatorError (ForetellsTokens, MarksPixels)."""

    def read(self, path: Path, mapping: Path | None = None, own: str | None = None, labelled: bool = False) -> Used:
        """The examples of a file or folder. Raises DataError, RangeError."""

    def answered(self, examples: Examples) -> Answered:
        """Raises UpdateNotFinite."""


class Predictor:
    def __init__(self, saved: SavedModel, clamp: bool = False) -> None:
        """`clamp`: values outside the model's range count as in training, as the nearest bound or as missing.

        Raises ModelNotInstalled, EncoderAltered, LocalTensorsMissing.
        """
        self.saved, self.clamp, self._model = saved, clamp, model_of(saved.spec)
        self._parameters = saved.parameters
        self._model.require_installed()
        self.most_rows = max(1, min(MOST_ROWS, MOST_VALUES // math.prod(self._model.input_shape)))

    def require_answers(self) -> None:
        """Raises OperatorError (ForetellsTokens, MarksPixels) for a language model or a segmentation."""
        require_answers(self.saved)

    def predict(self, body: bytes) -> NDArray[np.float64]:
        """As `predictions`. Raises RowsInvalid, and the client room's DataErrors."""
        return self.predictions(requested(self, body))

    def read(self, path: Path, mapping: Path | None = None, own: str | None = None, labelled: bool = False) -> Used:
        """The examples of a file or folder. `mapping`: instead of the model's own. `own`: as `Use` has it.

        Raises DataError, RangeError, and as `require_answers` does unless they are labelled.
        """
        if not labelled:
            self.require_answers()
        schema = self.saved.spec.data
        named = self.saved.index.mapping if mapping is None else read_mapping(mapping, schema)
        return kind_of(schema).in_use(path, schema, Use(named, own, self.clamp, labelled))

    @property
    def task(self) -> int:
        return self.saved.index.task

    @property
    def sha256(self) -> str:
        return self.saved.index.sha256

    @property
    def schema(self) -> DataSchema:
        return self.saved.spec.data

    @property
    def about(self) -> Mapping[str, Any]:
        index = self.saved.index
        return {
            "name": index.name, "task": index.task, "chain_id": index.chain_id, "round": index.round,
            "verified": index.verified, "sha256": index.sha256, "card": self.saved.card,
        }  # fmt: skip

    @property
    def answers(self) -> tuple[str, ...]:
        """Names of the predictions' columns."""
        return tuple(one.column for one in self._model.objective.answers)

    def predictions(self, examples: Examples) -> NDArray[np.float64]:
        """float64 (n, answers): of classes, each one's probability. Raises UpdateNotFinite, OperatorError
        (ForetellsTokens, MarksPixels).
        """
        self.require_answers()
        return self.evaluation(examples).predictions

    def evaluation(self, examples: Examples) -> Evaluation:
        """Raises UpdateNotFinite."""
        return self._model.evaluate(self._parameters, self.inputs(examples))

    def answered(self, examples: Examples) -> Answered:
        """Raises UpdateNotFinite."""
        found = self.evaluation(examples)
        return Answered(found.predictions, (found.activations,))

    def inputs(self, examples: Examples) -> Inputs:
        """The model's own, of examples."""
        return self._model.inputs(examples, self.saved.sums)


def require_answers(saved: SavedModel) -> None:
    """Raises OperatorError (ForetellsTokens, MarksPixels) for a language model or a segmentation."""
    if isinstance(saved.spec.data, CorpusSchema):
        raise OperatorError("ForetellsTokens", name=saved.index.name)
    if isinstance(saved.spec.data.asked, Segmentation):
        raise OperatorError("MarksPixels", name=saved.index.name)


def rows_of(body: bytes, schema: DataSchema, at_most: int) -> Sequence[Row]:
    """Rows that have the schema's columns and no others. Raises RowsInvalid."""
    try:
        request = parse_json(body)
    except ValueError as error:
        raise RowsInvalid("BodyMalformed", why=error) from None
    if not isinstance(request, dict) or list(request) != [ROWS] or not isinstance(request[ROWS], list):
        raise _invalid('the request is not {"rows": [{column: value, …}, …]}')
    rows: list[Any] = request[ROWS]
    if not rows:
        raise _invalid("the request has no rows")
    if len(rows) > at_most:
        raise RowsInvalid("TooManyAtOnce", at_most=at_most)
    wanted = columns(schema)
    for at, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise _invalid(f"row {at} is not an object of columns and values")
        missing, foreign = [name for name in wanted if name not in row], len(row.keys() - set(wanted))
        if missing or foreign:  # the sender's own names are not repeated
            faults = [f"missing: {', '.join(missing)}"] * bool(missing)
            faults += [f"{foreign} that the task does not have"] * bool(foreign)
            raise _invalid(
                f"row {at} does not have the task's columns ({'; '.join(faults)}); send each of {', '.join(wanted)},"
                " with null for a missing value"
            )
    return rows


def _invalid(why: str) -> RowsInvalid:
    return RowsInvalid("RowsInvalid", why=why)


def columns(schema: DataSchema) -> list[str]:
    """The columns of a row to predict: those of hospitals' tables except the label."""
    return schema.inputs


def examples_of(rows: Sequence[Row], schema: DataSchema, clamp: bool = False) -> Examples:
    """Examples labelled 0. Raises RowsInvalid, DataError, and RangeError unless `clamp`."""
    return kind_of(schema).requested(rows, schema, _invalid, clamp)


def requested(predictor: Answering, body: bytes) -> Examples:
    """The examples of a request. Raises RowsInvalid, DataError, and RangeError unless the predictor clamps."""
    schema = predictor.schema
    return examples_of(rows_of(body, schema, predictor.most_rows), schema, predictor.clamp)


def named(found: NDArray[np.float64], predictor: Answering) -> list[dict[str, Any]]:
    """Each row's class with all probabilities, or the answers of another question by name."""
    classes = predictor.schema.classes
    if not classes:
        return [{"answers": dict(zip(predictor.answers, row, strict=True))} for row in found.tolist()]
    return [
        {"class": classes[int(called)], "probabilities": dict(zip(classes, row, strict=True))}
        for called, row in zip(predicted(found), found.tolist(), strict=True)
    ]
