"""A profile of a hospital's examples, for its owner before it joins a task. The part that all kinds share. Pure.

It is for the hospital's own screen, because it holds values of its patients. No log gets it. If a log showed one by
accident, the dataclasses' representations leave the values out.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from consilium_chain.tasks.start_specs import SeedStart
from consilium_chain.tasks.task_spec import STATISTICS_BITS, STATISTICS_RANGE, TaskSpec
from consilium_zk.quantise import Quantiser

from consilium_client.data.examples import Examples, Source
from consilium_client.data.standardise import sums_of

ONE_CLASS = "all labels are the same: a model learns little from them, and voters need several"
INVERTED = (
    "the classes are as frequent as if they were exchanged, by the prevalence that the task states: check that their"
    " numbers or codes are not inverted"
)
RARE, LEAST_INVERTED = 0.25, 50  # the most of a class that is called rare; rows
NEARLY = 1.5  # times the rare share that the common class may have


@dataclass(frozen=True)
class Finding:
    """A possible fault (`concern`) in `count` of `of` examples, in a column of the task's (None: as a whole).

    `asks`: a node joins only if its owner has answered. `hint`: a likely cause, which shows nothing of the rows.
    """

    concern: StrEnum
    column: str | None
    count: int
    of: int
    asks: bool = field(default=False, compare=False)
    hint: str = field(default="", compare=False)

    @property
    def key(self) -> str:
        """The concern's name in settings and logs."""
        return self.concern.name.lower()

    def __str__(self) -> str:
        return f"{self.concern} ({self.hint})" if self.hint else str(self.concern)


@dataclass(frozen=True)
class Statistic:
    """The sums of round 0 over one encoded column: the number of known values, their Σu and Σu², u in [0, 1].

    For a channel: the number of images, and the sums of their mean shades and mean squared shades.
    """

    column: str
    known: float = field(repr=False)
    total: float = field(repr=False)
    squares: float = field(repr=False)


@dataclass(frozen=True)
class Profile:
    """The part that all kinds share. `answers`: numbers of examples by kind of answer, such as a class; `repeated`:
    examples that equal an earlier one; `statistics`: the sums that leave in round 0, none if no sums of these leave.
    """

    source: Source
    spec: TaskSpec = field(repr=False)
    rows: int
    answers: tuple[tuple[str, int], ...] = field(repr=False)
    repeated: int
    findings: tuple[Finding, ...]
    statistics: tuple[Statistic, ...]

    @property
    def things(self) -> str:
        return self.spec.data.things

    @property
    def statistics_step(self) -> float:
        """The sums that leave in round 0 are rounded to multiples of it."""
        return Quantiser(STATISTICS_BITS, STATISTICS_RANGE).step


def repeats(contents: Iterable[Hashable], labels: Sequence[bytes]) -> tuple[int, int]:
    """Counts contents that equal an earlier one, and those of them with another label than the first such one."""
    first: dict[Hashable, bytes] = {}
    repeated = otherwise = 0
    for content, label in zip(contents, labels, strict=True):
        repeated += content in first
        otherwise += first.setdefault(content, label) != label
    return repeated, otherwise


def inverted(answers: Sequence[tuple[str, int]], spec: TaskSpec) -> bool:
    """True if of two classes the one that the task calls rare is the common one here."""
    stated = spec.start.prevalence if isinstance(spec.start, SeedStart) else None
    counts = [count for _, count in answers]
    if stated is None or len(counts) != 2 or sum(counts) < LEAST_INVERTED or min(stated) > RARE:
        return False
    rare = stated.index(min(stated))
    return counts[1 - rare] <= NEARLY * min(stated) * sum(counts)


def findings_of(counts: Mapping[StrEnum, int], rows: int, asking: Container[StrEnum]) -> tuple[Finding, ...]:
    """Findings about the examples as a whole, of counts that are not 0. `asking`: concerns that ask for an answer."""
    return tuple(
        Finding(concern, None, int(count), rows, concern in asking) for concern, count in counts.items() if count
    )


def statistics_of(examples: Examples, spec: TaskSpec) -> tuple[Statistic, ...]:
    names = [column.name for column in spec.data.encoded]
    if spec.statistics != "exact" or not names:
        return ()
    sums = sums_of(examples, spec.data).reshape(3, -1)
    return tuple(Statistic(name, *map(float, column)) for name, column in zip(names, sums.T, strict=True))
