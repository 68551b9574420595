"""An evaluation as files: JSON, a page, and calibration and importance as a picture; alone, or in a model's folder and
card.
"""

from __future__ import annotations

from pathlib import Path

from consilium_chain.evaluations.measures import Calibration
from consilium_chain.evaluations.report import EvaluationReport
from consilium_chain.tasks.questions import TITLES
from consilium_core.private_files import write_whole

from consilium_operators.card_evaluation import called, with_evaluation
from consilium_operators.model_folder import CARD, REPORT, REPORT_PAGE, REPORT_PICTURE, add_files, read_model
from consilium_operators.prediction_file import require_free
from consilium_operators.report_page import page

PICTURE, PAGE = ".png", ".html"


def require_all_free(output: Path) -> None:
    """Raises ValueError for the name of a picture or page, OperatorError (OutputTaken)."""
    if output.suffix in (PICTURE, PAGE):
        raise ValueError("pass a name such as result.json; the page and the picture go beside it")
    for one in (output, output.with_suffix(PAGE), output.with_suffix(PICTURE)):
        require_free(one)


def write_evaluation(report: EvaluationReport, output: Path) -> list[Path]:
    """Writes the JSON, and beside it the page, and the picture where matplotlib is installed. Returns the files.

    Raises as `require_all_free` does.
    """
    require_all_free(output)
    drawn = _picture(report, "png")
    written = {PAGE: page(report, _picture(report, "svg")), **({} if drawn is None else {PICTURE: drawn})}
    write_whole(output, _written(report))
    for ending, content in written.items():
        write_whole(output.with_suffix(ending), content)
    return [output, *map(output.with_suffix, written)]


def add_evaluation(folder: Path, report: EvaluationReport) -> None:
    """Writes the evaluation into the model's folder, as a file, a page, a picture and a section of its card.

    Raises OperatorError (ModelFolderInvalid).
    """
    drawn, card = _picture(report, "svg"), read_model(folder).card
    pictures = {} if drawn is None else {REPORT_PICTURE: drawn}
    whole = with_evaluation(card, report, REPORT_PICTURE if pictures else None)
    add_files(folder, {REPORT: _written(report), REPORT_PAGE: page(report, drawn), CARD: whole.encode(), **pictures})


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
