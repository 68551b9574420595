"""Requests that a hospital and a voter make to their chain node, by method, for each of them in one task.

A real node of the product follows a real round of a local chain. Its clock runs only while it waits, and a block comes
every so many seconds of that clock; each phase lasts as long as the others. The hospital commits by its own
transactions, and its data and model are tiny: they change no request.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from slow_chain import a_day, hospital_requests, voter_requests

from bench.results_store import COLOURS, figure, say, write_figure

BLOCK_SECONDS, QUICK_BLOCK_SECONDS = (12.0, 2.0), (12.0,)
BLOCKS, QUICK_BLOCKS = 20, 5  # of each phase
# With the rows of the last measurement before nodes read the chain at its pace.
COMMITTED = Path(__file__).parents[1] / "results" / "chain_reads.json"
ROLES = {"hospital": hospital_requests, "voter": voter_requests}


def measure(quick: bool) -> dict[str, Any]:
    rows = []
    for block_seconds in QUICK_BLOCK_SECONDS if quick else BLOCK_SECONDS:
        phase_seconds = block_seconds * (QUICK_BLOCKS if quick else BLOCKS)
        for role, requests in ROLES.items():
            with tempfile.TemporaryDirectory(prefix="bench-") as folder:
                found = requests(Path(folder), block_seconds, phase_seconds)
            by_method = a_day(found, phase_seconds)
            rows.append(
                {
                    "role": role, "block_time": block_seconds, "requests_a_day": sum(by_method.values()),
                    "by_method": by_method, "by_phase": {phase: sum(one.values()) for phase, one in found.items()},
                }
            )  # fmt: skip
            say(f"{role}, blocks every {block_seconds:.0f} s: {rows[-1]['requests_a_day']:,} requests a day")
    return {
        "what": "requests a day to the chain node, of a node in one task, all phases equally long",
        "rows": rows,
        "before": json.loads(COMMITTED.read_text())["before"],
    }


def plot(result: dict[str, Any], folder: Path) -> None:
    rows = result["rows"]
    drawn, (axes,) = figure(8, 0.8 * len(rows) + 1)
    for shown, colour, offset in ((result["before"], "plain", 0.2), (rows, "committing", -0.2)):
        for position, row in enumerate(reversed(shown[: len(rows)])):
            count = row["requests_a_day"]
            axes.barh(position + offset, count, color=COLOURS[colour], height=0.36)
            axes.text(count, position + offset, f"  {count:,}", va="center", fontsize=9)
    axes.set_yticks(range(len(rows)), [f"{row['role']}, {row['block_time']:.0f} s" for row in reversed(rows)])
    axes.margins(x=0.15)
    axes.set_xlabel("requests a day")
    axes.set_title("Requests to the chain node, by role and block time; grey: before", loc="left")
    write_figure(folder, "chain_reads", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (f"{row['role']}, blocks every {row['block_time']:.0f} s", f"{row['requests_a_day']:,} requests a day")
        for row in result["rows"]
    ]
