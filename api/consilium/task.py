"""Task files: read, or drafted from a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from consilium_chain.tasks.estimate import Estimate, estimate
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec

if TYPE_CHECKING:
    import pandas as pd
    from consilium_client.data.mapping import Mapping


@dataclass(frozen=True)
class Task:
    """A task file. `raw`: its bytes, whose keccak256 is its name on chain. `spec`: all of its settings, typed."""

    raw: bytes
    spec: TaskSpec

    @classmethod
    def read(cls, path: str | Path) -> Task:
        """Raises SpecInvalid, with every fault of the file."""
        from consilium_operators.proposals import read_task

        return cls(*read_task(Path(path)))

    @classmethod
    def parse(cls, text: str) -> Task:
        """Raises SpecInvalid.

        Examples:
            >>> Task.parse('name = "no model"')
            Traceback (most recent call last):
            consilium_chain.errors.SpecInvalid: the task file is invalid: data: Field required; model: Field required
        """
        raw = text.encode()
        return cls(raw, parse_task_spec(raw))

    @property
    def name(self) -> str:
        return self.spec.name

    def estimate(self) -> Estimate:
        """Gas, blobs, pay and concerns, without a chain's prices and times."""
        return estimate(self.spec)

    def features(self) -> pd.DataFrame:
        """The columns of the model's inputs: `column`, and the `mean` and `deviation` that scale it."""
        import pandas as pd

        rows = [(one.name, one.mean, (one.square - one.mean**2) ** 0.5) for one in self.spec.data.encoded]
        return pd.DataFrame(rows, columns=["column", "mean", "deviation"])

    def write(self, path: str | Path) -> Path:
        """Writes the file. An existing one is replaced."""
        Path(path).write_bytes(self.raw)
        return Path(path)


@dataclass(frozen=True)
class DraftedTask(Task):
    """A task that fits a table, and the mapping that reads this table by it.

    `left_out`: the reason for each column of the table that the task does not use. `counts`: rows of each class, by its
    name. `unlabelled`: rows without a label.
    """

    table: Path
    mapping: Mapping
    left_out: dict[str, str]
    counts: dict[str, int]
    unlabelled: int

    @property
    def mapping_text(self) -> str:
        """The mapping as TOML."""
        from consilium_operators.task_text import mapping_text

        return mapping_text(self.mapping, self.table.name)

    def write(self, path: str | Path) -> Path:
        """Writes the file, and beside it the mapping: task.toml and task.mapping.toml."""
        written = super().write(path)
        written.with_suffix(".mapping.toml").write_text(self.mapping_text, encoding="utf-8")
        return written


def draft(
    table: str | Path,
    label: str | None = None,
    sites: str | None = None,
    leave_out: Sequence[str] | None = None,
    *,
    name: str | None = None,
    epsilon: float | None = None,
    voters: int = 5,
) -> DraftedTask:
    """A task that learns `label` (by default the likeliest column) from the other columns of a CSV or Parquet file.

    `sites`: the column that names the hospital. `leave_out`: columns that are no measurements; by default those that
    look like an identity or a time. `epsilon`: the most that the task may cost a row; None for a task without privacy.
    Ranges in the draft are the table's own, rounded: they become public with the task.

    Raises DataError, OperatorError (ColumnUnknown, LabelNotClasses, NothingToLearnFrom), LabError (SitesWrong),
    SpecInvalid.
    """
    from consilium_lab.own_table import HELD_OUT, sites_of
    from consilium_operators.drafting import likely_draft, read_sample
    from consilium_operators.task_text import Terms, task_text

    path = Path(table)
    sample = read_sample(path)
    found = likely_draft(sample, label, sites, leave_out)
    by_site = [] if sites is None else [len(rows) for rows in sites_of(sample, sites).values()]
    hospitals, largest = (len(by_site), by_site[0]) if by_site else (4, -(-sample.rows // 4))
    title = name or f"{found.schema.label} by {path.stem}"[:80]
    terms = Terms(title, hospitals, voters, round(largest * (1 - HELD_OUT)), epsilon, path.name)
    raw = task_text(found, terms).encode()
    spec = parse_task_spec(raw)
    return DraftedTask(raw, spec, path, found.mapping, found.left_out, found.counts, found.unlabelled)
