"""A model's predictions for the rows of a file or folder, as a table and as a CSV file."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from consilium_chain.tasks.series_schema import SeriesSchema
from consilium_client.models.metrics import predicted
from consilium_core.private_files import write_private_file

from consilium_operators.errors import OperatorError
from consilium_operators.prediction import Answering


@dataclass(frozen=True)
class Predictions:
    """A row for each row or file, in their order.

    Columns: `row` from 1, `file`, or the column of stays; the copied column; `class`, where the question asks for one;
    and each answer, such as the probability of a class.
    """

    columns: list[str]
    rows: list[list[object]]

    def write(self, output: Path) -> None:
        """Writes a CSV file that only its owner can read. Raises OperatorError (OutputTaken)."""
        require_free(output)
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows([self.columns, *self.rows])
        write_private_file(output, text.getvalue())


def predictions(predictor: Answering, rows: Path, mapping: Path | None = None, own: str | None = None) -> Predictions:
    """`own`: a column to copy. Raises DataError, RangeError."""
    used = predictor.read(rows, mapping, own)
    found = predictor.answered(used.examples).predictions
    schema, of_files = predictor.schema, used.names is not None
    classes, named = schema.classes, schema.stay if isinstance(schema, SeriesSchema) else "file"
    called = [[classes[int(one)]] for one in predicted(found)] if classes else [[] for _ in found]
    copied = [[] for _ in found] if used.own is None else [[one] for one in used.own]
    names = used.names or range(1, len(found) + 1)
    columns = [named if of_files else "row", *filter(None, [own]), *(["class"] if classes else []), *predictor.answers]
    cells: list[list[object]] = [
        [name, *beside, *likeliest, *answers]
        for name, beside, likeliest, answers in zip(names, copied, called, found.tolist(), strict=True)
    ]
    return Predictions(columns, cells)


def require_free(output: Path) -> None:
    """Raises OperatorError (OutputTaken)."""
    if output.exists():
        raise OperatorError("OutputTaken", path=output)
