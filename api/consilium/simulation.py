"""A task's rounds on your own rows, in this process: training, sums, judging and pay. Nothing leaves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilium.task import DraftedTask, Task

if TYPE_CHECKING:
    import pandas as pd
    from consilium_client.data.examples import Examples
    from consilium_client.data.mapping import Mapping as ColumnMapping
    from consilium_client.models import Vector
    from consilium_core.artifacts.backends import Location
    from consilium_lab.simulation.grid import Grid, GridRow
    from consilium_lab.simulation.run import PlayedRound, Simulation


@dataclass(frozen=True)
class SimulationResult:
    """Data frames of a simulation, and the whole of it as `details`. All metrics are on all voters' rows."""

    details: Simulation

    @property
    def model(self) -> Vector:
        """The last model's parameters, float32 (p,)."""
        return self.details.model

    @property
    def bases(self) -> list[str]:
        """SHA-256 of each round's base and of the last model; the demo's for the same seed, rows and task."""
        return self.details.bases

    @property
    def metrics(self) -> pd.DataFrame:
        """By model: at the start, together, by plain FedAvg, with all rows in one place, and each hospital alone."""
        import pandas as pd

        found = self.details
        beside, last = found.references, found.rounds[-1].metrics if found.rounds else found.start
        named = {"start": found.start, "together": last, "plain FedAvg": beside.averaged, "all rows": beside.pooled}
        named |= {f"{name} alone": metrics for name, metrics in beside.alone.items()}
        return pd.DataFrame.from_dict(named, orient="index", columns=self.shown)

    @property
    def shown(self) -> list[str]:
        """The metrics of its tables; more of the first is better."""
        return [*self.details.spec.data.asked.shown]

    @property
    def rounds(self) -> pd.DataFrame:
        """By round: metrics after it, and numbers of cohorts, of accepted ones, and of hospitals that missed it."""
        import pandas as pd

        rows = [
            {
                "round": one.number, **{name: one.metrics[name] for name in self.shown}, "cohorts": len(one.cohorts),
                "accepted": one.settlement.accepted.bit_count(), "absent": len(one.absent),
            }
            for one in self.details.rounds
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=["round", *self.shown, "cohorts", "accepted", "absent"]).set_index("round")

    @property
    def parties(self) -> pd.DataFrame:
        """By party: rows, and whole tokens paid and slashed, with fractions."""
        import pandas as pd
        from consilium_chain.tasks.money_spec import TOKEN

        found = self.details
        rows = {
            name: (found.rows.get(name), paid / TOKEN, found.slashed[name] / TOKEN) for name, paid in found.paid.items()
        }
        return pd.DataFrame.from_dict(rows, orient="index", columns=["rows", "paid", "slashed"])

    def figure(self) -> Any:
        """A matplotlib figure of the first shown metric, round by round. Notebooks show it."""
        from consilium_lab.simulation.results import picture

        return picture(self.details)

    def verdict(self, played: PlayedRound) -> str:
        """The medians of a round's cohorts, and those that were accepted, in words."""
        from consilium_lab.simulation.results import verdict

        return verdict(self.details, played)

    @property
    def pay(self) -> list[str]:
        """The rule of pay, and reasons for pay that does not follow rows, in words."""
        from consilium_lab.simulation.results import pay_of

        return pay_of(self.details)

    @property
    def costs(self) -> Mapping[str, int]:
        """On a chain, at most about: `gas` of all parties, `chain_blobs`, and `hospital_upload_bytes` of a hospital."""
        from consilium_lab.simulation.results import costs

        return costs(self.details)

    @property
    def early_end(self) -> str:
        """A sentence if the task ended before its last round, else empty."""
        from consilium_lab.simulation.results import ENDED_EARLY, has_ended_early

        return ENDED_EARLY if has_ended_early(self.details) else ""

    def as_json(self) -> dict[str, Any]:
        """Everything, ready for JSON. Money in the token's smallest unit, as text."""
        from consilium_lab.simulation.results import as_json

        return as_json(self.details)

    def write_page(self, path: str | Path) -> Path:
        """Writes an HTML page with pictures, which loads nothing."""
        from consilium_lab.simulation.results import write_page

        write_page(Path(path), self.details)
        return Path(path)


