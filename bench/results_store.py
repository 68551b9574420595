"""What all measurements share: where results go, what they say about the machine, how their pictures look."""

from __future__ import annotations

import datetime
import os
import platform
import sys
import textwrap
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, median
from typing import Any

import matplotlib
from consilium_lab.result_files import laid_out

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

LIBRARIES = ("ckzg", "numpy", "torch", "opacus", "flwr", "web3", "py-arkworks-bls12381", "py-ecc", "cryptography")
LONGEST_TEXT = 160  # characters
COLOURS = {
    "plain": "#8a8f98",
    "joining": "#d9d9d9",
    "forming": "#c9b458",
    "committing": "#2f6f9f",
    "uploading": "#5fa3c7",
    "publishing": "#1f9e89",
    "drawing": "#d9a441",
    "scoring": "#b1588c",
    "revealing": "#d08bb0",
}


class Skipped(Exception):
    """What a measurement needs is not here."""


def say(text: str) -> None:
    """Tells on the terminal what is being measured."""
    sys.stdout.write(f"  {text}\n")
    sys.stdout.flush()


def header(command: str) -> dict[str, Any]:
    """When, where and by what a result was measured. No path and no host name."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": command,
        "machine": {
            "cores": os.cpu_count(),
            "processor": _processor(),
            "system": f"{platform.system()} {platform.machine()}",
            "load_before": round(os.getloadavg()[0], 2),
        },
        "versions": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def spread(values: Sequence[float], digits: int = 4) -> dict[str, float | int]:
    """Median, least and most of repeated measurements, and how many there were."""
    return {
        "median": round(median(values), digits),
        "min": round(min(values), digits),
        "max": round(max(values), digits),
        "count": len(values),
    }


def write_result(folder: Path, name: str, result: Mapping[str, Any]) -> None:
    """Whole or not at all, whatever stops it: some are written again and again while they grow."""
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".{name}.json"
    unfinished.write_text(laid_out({key: _lines(one) if key == "what" else one for key, one in result.items()}) + "\n")
    unfinished.replace(folder / f"{name}.json")


def _lines(text: Any) -> Any:
    """A text that does not fit on a line, as the list of its lines."""
    if not isinstance(text, str) or len(text) <= LONGEST_TEXT:
        return text
    return [line for paragraph in text.split("\n\n") for line in textwrap.wrap(paragraph, LONGEST_TEXT)]


def thinned(values: Sequence[float | None], most: int, digits: int) -> list[float | None]:
    """At most `most` means, each of as many neighbours (the last perhaps of fewer); None where one of them is None."""
    together = max(1, -(-len(values) // most))
    found: list[float | None] = []
    for at in range(0, len(values), together):
        part = [one for one in values[at : at + together] if one is not None]
        whole = len(part) == len(values[at : at + together])
        found.append(round(fmean(part), digits) if whole else None)
    return found


def figure(width: float, height: float, columns: int = 1, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """Axes side by side, row by row, without frames."""
    pyplot.rcParams.update({"font.size": 10, "svg.fonttype": "path", "svg.hashsalt": "consilium"})
    drawn, axes = pyplot.subplots(rows, columns, figsize=(width, height), squeeze=False, layout="constrained")
    for one in axes.flat:
        one.spines[["top", "right"]].set_visible(False)
    return drawn, list(axes.flat)


def write_figure(folder: Path, name: str, drawn: Figure) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    drawn.savefig(folder / f"{name}.svg", metadata={"Date": None})
    pyplot.close(drawn)
