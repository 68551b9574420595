"""Data in a format that this project does not know: an installed plug-in reads them, in a process of its own.

A mapping names the reader ([reader]); without a mapping, the task may name one. Or it has a query ([query]), which
`query` runs. Either result goes through the same checks as a file.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, TypeAlias, overload

import numpy as np
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.plugin_specs import ReaderPlugin
from numpy.typing import NDArray

from consilium_client.data.examples import MOST_ROWS, reading
from consilium_client.data.mapping import Mapping, Query, parse_mapping
from consilium_client.data.query.rows import Queried
from consilium_client.data.table.cells import Cell
from consilium_client.errors import DataError

KIND: Final = "plug-in"  # of a source


def named_way(mapping: Path | None, schema: DataSchema) -> ReaderPlugin | Query | None:
    """The reader or query of data without columns, such as a folder. Their mapping is read only if it may name one.

    Raises MappingInvalid.
    """
    if mapping is None:
        return schema.reader
    try:
        raw = mapping.read_bytes()
    except OSError:  # as if it named none
        return None
    if b"reader" in raw or b"query" in raw:
        return parse_mapping(raw, schema, f"the mapping {mapping}").way
    return None


def named_reader(mapping: Path | None, schema: DataSchema) -> ReaderPlugin | None:
    """`named_way` of data that no query gives, as images. Raises MappingInvalid."""
    way = named_way(mapping, schema)
    return way if isinstance(way, ReaderPlugin) else None


def way_for(mapping: Mapping | None, schema: DataSchema) -> ReaderPlugin | Query | None:
    """A mapping is used instead of the task's reader."""
    return schema.reader if mapping is None else mapping.way


@dataclass(frozen=True)
class Foreign:
    """A file or folder that `plugin` reads."""

    plugin: ReaderPlugin
    path: Path
    schema: DataSchema

    @property
    def in_words(self) -> str:
        return f"{self.plugin.in_words}, its reader {self.plugin.entry}"

    def rows(self, names: Sequence[str]) -> ForeignRows:
        """These columns. Raises DataError, PluginError, ProgramError (NotConfined)."""
        from consilium_client.plugins import asking, packing  # few data need them

        def require(shapes: Any) -> None:
            if (rows := packing.rows_of_columns(shapes, names)) > MOST_ROWS:
                raise DataError("TooManyRows", rows=rows, at_most=MOST_ROWS)

        facts = {**self._facts, "columns": list(names)}
        found = asking.read_data(self.plugin, self.path, facts, require, packing.unpacked_columns)
        return ForeignRows(found)

    def images(self, require: Any) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Images uint8 (n, height, width) or (n, height, width, channels), labels (n,). `require`: checks a name, a
        shape and a type. Raises as `rows` does.
        """
        from consilium_client.plugins import asking, packing

        def check(shapes: Any) -> None:
            if shapes.keys() != {"images", "labels"}:
                raise packing.Unpackable(packing.NO_IMAGES)
            for name, (shape, type_) in shapes.items():
                require(name, shape, np.dtype(type_))

        found = asking.read_data(self.plugin, self.path, self._facts, check, dict)
        return found["images"], found["labels"]

    @property
    def _facts(self) -> dict[str, Any]:
        """The task's data for a reader."""
        found: dict[str, Any] = {"kind": self.schema.kind, "classes": list(self.schema.classes)}
        if isinstance(self.schema, ImageSchema):
            return found | {"channels": self.schema.channels, "height": self.schema.height, "width": self.schema.width}
        return found


class ForeignRows:
    """A reader's columns, as the rows of a file are."""

    kind: Literal["plug-in"] = KIND

    def __init__(self, columns: dict[str, NDArray[np.float64] | list[str]]) -> None:
        self.names = tuple(columns)
        self.width = len(columns)
        self._columns = list(columns.values())

    def cells(self, positions: Collection[int]) -> Iterator[tuple[int, Sequence[Cell]]]:
        """Each row's number, from 1, and its cells in these columns."""
        chosen = [self._columns[at] for at in positions]
        yield from enumerate(zip(*(map(_cell, column) for column in chosen), strict=True), 1)


def _cell(value: Any) -> Cell:
    if isinstance(value, str):
        return value.strip()
    return None if math.isnan(value) else float(value)


Opened: TypeAlias = BinaryIO | Foreign | Queried


@overload
def opened(path: Path, way: ReaderPlugin | None, schema: DataSchema) -> AbstractContextManager[BinaryIO | Foreign]: ...


@overload
def opened(path: Path, way: ReaderPlugin | Query | None, schema: DataSchema) -> AbstractContextManager[Opened]: ...


@contextmanager
def opened(path: Path, way: ReaderPlugin | Query | None, schema: DataSchema) -> Iterator[Any]:
    """The file itself, its reader, or its query. Raises DataFileMissing."""
    with reading(path):
        if way is None:
            with path.open("rb") as file:
                yield file
        elif isinstance(way, Query):
            with ExitStack() as stack:
                yield Queried(way, path, stack)
        else:
            yield Foreign(way, path, schema)
