"""Task files: read, or drafted from a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from consilium_core.defaults import LOCAL_ADDRESS_BOOK

from consilium.sources import open_chain

if TYPE_CHECKING:
    import pandas as pd
    from consilium_chain.tasks.estimate import Estimate
    from consilium_chain.tasks.fees import Fees, NetworkCost
    from consilium_chain.tasks.task_spec import TaskSpec
    from consilium_client.data.mapping import Mapping
    from consilium_client.privacy.dp_sgd import Mechanism
    from consilium_operators.drafting import Sample


@dataclass(frozen=True)
class Task:
    """A task file. `raw`: its bytes. `spec`: all of its settings, typed."""

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
        from consilium_chain.tasks.task_spec import parse_task_spec

        raw = text.encode()
        return cls(raw, parse_task_spec(raw))

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def digest(self) -> str:
        """The file's name on chain: its keccak256, 64 hexadecimal digits."""
        from consilium_chain.tasks.task_spec import spec_hash

        return spec_hash(self.raw).hex()

    def estimate(self, rpc: str | None = None, address_book: str | Path = LOCAL_ADDRESS_BOOK) -> Estimate:
        """Gas, blobs, pay and concerns; with a chain node's URL also prices and times.

        Raises ChainUnreachable, DeploymentInvalid.
        """
        from consilium_chain.tasks.estimate import estimate

        return estimate(self.spec, None if rpc is None else open_chain(rpc, address_book).chain_terms())

    def network_costs(self) -> list[NetworkCost]:
        """The whole task's cost on each network that the package knows, at assumed fees. Asks no network."""
        from consilium_chain.tasks.fees import network_costs

        return network_costs(self.spec)

    @staticmethod
    def assumed_fees() -> Fees:
        """The fees and the price of ether of `network_costs`, with their date."""
        from consilium_chain.tasks.fees import assumed_fees

        return assumed_fees()

    def require_fair(self) -> None:
        """Raises OperatorError (TermsUnfair) if chance would reject or slash too many honest cohorts."""
        from consilium_operators.proposals import require_fair

        require_fair(self.spec)

    def noise(self, rows: int) -> Mechanism | None:
        """The noise of a round for a hospital with this many rows; None for a task without privacy.

        Raises PrivacyError (EpsilonUnreachable).
        """
        from consilium_client.privacy.dp_sgd import plan

        return None if self.spec.privacy is None else plan(self.spec, self.spec.privacy, rows)

    def membership_risk(self, rows: int) -> str:
        """The measured risk of membership inference for a hospital with this many rows, in sentences."""
        from consilium_client.privacy.membership import in_words

        return in_words(self.spec, rows)

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
    name, or with each yes. `unlabelled`: rows without an answer.
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


@dataclass(frozen=True)
class Table:
    """A table from which a task may be drafted. `sample`: its cells as texts by column."""

    sample: Sample

    @classmethod
    def read(cls, path: str | Path) -> Table:
        """Reads CSV or Parquet. Raises DataError."""
        from consilium_operators.drafting import read_sample

        return cls(read_sample(Path(path)))

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.sample.rows

    @property
    def columns(self) -> list[str]:
        """The columns' names."""
        return list(self.sample.columns)

    def require(self, column: str) -> None:
        """Raises OperatorError (ColumnUnknown)."""
        self.sample.require(column)

    @property
    def likely_label(self) -> str:
        """The column that a model most likely predicts."""
        from consilium_operators.drafting import likely_label

        return likely_label(self.sample)

    @property
    def likely_sites(self) -> str | None:
        """The column that most likely names the hospital."""
        from consilium_operators.drafting import likely_sites

        return likely_sites(self.sample)

    def no_measurements(self, label: str, sites: str | None = None) -> dict[str, str]:
        """The other columns from which nothing should be learnt, each with the reason."""
        from consilium_operators.drafting import to_leave_out

        return to_leave_out(self.sample, [label, *([sites] if sites else [])])


def require_free(path: str | Path) -> None:
    """Raises OperatorError (OutputTaken)."""
    from consilium_operators.prediction_file import require_free

    require_free(Path(path))


def draft(
    table: str | Path,
    label: str | Sequence[str] | None = None,
    sites: str | None = None,
    leave_out: Sequence[str] | None = None,
    *,
    event: str | None = None,
    text: str | None = None,
    metric: str | None = None,
    name: str | None = None,
    epsilon: float | None = None,
    voters: int = 5,
    arena: int | None = None,
) -> DraftedTask:
    """A task that learns `label` (by default the likeliest column) from the other columns of a CSV or Parquet file.

    The label decides the question: few values are classes, many numbers an amount, several columns of 0 and 1 a label
    each; with `event`, the column of an event, it is the time until that. `text`: the column of texts, which alone are
    read then. `metric`: of the voters; by default the question's loss. `sites`: the column that names the hospital.
    `leave_out`: columns that are no measurements; by default those that look like an identity or a time. `epsilon`: the
    most that the task may cost a row; None for a task without privacy. `arena`: the most hospitals of an arena, which
    train alone. Ranges in the draft are the table's own, rounded: they become public with the task.

    Raises DataError, OperatorError (ColumnUnknown, LabelNotClasses, AnswersNotYesOrNo, TimesNotNumbers,
    NothingToLearnFrom), LabError (SitesWrong), SpecInvalid.
    """
    from consilium_chain.tasks.task_spec import parse_task_spec
    from consilium_lab.own_table import HELD_OUT, sites_of
    from consilium_operators.drafting import likely_draft, read_sample
    from consilium_operators.task_text import Terms, task_text

    path = Path(table)
    sample = read_sample(path)
    found = likely_draft(sample, label, sites, leave_out, event=event, text=text)
    by_site = [] if sites is None else [len(rows) for rows in sites_of(sample, sites).values()]
    hospitals, largest = (len(by_site), by_site[0]) if by_site else (4, -(-sample.rows // 4))
    hospitals = arena or hospitals
    title = name or f"{' and '.join(found.schema.asked.columns)} by {path.stem}"[:80]
    terms = Terms(
        title, hospitals, voters, round(largest * (1 - HELD_OUT)), epsilon, path.name, metric, arena is not None
    )
    raw = task_text(found, terms).encode()
    spec = parse_task_spec(raw)
    return DraftedTask(raw, spec, path, found.mapping, found.left_out, found.counts, found.unlabelled)
