"""The calibration curve as a picture. It loads matplotlib, which is an optional package."""

from __future__ import annotations

import io
from collections.abc import Sequence

from matplotlib.figure import Figure

from consilium_operators.evaluation import Calibration

MOST_NAMED = 10  # curves: more do not fit into a legend
DOTS_PER_INCH = 150


def draw(curves: Sequence[Calibration]) -> bytes:
    """A PNG file's bytes."""
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
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
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH)
    return buffer.getvalue()
