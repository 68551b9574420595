"""A model's predictions for the rows of a file or folder, as a table and as a CSV file."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from consilium_client.models.metrics import predicted
from consilium_core.private_files import write_private_file

from consilium_operators.errors import OperatorError
from consilium_operators.prediction import Predictor


@dataclass(frozen=True)
class Predictions:
    """A row for each row or file, in their order.

    Columns: `row` from 1, or `file`; the copied column; `class`; and the probability of each class.
    """

    columns: list[str]
    rows: list[list[object]]

    def write(self, output: Path) -> None:
        """Writes a CSV file that only its owner can read. Raises OperatorError (OutputTaken)."""
        require_free(output)
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows([self.columns, *self.rows])
        write_private_file(output, text.getvalue())


def predictions(predictor: Predictor, rows: Path, mapping: Path | None = None, own: str | None = None) -> Predictions:
    """`own`: a column to copy. Raises DataError, RangeError."""
    used = predictor.read(rows, mapping, own)
    probabilities = predictor.probabilities(used.examples)
    classes = predictor.saved.spec.data.classes
    copied = [] if own is None else [own]
    first = "row" if used.names is None else "file"
    found: list[list[object]] = []
    for at, (called, shares) in enumerate(zip(predicted(probabilities), probabilities.tolist(), strict=True)):
        cells = [] if used.own is None else [used.own[at]]
        found.append([at + 1 if used.names is None else used.names[at], *cells, classes[int(called)], *shares])
    return Predictions([first, *copied, "class", *(f"probability_{name}" for name in classes)], found)


def require_free(output: Path) -> None:
    """Raises OperatorError (OutputTaken)."""
    if output.exists():
        raise OperatorError("OutputTaken", path=output)
