"""A model's predictions for the rows of a file or folder, as a CSV file."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from consilium_client.models.metrics import predicted
from consilium_core.private_files import write_private_file

from consilium_operators.errors import OperatorError
from consilium_operators.prediction import Predictor


def write_predictions(
    predictor: Predictor, rows: Path, output: Path, mapping: Path | None = None, own: str | None = None
) -> int:
    """Writes a row for each row or file, in their order, and returns their number. `own`: a column to copy.

    Columns: `row` from 1, or `file`; the copied column; `class`; and the probability of each class. Only the file's
    owner can read it. Raises OutputTaken, DataError, RangeError; then it writes nothing.
    """
    require_free(output)
    used = predictor.read(rows, mapping, own)
    probabilities = predictor.probabilities(used.examples)
    classes = predictor.saved.spec.data.classes
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    copied = [] if own is None else [own]
    table.writerow(
        ["row" if used.names is None else "file", *copied, "class", *(f"probability_{name}" for name in classes)]
    )
    for at, (called, shares) in enumerate(zip(predicted(probabilities), probabilities.tolist(), strict=True)):
        cells = [] if used.own is None else [used.own[at]]
        table.writerow([at + 1 if used.names is None else used.names[at], *cells, classes[int(called)], *shares])
    write_private_file(output, text.getvalue())
    return len(probabilities)


def require_free(output: Path) -> None:
    """Raises OutputTaken."""
    if output.exists():
        raise OperatorError("OutputTaken", path=output)
