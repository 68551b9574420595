"""Parts of reports: one HTML file that contains its pictures and loads nothing."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

INK, MUTED, GRID = "#1f2933", "#6b7785", "#e3e8ee"
BLUE, GREEN, ORANGE, RED = "#2463b0", "#2e8b6f", "#c9782b", "#b3342f"

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
