"""Rows of a CSV file, one at a time, so a large file needs no more memory than one row.

It uses `csv`, not pandas, which silently pads short lines with missing values and renames duplicate columns.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Literal

from consilium_client.data.mapping import FileFormat
from consilium_client.errors import DataError

MOST_OF_LINE = 1 << 20  # characters; a row of 10,000 columns is well below
MOST_OF_CELL = csv.field_size_limit()  # 131,072 characters, which a cell with an open quotation mark soon exceeds

_DELIMITERS = ",;\t|"
_ESCAPED = re.compile("[\udc80-\udcff]")  # bytes that are not of the encoding, by `surrogateescape`
# Files that people take for tables, and packed tables.
_KINDS = {
    b"PK\x03\x04": "an Excel workbook (.xlsx) or another zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls)",
    b"\x1f\x8b": "a gzip archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"\x28\xb5\x2f\xfd": "a Zstandard archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"%PDF": "a PDF",
    b"<!DOCTYPE": "a web page (HTML)",
    b"<!doctype": "a web page (HTML)",
    b"<html": "a web page (HTML)",
    b"SQLite format 3": "an SQLite database",
    b"ARROW1": "an Arrow (Feather) file",
    b"$FL2": "an SPSS file",
    b"<stata_dta>": "a Stata file",
}


class CsvRows:
    """An opened file, read to its first row. `names`: of its columns; None without a header line. `header_ends`: the
    line on which the header ends; 0 without one.

    Raises DataFileMalformed and DataFileEmpty, here and from `cells`.
    """

    kind: Literal["CSV"] = "CSV"

    def __init__(self, file: BinaryIO, path: Path, format_: FileFormat) -> None:
        self._path, self._format = path, format_
        refuse_other_kinds(file, path, format_.encoding)
        self._records = _records(text_lines(file, path, format_.encoding), path, format_.delimiter)
        first = next(self._records, None)
        if first is None:
            raise DataError("DataFileEmpty", path=path)
        line, cells = first
        cells = [cell.strip() for cell in cells]
        if len(cells) == 1:
            _refuse_other_delimiter(cells[0], path, format_.delimiter)
        self.width = len(cells)
        self.names: list[str] | None = cells if format_.header else None
        self.header_ends = line if format_.header else 0
        self._held_back = None if format_.header else (line, cells)

    def cells(self, positions: Sequence[int]) -> Iterator[tuple[int, list[str]]]:
        """Each row's cells at these positions (from 0), with the line on which it ends (from 1). Call it only once."""
        if self._held_back is not None:
            line, cells = self._held_back
            yield line, [cells[position] for position in positions]
        yield from self._chosen(self._records, positions)

    def cells_of(self, file: BinaryIO, positions: Sequence[int], line: int) -> Iterator[tuple[int, list[str]]]:
        """The same of rows alone, from a part of the file that begins with this line."""
        lines = text_lines(file, self._path, self._format.encoding, line - 1)
        return self._chosen(_records(lines, self._path, self._format.delimiter, line - 1), positions)

    def _chosen(
        self, records: Iterator[tuple[int, list[str]]], positions: Sequence[int]
    ) -> Iterator[tuple[int, list[str]]]:
        for line, cells in records:
            if len(cells) != self.width:
                raise DataError("LineWidthWrong", path=self._path, line=line, found=len(cells), expected=self.width)
            yield line, [cells[position].strip() for position in positions]


def refuse_other_kinds(file: BinaryIO, path: Path, encoding: str) -> None:
    start = file.read(16)
    file.seek(0)
    for magic, kind in _KINDS.items():
        if start.startswith(magic):
            raise DataError("FileKindWrong", path=path, kind=kind)
    marked = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if marked or b"\0" in (start[0:1], start[1:2]):  # the latter: a Latin letter in 16 bits
        raise DataError(
            "EncodingWrong",
            path=path,
            encoding=encoding.upper(),
            line=1,
            found=': it is UTF-16 (some programs call it "Unicode")',
        )


def text_lines(file: BinaryIO, path: Path, encoding: str, before: int = 0) -> Iterator[str]:
    """Lines of text with their ends, of any kind. `before`: lines of the file that were read before."""
    is_marked = encoding == "utf-8" and not before
    codec = "utf-8-sig" if is_marked else encoding  # spreadsheets put a byte order mark in front
    text = io.TextIOWrapper(file, codec, "surrogateescape", newline="")
    number = before
    try:
        while line := text.readline(MOST_OF_LINE + 1):
            number += 1
            if len(line) > MOST_OF_LINE:
                raise DataError("LineTooLong", path=path, line=number, what="line", at_most=MOST_OF_LINE)
            if "\0" in line:
                raise DataError("NullByte", path=path, line=number)
            if not line.isascii() and _ESCAPED.search(line):
                raise DataError("EncodingWrong", path=path, encoding=encoding.upper(), line=number, found="")
            yield line
    finally:
        if not file.closed:
            text.detach()  # the caller closes the file


def _records(lines: Iterator[str], path: Path, delimiter: str, before: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Rows, and the line on which each ends. Blank lines are ignored. `before`: as `text_lines` has it."""
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        begins = before + reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            fault = str(error)
        else:
            if cells is None:
                return
            if cells:
                yield before + reader.line_num, cells
            continue
        ended, too_long, line = next(lines, None) is None, "limit" in fault, before + reader.line_num
        if too_long and line == begins:
            raise DataError("LineTooLong", path=path, line=begins, what="cell", at_most=MOST_OF_CELL)
        if too_long or (ended and "unexpected end" in fault):
            raise DataError("QuoteNotClosed", path=path, line=begins)
        raise DataError("DataFileMalformed", path=path, why="a quotation mark is misplaced", line=line)


def _refuse_other_delimiter(line: str, path: Path, expected: str) -> None:
    found = max(_DELIMITERS, key=line.count)
    if found in line:
        toml = '"\\t"' if found == "\t" else f'"{found}"'
        raise DataError("DelimiterWrong", path=path, expected=expected, found=found, toml=toml)
