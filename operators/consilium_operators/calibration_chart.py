"""An evaluation as a picture: calibration, and the importance of columns. It loads matplotlib, an optional package."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from consilium_chain.evaluations.measures import Calibration, Importance
from matplotlib import rc_context
from matplotlib.figure import Figure

MOST_NAMED = 10  # curves: more do not fit into a legend
MOST_COLUMNS = 20
DOTS_PER_INCH = 150
PLAIN = {"text.parse_math": False, "svg.hashsalt": "consilium"}  # names are text, and the same picture the same file


def draw(
    curves: Sequence[Calibration], importance: Sequence[Importance] = (), metric: str = "", form: str = "png"
) -> bytes:
    """A picture's bytes. `metric`: that of the importance, for people. `form`: png or svg."""
    with rc_context(PLAIN):
        return _drawn(curves, importance, metric, form)


def _drawn(curves: Sequence[Calibration], importance: Sequence[Importance], metric: str, form: str) -> bytes:
    panels = [draw_panel for draw_panel, has_content in ((_curves, curves), (_columns, importance)) if has_content]
    figure = Figure(figsize=(5 * max(1, len(panels)), 5), layout="constrained")
    axes = figure.subplots(1, max(1, len(panels)), squeeze=False)[0]
    for panel, one in zip(panels, axes, strict=False):
        panel(one, curves, importance, metric)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=form, dpi=DOTS_PER_INCH, metadata={"Date": None} if form == "svg" else None)
    return buffer.getvalue()


def _curves(axes: Any, curves: Sequence[Calibration], importance: Sequence[Importance], metric: str) -> None:
    axes.plot([0, 1], [0, 1], color="#8a8f98", linestyle="--", linewidth=1)
    for curve in curves:
        predicted, observed = [one.predicted for one in curve.bins], [one.observed for one in curve.bins]
        # At least 0: rounding may put a share outside its interval.
        below = [max(0.0, one.observed - one.low) for one in curve.bins]
        above = [max(0.0, one.high - one.observed) for one in curve.bins]
        axes.errorbar(predicted, observed, (below, above), marker="o", linewidth=1.5, capsize=3, label=curve.class_name)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="predicted probability", ylabel="observed share, with 95 % interval")
    axes.set_aspect("equal")
    if len(curves) <= MOST_NAMED:
        axes.legend(frameon=False, loc="upper left")


def _columns(axes: Any, curves: Sequence[Calibration], importance: Sequence[Importance], metric: str) -> None:
    shown = importance[:MOST_COLUMNS][::-1]
    positions = range(len(shown))
    axes.barh(positions, [one.mean for one in shown], color="#2f6f9f")
    axes.hlines(positions, [one.low for one in shown], [one.high for one in shown], color="#20242a", linewidth=1)
    axes.set_yticks(positions, [one.column for one in shown])
    axes.axvline(0, color="#8a8f98", linewidth=1)
    axes.set_xlabel(f"loss of {metric} with the column dealt to other rows")
    axes.spines[["top", "right"]].set_visible(False)
