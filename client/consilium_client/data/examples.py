"""A hospital's or voter's labelled examples, of any kind that a task asks for, and the source that they came from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import chain, compress
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from consilium_chain.tasks.task_spec import STATISTICS_RANGE
from numpy.typing import NDArray

from consilium_client.errors import CellError, DataError, in_file, shortened

MOST_ROWS = int(STATISTICS_RANGE) - 1  # that round 0 can count

Row = Mapping[str, Any]
Refusal = Callable[[str], Exception]
Labels = NDArray[Any]  # int64 (n,), classes' numbers; float64 (n, …), columns of another answer; or uint8, masks
ExamplesType = TypeVar("ExamplesType", bound="Examples")


@dataclass(frozen=True)
class Source:
    """The file or folder with the examples.

    `names`: each of the schema's columns by its name in the file; None where the mapping says that the file lacks it.
    `left_aside`: the number of columns in a file, or files in a folder, that were not read. `left_aside_names`: the
    names of these columns, if the file has names. `reader`: the plug-in that read it, in words. `identifying`: the
    number of files with a value in a header field that can identify a patient, by the field's name; no value is kept.
    """

    path: Path
    kind: Literal["CSV", "Parquet", "folder", "NumPy archive", "JSON", "plug-in", "query"]
    names: Mapping[str, str | None] = field(default_factory=dict)
    left_aside: int = 0
    left_aside_names: tuple[str, ...] = ()
    reader: str = ""
    identifying: Mapping[str, int] = field(default_factory=dict)

    @property
    def left_aside_shortened(self) -> str:
        """The first few of these names."""
        return shortened(self.left_aside_names)

    def with_names(self, names: Mapping[str, str | None]) -> Source:
        """With other names of these columns, too."""
        return replace(self, names={**self.names, **names})

    def called(self, column: str) -> str:
        """The file's name for a column, where the task has another, to follow the task's name."""
        return in_file(column, self.names.get(column))

    def where(self, row: int, column: str) -> str:
        """Where a cell is, as errors have it. `row`: its line in a CSV file, else its row; from 1."""
        at = {"CSV": f"line {row}", "query": f"row {row} of the query"}.get(self.kind, f"row {row}")
        return f"{at}, column {column}{self.called(column)}"

    def cell_error(self, fault: str, row: int, column: str) -> CellError:
        return CellError(fault, path=self.path, at=self.where(row, column), row=row, column=column)


REQUEST = Source(Path("the request"), "JSON")  # of rows to predict for


class Examples(ABC):
    """A frozen dataclass whose fields have one entry for each example. `labels`: int64 (n,), class numbers from 0, or
    float64 (n, …), a question's other answers, or uint8 (n, height, width), masks.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    labels: Labels

    @property
    def rows(self) -> int:
        return len(self.labels)

    @abstractmethod
    def row_bytes(self) -> Iterator[bytes]:
        """Each example with its label in bytes, in order, the same on every machine; other examples, other bytes.

        It begins with the label, as `label_bytes` gives it.
        """

    @property
    def label_bytes(self) -> list[bytes]:
        """Each label, little-endian: a class's number in 4 bytes, numbers in 8 bytes each, or a mask's in 1 byte."""
        kind = {"i": "<u4", "u": "u1"}.get(self.labels.dtype.kind, "<f8")
        return [label.tobytes() for label in self.labels.astype(kind)]

    @abstractmethod
    def contents(self) -> Iterable[bytes]:
        """Each example's content without its label, as coarse as forms of files differ."""

    def units(self) -> Iterable[bytes]:
        """Each example's key when some are held out: examples with the same one stay together."""
        return self.contents()

    @abstractmethod
    def sums(self) -> NDArray[np.float64]:
        """Sums over the rows, exactly: float64 (statistics_values,) of the schema."""

    def chosen(self, which: NDArray[np.bool_]) -> Self:
        """Those of `which` (n,), in their order."""
        kept = {
            name: values[which] if isinstance(values, np.ndarray) else tuple(compress(values, which))
            for name, values in _columns(self)
        }
        return replace(self, **kept)

    def relabelled(self, labels: Labels) -> Self:
        """With other labels (n, …)."""
        return replace(self, labels=labels)


def _columns(examples: Examples) -> list[tuple[str, Any]]:
    return [(one.name, getattr(examples, one.name)) for one in fields(examples)]


def joined(parts: Sequence[ExamplesType]) -> ExamplesType:
    """All of one schema's examples (at least one part), one part after another."""
    columns = {name: [getattr(part, name) for part in parts] for name, _ in _columns(parts[0])}
    whole = {
        name: np.concatenate(values) if isinstance(values[0], np.ndarray) else tuple(chain.from_iterable(values))
        for name, values in columns.items()
    }
    return replace(parts[0], **whole)


def unlabelled(rows: Sequence[Row]) -> NDArray[np.int64]:
    return np.zeros(len(rows), np.int64)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raises DataFileMissing where the operating system does not give a file in the block."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError("DataFileMissing", path=path, why="there is no such file") from error
    except OSError as error:
        at = error.filename if isinstance(error.filename, str) else path
        raise DataError("DataFileMissing", path=at, why=error.strerror or type(error).__name__) from error
