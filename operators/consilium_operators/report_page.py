"""An evaluation as one page for clinicians: the model card's section as HTML, without scripts or other files. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from consilium_chain.evaluations.report import EvaluationReport
from consilium_chain.tasks.questions import TITLES

from consilium_operators.card_evaluation import section
from consilium_operators.card_text import line

PICTURE = "picture"
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
STYLE = """
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere }
.table { overflow-x: auto; margin: 1rem 0 }
table { border-collapse: collapse; overflow-wrap: normal }
th, td { padding: .3rem .8rem; border-bottom: 1px solid #8888; text-align: left; font-variant-numeric: tabular-nums }
tbody th { min-width: 8rem; font-weight: normal; overflow-wrap: anywhere }
img { max-width: 100%; background: #fff }
.warning { border-left: .3rem solid #c60; padding-left: .7rem }
"""


def page(report: EvaluationReport, svg: bytes | None) -> bytes:
    """`svg`: the picture, shown as an image, in which no script runs."""
    name = escape(line(report.name))
    body = "\n".join([*_head(report), *_blocks(list(section(report, PICTURE if svg else None)), svg or b"")])
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width">
<title>{name}: what the model is worth</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1><bdi>{name}</bdi>: what the model is worth</h1>
{body}
</main>
</body>
</html>
""".encode()


def _head(report: EvaluationReport) -> Iterator[str]:
    metric = "a plug-in's metric" if report.metric == "plugin" else TITLES[report.metric]
    yield f"<p>Task {report.task}, the model after round {report.round}. The task judges by {escape(metric)}.</p>"
    if not report.verified:
        yield '<p class="warning">A check of the public record failed for this model, or was not made.</p>'
    yield f"<p>SHA-256 of its parameters: <code>{escape(report.sha256)}</code></p>"


def _blocks(parts: Sequence[str], svg: bytes) -> Iterator[str]:
    """A paragraph, a table or the picture for each block of the section."""
    for is_table, lines in groupby(parts, lambda part: part.startswith("|")):
        if is_table:
            yield _table([row[1:-1].split(" | ") for row in lines if not row.startswith("|---")])
            continue
        for text in lines:
            shown = re.fullmatch(r"!\[(.*)\]\(picture\)", text)
            yield f"<p>{_text(text)}</p>" if shown is None else _image(shown[1], svg)


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *rest = rows
    first = "".join(f'<th scope="col">{_text(cell)}</th>' for cell in head)
    body = "\n".join(f'<tr><th scope="row">{_text(row[0])}</th>{_cells(row[1:])}</tr>' for row in rest)
    table = f"<table>\n<thead><tr>{first}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    return f'<div class="table" tabindex="0">\n{table}\n</div>'


def _cells(cells: Sequence[str]) -> str:
    return "".join(f"<td>{_text(cell)}</td>" for cell in cells)


def _text(text: str) -> str:
    """Names of strangers cannot turn the text around them."""
    return f"<bdi>{escape(text.strip().replace('`', ''))}</bdi>"


def _image(words: str, svg: bytes) -> str:
    return f'<img alt="{escape(words)}" src="data:image/svg+xml;base64,{base64.b64encode(svg).decode()}">'
