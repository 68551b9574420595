"""A mapping: a TOML file that maps a hospital's own file to the table of the task's schema.

    [file]                      # every line may be left out
    delimiter = ";"             # , ; | or a tab ("\\t")
    decimal = ","
    encoding = "cp1252"         # utf-8, latin-1 or cp1252
    header = true               # false: no header line, and columns are named by position, from 1
    missing = ["?", "NA"]       # beside the empty cell, in every column

    [columns]
    age = "Alter"                                                         # the task's column = the file's
    chol = { column = "Cholesterin", scale = 0.02586 }                    # mg/dl to mmol/l: value · scale + offset
    sex = { column = "Geschlecht", codes = { m = 1, w = 0 } }
    fbs = { column = "Nüchternzucker", missing = ["-9"] }
    ca = { absent = true }                                                # this hospital does not record it

A column without a line here has the same name in the file. For texts, the label's codes give the names of classes:

    diagnosis = { column = "Befund", codes = { neg = "healthy", pos = "ill" } }

A plug-in may read the file or folder (`foreign`). Then columns have the names that it gives:

    [reader]
    distribution = "ecg-readers"
    version = "1.0"
    entry = "wfdb"
    record = "…"                # as `consilium plugin list` prints it
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

from consilium_chain.tasks.data_schemas import CategoryFeature, DataSchema, ImageSchema, TableSchema, TextSchema
from consilium_chain.tasks.plugin_specs import ReaderPlugin
from consilium_core.typed_toml import Section, parse_toml
from pydantic import BeforeValidator, Field, model_validator

from consilium_client.data.table.cells import DecimalMark, Reading, key
from consilium_client.errors import DataError

Position = Annotated[int, Field(ge=1, strict=True)]


class FileFormat(Section):
    """The form of the file. In Parquet only `missing` and `decimal` apply, to texts."""

    delimiter: Literal[",", ";", "\t", "|"] = ","
    decimal: DecimalMark = "."
    encoding: Literal["utf-8", "latin-1", "cp1252"] = "utf-8"
    header: bool = True
    missing: tuple[str, ...] = ("?",)

    @model_validator(mode="after")
    def _unambiguous(self) -> FileFormat:
        if self.delimiter == self.decimal:
            raise ValueError("delimiter and decimal are the same character; change one")
        return self


class ColumnMapping(Section):
    """The file's column for one of the task's columns, and the meaning of its cells."""

    column: str | Position | None = Field(default=None, description="name, or position from 1 in a file without header")
    codes: dict[str, float | str] = Field(
        default={}, description="the task's number for each text in the file; for labels of texts, the class's name"
    )
    missing: tuple[str, ...] = ()  # in addition to those of the whole file
    scale: float = 1.0
    offset: float = 0.0
    absent: bool = Field(default=False, description="the file does not have it, so it is missing in every row")

    @model_validator(mode="after")
    def _one_meaning(self) -> ColumnMapping:
        if self.absent and self.model_fields_set != {"absent"}:
            raise ValueError("an absent column has no other settings: remove absent, or all others")
        if self.codes and (self.scale, self.offset) != (1.0, 0.0):
            raise ValueError("codes already give the task's numbers: leave out scale and offset")
        if self.scale == 0.0:
            raise ValueError("scale is 0, so all values would be the same; write another scale")
        return self


def _column_alone(column: object) -> object:
    return column if isinstance(column, dict) else {"column": column}


class Mapping(Section):
    reader: ReaderPlugin | None = Field(default=None, description="the installed plug-in that reads the file or folder")
    file: FileFormat = FileFormat()
    columns: dict[str, Annotated[ColumnMapping, BeforeValidator(_column_alone)]] = Field(default={})

    @model_validator(mode="after")
    def _readable(self) -> Mapping:
        if self.reader is not None and not self.file.header:
            raise ValueError("the columns of a reader have names: leave out header = false")
        return self

    def source(self, column: str) -> str | int | None:
        """The file's column for the task's `column`: its name, or its position from 1; None if it is absent."""
        named = self.columns.get(column, ColumnMapping())
        if named.absent:
            return None
        return column if named.column is None else named.column

    def reading(self, column: str) -> Reading:
        named, file = self.columns.get(column, ColumnMapping()), self.file
        missing = [*file.missing, *named.missing]
        codes = {text: number for text, number in named.codes.items() if not isinstance(number, str)}
        return Reading.of_texts(file.decimal, missing, codes, named.scale, named.offset)

    def classes(self, schema: TextSchema) -> dict[str, str]:
        """The name of the class by the text of a label's cell, both NFC; empty without codes for the label."""
        codes = self.columns.get(schema.label, ColumnMapping()).codes
        return {composed(text.strip()): composed(str(name)) for text, name in codes.items()}

    def require_fits(self, schema: DataSchema) -> None:
        """Raises MappingInvalid with every fault."""
        if isinstance(schema, ImageSchema):
            if self.reader is not None and not self.columns:
                return
            raise DataError("MappingInvalid", why="images have no columns; leave the mapping out")
        expected = schema.used
        faults = [f"the task has no column {name}" for name in self.columns if name not in expected]
        sources = [(name, self.source(name)) for name in expected]
        for source, count in Counter(source for _, source in sources if source is not None).items():
            if count > 1:
                both = " and ".join(name for name, other in sources if other == source)
                faults.append(f"{both} use the same column of the file, {source}")
        wanted, unwanted = ("name", int) if self.file.header else ("position", str)
        faults += [
            f"{name} needs the {wanted} of its column in the file, as the file has {'a' if self.file.header else 'no'}"
            " header line"
            for name, source in sources
            if isinstance(source, unwanted)
        ]
        if isinstance(schema, TableSchema):
            for feature in schema.features:
                known = feature.values if isinstance(feature, CategoryFeature) else None
                faults += self._faults_of_codes(feature.name, known)
            for column in schema.asked.columns:
                faults += self._faults_of_codes(column, schema.asked.codes(column))
        else:
            extra = self.columns.get(schema.text, ColumnMapping()).model_fields_set - {"column"}
            faults += [f"{schema.text} holds texts: leave out {field}" for field in sorted(extra)]
        if isinstance(schema, TextSchema):
            faults += self._faults_of_classes(schema)
        absent = [column for column in schema.asked.columns if self.source(column) is None]
        faults += [f"the label {column} may not be absent" for column in absent]
        if faults:
            raise DataError("MappingInvalid", why=f"the mapping does not fit the task: {'; '.join(faults)}")

    def _faults_of_codes(self, column: str, known: list[float] | None) -> list[str]:
        """`known`: the task's numbers for a column of codes; None for one of measurements."""
        named = self.columns.get(column, ColumnMapping())
        faults = []
        if known is not None and (named.scale, named.offset) != (1.0, 0.0):
            faults.append(f"{column} holds codes: leave out scale and offset")
        numbers_of = {text: number for text, number in named.codes.items() if not isinstance(number, str)}
        if len(numbers_of) < len(named.codes):
            faults.append(f"the codes of {column} give texts, but the task has numbers")
        foreign = sorted({number for number in numbers_of.values() if known is not None and number not in known})
        if foreign:
            numbers = ", ".join(f"{number:g}" for number in foreign)
            faults.append(f"the codes of {column} give {numbers}, which the task does not know")
        decimal, missing = self.file.decimal, self.reading(column).missing
        meanings: dict[str | float, float] = {}
        for text, number in numbers_of.items():
            by = key(text.strip(), decimal)
            if by in missing or by == "" or meanings.setdefault(by, number) != number:
                faults.append(f'the code "{text}" of {column} has two meanings')
        return faults

    def _faults_of_classes(self, schema: TextSchema) -> list[str]:
        extra = self.columns.get(schema.label, ColumnMapping()).model_fields_set - {"column", "codes", "absent"}
        faults = [f"{schema.label} holds texts: leave out {field}" for field in sorted(extra)]
        codes, known = self.columns.get(schema.label, ColumnMapping()).codes, set(map(composed, schema.classes))
        foreign = [str(name) for name in codes.values() if composed(str(name)) not in known]
        if foreign:
            faults.append(f"the codes of {schema.label} give {', '.join(foreign)}, which the task has no class for")
        if len(self.classes(schema)) < len(codes):
            faults.append(f"two codes of {schema.label} differ only in blanks or in the encoding of accents")
        return faults


def composed(text: str) -> str:
    """In Unicode's composed form (NFC): programs and file systems use different forms."""
    return unicodedata.normalize("NFC", text)


def parse_mapping(raw: bytes, schema: DataSchema, what: str = "the mapping") -> Mapping:
    """Raises MappingInvalid with every fault and its place."""
    mapping = parse_toml(raw, Mapping, what, lambda why: DataError("MappingInvalid", why=why))
    mapping.require_fits(schema)
    return mapping


def read_mapping(path: Path | None, schema: DataSchema) -> Mapping | None:
    """The mapping at `path`; None if a node's settings have no path. Raises MappingInvalid."""
    if path is None:
        return None
    try:
        raw = path.read_bytes()
    except OSError as error:
        why = f"the mapping {path} cannot be read: {error.strerror or type(error).__name__}"
        raise DataError("MappingInvalid", why=why) from error
    return parse_mapping(raw, schema, f"the mapping {path}")
