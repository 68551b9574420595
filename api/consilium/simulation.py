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
    from consilium_core.artifacts.backends import Place
    from consilium_lab.simulation.grid import GridRow
    from consilium_lab.simulation.run import PlayedRound, Simulation

METRICS = ["accuracy", "auc", "log_loss"]


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
        last = found.rounds[-1].metrics if found.rounds else found.start
        named = {"start": found.start, "together": last, "plain FedAvg": found.averaged, "all rows": found.pooled}
        named |= {f"{name} alone": metrics for name, metrics in found.alone.items()}
        return pd.DataFrame.from_dict(named, orient="index", columns=METRICS)

    @property
    def rounds(self) -> pd.DataFrame:
        """By round: metrics after it, and numbers of cohorts and of accepted ones."""
        import pandas as pd

        rows = [
            {
                "round": one.number, **{name: one.metrics[name] for name in METRICS}, "cohorts": len(one.cohorts),
                "accepted": one.settlement.accepted.bit_count(),
            }
            for one in self.details.rounds
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=["round", *METRICS, "cohorts", "accepted"]).set_index("round")

    @property
    def parties(self) -> pd.DataFrame:
        """By party: rows, and whole tokens paid and slashed, with fractions."""
        import pandas as pd
        from consilium_chain.tasks.task_spec import TOKEN

        found = self.details
        rows = {
            name: (found.rows.get(name), paid / TOKEN, found.slashed[name] / TOKEN) for name, paid in found.paid.items()
        }
        return pd.DataFrame.from_dict(rows, orient="index", columns=["rows", "paid", "slashed"])

    def figure(self) -> Any:
        """A matplotlib figure of the accuracy, round by round. Notebooks show it."""
        from consilium_lab.simulation.results import picture

        return picture(self.details)

    def verdict(self, played: PlayedRound) -> str:
        """The medians of a round's cohorts, and those that were accepted, in words."""
        from consilium_lab.simulation.results import verdict

        return verdict(self.details, played)

    @property
    def pay(self) -> list[str]:
        """The rule of pay, and reasons for pay that does not follow rows, in words."""
        from consilium_lab.pay import pay_in_words
        from consilium_lab.simulation.results import earners

        return pay_in_words(earners(self.details), self.details.spec.rounds)

    @property
    def costs(self) -> Mapping[str, int]:
        """On a chain, at most about: `gas` of all parties, `chain_blobs`, and `hospital_upload_bytes` of a hospital."""
        from consilium_lab.simulation.results import costs

        return costs(self.details)

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
    on_start: Callable[[dict[str, int], dict[str, int]], None] = lambda hospitals, voters: None,
    on_round: Callable[[PlayedRound], None] = lambda played: None,
) -> SimulationResult:
    """Plays all rounds of a task.

    With one `table`: `sites` is the column that names the hospital, or a number of hospitals; `voters` is a number, and
    they get a third of each hospital's rows. `mapping` reads the table; a drafted task has its own. Otherwise `sites`
    and `voters` are files or folders by name, and `mappings` has a file for those that need one.

    `artifacts`: folders and URLs of the store with the weights that the task starts from, if it names a file.

    `seed` decides on the split of a table, on cohorts, on training and on sign-flipped sums; the noise of private tasks
    is random. `on_start` gets the rows by name, `on_round` each round.

    Raises TypeError for arguments that do not fit together, DataError, OperatorError, LabError, ModelError.
    """
    from consilium_lab.simulation.run import simulate as play

    parts = _parts(task, sites, voters, table, mapping, mappings, seed, on_start)
    return SimulationResult(play(task.raw, *parts, seed, on_round, places=_places(artifacts)))


@dataclass(frozen=True)
class GridResult:
    """A task in several forms on the same rows. `rows`: each has its task file. `metric`: the one that ranks them."""

    rows: list[GridRow]
    metric: str

    @property
    def frame(self) -> pd.DataFrame:
        """By form: a column for each axis, metrics, bytes and blobs of a hospital a round, blobs and gas of the task on
        a chain, epsilon, the share of accepted cohorts, and if no other form is as good with fewer bytes.
        """
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    **row.form, **{name: row.metrics[name] for name in METRICS}, "bytes": row.bytes_a_round,
                    "blobs": row.blobs_a_round, "chain_blobs": row.chain_blobs, "gas": row.gas, "epsilon": row.epsilon,
                    "accepted": row.accepted, "frontier": row.is_frontier,
                }
                for row in self.rows
            ]
        )  # fmt: skip

    @property
    def proposed(self) -> GridRow:
        """The form of the fewest bytes within a hundredth of the best metric."""
        from consilium_lab.simulation.grid import proposed

        return proposed(self.rows, self.metric)

    def figure(self) -> Any:
        """A matplotlib figure: the metric by bytes, with the frontier."""
        from consilium_lab.simulation.grid import picture

        return picture(self.rows, self.metric)

    def write_page(self, path: str | Path) -> Path:
        """Writes an HTML page with table and picture, which loads nothing."""
        from consilium_lab.simulation.grid import write_page

        write_page(Path(path), self.rows, self.metric)
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
    on_start: Callable[[dict[str, int], dict[str, int]], None] = lambda hospitals, voters: None,
    on_row: Callable[[GridRow, int], None] = lambda row, of: None,
) -> GridResult:
    """Simulates a task in every combination of `axes`: codec, outer, epochs, bits, epsilon. A form that the task file's
    rules refuse is left out. Other arguments and errors are those of `simulate`; `on_row` gets each form, and their
    number. Raises LabError (GridUnknown).
    """
    from consilium_lab.simulation.grid import ranked_by
    from consilium_lab.simulation.grid import simulate_grid as play

    parts = _parts(task, sites, voters, table, mapping, mappings, seed, on_start)
    return GridResult(play(task.spec, axes, *parts, seed, on_row, _places(artifacts)), ranked_by(task.spec))


def _places(artifacts: Sequence[str | Path]) -> Sequence[Place]:
    from consilium_core.artifacts.backends import parse_places

    return parse_places(artifacts) if artifacts else ()


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
    from consilium_client.data.kinds import read_examples

    return {
        name: read_examples(Path(path), task.spec.data, mappings.get(name), allow_one_class=not held_out)
        for name, path in paths.items()
    }
