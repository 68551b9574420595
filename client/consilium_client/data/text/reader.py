"""Reads texts with labels from a table (CSV or Parquet) or from a folder of UTF-8 .txt files (`folders`).

A table has a column of texts and a column of class names; a corpus has texts alone. Afterwards every text has one form:
composed Unicode (NFC), line feeds at the ends of lines, and no blanks around it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from collections.abc import Mapping as Mapped
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from consilium_chain.tasks.data_schemas import CorpusSchema, TextSchema
from numpy.typing import NDArray

from consilium_client.data.answers import answers_of
from consilium_client.data.examples import MOST_ROWS, Examples, Labels, Source, reading
from consilium_client.data.folders import labelled_files, unlabelled_files
from consilium_client.data.foreign import Opened, opened, way_for
from consilium_client.data.mapping import Mapping
from consilium_client.data.table.cells import Cell, composed
from consilium_client.data.table.columns import Columns
from consilium_client.data.table.csv_rows import MOST_OF_CELL, refuse_other_kinds, text_lines
from consilium_client.data.use import Use, Used, UsedRows, without_column
from consilium_client.errors import DataError, ExampleError

Schema = TextSchema | CorpusSchema
Rows = Iterable[tuple[int, Mapped[str, Cell]]]
MOST_OF_TEXT = MOST_OF_CELL  # characters: hundreds of times more than an encoder reads
ENDINGS = (".txt",)
MOST_BYTES = 4 * MOST_OF_TEXT + 4  # of a file: a mark in front, and the longest characters


@dataclass(frozen=True)
class TextSet(Examples):
    """`labels`: int64 (n,), a class's number each."""

    texts: tuple[str, ...] = field(repr=False)
    labels: Labels = field(repr=False)

    def row_bytes(self) -> Iterator[bytes]:
        """After the label the length of the text in 8 bytes, and the text in UTF-8."""
        for label, text in zip(self.label_bytes, self.texts, strict=True):
            raw = text.encode()
            yield label + len(raw).to_bytes(8, "little") + raw

    def contents(self) -> Iterator[bytes]:
        return (text.encode() for text in self.texts)

    def sums(self) -> NDArray[np.float64]:
        """Texts have nothing to scale: the number of rows, float64 (1,)."""
        return np.array([float(self.rows)])


@dataclass(frozen=True)
class RawTexts:
    source: Source
    texts: TextSet


def read_raw_texts(path: Path, schema: Schema, mapping: Mapping | None = None) -> RawTexts:
    """Texts of a file or folder. `mapping`, of a file, fits the schema (`require_fits`); a folder has none.

    Raises a DataError that names file and line, but never has a part of a text.
    """
    way = way_for(mapping, schema)
    with reading(path):
        if path.is_dir() and way is None:
            return _folder(path, schema)
    with opened(path, way, schema) as file:
        return _table(file, path, schema, mapping)


def read_texts_in_use(path: Path, schema: Schema, use: Use) -> Used:
    """Texts of a file or folder for a finished model. Raises DataError."""
    way = use.columns.way
    with reading(path):
        if path.is_dir() and way is None:
            return _folder_in_use(path, schema, use)
        with opened(path, way, schema) as file:
            rows = UsedRows(file, path, schema.used if use.labelled else [schema.text], use)
            texts = _texts(rows, rows.source, schema, use.columns, use.labelled)
        return Used(rows.source, texts, rows.own)


def _folder_in_use(path: Path, schema: Schema, use: Use) -> Used:
    if use.own is not None:
        raise without_column(path, use.own)
    if use.labelled:
        raw = _folder(path, schema)
        return Used(raw.source, raw.texts)
    names, texts = _unlabelled_folder(path)
    return Used(Source(path, "folder"), _unlabelled(texts), names=names)


def _unlabelled_folder(path: Path) -> tuple[tuple[str, ...], list[str]]:
    files = unlabelled_files(path, ENDINGS, MOST_ROWS)
    return tuple(name for name, _ in files), [_file_text(file, path, name) for name, file in files]


def _unlabelled(texts: list[str]) -> TextSet:
    return _set(texts, [0] * len(texts))