def simulate(
    task: Task,
    *,
    sites: Mapping[str, str | Path] | str | int,
    voters: Mapping[str, str | Path] | int = 5,
    table: str | Path | None = None,
    mapping: ColumnMapping | str | Path | None = None,
    mappings: Mapping[str, str | Path] | None = None,
    artifacts: Sequence[str | Path] = (),
    seed: int = 0,
    dropouts: float = 0.0,
    on_start: Callable[[dict[str, int], dict[str, int]], None] = lambda hospitals, voters: None,
    on_round: Callable[[PlayedRound], None] = lambda played: None,
) -> SimulationResult:
    """Plays all rounds of a task.

    With one `table`: `sites` is the column that names the hospital, or a number of hospitals; `voters` is a number, and
    they get a third of each hospital's rows. `mapping` reads the table; a drafted task has its own. Otherwise `sites`
    and `voters` are files or folders by name, and `mappings` has a file for those that need one.

    `artifacts`: folders and URLs of the store with the task's program, or the weights that it starts from, if it names
    these.

    `seed` decides on the split of a table, on cohorts, on training and on sign-flipped sums; the noise of private tasks
    is random. `dropouts`: the chance (0 to 1) of each hospital to miss a round; it commits nothing then, and the round
    goes on by the contract's rules. `on_start` gets the rows by name, `on_round` each round.

    Raises TypeError for arguments that do not fit together, DataError, OperatorError, LabError, ModelError.
    """
    from consilium_lab.simulation.run import simulate as play

    parts = _parts(task, sites, voters, table, mapping, mappings, seed, on_start)
    return SimulationResult(play(task.raw, *parts, seed, on_round, locations=_locations(artifacts), dropouts=dropouts))


@dataclass(frozen=True)
class GridResult:
    """A task in several forms on the same rows, and the whole of it as `details`. Metrics are on all voters' rows."""

    details: Grid

    @property
    def rows(self) -> list[GridRow]:
        """Each has its task file."""
        return self.details.rows

    @property
    def metric(self) -> str:
        """The one that ranks the rows."""
        return self.details.metric

    @property
    def frame(self) -> pd.DataFrame:
        """By form: a column for each axis, metrics, bytes and blobs of a hospital a round, blobs, gas, ether and
        minutes of the task on a chain, epsilon, the share of accepted cohorts, and if no other form is as good with
        fewer bytes. With several seeds metrics are means, and `accuracy_error` and others are their standard errors.
        """
        import pandas as pd
        from consilium_lab.simulation.grid_page import record

        return pd.DataFrame([record(row, self.details) for row in self.rows])

    @property
    def references(self) -> pd.DataFrame:
        """Metrics of plain FedAvg, with all rows in one place, and of each hospital alone: of the task as given."""
        import pandas as pd

        found = self.details.references
        named = {"plain FedAvg": found.averaged, "all rows": found.pooled}
        named |= {f"{name} alone": metrics for name, metrics in found.alone.items()}
        return pd.DataFrame.from_dict(named, orient="index", columns=[*self.details.shown])

    @property
    def beside(self) -> Mapping[str, Mapping[str, float]]:
        """Metrics of the references, by name: of each hospital alone only the mean."""
        return self.details.references.by_name

    @property
    def proposed(self) -> GridRow:
        """The form of the fewest bytes within a hundredth of the best metric, at the most dropouts."""
        return self.details.proposed

    @property
    def notes(self) -> list[str]:
        """The meaning of the figures, with the assumed prices, in sentences."""
        from consilium_lab.simulation.grid_page import notes

        return notes(self.details)

    def figure(self) -> Any:
        """A matplotlib figure: the metric by bytes, with the frontier and the references."""
        from consilium_lab.simulation.grid_page import picture

        return picture(self.details)

    def as_json(self) -> dict[str, Any]:
        """Everything but the task files, ready for JSON. Wei as text."""
        from consilium_lab.simulation.grid_page import as_json

        return as_json(self.details)

    def write_page(self, path: str | Path) -> Path:
        """Writes an HTML page with table and picture, which loads nothing."""
        from consilium_lab.simulation.grid_page import write_page

        write_page(Path(path), self.details)
        return Path(path)


