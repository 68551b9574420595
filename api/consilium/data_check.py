"""Data as a task reads them, before anything leaves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from consilium_client.data.door import Answers, require_answered, unneeded
from consilium_client.data.image.kind import ImageProfile
from consilium_client.data.kinds import kind_of
from consilium_client.data.profile import Finding, Profile
from consilium_client.data.series.kind import SeriesProfile, VariableProfile
from consilium_client.data.table.kind import ColumnProfile, TableProfile
from consilium_client.data.text.kind import TextProfile
from consilium_client.errors import DataError
from consilium_client.task import JoinedTask

from consilium.task import Task

__all__ = [
    "ColumnProfile",
    "DataCheck",
    "Finding",
    "ImageProfile",
    "Profile",
    "SeriesProfile",
    "TableProfile",
    "TextProfile",
    "VariableProfile",
    "check_data",
]


@dataclass(frozen=True)
class DataCheck:
    """`profile`: everything that a hospital's node would compute from readable data; it holds values of patients, and
    its representation leaves them out. `fault`: the first error of the data, or of remarks that ask for an answer; None
    if a node may join with them. `unneeded`: answers to no remark.
    """

    profile: Profile
    fault: DataError | None
    unneeded: tuple[str, ...] = ()

    def require(self) -> None:
        """Raises the first error of the data, a DataError."""
        if self.fault is not None:
            raise self.fault

    def write_picture(self, path: str | Path) -> None:
        """Writes a PNG that its owner alone may read: histograms of a table's columns, a series' variables over time,
        or a few images as a model gets them.

        Raises ValueError for texts, OSError.
        """
        if isinstance(self.profile, TableProfile):
            from consilium_client.data.table.sheet import write_histograms

            write_histograms(Path(path), self.profile)
        elif isinstance(self.profile, SeriesProfile):
            from consilium_client.data.series import sheet

            sheet.write_sheet(Path(path), self.profile)
        elif isinstance(self.profile, ImageProfile):
            from consilium_client.data.image.sheet import write_sheet

            write_sheet(Path(path), self.profile)
        else:
            raise ValueError(f"the task's data are {self.profile.things}, of which there is no picture")


def check_data(
    task: Task | JoinedTask, data: str | Path, mapping: str | Path | None = None, answers: Answers | None = None
) -> DataCheck:
    """The profile of data for a task. Needs no chain and no home, and sends nothing.

    `data`: a table, or a folder of texts, images or series. `mapping`: a file that maps its columns. `answers`: to
    remarks, as `data_accepted` of node.toml has them. Raises DataError if the data cannot be read.
    """
    kind, spec = kind_of(task.spec.data), task.spec
    raw = kind.read(Path(data), spec.data, None if mapping is None else Path(mapping))
    profile = kind.profile(raw, spec)
    try:
        kind.examples(raw, spec.data)
        require_answered(Path(data), profile.findings, answers or {}, profile.things)
    except DataError as error:
        return DataCheck(profile, error)
    return DataCheck(profile, None, tuple(unneeded(profile.findings, answers or {})))
