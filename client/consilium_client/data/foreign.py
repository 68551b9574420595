"""Data in a format that this project does not know: an installed plug-in reads them, in a process of its own.

A mapping names the reader ([reader]); without a mapping, the task may name one. Its result goes through the same checks
as a file.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import numpy as np
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.plugin_specs import ReaderPlugin
from numpy.typing import NDArray

from consilium_client.data.examples import MOST_ROWS, reading
from consilium_client.data.mapping import Mapping, parse_mapping
from consilium_client.data.table.cells import Cell
from consilium_client.errors import DataError

KIND: Final = "plug-in"  # of a source


def named_reader(mapping: Path | None, schema: DataSchema) -> ReaderPlugin | None:
    """The reader of data without columns, such as a folder. Their mapping is read only if it may name one.

    Raises MappingInvalid.
    """
    if mapping is None:
        return schema.reader
    try:
        raw = mapping.read_bytes()
    except OSError:  # as if it named none
        return None
    return parse_mapping(raw, schema, f"the mapping {mapping}").reader if b"reader" in raw else None


def reader_for(mapping: Mapping | None, schema: DataSchema) -> ReaderPlugin | None:
    """A mapping stands in the place of the task's reader."""
    return schema.reader if mapping is None else mapping.reader


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


@contextmanager
def opened(path: Path, plugin: ReaderPlugin | None, schema: DataSchema) -> Iterator[BinaryIO | Foreign]:
    """The file itself, or its reader. Raises DataFileMissing."""
    with reading(path):
        if plugin is None:
            with path.open("rb") as file:
                yield file
        else:
            yield Foreign(plugin, path, schema)
