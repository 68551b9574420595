"""An evaluation as files: JSON, and calibration and importance as a picture; alone, or in a model's folder and card."""

from __future__ import annotations

from pathlib import Path

from consilium_chain.evaluations.measures import Calibration
from consilium_chain.evaluations.report import EvaluationReport
from consilium_chain.tasks.questions import TITLES
from consilium_core.private_files import write_whole

from consilium_operators.card_evaluation import called, with_evaluation
from consilium_operators.model_folder import CARD, REPORT, REPORT_PICTURE, add_files, read_model
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
    write_whole(output, _written(report))
    drawn = _picture(report, "png")
    if drawn is None:
        return [output]
    picture = output.with_suffix(PICTURE)
    write_whole(picture, drawn)
    return [output, picture]


def add_evaluation(folder: Path, report: EvaluationReport) -> None:
    """Writes the evaluation into the model's folder, as a file, a picture and a section of its card.

    Raises OperatorError (ModelFolderInvalid).
    """
    drawn, card = _picture(report, "svg"), read_model(folder).card
    pictures = {} if drawn is None else {REPORT_PICTURE: drawn}
    whole = with_evaluation(card, report, REPORT_PICTURE if pictures else None)
    add_files(folder, {REPORT: _written(report), CARD: whole.encode(), **pictures})


def _written(report: EvaluationReport) -> bytes:
    return report.model_dump_json(indent=1).encode() + b"\n"


def _picture(report: EvaluationReport, form: str) -> bytes | None:
    """None without matplotlib, or if there is nothing to draw."""
    try:
        from consilium_operators.calibration_chart import draw
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "matplotlib":
            raise
        return None
    metric = "" if report.importance_by is None else TITLES[report.importance_by]
    return draw(_curves(report), report.importance, metric, form)


def _curves(report: EvaluationReport) -> tuple[Calibration, ...]:
    """Those of the operator's rows; without rows, those of the nodes, by name."""
    if report.all_rows is not None:
        return report.calibration
    return tuple(
        curve.model_copy(update={"class_name": f"{curve.class_name}, {called(one)}"})
        for one in report.shared
        for curve in one.found.calibration
    )