def clean(text: str) -> str:
    """The one form of a text."""
    return composed(text).replace("\r\n", "\n").replace("\r", "\n").strip()


def _checked(text: str, path: Path, at: str) -> str:
    text = clean(text)
    if not text or len(text) > MOST_OF_TEXT:
        raise ExampleError("TextTooLong" if text else "TextEmpty", path=path, at=at)
    return text


def _table(file: Opened, path: Path, schema: Schema, mapping: Mapping | None) -> RawTexts:
    columns = Columns(file, path, mapping, schema.used)
    rows = ((row, dict(zip(columns.at, cells, strict=True))) for row, cells in columns)
    return RawTexts(columns.source, _texts(rows, columns.source, schema, mapping or Mapping()))


def _texts(rows: Rows, source: Source, schema: Schema, mapping: Mapping, labelled: bool = True) -> TextSet:
    if isinstance(schema, CorpusSchema) or not labelled:
        return _unlabelled([text_of(cells[schema.text], source, row, schema.text) for row, cells in rows])
    if not schema.classes:
        return _answered(rows, source, schema, mapping)
    numbers = {composed(name): number for number, name in enumerate(schema.classes)}
    codes = mapping.classes(schema)
    classes = {cell: numbers[name] for cell, name in codes.items()} if codes else numbers
    texts: list[str] = []
    labels: list[int] = []
    for row, cells in rows:
        texts.append(text_of(cells[schema.text], source, row, schema.text))
        number = _class_of(cells[schema.label], classes)
        if number is None:
            raise source.cell_error("CodeUnknown" if codes else "LabelUnknown", row, schema.label)
        labels.append(number)
    return _set(texts, labels)


def _answered(rows: Rows, source: Source, schema: TextSchema, mapping: Mapping) -> TextSet:
    """Texts with the answer of a question other than classes."""
    answers, asked, texts = answers_of(schema), schema.asked.columns, list[str]()
    rules, values = {name: mapping.reading(name) for name in asked}, {name: array("d") for name in asked}
    for row, cells in rows:
        texts.append(text_of(cells[schema.text], source, row, schema.text))
        for name, rule in rules.items():
            found = answers.accepted(name, cells[name], rule.number(cells[name]))
            if isinstance(found, str):
                raise source.cell_error(found, row, name)
            values[name].append(found)
    return TextSet(tuple(texts), answers.labels({name: np.array(column) for name, column in values.items()}))


def text_of(cell: Cell, source: Source, row: int, column: str) -> str:
    """A cell's text. Raises ExampleError, NullByte."""
    where = source.where(row, column)
    if isinstance(cell, float):
        raise ExampleError("TextIsNumber", path=source.path, at=where)
    text = _checked(cell or "", source.path, where)
    if "\0" in text:  # which Parquet lets pass
        raise DataError("NullByte", path=source.path, line=row)
    return text


def _class_of(cell: Cell, classes: Mapped[str, int]) -> int | None:
    """A Parquet file may have class names that are numbers."""
    if isinstance(cell, float):
        cell = str(int(cell)) if cell.is_integer() else str(cell)
    return classes.get(composed(cell or ""))


def _folder(path: Path, schema: Schema) -> RawTexts:
    if isinstance(schema, CorpusSchema):
        return RawTexts(Source(path, "folder"), _unlabelled(_unlabelled_folder(path)[1]))
    listing = labelled_files(path, schema, ENDINGS, MOST_ROWS)
    texts = [_file_text(file.path, path, file.name) for file in listing.files]
    return RawTexts(
        Source(path, "folder", left_aside=listing.left_aside), TextSet(tuple(texts), listing.labels(schema))
    )


def _file_text(path: Path, folder: Path, name: str) -> str:
    with path.open("rb") as file:
        if path.stat().st_size > MOST_BYTES:
            raise ExampleError("TextTooLong", path=folder, at=name)
        refuse_other_kinds(file, path, "utf-8")
        return _checked("".join(text_lines(file, path, "utf-8")), folder, name)


def _set(texts: list[str], labels: list[int]) -> TextSet:
    return TextSet(tuple(texts), np.array(labels, dtype=np.int64))