def simulate_grid(
    task: Task,
    axes: Sequence[str],
    *,
    sites: Mapping[str, str | Path] | str | int,
    voters: Mapping[str, str | Path] | int = 5,
    table: str | Path | None = None,
    mapping: ColumnMapping | str | Path | None = None,
    mappings: Mapping[str, str | Path] | None = None,
    artifacts: Sequence[str | Path] = (),
    seed: int = 0,
    seeds: int = 1,
    dropouts: float = 0.0,
    gas_price: int | None = None,
    blob_gas_price: int | None = None,
    block_seconds: float | None = None,
    on_start: Callable[[dict[str, int], dict[str, int]], None] = lambda hospitals, voters: None,
    on_row: Callable[[GridRow, int], None] = lambda row, of: None,
) -> GridResult:
    """Simulates a task in every combination of `axes`: codec, outer, epochs, bits, epsilon, hospitals, dropouts. A form
    that the task file's rules refuse is left out. Other arguments and errors are those of `simulate`; `on_row` gets
    each form, and their number.

    `seeds`: each form is played with `seed` and the next ones, on one split of the rows; its metrics are means. Prices
    in wei: without them, those of a quiet day on mainnet are assumed. Raises LabError (GridUnknown, SettingOutOfRange).
    """
    from consilium_lab.simulation.grid import Play, at_prices
    from consilium_lab.simulation.grid import simulate_grid as play

    terms = at_prices(gas_price, blob_gas_price, block_seconds)
    conditions = Play(seed, seeds, dropouts, terms, _locations(artifacts))
    return GridResult(play(task.spec, axes, *_parts(task, sites, voters, table, mapping, mappings, seed, on_start),
                           on_row, conditions))  # fmt: skip


def _locations(artifacts: Sequence[str | Path]) -> Sequence[Location]:
    from consilium_core.artifacts.backends import parse_locations

    return parse_locations(artifacts) if artifacts else ()


def _parts(
    task: Task,
    sites: Mapping[str, str | Path] | str | int,
    voters: Mapping[str, str | Path] | int,
    table: str | Path | None,
    mapping: ColumnMapping | str | Path | None,
    mappings: Mapping[str, str | Path] | None,
    seed: int,
    on_start: Callable[[dict[str, int], dict[str, int]], None],
) -> tuple[dict[str, Examples], dict[str, Examples]]:
    """The hospitals' and the voters' examples, by name."""
    if table is not None:
        if isinstance(sites, Mapping) or not isinstance(voters, int):
            raise TypeError("with a table, sites is a column or a number, and voters is a number")
        parts = _of_table(task, Path(table), sites, voters, mapping, seed)
    else:
        if not isinstance(sites, Mapping) or isinstance(voters, int):
            raise TypeError("without a table, sites and voters are paths by name")
        given = {name: Path(path) for name, path in (mappings or {}).items()}
        parts = _read(task, sites, given, held_out=False), _read(task, voters, given, held_out=True)
    on_start(*({name: part.rows for name, part in some.items()} for some in parts))
    return parts


def _of_table(
    task: Task, table: Path, sites: str | int, voters: int, mapping: ColumnMapping | str | Path | None, seed: int
) -> tuple[dict[str, Examples], dict[str, Examples]]:
    from consilium_chain.errors import SpecInvalid
    from consilium_chain.tasks.data_schemas import TableSchema
    from consilium_client.data.mapping import read_mapping
    from consilium_lab.own_table import own_table

    schema = task.spec.data
    if not isinstance(schema, TableSchema):
        raise SpecInvalid(f"the task is about {schema.things}, not about rows of a table: pass paths by name")
    if mapping is None and isinstance(task, DraftedTask):
        mapping = task.mapping
    elif isinstance(mapping, str | Path):
        mapping = read_mapping(Path(mapping), schema)
    return own_table(table, schema, mapping, sites, voters, seed).examples()


def _read(
    task: Task, paths: Mapping[str, str | Path], mappings: Mapping[str, Path], *, held_out: bool
) -> dict[str, Examples]:
    from consilium_client.data.kinds import read_examples, read_held_out

    if held_out:
        return {name: read_held_out(Path(path), task.spec, mappings.get(name)) for name, path in paths.items()}
    return {name: read_examples(Path(path), task.spec.data, mappings.get(name)) for name, path in paths.items()}
