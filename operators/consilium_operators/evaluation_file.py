"""An evaluation as files: JSON, and calibration and importance as a picture."""

from __future__ import annotations

from pathlib import Path

from consilium_chain.tasks.questions import TITLES
from consilium_core.private_files import write_whole

from consilium_operators.evaluation import EvaluationReport
from consilium_operators.prediction_file import require_free

PICTURE = ".png"


def require_both_free(output: Path) -> None:
    """Raises ValueError for a picture's name, OperatorError (OutputTaken)."""
    if output.suffix == PICTURE:
        raise ValueError("pass a name such as result.json; the picture goes beside it")
    require_free(output)
    require_free(output.with_suffix(PICTURE))


def write_evaluation(report: EvaluationReport, output: Path) -> list[Path]:
    """Writes the JSON, and beside it the picture, where matplotlib is installed. Returns the files.

    Raises as `require_both_free` does.
    """
    require_both_free(output)
    write_whole(output, report.model_dump_json(indent=1) + "\n")
    try:
        from consilium_operators.calibration_chart import draw
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "matplotlib":
            raise
        return [output]
    picture = output.with_suffix(PICTURE)
    metric = "" if report.importance_by is None else TITLES[report.importance_by]
    write_whole(picture, draw(report.calibration, report.importance, metric))
    return [output, picture]
