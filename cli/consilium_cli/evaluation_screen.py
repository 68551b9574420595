"""An evaluation on the screen: an operator's by site, or a node's own beside the start, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from consilium.metrics import TITLES
from consilium_core.visible_text import shown
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from consilium_chain.evaluations.measures import Bin, Calibration, Evaluated, Group, Importance, Measure, Measures
    from consilium_chain.evaluations.report import EvaluationReport
    from consilium_chain.tasks.questions import Metric
    from consilium_client.evaluation.own import OwnEvaluation

OF_PLUGIN = "a plug-in's, which is not measured here"


def show(parts: Iterable[RenderableType]) -> None:
    console = Console()
    for part in parts:
        console.print(part, highlight=False)


def of_operator(report: EvaluationReport) -> Iterator[RenderableType]:
    counts = _counts(report.all_rows) if report.all_rows else "no labelled rows of the operator's"
    yield Text(f"{report.name}, after round {report.round}: {counts}")
    yield _task_metric(report.metric)
    if report.all_rows:
        yield _metrics("site", (*report.sites, report.all_rows))
    yield from _parts(report)
    if report.nodes:
        yield Text("The task's nodes, each on its own held-out rows; figures are signed and rounded:")
        yield _nodes(report)


def of_node(own: OwnEvaluation) -> Iterator[RenderableType]:
    yield Text(f"{own.spec.name}, after round {own.subject.round}: {_counts(own.found.all_rows)} kept out of training")
    yield _task_metric(own.spec.judging.metric)
    models: dict[str, Measures] = {"the model": own.found.all_rows.measures, "the start": own.start}
    yield _table("", models | ({"your rows alone": own.alone} if own.alone else {}))
    yield from _parts(own.found)


def _counts(group: Group) -> str:
    return f"{group.rows:,} rows ({', '.join(f'{count:,} {shown(name)}' for name, count in group.classes.items())})"


def _task_metric(metric: Metric | Literal["plugin"]) -> Text:
    own = OF_PLUGIN if metric == "plugin" else TITLES[metric]
    return Text(f"The task's metric is {own}. Brackets: 95% interval.")


def _parts(report: Evaluated | EvaluationReport) -> Iterator[RenderableType]:
    if report.subgroups:
        yield _metrics("subgroup", report.subgroups)
    if report.importance and report.importance_by is not None:
        yield Text(f"Loss of {TITLES[report.importance_by]} with a column's values dealt to other rows, ten times:")
        yield _importance(report.importance)
    for curve in report.calibration:
        yield Text(f"Calibration of {shown(curve.class_name)}: mean error {curve.error:.3f}")
        yield _curve(curve)


def _metrics(by: str, groups: Sequence[Group]) -> Table:
    table = _columns([by, "rows", *(TITLES[metric] for metric in groups[0].measures)])
    for group in groups:
        table.add_row(*_cells(group))
    return table


def _table(by: str, rows: Mapping[str, Measures]) -> Table:
    table = _columns([by, *(TITLES[metric] for metric in next(iter(rows.values())))])
    for name, measures in rows.items():
        table.add_row(name, *(Text(_said(measure)) for measure in measures.values()))
    return table


def _columns(titles: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(titles[0], overflow="fold")
    for title in titles[1:]:
        table.add_column(title, justify="right")
    return table


def _nodes(report: EvaluationReport) -> Table:
    metrics = list(report.shared[0].found.all_rows.measures) if report.shared else []
    table = _columns(["node", "rows", *(TITLES[metric] for metric in metrics)])
    for one in report.nodes:
        cells = ["not shared"] if one.report is None else _cells(one.report.found.all_rows)[1:]
        table.add_row(f"{one.role} {one.node}", *cells)
    return table


def _importance(found: Sequence[Importance]) -> Table:
    table = _columns(["column", "mean", "least", "most"])
    for one in found:
        table.add_row(Text(shown(one.column)), *(f"{value:+.3f}" for value in (one.mean, one.low, one.high)))
    return table


def _cells(group: Group) -> list[str | Text]:
    name = "all" if group.name is None else shown(group.name)
    return [Text(name), f"{group.rows:,}", *(Text(_said(measure)) for measure in group.measures.values())]


def _said(measure: Measure) -> str:
    if measure.value is None:
        return "–"
    if measure.low is None or measure.high is None:
        return f"{measure.value:.3f}"
    return f"{measure.value:.3f}\n[{measure.low:.3f}, {measure.high:.3f}]"


def _curve(curve: Calibration) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("probability", "rows", "predicted", "observed"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in curve.bins:
        table.add_row(f"{one.above:.1f}–{one.up_to:.1f}", f"{one.rows:,}", f"{one.predicted:.3f}", _observed(one))
    return table


def _observed(one: Bin) -> Text:
    return Text(f"{one.observed:.3f} [{one.low:.3f}, {one.high:.3f}]")
