"""A hospital's or voter's labelled examples, of whatever kind a task asks for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from consilium_chain.tasks.data_schemas import DataSchema
from numpy.typing import NDArray

from consilium_client.errors import DataError

REQUEST = Path("the request")  # the path in errors about rows to predict for

Row = Mapping[str, Any]
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


def require_classes(examples: Examples, path: Path, schema: DataSchema) -> None:
    """Raises DataError (OneClassOnly) unless two classes or more are there."""
    if len(examples.classes_present) < 2:
        raise DataError("OneClassOnly", path=path, label=schema.label, present=examples.classes_present[0])


def joined(parts: Sequence[Examples]) -> Examples:
    """All of one schema's examples (at least one part), one part after another."""
    return parts[0].followed_by(parts[1:])


def unlabelled(rows: Sequence[Row]) -> NDArray[np.int64]:
    return np.zeros(len(rows), np.int64)
