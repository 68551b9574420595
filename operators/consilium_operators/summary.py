"""The summary that a task's round 0 counted over all hospitals: a table of columns, and their histograms."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND
from consilium_client.data.summary import Column, columns_of
from consilium_client.replay import PublicRecord
from consilium_client.task import load_task
from consilium_verify.verification import verify_round

from consilium_operators.errors import OperatorError

if TYPE_CHECKING:
    import pandas as pd

QUARTILES = (0.25, 0.5, 0.75)
PANELS = 4  # of a picture, beside each other
DOTS_PER_INCH = 120


@dataclass(frozen=True)
class SummaryColumn:
    """`counts`: rows by range, code or answer; noise can make them negative. `values`: their sum; None if a row can be
    in several. `missing`: None if no value can be. `mean` and `quartiles` are of a histogram alone, with values spread
    evenly in each range: a quartile is at most `width` away, the widest range, and the mean half of it.
    """

    name: str
    is_answer: bool
    counts: tuple[tuple[str, int], ...]
    values: int | None
    missing: int | None
    edges: tuple[float, ...]
    mean: float | None
    quartiles: tuple[float, ...] | None
    width: float | None


@dataclass(frozen=True)
class TaskSummary:
    """`hospitals`: the number of those that gave counts. `deviation`: standard deviation of the noise in each count
    over all hospitals, in rows; 0 without noise.
    """

    task: int
    name: str
    hospitals: int
    rows: int
    deviation: float
    columns: tuple[SummaryColumn, ...]

    @property
    def table(self) -> pd.DataFrame:
        """A row for each column: values, missing values, mean and quartiles."""
        import pandas as pd

        nothing = (None,) * len(QUARTILES)
        rows = [(one.name, one.values, one.missing, one.mean, *(one.quartiles or nothing))
                for one in self.columns]  # fmt: skip
        return pd.DataFrame(rows, columns=["column", "values", "missing", "mean", "q1", "median", "q3"])

    def picture(self) -> bytes:
        """A PNG file's bytes: a histogram for each column."""
        from matplotlib.figure import Figure

        deep = math.ceil(len(self.columns) / PANELS)
        figure = Figure(figsize=(3.2 * PANELS, 2.4 * deep), layout="constrained")
        panels = figure.subplots(deep, PANELS, squeeze=False).flat
        for panel, column in zip(panels, self.columns, strict=False):
            _draw(panel, column)
        for panel in list(panels)[len(self.columns) :]:
            panel.set_axis_off()
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH)
        return buffer.getvalue()


def summarised(ledger: Ledger, store: ArtifactStore, number: int) -> TaskSummary:
    """A task's summary, with all checks of its round 0.

    Raises OperatorError (SummaryMissing, SummaryNotVerified), RecordIncomplete, ClientError (StatisticsOutOfRange), and
    as `load_task` does.
    """
    joined = load_task(ledger, store, number)
    spec = joined.spec
    if spec.summary is None:
        raise OperatorError("SummaryMissing", task=number)
    record = PublicRecord(ledger, store, joined)
    report = verify_round(ledger, store, number, STATISTICS_ROUND, record)
    if report.failed:
        raise OperatorError("SummaryNotVerified", task=number, failed=", ".join(report.failed))
    rows, *columns = columns_of(record.summary(), spec)
    hospitals = report.subject.survivors
    deviation = math.sqrt(hospitals * spec.summary_variance)
    return TaskSummary(
        number, spec.name, hospitals, int(rows.counts[0]), deviation, tuple(_column(one) for one in columns)
    )


def _column(found: Column) -> SummaryColumn:
    part, quartiles = found.part, [found.quantile(share) for share in QUARTILES]
    counts = tuple(zip(part.counts, map(int, found.counts), strict=True))
    missing = None
    if part.has_missing:
        *known, (_, missing) = counts
        counts = tuple(known)
    placed = tuple(one for one in quartiles if one is not None)
    return SummaryColumn(
        part.column, part.answers, counts, sum(count for _, count in counts) if part.changed == 1 else None, missing,
        part.edges, found.mean, placed or None, max((b - a for a, b in pairwise(part.edges)), default=None),
    )  # fmt: skip


def _draw(panel: Any, column: SummaryColumn) -> None:
    heights = [max(count, 0) for _, count in column.counts]
    if column.edges:
        panel.stairs(heights, column.edges, fill=True, color="#2f6f9f")
    else:
        panel.bar(range(len(heights)), heights, color="#2f6f9f")
        panel.set_xticks(range(len(heights)), [name for name, _ in column.counts], rotation=30, ha="right", fontsize=7)
    missing = f", {column.missing:,} missing" if column.missing else ""
    panel.set_title(f"{column.name}{missing}", fontsize=9)
    panel.tick_params(labelsize=7)
    panel.spines[["top", "right"]].set_visible(False)
