"""`consilium operator evaluate` on the screen: metrics, sites and the calibration curve as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from consilium.metrics import TITLES
from consilium_core.visible_text import shown
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from consilium_operators.evaluation import Bin, Calibration, EvaluationReport, Group, Measure
    from consilium_operators.importance import Importance

OF_PLUGIN = "a plug-in's, which is not measured here"


def show(console: Console, report: EvaluationReport) -> None:
    for part in screen(report):
        console.print(part, highlight=False)


def screen(report: EvaluationReport) -> Iterator[RenderableType]:
    counts = ", ".join(f"{count:,} {shown(name)}" for name, count in report.all_rows.classes.items())
    yield Text(f"{report.name}, after round {report.round}: {report.all_rows.rows:,} rows ({counts})")
    own = OF_PLUGIN if report.metric == "plugin" else TITLES[report.metric]
    yield Text(f"The task's metric is {own}. Brackets: {report.level:.0%} interval.")
    yield _metrics("site", (*report.sites, report.all_rows))
    if report.subgroups:
        yield _metrics("subgroup", report.subgroups)
    if report.importance and report.importance_by is not None:
        yield Text(f"Loss of {TITLES[report.importance_by]} with a column's values dealt to other rows, ten times:")
        yield _importance(report.importance)
    for curve in report.calibration:
        yield Text(f"Calibration of {shown(curve.class_name)}: mean error {curve.error:.3f}")
        yield _curve(curve)


def _metrics(by: str, groups: Sequence[Group]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(by, overflow="fold")
    for title in ("rows", *(TITLES[metric] for metric in groups[0].measures)):
        table.add_column(title, justify="right")
    for group in groups:
        table.add_row(*_cells(group))
    return table


def _importance(found: Sequence[Importance]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("column", overflow="fold")
    for title in ("mean", "least", "most"):
        table.add_column(title, justify="right")
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
