"""Reads examples as a node does, by mappings that are not files."""

from __future__ import annotations

from pathlib import Path

from consilium_chain.tasks.data_schemas import TableSchema, TextSchema
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_client.data.image.reader import ImageSet, read_raw_images
from consilium_client.data.mapping import Mapping
from consilium_client.data.table.reader import Table, checked, read_raw
from consilium_client.data.text.reader import TextSet, read_raw_texts


def read_table(path: Path, schema: TableSchema, mapping: Mapping | None = None) -> Table:
    return checked(read_raw(path, schema, mapping), schema)


def read_texts(path: Path, schema: TextSchema, mapping: Mapping | None = None) -> TextSet:
    return read_raw_texts(path, schema, mapping).texts


def read_images(path: Path, schema: ImageSchema) -> ImageSet:
    return read_raw_images(path, schema).images
