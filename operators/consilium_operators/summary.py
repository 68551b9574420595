"""The summary that a task's round 0 counted over all hospitals: a table of columns, and their histograms."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND
from consilium_chain.rounds.shards import ShardSums
from consilium_chain.tasks.summary_counts import QUARTILES, Summary, SummaryColumn, summary_from
from consilium_client.replay import PublicRecord
from consilium_client.task import load_task
from consilium_verify.verification import verify_round

from consilium_operators.errors import OperatorError

if TYPE_CHECKING:
    import pandas as pd

PANELS = 4  # of a picture, beside each other
DOTS_PER_INCH = 120
EVEN = 1e-6  # of a range: so little do equal ones differ


@dataclass(frozen=True, kw_only=True)
class TaskSummary(Summary):
    task: int
    name: str

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
    """The summary over all shards of a task's model, with all checks of their rounds 0.

    Raises OperatorError (SummaryMissing, SummaryNotVerified), RecordIncomplete, ClientError (StatisticsOutOfRange), and
    as `load_task` does.
    """
    joined = load_task(ledger, store, number)
    spec = joined.spec
    if spec.summary is None:
        raise OperatorError("SummaryMissing", task=number)
    record = PublicRecord(ledger, store, joined)
    for shard in ShardSums(ledger, store, number, spec).states(STATISTICS_ROUND):
        report = verify_round(ledger, store, shard, STATISTICS_ROUND, record if shard == number else None)
        if report.failed:
            raise OperatorError("SummaryNotVerified", task=shard, failed=", ".join(report.failed))
    counts, hospitals = record.summary()
    found = summary_from(counts, hospitals, spec)
    return TaskSummary(**vars(found), task=number, name=spec.name)


def _draw(panel: Any, column: SummaryColumn) -> None:
    heights = [max(count, 0) for _, count in column.counts]
    if column.width and np.ptp(np.diff(column.edges)) < EVEN * column.width:
        panel.stairs(heights, column.edges, fill=True, color="#2f6f9f")
    else:
        panel.bar(range(len(heights)), heights, color="#2f6f9f")
        panel.set_xticks(range(len(heights)), [name for name, _ in column.counts], rotation=30, ha="right", fontsize=7)
    missing = f", {column.missing:,} missing" if column.missing else ""
    panel.set_title(f"{column.name}{missing}", fontsize=9)
    panel.tick_params(labelsize=7)
    panel.spines[["top", "right"]].set_visible(False)
