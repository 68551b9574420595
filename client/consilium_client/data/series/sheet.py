"""A picture of a series' variables over time, for their owner's eyes: quartiles, and how many stays are measured."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
from consilium_core.private_files import write_private_file
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from consilium_client.data.series.kind import SeriesProfile

WIDTH, HEIGHT, SHARES, GAP = 300, 110, 26, 18  # pixels of a panel, of its bars, and around it
ACROSS = 3
WHITE, BLACK, BAND, LINE, BARS = "#ffffff", "#202020", "#c9ddec", "#2f6f9f", "#9a9a9a"
MOST = 60  # variables


def write_sheet(path: Path, profile: SeriesProfile) -> None:
    """A PNG with a panel for each variable, readable by its owner alone. Raises OSError.

    The line is the median of the stays measured in a step, the band reaches from quartile to quartile. Bars are the
    share of all stays that is measured in a step.
    """
    variables = profile.variables[:MOST]
    down = math.ceil(len(variables) / ACROSS)
    size = ACROSS * (WIDTH + GAP) + GAP, down * (HEIGHT + 2 * GAP) + GAP
    sheet = Image.new("RGB", size, WHITE)
    draw = ImageDraw.Draw(sheet)
    for at, one in enumerate(variables):
        left, top = GAP + at % ACROSS * (WIDTH + GAP), 2 * GAP + at // ACROSS * (HEIGHT + 2 * GAP)
        quartiles = profile.quartiles[:, at]
        title = one.feature.name if one.measurements == 0 else f"{one.feature.name}: {_ends(quartiles)}"
        draw.text((left, top - 14), f"{title}; measured in {profile.shares[at].mean():.0%}", fill=BLACK)
        draw.rectangle((left, top, left + WIDTH, top + HEIGHT), outline=BARS)
        _bars(draw, left, top + HEIGHT, profile.shares[at])
        _quartiles(draw, left, top, quartiles)
    sheet.save(stream := io.BytesIO(), "PNG")
    write_private_file(path, stream.getvalue())


def _ends(quartiles: NDArray[np.float64]) -> str:
    return f"{np.nanmin(quartiles):.4g} to {np.nanmax(quartiles):.4g}"


def _bars(draw: ImageDraw.ImageDraw, left: int, bottom: int, shares: NDArray[np.float64]) -> None:
    wide = WIDTH / len(shares)
    for step, share in enumerate(shares.tolist()):
        x = left + step * wide
        draw.rectangle((x, bottom - share * SHARES, x + max(wide - 1, 0), bottom), fill=BARS)


def _quartiles(draw: ImageDraw.ImageDraw, left: int, top: int, quartiles: NDArray[np.float64]) -> None:
    """(3, steps), from the least quartile at the bottom to the largest at the top."""
    steps = np.flatnonzero(~np.isnan(quartiles[1]))
    if not len(steps):
        return
    low, high = np.nanmin(quartiles), np.nanmax(quartiles)
    x = left + (steps + 0.5) * WIDTH / quartiles.shape[1]
    y = top + 4 + (high - quartiles[:, steps]) / (high - low or 1.0) * (HEIGHT - SHARES - 8)
    lower, middle, upper = ([*map(tuple, np.column_stack([x, one]).tolist())] for one in y)
    if len(steps) > 1:
        draw.polygon([*lower, *upper[::-1]], fill=BAND)
        draw.line(middle, fill=LINE, width=2)
    else:
        draw.line([lower[0], upper[0]], fill=LINE, width=2)
