"""Options of the simulation. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

RESULT = Path("bench/results/economics.json")
PLOTS = Path("docs")


class Scenario(StrEnum):
    """Behaviour of the dishonest players (docs/economics.md)."""

    HONEST = "honest"
    LAZY = "lazy"
    FORECAST = "forecast"
    COPYING = "copying"
    COIN = "coin"
    DODGING = "dodging"
    COMPARING = "comparing"
    SILENT = "silent"
    COLLUDING = "colluding"
    OPPORTUNIST = "opportunist"
    SHADING = "shading"
    FRAMING = "framing"
    OPERATOR = "operator"
    SYBIL = "sybil"
    FREE_RIDER = "free-rider"
    FREE_RIDER_NOISE = "free-rider-noise"
    POISON_SIGN = "poison-sign"
    POISON_LABELS = "poison-labels"
    AGGREGATOR = "aggregator"


@dataclass(frozen=True)
class EconomicsOptions:
    """`rounds`: of each scenario. `output`: the result's file, JSON. `plots`: folder of pictures; None draws none."""

    rounds: int = 1_000
    seed: int = 0
    scenarios: tuple[Scenario, ...] = tuple(Scenario)
    output: Path = RESULT
    plots: Path | None = None
