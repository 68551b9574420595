"""A thousand hospitals through one full round, on this machine: bench/e2e/network.py, which says what is simulated.

A task takes at most 256 hospitals (a bit map of one word on chain), so that a thousand are four shards of 250 at the
same time, which train one model: the sums of all four make the next base.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.e2e import network, network_drawing
from bench.e2e.network_setting import Size

THOUSAND = Size(tasks=4, hospitals=1_000, voters=32, delegators=0, cohorts=8, seats=8, is_one_model=True)
QUICK = Size(tasks=2, hospitals=12, voters=2, delegators=0, cohorts=2, seats=1, is_one_model=True)


def measure(quick: bool) -> dict[str, Any]:
    return {"what": __doc__, **network.measure_size(QUICK if quick else THOUSAND)}


def plot(result: dict[str, Any], folder: Path) -> None:
    network_drawing.draw(result, folder, "thousand")


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return network_drawing.table(result)
