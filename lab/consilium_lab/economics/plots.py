"""The result's pictures, SVG. The same rows give the same file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from consilium_lab.economics.findings import clique_curve, rate_curve
from consilium_lab.economics.operators import REJECTIONS
from consilium_lab.economics.options import Scenario
from consilium_lab.economics.rules import RECOMMENDED
from consilium_lab.economics.scenarios import (
    CLIQUES,
    COMMITTEES,
    CURVES,
    HOSPITALS,
    MONEY,
    OPERATOR_SHARES,
    VOTES,
    OperatorRow,
    Row,
)

HONEST, DEVIANT, IDLE = "#2f6f9f", "#b1588c", "#8a8f98"
WAYS = ("#d9a441", "#b1588c", "#1f9e89", "#2f6f9f", "#c0392b")  # of the scenarios in CURVES
SHADES = ("#d9a441", "#b1588c", "#1f9e89", "#2f6f9f", "#20344a")
RULES = ("#c0392b", "#d9a441", "#2f6f9f", "#1f9e89")  # for unpaid money
SHARE = 0.2  # of deviants in the bar chart


def draw_plots(rows: Sequence[Row], crossings: Sequence[dict[str, Any]], folder: Path) -> list[Path]:
    """Draws the pictures that the rows allow; returns the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, drawn in (
        ("economics-payoffs", payoffs(rows)),
        ("economics-decoys", decoys(rows, crossings)),
        ("economics-collusion", collusion(rows)),
        ("economics-rejections", rejections(rows)),
    ):
        if drawn is not None:
            path = folder / f"{name}.svg"
            drawn.savefig(path, metadata={"Date": None})
            pyplot.close(drawn)
            written.append(path)
    return written


def payoffs(rows: Sequence[Row]) -> Figure | None:
    """Incomes of honest and dishonest players: two panels for voters, one for cliques and hospitals."""
    panels = [
        ("voters, demo's terms without decoys", _bars(rows, VOTES, "without decoys"), (-9, 12)),
        ("voters, demo's terms", _bars(rows, VOTES, "demo"), (-30, 14)),
        (
            "cliques and hospitals, recommended terms",
            _bars(rows, (*CLIQUES, Scenario.FRAMING, *HOSPITALS), "recommended"),
            (-110, 90),
        ),
    ]
    if not all(bars for _, bars, _ in panels):
        return None
    drawn, axes = _figure(12, 4.0, 3)
    for axis, (title, bars, limits) in zip(axes, panels, strict=True):
        for index, row in enumerate(bars):
            axis.barh(index - 0.28, row.if_honest, 0.22, color=HONEST, label="deviants, had they been honest")
            axis.barh(index, row.deviant_mean, 0.3, color=DEVIANT, label="deviants")
            axis.barh(index + 0.28, row.honest_mean, 0.22, color=IDLE, label="the honest others, meanwhile")
            shown = max(row.deviant_mean, limits[0] * 0.98)  # if the bar leaves the panel, its number stays inside
            side, space = ("left", " ") if shown >= 0 or row.deviant_mean < limits[0] else ("right", "")
            colour = "white" if row.deviant_mean < limits[0] else DEVIANT
            text = f"{space}{row.deviant_mean:.1f}{' ' if side == 'right' else ''}"
            axis.text(shown, index, text, ha=side, va="center", fontsize=7, color=colour, weight="bold")
        axis.set_xlim(*limits)
        axis.set_yticks(range(len(bars)), [row.scenario for row in bars])
        axis.invert_yaxis()
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set_title(title, loc="left", fontsize=10)
        axis.set_xlabel("tokens per round and player")
    handles, labels = axes[0].get_legend_handles_labels()
    drawn.legend(handles[:3], labels[:3], frameon=False, ncols=3, loc="outside lower center")
    drawn.suptitle(f"Does honesty pay? {SHARE:.0%} of all deviate", x=0.01, ha="left")
    return drawn


def _bars(rows: Sequence[Row], scenarios: Collection[Scenario], terms: str) -> list[Row]:
    """One row per scenario: the share of the bar chart, whole tasks, the usual cohorts."""
    found = {}
    for row in rows:
        usual = (row.share, row.late, row.cohort_size) == (SHARE, False, RECOMMENDED.cohort_size)
        if row.scenario in scenarios and row.terms == terms and usual:
            found[row.scenario] = row
    return list(found.values())


def decoys(rows: Sequence[Row], crossings: Sequence[dict[str, Any]]) -> Figure | None:
    """Payoff without evaluation by the share of rounds with decoys, and by the share of lazy voters."""
    if not all(rate_curve(rows, scenario, False) for scenario in CURVES):
        return None
    drawn, axes = _figure(12, 4.2, 3)
    for axis, late in zip(axes[:2], (False, True), strict=True):
        honest = rate_curve(rows, Scenario.FORECAST, late)
        axis.plot([r.decoy_rate for r in honest], [r.if_honest for r in honest], color="black", label="honest")
        for scenario, colour in zip(CURVES, WAYS, strict=True):
            curve = rate_curve(rows, scenario, late)
            axis.plot([r.decoy_rate for r in curve], [r.deviant_mean for r in curve], color=colour, label=scenario)
            _mark(axis, next(c for c in crossings if (c["scenario"], c["late"]) == (scenario, late)), colour)
        axis.set(xlabel="share of rounds with decoys", xscale="log", xlim=(0.01, 1), ylim=(-25, 14))
        axis.set_xticks((0.01, 0.03, 0.1, 0.3, 1), ("0.01", "0.03", "0.1", "0.3", "1"))
        title = "a task that has converged" if late else "tasks of five rounds"
        axis.set_title(f"{title}; a tenth do not look", loc="left", fontsize=10)
    _lazy_crowd(axes[2], [row for row in rows if (row.scenario, row.terms) == (Scenario.FORECAST, "demo")])
    for axis in axes:
        axis.axhline(0, color=IDLE, linewidth=0.8)
    axes[0].set_ylabel("tokens per round and voter")
    axes[0].legend(frameon=False, fontsize=8, loc="lower left")
    title = "Decoys make not looking lose (demo's terms; dotted: where it should meet honesty, by hand)"
    drawn.suptitle(title, x=0.01, ha="left")
    return drawn


