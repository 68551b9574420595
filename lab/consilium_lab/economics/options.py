"""The simulation's command line, parsed before anything heavy is imported."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

OUTPUT = Path("bench/results/economics.json")
PLOTS = Path("docs")


class Scenario(StrEnum):
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
    rounds: int
    seed: int
    scenarios: tuple[Scenario, ...]
    output: Path
    plots: Path | None


def economics_command(
    rounds: Annotated[int, typer.Option(min=5, max=100_000, help="rounds of each scenario")] = 1_000,
    seed: Annotated[int, typer.Option(min=0, help="seed of all chance; the same seed gives the same file")] = 0,
    scenario: Annotated[
        list[Scenario] | None, typer.Option(help="only this one; may be repeated  [default: all]")
    ] = None,
    output: Annotated[
        Path, typer.Option(dir_okay=False, help="where the result goes, JSON; all rows go into raw beside it")
    ] = OUTPUT,
    plots: Annotated[Path, typer.Option(file_okay=False, help="folder of the pictures, SVG")] = PLOTS,
    draw: Annotated[bool, typer.Option("--plot/--no-plot", help="draw the pictures that the scenarios allow")] = True,
) -> None:
    """Plays thousands of rounds of scoring and settlement against dishonest players: does honesty pay?"""
    chosen = tuple(dict.fromkeys(scenario or Scenario))
    options = EconomicsOptions(rounds, seed, chosen, output, plots if draw else None)

    from consilium_lab.economics.run import run_economics

    run_economics(options)
