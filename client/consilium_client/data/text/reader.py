"""Texts with labels: the only door through which they enter.

From a table (CSV or Parquet, as `tables` has them) with a column of texts and one of classes' names, or from a folder
of .txt files (`folders`), UTF-8. However a text came, it is the same afterwards: composed Unicode (NFC), lines that end
in a line feed, and no blanks around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Mapped
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
from consilium_chain.tasks.data_schemas import TextSchema
from numpy.typing import NDArray

from consilium_client.data.examples import Examples, require_classes
from consilium_client.data.folders import labelled_files
from consilium_client.data.mapping import Mapping, composed
from consilium_client.data.table.cells import Cell
from consilium_client.data.table.columns import called, counted, opened, positions
from consilium_client.data.table.csv_rows import MOST_OF_CELL, refuse_other_kinds, text_lines
from consilium_client.data.table.reader import MOST_ROWS
from consilium_client.errors import CellError, DataError, ExampleError, in_file

MOST_OF_TEXT = MOST_OF_CELL  # characters: hundreds of times what an encoder reads of a text
ENDINGS = (".txt",)
MOST_BYTES = 4 * MOST_OF_TEXT + 4  # of a file: a mark in front, and the longest characters


@dataclass(frozen=True)
class TextSet(Examples):
    """`labels`: int64 (n,), a class's number each."""

    texts: tuple[str, ...] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)

    def row_bytes(self) -> Iterator[bytes]:
        """After the label the length of the text in 8 bytes, and the text in UTF-8."""
        for label, text in zip(self.labels, self.texts, strict=True):
            raw = text.encode()
            yield int(label).to_bytes(4, "little") + len(raw).to_bytes(8, "little") + raw

    def contents(self) -> Iterator[bytes]:
        return (text.encode() for text in self.texts)

    def chosen(self, which: NDArray[np.bool_]) -> TextSet:
        return TextSet(tuple(compress(self.texts, which)), self.labels[which])

    def relabelled(self, labels: NDArray[np.int64]) -> TextSet:
        return TextSet(self.texts, labels)

    def followed_by(self, others: Sequence[TextSet]) -> TextSet:
        parts = [self, *others]
        texts = tuple(text for part in parts for text in part.texts)
        return TextSet(texts, np.concatenate([part.labels for part in parts]))

    def sums(self) -> NDArray[np.float64]:
        """Texts have nothing to scale: the number of rows, float64 (1,)."""
        return np.array([float(self.rows)])


@dataclass(frozen=True)
class RawTexts:
    """The content of a file or folder. `left_aside`: of a file's columns or a folder's files, those that were not read.

    `sources`: by column of the schema, what it is called in a file; of a folder empty.
    """

    path: Path
    kind: Literal["CSV", "Parquet", "folder"]
    texts: TextSet
    sources: dict[str, str | None]
    left_aside: int
    left_aside_names: tuple[str, ...]


def read_texts(
    path: Path, schema: TextSchema, mapping: Mapping | None = None, *, allow_one_class: bool = True
) -> TextSet:
    """Texts of a file or folder; held-out ones may not be of one class alone (`allow_one_class=False`).

    `mapping`, of a file, fits the schema (`require_fits`); a folder has none. Raises a DataError that names file and
    line, never what a text says.
    """
    texts = read_raw_texts(path, schema, mapping).texts
    if not allow_one_class:
        require_classes(texts, path, schema)
    return texts


def read_raw_texts(path: Path, schema: TextSchema, mapping: Mapping | None = None) -> RawTexts:
    """Raises DataError."""
    path = Path(path)
    try:
        if path.is_dir():
            return _folder(path, schema)
        with path.open("rb") as file:
            return _table(file, path, schema, mapping)
    except FileNotFoundError:
        why = "there is no such file"
    except OSError as error:
        why = error.strerror or type(error).__name__
        path = Path(error.filename) if isinstance(error.filename, str) else path
    raise DataError("DataFileMissing", path=path, why=why)


def clean(text: str) -> str:
    """The form that every text has from then on."""
    return composed(text).replace("\r\n", "\n").replace("\r", "\n").strip()


def _table(file: BinaryIO, path: Path, schema: TextSchema, mapping: Mapping | None) -> RawTexts:
    rows = opened(file, path, mapping)
    wanted = {name: mapping.source(name) if mapping else name for name in schema.used}
    sources = called(wanted)
    places = positions(rows, path, {name: at for name, at in wanted.items() if at is not None}, mapping is None)
    numbers = {composed(name): number for number, name in enumerate(schema.classes)}
    codes = mapping.classes(schema) if mapping else {}
    classes = {cell: numbers[name] for cell, name in codes.items()} if codes else numbers
    column = f"column {schema.text}{in_file(schema.text, sources[schema.text])}"
    texts: list[str] = []
    labels: list[int] = []
    for at, (text, label) in rows.cells([places[schema.text], places[schema.label]]):
        if len(texts) == MOST_ROWS:
            raise DataError("TooManyRows", rows=MOST_ROWS + 1, at_most=MOST_ROWS)
        texts.append(text_of(text, path, f"{counted(rows)} {at}, {column}", at))
        number = _class_of(label, classes)
        if number is None:
            where = {"counted": counted(rows), "called": in_file(schema.label, sources[schema.label])}
            unknown = "CodeUnknown" if codes else "LabelUnknown"
            raise CellError(unknown, path=path, row=at, column=schema.label, **where)
        labels.append(number)
    if not texts:
        raise DataError("DataFileEmpty", path=path)
    aside = [name for position, name in enumerate(rows.names or ()) if position not in places.values()]
    return RawTexts(path, rows.kind, _set(texts, labels), sources, rows.width - len(places), tuple(aside))


def text_of(cell: Cell, path: Path, where: str, at: int) -> str:
    if isinstance(cell, float):
        raise ExampleError("TextIsNumber", path=path, at=where)
    text = clean(cell or "")
    if not text:
        raise ExampleError("TextEmpty", path=path, at=where)
    if "\0" in text:  # which Parquet lets pass
        raise DataError("NullByte", path=path, line=at)
    if len(text) > MOST_OF_TEXT:
        raise ExampleError("TextTooLong", path=path, at=where)
    return text


def _class_of(cell: Cell, classes: Mapped[str, int]) -> int | None:
    """Parquet may hold names that are numbers as such."""
    if isinstance(cell, float):
        cell = str(int(cell)) if cell.is_integer() else str(cell)
    return classes.get(composed(cell or ""))


def _folder(path: Path, schema: TextSchema) -> RawTexts:
    listing = labelled_files(path, schema.classes, ENDINGS, MOST_ROWS)
    texts = [_file_text(file.path, path, file.name) for file in listing.files]
    labels = [file.label for file in listing.files]
    return RawTexts(path, "folder", _set(texts, labels), {}, listing.left_aside, ())


def _file_text(path: Path, folder: Path, name: str) -> str:
    with path.open("rb") as file:
        if path.stat().st_size > MOST_BYTES:
            raise ExampleError("TextTooLong", path=folder, at=name)
        refuse_other_kinds(file, path, "utf-8")
        text = clean("".join(text_lines(file, path, "utf-8")))
    if not text:
        raise ExampleError("TextEmpty", path=folder, at=name)
    if len(text) > MOST_OF_TEXT:
        raise ExampleError("TextTooLong", path=folder, at=name)
    return text


def _set(texts: list[str], labels: list[int]) -> TextSet:
    return TextSet(tuple(texts), np.array(labels, dtype=np.int64))