def _mark(axis: Axes, crossing: dict[str, Any], colour: str) -> None:
    """Marks the crossing by formula."""
    by_hand = crossing["closed_form"]
    if by_hand:
        axis.axvline(by_hand, color=colour, linestyle=":", linewidth=1.2)


def _lazy_crowd(axis: Axes, rows: Sequence[Row]) -> None:
    curve = sorted((row for row in rows if not row.late and row.decoy_rate == 1), key=lambda row: row.share)
    shares = [row.share * 100 for row in curve]
    axis.plot(shares, [row.honest_mean for row in curve], color="black", label="honest")
    axis.plot(shares, [row.deviant_mean for row in curve], color=WAYS[1], label="forecast")
    axis.set(xlabel="share of voters that forecast, %", ylim=(-25, 14))
    axis.set_title("decoys in all rounds; many do not look", loc="left", fontsize=10)
    axis.legend(frameon=False, fontsize=8, loc="upper right")


def collusion(rows: Sequence[Row]) -> Figure | None:
    """A clique's gain over honesty by its share, a line per committee; dotted if one reveal is enough."""
    if not all(clique_curve(rows, scenario, COMMITTEES[0], 1) for scenario in CLIQUES):
        return None
    drawn, axes = _figure(12, 4.2, 3)
    titles = ("loud in every round", "loud only where it holds the median", "bent within the tolerance")
    for axis, title, scenario in zip(axes, titles, CLIQUES, strict=True):
        for seats, colour in zip(COMMITTEES, SHADES, strict=True):
            curve = clique_curve(rows, scenario, seats, seats // 2 + 1)
            lone = clique_curve(rows, scenario, seats, 1)
            shares, errors = [r.share * 100 for r in curve], [2 * r.gain_se for r in curve]
            gains = [r.gain for r in curve]
            axis.errorbar(shares, gains, errors, color=colour, linewidth=1.4, elinewidth=0.7, label=f"{seats} seats")
            axis.plot(shares, [r.gain for r in lone], color=colour, linewidth=0.9, linestyle=":")
        axis.axhline(0, color="black", linewidth=0.8)
        axis.set_xlabel("clique's share of stake and hospitals, %")
        axis.set_title(title, loc="left", fontsize=10)
    axes[0].set_ylabel("gain over honesty, tokens per round and party")
    axes[0].legend(frameon=False, fontsize=8)
    drawn.suptitle(
        "Where honesty stops paying: above zero, collusion gains"
        " (solid: most seats must reveal, dotted: one reveal is enough; bars: two standard errors)",
        x=0.01, ha="left",
    )  # fmt: skip
    return drawn


def rejections(rows: Sequence[Row]) -> Figure | None:
    """The operator's gain by its best rejection, by the share that it owns, a line per rule for unpaid money."""
    found = [row for row in rows if isinstance(row, OperatorRow) and row.trick in REJECTIONS]
    if not found:
        return None
    drawn, axes = _figure(12, 4.2, 3)
    titles = {
        "voters": "its own voters",
        "voters, aggregator": "its own voters and aggregator",
        "voters, hospitals": "its own voters, and the same share of hospitals",
    }
    for axis, (party, title) in zip(axes, titles.items(), strict=True):
        for money, colour in zip(MONEY, RULES, strict=True):
            for terms, style in (("demo", "-"), ("recommended", ":")):
                curve = [row for row in found if (row.party, row.money, row.terms) == (party, money, terms)]
                shares, gains = [row.share * 100 for row in curve], [row.gain for row in curve]
                label = f"unpaid: {money}" if style == "-" else None
                axis.plot(shares, gains, style, color=colour, marker="o", markersize=3, label=label)
        axis.axhline(0, color="black", linewidth=0.8)
        axis.set_yscale("symlog", linthresh=1)
        axis.set(xlabel="share of the voters, %", ylim=(-0.5, 2_000))
        axis.set_yticks((0, 1, 10, 100, 1000), ("0", "1", "10", "100", "1,000"))
        axis.set_xticks([share * 100 for share in OPERATOR_SHARES])
        axis.set_title(title, loc="left", fontsize=10)
    axes[0].set_ylabel("operator's gain, tokens per round of 2,000")
    handles, labels = axes[0].get_legend_handles_labels()
    drawn.legend(handles, labels, frameon=False, ncols=len(labels), loc="outside lower center")
    drawn.suptitle(
        "What the operator gains by its best rejection (solid: demo's terms, dotted: recommended)", x=0.01, ha="left"
    )
    return drawn


def _figure(width: float, height: float, columns: int) -> tuple[Figure, list[Axes]]:
    pyplot.rcParams.update({"font.size": 9, "svg.fonttype": "path", "svg.hashsalt": "consilium"})
    drawn, axes = pyplot.subplots(1, columns, figsize=(width, height), squeeze=False, layout="constrained")
    for axis in axes[0]:
        axis.spines[["top", "right"]].set_visible(False)
    return drawn, list(axes[0])
