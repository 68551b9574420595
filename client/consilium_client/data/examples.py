"""A hospital's or voter's labelled examples, of whatever kind a task asks for.

A new kind is a folder beside this module, with a `Kind` in its `kind` module, and an entry in `KINDS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.task_spec import TaskSpec
from numpy.typing import NDArray

from consilium_client.errors import DataError

if TYPE_CHECKING:
    from consilium_client.data.preview import Profile

KINDS = {"table": "table", "text": "text", "images": "image"}  # of a schema: the folder here; imported when needed
REQUEST = Path("the request")  # the path in errors about rows to predict for

Row = Mapping[str, Any]
Raw = TypeVar("Raw")
Schema = TypeVar("Schema")
Refusal = Callable[[str], Exception]


class Examples(ABC):
    """`labels`: int64 (n,), a class's number each, from 0."""

    labels: NDArray[np.int64]

    @property
    def rows(self) -> int:
        return len(self.labels)

    @property
    def classes_present(self) -> tuple[int, ...]:
        return tuple(int(label) for label in np.unique(self.labels))

    @abstractmethod
    def row_bytes(self) -> Iterator[bytes]:
        """Each example with its label in bytes, in order, the same on every machine; other examples, other bytes.

        It begins with the label, little-endian in 4 bytes.
        """

    @abstractmethod
    def contents(self) -> Iterable[bytes]:
        """Each example's content without its label, as coarse as forms of files differ."""

    @abstractmethod
    def chosen(self, which: NDArray[np.bool_]) -> Examples:
        """Those of `which` (n,), in their order."""

    @abstractmethod
    def relabelled(self, labels: NDArray[np.int64]) -> Examples:
        """With other labels (n,)."""

    @abstractmethod
    def followed_by(self, others: Sequence[Any]) -> Examples:
        """With others of this kind after them."""

    @abstractmethod
    def sums(self) -> NDArray[np.float64]:
        """Sums over the rows, exactly: float64 (statistics_values,) of the schema."""


class Kind(ABC, Generic[Raw, Schema]):
    """One kind of examples: what its files become. `Raw`: what a file held, before it is checked and encoded."""

    @abstractmethod
    def read(self, path: Path, schema: Schema, mapping: Path | None) -> Raw:
        """Raises DataError."""

    @abstractmethod
    def examples(self, raw: Raw, schema: Schema) -> Examples:
        """Raises DataError."""

    @abstractmethod
    def profile(self, raw: Raw, spec: TaskSpec) -> Profile:
        """For the hospital's own screen."""

    @abstractmethod
    def requested(self, rows: Sequence[Row], schema: Schema, refusal: Refusal) -> Examples:
        """Rows from JSON to predict for, labelled 0. Raises DataError, or `refusal` of a value of another type."""


def kind_of(schema: DataSchema) -> Kind[Any, Any]:
    kind: Kind[Any, Any] = import_module(f"consilium_client.data.{KINDS[schema.kind]}.kind").KIND
    return kind


def read_examples(
    path: Path, schema: DataSchema, mapping: Path | None = None, *, allow_one_class: bool = True
) -> Examples:
    """The examples in `path` (a file or a folder) by this schema; held-out data may not be of one class alone.

    `mapping`: a file that says how the data's columns become the schema's; not looked at where there are no columns, as
    in a folder. Raises DataError that names file, line and column, never what they hold.
    """
    kind = kind_of(schema)
    examples = kind.examples(kind.read(path, schema, mapping), schema)
    if not allow_one_class:
        require_classes(examples, path, schema)
    return examples


def require_classes(examples: Examples, path: Path, schema: DataSchema) -> None:
    """Raises DataError (OneClassOnly) unless two classes or more are there."""
    if len(examples.classes_present) < 2:
        raise DataError("OneClassOnly", path=path, label=schema.label, present=examples.classes_present[0])


def joined(parts: Sequence[Examples]) -> Examples:
    """All of one schema's examples (at least one part), one part after another."""
    return parts[0].followed_by(parts[1:])


def unlabelled(rows: Sequence[Row]) -> NDArray[np.int64]:
    return np.zeros(len(rows), np.int64)
