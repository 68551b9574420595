"""A hospital's or voter's labelled examples, of whatever kind a task asks for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from pathlib import Path

import numpy as np
from consilium_chain.tasks.data_schemas import DataSchema, ImageSchema, TableSchema
from numpy.typing import NDArray

from consilium_client.data.image.reader import ImageSet, read_images
from consilium_client.data.mapping import read_mapping
from consilium_client.data.table.reader import Table, read_table
from consilium_client.data.text.reader import TextSet, read_texts

Examples = Table | TextSet | ImageSet


def read_examples(
    path: Path, schema: DataSchema, mapping: Path | None = None, *, allow_one_class: bool = True
) -> Examples:
    """What `path` (a file or a folder) holds for this schema; held-out data may not be of one class alone.

    `mapping`: a file that says how the data's columns become the schema's; not looked at where there are no columns, as
    in a folder. Raises DataError, MappingInvalid.
    """
    if isinstance(schema, TableSchema):
        return read_table(path, schema, mapping=read_mapping(mapping, schema), allow_one_class=allow_one_class)
    if isinstance(schema, ImageSchema):
        return read_images(path, schema, allow_one_class=allow_one_class)
    columns = None if path.is_dir() else read_mapping(mapping, schema)
    return read_texts(path, schema, columns, allow_one_class=allow_one_class)


def chosen(examples: Examples, which: NDArray[np.bool_]) -> Examples:
    """Those of `which` (n,), in their order."""
    if isinstance(examples, Table):
        return Table(examples.features[which], examples.labels[which])
    if isinstance(examples, ImageSet):
        return ImageSet(examples.pixels[which], examples.labels[which])
    return TextSet(tuple(compress(examples.texts, which)), examples.labels[which])


def joined(parts: Sequence[Examples]) -> Examples:
    """All of one schema's examples (at least one part), one part after another."""
    labels = np.concatenate([part.labels for part in parts])
    if tables := [part for part in parts if isinstance(part, Table)]:
        return Table(np.concatenate([part.features for part in tables]), labels)
    if images := [part for part in parts if isinstance(part, ImageSet)]:
        return ImageSet(np.concatenate([part.pixels for part in images]), labels)
    return TextSet(tuple(text for part in parts if isinstance(part, TextSet) for text in part.texts), labels)
