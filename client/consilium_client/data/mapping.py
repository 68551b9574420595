"""A mapping: how a hospital's own file becomes the table that the task's schema asks for. A TOML file of its author's.

    [file]                      # all of it may be left out
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

A column that is not named here is the file's column of that name. Of texts the label's codes give names of classes:

    diagnosis = { column = "Befund", codes = { neg = "healthy", pos = "ill" } }
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

from consilium_chain.tasks.data_schemas import CategoryFeature, TableSchema, TextSchema
from consilium_core.typed_toml import Section, parse_toml
from pydantic import BeforeValidator, Field, model_validator

from consilium_client.data.table.cells import DecimalMark, Reading, key
from consilium_client.errors import DataError

Position = Annotated[int, Field(ge=1, strict=True)]
Columns = TableSchema | TextSchema  # what a mapping can lead to


class FileFormat(Section):
    """The form of the file. Of Parquet, which says so itself, `missing` and `decimal` apply to texts."""

    delimiter: Literal[",", ";", "\t", "|"] = ","
    decimal: DecimalMark = "."
    encoding: Literal["utf-8", "latin-1", "cp1252"] = "utf-8"
    header: bool = True
    missing: tuple[str, ...] = ("?",)

    @model_validator(mode="after")
    def _unambiguous(self) -> FileFormat:
        if self.delimiter == self.decimal:
            raise ValueError("delimiter and decimal are the same")
        return self


class ColumnMapping(Section):
    """The source of one of the task's columns, and the meaning of its cells."""

    column: str | Position | None = Field(default=None, description="name, or position from 1 in a file without header")
    codes: dict[str, float | str] = Field(
        default={}, description="the file's texts, to the task's numbers; of texts' labels, to its classes' names"
    )
    missing: tuple[str, ...] = ()  # beside those of the whole file
    scale: float = 1.0
    offset: float = 0.0
    absent: bool = Field(default=False, description="the file does not have it: missing in every row")

    @model_validator(mode="after")
    def _one_meaning(self) -> ColumnMapping:
        if self.absent and self.model_fields_set != {"absent"}:
            raise ValueError("absent, and more is said of it: leave out either")
        if self.codes and (self.scale, self.offset) != (1.0, 0.0):
            raise ValueError("codes give the task's own numbers: leave out scale and offset")
        if self.scale == 0.0:
            raise ValueError("scale is 0, which makes all values one")
        return self


def _column_alone(column: object) -> object:
    return column if isinstance(column, dict) else {"column": column}


class Mapping(Section):
    file: FileFormat = FileFormat()
    columns: dict[str, Annotated[ColumnMapping, BeforeValidator(_column_alone)]] = Field(default={})

    def source(self, column: str) -> str | int | None:
        """The file's column that the task's `column` is: name, or position from 1; None: the file has none."""
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
        """By what a label's cell holds, the name of the class; empty without codes for it. Both NFC."""
        codes = self.columns.get(schema.label, ColumnMapping()).codes
        return {composed(text.strip()): composed(str(name)) for text, name in codes.items()}

    def require_fits(self, schema: Columns) -> None:
        """Raises MappingInvalid with every fault."""
        expected = schema.used
        faults = [f"the task has no column {name}" for name in self.columns if name not in expected]
        sources = [(name, self.source(name)) for name in expected]
        for source, count in Counter(source for _, source in sources if source is not None).items():
            if count > 1:
                both = " and ".join(name for name, other in sources if other == source)
                faults.append(f"{both} are one column of the file, {source}")
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
            faults += self._faults_of_codes(schema.label, [float(number) for number in range(len(schema.classes))])
        else:
            faults += self._faults_of_classes(schema)
        if self.source(schema.label) is None:
            faults.append(f"the label {schema.label} may not be absent")
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
            faults.append(f"the codes of {column} give texts, where the task has numbers")
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
        faults = []
        for name, allowed in ((schema.text, {"column"}), (schema.label, {"column", "codes", "absent"})):
            said = self.columns.get(name, ColumnMapping()).model_fields_set - allowed
            faults += [f"{name} holds texts: leave out {field}" for field in sorted(said)]
        codes, known = self.columns.get(schema.label, ColumnMapping()).codes, set(map(composed, schema.classes))
        foreign = [str(name) for name in codes.values() if composed(str(name)) not in known]
        if foreign:
            faults.append(f"the codes of {schema.label} give {', '.join(foreign)}, which is no class of the task's")
        if len(self.classes(schema)) < len(codes):
            faults.append(f"two codes of {schema.label} are the same but for blanks or accents")
        return faults


def composed(text: str) -> str:
    """In Unicode's composed form (NFC), whichever form a program or a file system gave it."""
    return unicodedata.normalize("NFC", text)


def parse_mapping(raw: bytes, schema: Columns, what: str = "the mapping") -> Mapping:
    """Raises MappingInvalid with every fault and where it stands."""
    mapping = parse_toml(raw, Mapping, what, lambda why: DataError("MappingInvalid", why=why))
    mapping.require_fits(schema)
    return mapping


def read_mapping(path: Path | None, schema: Columns) -> Mapping | None:
    """The mapping at `path`, or none where a node's settings name none. Raises MappingInvalid."""
    if path is None:
        return None
    try:
        raw = path.read_bytes()
    except OSError as error:
        why = error.strerror or type(error).__name__
    else:
        return parse_mapping(raw, schema, f"the mapping {path}")
    raise DataError("MappingInvalid", why=f"the mapping {path} cannot be read: {why}")
