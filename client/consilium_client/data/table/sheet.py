"""A sheet of histograms of a table's columns, for their owner's eyes."""

from __future__ import annotations

import io
import math
from pathlib import Path

from consilium_core.private_files import write_private_file
from consilium_core.visible_text import shown
from PIL import Image, ImageDraw

from consilium_client.data.table.kind import ColumnProfile, TableProfile

WIDTH, HEIGHT, MARGIN, LINE = 240, 150, 12, 14  # pixels, of a panel
PAPER, INK, BAR = "white", "black", (60, 100, 170)
MOST_LETTERS = 34


def write_histograms(path: Path, profile: TableProfile) -> None:
    """A PNG with a panel for each column, readable by its owner alone. Raises OSError."""
    across = math.ceil(math.sqrt(len(profile.columns)))
    sheet = Image.new("RGB", (across * WIDTH, -(-len(profile.columns) // across) * HEIGHT), PAPER)
    draw = ImageDraw.Draw(sheet)
    for at, column in enumerate(profile.columns):
        _panel(draw, at % across * WIDTH + MARGIN, at // across * HEIGHT + MARGIN, column)
    sheet.save(stream := io.BytesIO(), "PNG")
    write_private_file(path, stream.getvalue())


def _panel(draw: ImageDraw.ImageDraw, left: int, top: int, column: ColumnProfile) -> None:
    """Its name, bars over the task's range or codes, and that range with the share of missing values."""
    width, base = WIDTH - 2 * MARGIN, top + HEIGHT - 2 * MARGIN - LINE
    draw.text((left, top), shown(column.feature.name)[:MOST_LETTERS], INK)
    step, most = width / len(column.histogram), max(*column.histogram, 1)
    for at, count in enumerate(column.histogram):
        height = round((base - top - LINE - 4) * count / most)
        if count:
            draw.rectangle((left + at * step, base - max(height, 1), left + (at + 1) * step - 2, base), BAR)
    draw.line((left, base, left + width, base), INK)
    text = f"{shown(column.range_in_words)}; {column.missing / column.rows:.0%} missing"
    draw.text((left, base + 2), text[: MOST_LETTERS + 4], INK)
