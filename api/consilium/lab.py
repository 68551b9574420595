"""The demo, a network that stays, the simulation of a task's economics, and the demo's data sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from consilium_lab.demo.options import (
    MIN_MASKED,
    OUTPUT,
    Attack,
    Cheat,
    DataSet,
    DemoOptions,
    TableOptions,
    chosen_data,
    needs_folder,
    parse_attack,
    parse_codec,
)
from consilium_lab.economics.options import PLOTS, RESULT, EconomicsOptions, Scenario
from consilium_lab.up.options import HOME, UpOptions

if TYPE_CHECKING:
    import pandas as pd
    from consilium_lab.demo.run import DemoResult
    from consilium_lab.economics.run import EconomicsResult
    from rich.console import Console

__all__ = [
    "HOME",
    "MIN_MASKED",
    "OUTPUT",
    "PLOTS",
    "RESULT",
    "Attack",
    "Cheat",
    "DataSet",
    "DemoOptions",
    "Economics",
    "EconomicsOptions",
    "Scenario",
    "TableOptions",
    "UpOptions",
    "chosen_data",
    "demo",
    "fetch_data",
    "fitted",
    "needs_folder",
    "parse_attack",
    "parse_codec",
    "simulate_economics",
    "up",
]


def fitted(options: DemoOptions) -> DemoOptions:
    """Options with as many hospitals as their table names.

    Raises ValueError for options that do not go together, DataError, OperatorError (ColumnUnknown), LabError
    (SitesWrong).
    """
    from consilium_lab.demo.run import fitted

    return fitted(options)


def demo(options: DemoOptions | None = None, console: Console | None = None) -> DemoResult:
    """Runs a whole task on this machine, with a process for each party. `console`: shows it as the command does.

    Raises as `fitted` does, and LocalNodeError, LabError (DemoFailed, DemoTooLarge, FolderInUse).
    """
    from consilium_lab.demo.run import run_demo

    return run_demo(fitted(options or DemoOptions()), console)


def up(options: UpOptions, console: Console | None = None) -> None:
    """Runs a whole network on this machine until it is interrupted. Its events are logged (`log_to`).

    Raises LocalNodeError, LabError (NetworkNotUp, DemoTooLarge, FolderInUse).
    """
    from consilium_lab.up.run import run_up

    run_up(options, console)


@dataclass(frozen=True)
class Economics:
    """Mean payoffs a round of honest and dishonest players, in tokens. `details`: the report and its files."""

    details: EconomicsResult

    @property
    def rows(self) -> pd.DataFrame:
        """By scenario, terms and share of dishonest players."""
        import pandas as pd

        return pd.DataFrame([row.as_json() for row in self.details.rows])


def simulate_economics(
    options: EconomicsOptions, on_progress: Callable[[str, int, int], None] = lambda step, done, of: None
) -> Economics:
    """Plays thousands of rounds of scoring and settlement with dishonest players, and writes result and pictures.

    `on_progress` gets the present step, the number of finished ones, and of all. Raises LabError (RulesInvalid).
    """
    from consilium_lab.economics.run import run_economics

    return Economics(run_economics(options, on_progress))


def fetch_data(
    name: DataSet | str,
    folder: str | Path,
    *,
    accept: Callable[[str], bool],
    on_progress: Callable[[str, int, int | None], None] = lambda file, size, whole: None,
) -> list[Path]:
    """Downloads a data set of the demo (heart, pneumonia or medquad), checks it and builds its files. A second call
    continues.

    `accept` gets the licence, and must return True. `on_progress` gets a file's name, its bytes so far, and all its
    bytes, if the server says so.

    Raises ValueError for another name, LabError (LicenceNotAccepted, DataUnreachable, DataWrong, DataTooLong,
    DataUnreadable).
    """
    from consilium_lab.data.fetching import fetch
    from consilium_lab.data.publishers import PUBLISHERS
    from consilium_lab.errors import LabError

    chosen = DataSet(name)
    if chosen not in PUBLISHERS:
        raise ValueError(f"{name} has no files to fetch: name one of {', '.join(PUBLISHERS)}")
    publisher = PUBLISHERS[chosen]
    if not accept(publisher.terms):
        raise LabError("LicenceNotAccepted")
    return fetch(chosen, publisher, Path(folder), on_progress)
