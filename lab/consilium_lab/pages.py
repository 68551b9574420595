"""Parts of reports: one HTML file that contains its pictures and loads nothing."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Line = tuple[float, str, str, str]  # a reference's value, name, colour and dashes
INK, MUTED, GRID = "#1f2933", "#6b7785", "#e3e8ee"
BLUE, GREEN, ORANGE, RED = "#2463b0", "#2e8b6f", "#c9782b", "#b3342f"
LABEL_INCHES = 0.15  # height of a line's name beside a picture
AXES_SHARE = 0.77  # of a figure's height, as matplotlib leaves it

STYLE = """
body{font:16px/1.5 system-ui,sans-serif;color:#1f2933;background:#fff;max-width:1080px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin:0}h2{font-size:1.15rem;margin:2.2rem 0 .6rem}
p.sub{color:#6b7785;margin:.2rem 0 1.2rem}
.tiles{display:flex;flex-wrap:wrap;gap:.8rem}
.tile{border:1px solid #e3e8ee;border-radius:10px;padding:.7rem 1rem;flex:1;min-width:8rem}
.tile b{display:block;font-size:1.5rem}.tile span{color:#6b7785;font-size:.85rem}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid #e3e8ee}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.bad{color:#b3342f}.good{color:#2e8b6f}.note{background:#fff6e5;border-radius:8px;padding:.7rem 1rem}
pre{background:#f4f6f8;border-radius:8px;padding:.7rem 1rem}
svg{width:100%;height:auto}.wrap{overflow-x:auto}
"""


def write_document(path: Path, title: str, parts: Sequence[str]) -> None:
    """`parts`: HTML. `title`: text without markup."""
    path.write_text(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{title}</title><style>{STYLE}</style><body>{''.join(parts)}</body></html>",
        encoding="utf-8",
    )


def tiles_of(tiles: Sequence[tuple[str, str]]) -> str:
    """Figures, each with its words."""
    return (
        "<div class=tiles>" + "".join(f"<div class=tile><b>{b}</b><span>{s}</span></div>" for b, s in tiles) + "</div>"
    )


def percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def figure_of(width: float, height: float) -> tuple[Any, Any]:
    """A figure and its axes. `width`, `height`: inches."""
    from matplotlib.figure import Figure

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            """For notebooks, whatever their backend."""
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=90, bbox_inches="tight", metadata={"Software": None})
            return buffer.getvalue()

    figure = Picture(figsize=(width, height))
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GRID)
    axes.tick_params(colors=MUTED, length=0)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    return figure, axes


def curve_of(ticks: Sequence[str], values: Sequence[float | None], metric: str, lines: Sequence[Line]) -> Any:
    """A figure of a metric (a share of the rows) at each tick, with reference lines. Every line's end has its value.

    `values`: one for each tick; the curve leaves out a None.
    """
    figure, axes = figure_of(9, 3.8)
    points = [(x, y) for x, y in enumerate(values) if y is not None]
    ends = [(value, f"{name} {percent(value)}", colour) for value, name, colour, _ in lines]
    if points:
        axes.plot(*zip(*points, strict=True), color=BLUE, linewidth=2.5, marker="o", clip_on=False, zorder=3)
        ends.insert(0, (points[-1][1], f"together {percent(points[-1][1])}", BLUE))
    for value, _, colour, dashes in lines:
        axes.axhline(value, color=colour, linestyle=dashes, linewidth=1.6)
    axes.set_xlim(0, max(len(ticks) - 1, 1))
    axes.set_xticks(range(len(ticks)), ticks, fontsize=9)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    share = "% of held-out rows" if metric == "accuracy" else "%, on held-out rows"
    axes.set_ylabel(f"{metric}, {share}", color=MUTED)
    label_ends(axes, ends)
    return figure


def label_ends(axes: Any, ends: list[tuple[float, str, str]]) -> None:
    """Writes each line's name right of its end (value, name, colour). A thin line leads to a name that was moved."""
    low, high = axes.get_ylim()
    gap = (high - low) * LABEL_INCHES / (AXES_SHARE * axes.figure.get_figheight())
    ends = sorted(reversed(ends), key=lambda end: end[0])  # the first of equals stands on top
    heights = spread([value for value, _, _ in ends], gap, low + gap / 2, high - gap / 2)
    for height, (value, label, colour) in zip(heights, ends, strict=True):
        axes.annotate(
            f" {label}", (1, value), (1.05, height), xycoords=axes.get_yaxis_transform(), color=colour, fontsize=8.5,
            va="center", arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "relpos": (0, 0.5)},
        )  # fmt: skip


def spread(values: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions in [low, high] for ascending values: in their order, at least `gap` apart, as near to them as possible.

    Least squares by pooling adjacent violators (Barlow et al. 1972). [low, high] must have room for all.
    """
    pools: list[tuple[float, int]] = []  # mean of neighbours that touch, without their gaps; their number
    for index, value in enumerate(values):
        mean, count = value - index * gap, 1
        while pools and pools[-1][0] > mean:
            other, others = pools.pop()
            mean, count = (mean * count + other * others) / (count + others), count + others
        pools.append((mean, count))
    highest = high - (len(values) - 1) * gap
    heights = [min(max(mean, low), highest) for mean, count in pools for _ in range(count)]
    return [height + index * gap for index, height in enumerate(heights)]


def svg(figure: Any) -> str:
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "consilium"}):
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    text = buffer.getvalue()
    return f"<div class=wrap>{text[text.index('<svg') :]}</div>"


def table_of(head: str, rows: Sequence[str]) -> str:
    """`head`, `rows`: cells in HTML."""
    body = "".join(f"<tr>{row}" for row in rows)
    return f"<div class=wrap><table><tr>{head}{body}</table></div>"
