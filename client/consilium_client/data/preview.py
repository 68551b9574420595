"""A preview for a hospital's owner before it joins a task: its examples, and the values that leave the house.

The part that tables, texts and images share. For the hospital's own screen: it holds values of its patients. Nothing of
it goes into a journal; what a log might show by accident, a dataclass's representation, leaves the values out. Pure.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import numpy as np
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.task_spec import STATISTICS_BITS, STATISTICS_RANGE, PrivacySpec, TaskSpec
from consilium_zk.constants import BYTES_PER_BLOB
from consilium_zk.quantise import Quantiser
from numpy.typing import NDArray

from consilium_client.data.examples import Examples
from consilium_client.data.standardise import sums_of

ONE_CLASS = "all labels are the same: the model can learn little here, and voters need several classes"


@dataclass(frozen=True)
class Finding:
    """`count` of `of` examples are a concern, in a column of the task's (None: as a whole).

    `concern`: what may be wrong with data that can be read, in words that say what to look at.
    """

    concern: StrEnum
    column: str | None
    count: int
    of: int


@dataclass(frozen=True)
class Statistic:
    """The sums of round 0 over one encoded column: values that are known, Σu and Σu² of them, u in [0, 1].

    Of a channel: images, and the sums of their mean shade and mean squared shade.
    """

    column: str
    known: float = field(repr=False)
    total: float = field(repr=False)
    squares: float = field(repr=False)


@dataclass(frozen=True)
class Preview:
    """All that is computed from the examples and leaves the hospital: statistics in round 0, then an update a round.

    `statistics` are rounded to multiples of `step`; there are none where round 0 is the schema's, and none of texts, of
    which exact statistics sum the number. An update is `parameters` values, clipped to the norm `clip_norm`
    and rounded to `bits` bits in ± `value_range`. Both travel in blobs; `masked` ones nobody can read alone.
    """

    statistics: tuple[Statistic, ...]
    step: float
    statistics_blobs: int
    rounds: int
    parameters: int
    bits: int
    value_range: float
    clip_norm: float
    update_blobs: int
    masked: bool
    exact: bool = False
    privacy: PrivacySpec | None = None

    @property
    def statistics_bytes(self) -> int:
        return self.statistics_blobs * BYTES_PER_BLOB

    @property
    def update_bytes(self) -> int:
        """In one round."""
        return self.update_blobs * BYTES_PER_BLOB


@dataclass(frozen=True)
class Profile:
    """The part that all kinds share. `classes`: name and examples of each; `repeated`: those that equal an earlier one.

    `left_aside`: columns of a file, or files that a folder's list does not name.
    """

    path: Path
    kind: str
    things: str
    rows: int
    label: str
    label_source: str | None
    classes: tuple[tuple[str, int], ...] = field(repr=False)
    left_aside: int
    left_aside_names: tuple[str, ...]
    repeated: int
    findings: tuple[Finding, ...]
    preview: Preview


def classes_of(labels: NDArray[np.int64], schema: DataSchema) -> tuple[tuple[str, int], ...]:
    counts = np.bincount(labels, minlength=len(schema.classes))
    return tuple(zip(schema.classes, map(int, counts), strict=True))


def repeats(contents: Iterable[Hashable], labels: NDArray[np.int64]) -> tuple[int, int]:
    """Counts contents that equal an earlier one, and those of them with another label than the first such one."""
    first: dict[Hashable, int] = {}
    repeated = otherwise = 0
    for content, label in zip(contents, map(int, labels), strict=True):
        repeated += content in first
        otherwise += first.setdefault(content, label) != label
    return repeated, otherwise


def preview_of(examples: Examples, spec: TaskSpec) -> Preview:
    names = [column.name for column in spec.data.encoded]
    statistics: tuple[Statistic, ...] = ()
    exact = spec.statistics == "exact"
    if exact and names:
        sums = sums_of(examples, spec.data).reshape(3, -1)
        statistics = tuple(Statistic(name, *map(float, column)) for name, column in zip(names, sums.T, strict=True))
    return Preview(
        statistics=statistics,
        step=Quantiser(STATISTICS_BITS, STATISTICS_RANGE).step,
        statistics_blobs=spec.statistics_blobs,
        rounds=spec.rounds.rounds,
        parameters=spec.parameters,
        bits=spec.update.bits,
        value_range=spec.update.value_range,
        clip_norm=spec.update.clip_norm,
        update_blobs=spec.update_blobs,
        masked=spec.update.masked,
        exact=exact,
        privacy=spec.privacy,
    )
