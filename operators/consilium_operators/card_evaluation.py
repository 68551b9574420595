"""The model card's section on the model's worth: an evaluation as tables, with its picture. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from consilium_chain.evaluations.measures import Calibration, Group, Importance, Measure
from consilium_chain.evaluations.report import EvaluationReport
from consilium_chain.evaluations.site_report import DECIMALS, SiteReport
from consilium_chain.tasks.questions import TITLES, Metric

from consilium_operators.card_text import joined, line

TITLE = "## Evaluation"
NONE = (
    "None yet: neither labelled rows of the operator's nor reports of the task's nodes. `consilium operator evaluate"
    " --into-card` adds one."
)
OWN = "the operator's"


def with_evaluation(card: str, report: EvaluationReport, picture: str | None) -> str:
    """The card with this evaluation instead of an earlier one. `picture`: the name of a file beside it."""
    before, found, after = card.partition(f"\n{TITLE}\n")
    rest = after[after.index("\n## ") :] if "\n## " in after else ""
    before = before if found else card.rstrip() + "\n"
    return f"{before}\n{TITLE}\n\n{joined(list(section(report, picture)))}\n{rest}"


def section(report: EvaluationReport, picture: str | None) -> Iterator[str]:
    """Paragraphs, and lines of tables. `picture`: the address of the image."""
    yield (
        "Brackets are 95 % intervals: in 19 of 20 such samples of rows they hold the true value. The record does not"
        " prove these figures, because it has no rows."
    )
    if report.all_rows is not None:
        yield f"On {report.all_rows.rows:,} labelled rows of this evaluation's author ({_counts(report.all_rows)}):"
        yield from _groups("site", [(one.name or "all", one) for one in (*report.sites, report.all_rows)])
    if report.nodes:
        yield (
            "On the task's nodes, each on rows of its own that it never trained on. Its account signed its figures,"
            " which are rounded, and its rows are rounded down to tens."
        )
        yield from _nodes(report)
    if parts := [(f"{line(one.name or '')}, {whose}", one) for whose, groups, _, _ in _parts(report) for one in groups]:
        yield "Subgroups:"
        yield from _groups("subgroup, rows", parts)
    if any(curves for _, _, curves, _ in _parts(report)):
        yield from _calibration(report, picture)
    if report.importance or any(one.found.importance for one in report.shared):
        yield from _importance(report)


def _parts(
    report: EvaluationReport,
) -> Iterator[tuple[str, Sequence[Group], Sequence[Calibration], Sequence[Importance]]]:
    """Subgroups, curves and importance by whose rows they are of."""
    if report.all_rows is not None:
        yield OWN, report.subgroups, report.calibration, report.importance
    for one in report.shared:
        yield called(one), one.found.subgroups, one.found.calibration, one.found.importance


def called(report: SiteReport) -> str:
    return f"{report.role} {report.node[:8]}…"


def _counts(group: Group) -> str:
    return ", ".join(f"{count:,} {line(name)}" for name, count in group.classes.items())


def _groups(by: str, groups: Sequence[tuple[str, Group]]) -> Iterator[str]:
    metrics = list(groups[0][1].measures)
    yield _row([by, "rows", *(TITLES[metric] for metric in metrics)])
    yield f"|{'---|' * (2 + len(metrics))}"
    for name, group in groups:
        yield _row([line(name), f"{group.rows:,}", *_values(group.measures, metrics)])


def _nodes(report: EvaluationReport) -> Iterator[str]:
    metrics = list(report.shared[0].found.all_rows.measures) if report.shared else []
    yield _row(["node", "rows", *(TITLES[metric] for metric in metrics)])
    yield f"|{'---|' * (2 + len(metrics))}"
    for one in report.nodes:
        name, shared = f"{one.role} `{one.node}`", one.report
        if shared is None:
            yield _row([name, "not shared", *["–"] * len(metrics)])
            continue
        yield _row(
            [name, f"{shared.found.all_rows.rows:,}", *_values(shared.found.all_rows.measures, metrics, DECIMALS)]
        )
        yield _row(["before training, on the same rows", "", *_values(shared.start, metrics, DECIMALS)])


def _calibration(report: EvaluationReport, picture: str | None) -> Iterator[str]:
    yield "Calibration: the mean distance of predicted probabilities and observed shares."
    yield _row(["rows", "class", "error"])
    yield "|---|---|---|"
    for whose, _, curves, _ in _parts(report):
        for curve in curves:
            yield _row([whose, line(curve.class_name), f"{curve.error:.3f}"])
    if picture is not None:
        yield f"![calibration curves and importance of columns]({picture})"


def _importance(report: EvaluationReport) -> Iterator[str]:
    by = report.importance_by or next(one.found.importance_by for one in report.shared if one.found.importance)
    yield f"Importance: the loss of {TITLES[by] if by else 'the metric'} with a column's values dealt to other rows."
    found = [(whose, {one.column: one.mean for one in important}) for whose, _, _, important in _parts(report)]
    found = [(whose, means) for whose, means in found if means]
    yield _row(["column", *(whose for whose, _ in found)])
    yield f"|{'---|' * (1 + len(found))}"
    for column in found[0][1]:
        means = [of.get(column) for _, of in found]
        yield _row([line(column), *("–" if mean is None else f"{mean:+.3f}" for mean in means)])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _values(measures: Mapping[Metric, Measure], metrics: Sequence[Metric], decimals: int = 3) -> list[str]:
    return [_value(measures.get(metric), decimals) for metric in metrics]


def _value(measure: Measure | None, decimals: int) -> str:
    if measure is None or measure.value is None:
        return "–"
    value, low, high = (None if one is None else f"{one:.{decimals}f}" for _, one in measure)
    return f"{value}" if low is None or high is None else f"{value} [{low}, {high}]"
