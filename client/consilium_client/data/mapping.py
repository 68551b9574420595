"""A mapping: a TOML file that maps a hospital's own file to the table of the task's schema.

    [file]                      # every line may be left out
    delimiter = ";"             # , ; | or a tab ("\\t")
    decimal = ","
    encoding = "cp1252"         # utf-8, latin-1 or cp1252
    header = true               # false: no header line, and columns are named by position, from 1
    missing = ["?", "NA"]       # beside the empty cell, in every column
    patient = "MRN"             # read only to keep a patient's rows together when some are held out

    [columns]
    age = "Alter"                                                         # the task's column = the file's
    chol = { column = "Cholesterin", scale = 0.02586 }                    # mg/dl to mmol/l: value · scale + offset
    sex = { column = "Geschlecht", codes = { m = "male", w = "female" } } # numbers, where the task has numbers
    los = { column = "Tage", codes = { "> 89" = 90 } }                    # other cells are numbers
    fbs = { column = "Nüchternzucker", missing = ["-9"] }
    years = { born = "Geburt", on = "Aufnahme", format = "%d.%m.%Y" }     # completed years; without format ISO dates
    ca = { absent = true }                                                # this hospital does not record it

A column without a line here has the same name in the file. For texts, the label's codes give the names of classes:

    diagnosis = { column = "Befund", codes = { neg = "healthy", pos = "ill" } }

A series' measurements may have one value a row. Then the task's variables are names in a column:

    [file]
    variable = "itemid"
    value = "valuenum"

    [columns]
    time = { column = "minutes", scale = 0.016666666666666666 }  # the task's unit is hours
    heart_rate = "220045"

Its times may be dates (`clock`). A plug-in may read the file or folder (`foreign`). Then columns have the names that
it gives:

    [reader]
    distribution = "ecg-readers"
    version = "1.0"
    entry = "wfdb"
    record = "…"                # as `consilium plugin list` prints it

Or a query gives the columns (`query`), of a folder of tables or of a database server:

    [query]
    sql = "SELECT age, sex, died FROM person JOIN visit USING (person_id) ORDER BY person_id"
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from consilium_chain.tasks.data_schemas import DataSchema, TableSchema, TextSchema
from consilium_chain.tasks.features import UNKNOWN, CategoryFeature, Feature, NumericFeature
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.plugin_specs import ReaderPlugin
from consilium_chain.tasks.series_schema import SeriesSchema
from consilium_core.typed_toml import Section, parse_toml
from pydantic import BeforeValidator, Field, model_validator

from consilium_client.data.clock import Clock, Position, seconds_of
from consilium_client.data.table.cells import Ages, DecimalMark, Reading, composed, date_of, key
from consilium_client.errors import DataError

Delimiter = Literal[",", ";", "\t", "|"]
# Keys of columns that are read beside the task's own, which cannot have such names.
PATIENT = "\0patient"
VARIABLE, VALUE = "\0variable", "\0value"
SINCE = "\0since"
ON = "\0on"  # after a column's name
_ON_IN_WORDS = " (on)"


class FileFormat(Section):
    """The form of the file. In Parquet only `missing` and `decimal` apply, to texts."""

    delimiter: Delimiter = ","
    decimal: DecimalMark = "."
    encoding: Literal["utf-8", "latin-1", "cp1252"] = "utf-8"
    header: bool = True
    missing: tuple[str, ...] = (UNKNOWN,)
    patient: str | Position | None = Field(
        default=None, description="column that names the patient: all rows of one are held out, or none"
    )

    variable: str | Position | None = Field(
        default=None, description="of a series with one value a row: the column that names the variable"
    )
    value: str | Position | None = Field(default=None, description="the column of this variable's value")

    @model_validator(mode="after")
    def _unambiguous(self) -> FileFormat:
        if (self.variable is None) != (self.value is None):
            raise ValueError("measurements with one value a row need both: variable and value")
        if self.delimiter == self.decimal:
            raise ValueError("delimiter and decimal are the same character; change one")
        return self


_SOME_DAY = datetime.date(1987, 11, 24)


def _iso(value: object) -> object:
    """TOML has dates without quotation marks, too."""
    return value.isoformat() if isinstance(value, datetime.date) else value


class ColumnMapping(Section):
    """The file's column for one of the task's columns, and the meaning of its cells."""

    column: str | Position | None = Field(default=None, description="name, or position from 1 in a file without header")
    codes: dict[str, float | str] = Field(
        default={}, description="the task's number or name for each text; for labels of texts, the class's name"
    )
    missing: tuple[str, ...] = ()  # in addition to those of the whole file
    scale: float = 1.0
    offset: float = 0.0
    absent: bool = Field(default=False, description="the file does not have it, so it is missing in every row")
    born: str | Position | None = Field(default=None, description="column of birth dates, for an age in years")
    on: Annotated[str | Position | None, BeforeValidator(_iso)] = Field(
        default=None, description="column of the dates on which a patient has the age, or one ISO date for all"
    )
    format: str | None = Field(
        default=None, max_length=40, description="of the dates, by Python's strptime; without, ISO dates"
    )

    @model_validator(mode="after")
    def _one_meaning(self) -> ColumnMapping:
        if self.absent and self.model_fields_set != {"absent"}:
            raise ValueError("an absent column has no other settings: remove absent, or all others")
        if self.scale == 0.0:
            raise ValueError("scale is 0, so all values would be the same; write another scale")
        if (self.born is None) != (self.on is None):
            raise ValueError("an age needs both dates: born and on")
        if self.born is None and self.format is not None:
            raise ValueError("format is of dates: write born and on, or leave it out")
        if self.born is not None and self.model_fields_set - {"born", "on", "format", "missing"}:
            raise ValueError("an age has only born, on, format and missing: leave out all others")
        if self.format is not None and date_of(_SOME_DAY.strftime(self.format), self.format) != _SOME_DAY:
            raise ValueError(
                f"the format {self.format!r} does not give day, month and year; write one such as %d.%m.%Y"
            )
        return self

    @property
    def fixed_date(self) -> datetime.date | None:
        """The date of `on`, if it is no column."""
        return date_of(self.on, None) if isinstance(self.on, str) else None


def _column_alone(column: object) -> object:
    return column if isinstance(column, dict) else {"column": column}


class Query(Section):
    """One SELECT of the hospital's own. Its result's columns are those that the rest of the mapping names."""

    sql: str = Field(min_length=1, max_length=1 << 16)
    seconds: int = Field(default=600, ge=1, le=86_400, description="that it may take")
    gigabytes: int = Field(default=4, ge=1, le=1024, description="of memory that it may take, over files")
    delimiter: Delimiter = Field(default=",", description="of the folder's CSV files")
    decimal: DecimalMark = Field(default=".", description="of the folder's CSV files")


class Mapping(Section):
    reader: ReaderPlugin | None = Field(default=None, description="the installed plug-in that reads the file or folder")
    query: Query | None = Field(default=None, description="gives the columns, of a folder or a database server")
    file: FileFormat = FileFormat()
    clock: Clock | None = Field(default=None, description="the times of a series are dates")
    columns: dict[str, Annotated[ColumnMapping, BeforeValidator(_column_alone)]] = Field(default={})

    @model_validator(mode="after")
    def _readable(self) -> Mapping:
        if self.reader is not None and not self.file.header:
            raise ValueError("the columns of a reader have names: leave out header = false")
        if self.query is not None and self.reader is not None:
            raise ValueError("either a reader or a query gives the columns: leave out one of them")
        if self.query is not None and self.file.model_fields_set - {"missing", "patient"}:
            raise ValueError("beside a query [file] has only missing and patient; CSV has delimiter and decimal there")
        return self

    @property
    def way(self) -> ReaderPlugin | Query | None:
        """Gives the columns instead of a file."""
        return self.reader or self.query

    def source(self, column: str) -> str | int | None:
        """The file's column for the task's `column`: its name, or its position from 1; None if it is absent."""
        named = self.columns.get(column, ColumnMapping())
        if named.absent:
            return None
        if named.born is not None:
            return named.born
        return column if named.column is None else named.column

    def sources(self, used: Sequence[str]) -> dict[str, str | int | None]:
        """The file's column for each of the task's, and for what is read beside them (`ON`, `PATIENT`)."""
        found = {name: self.source(name) for name in used}
        for name in used:
            named = self.columns.get(name)
            if named is not None and named.on is not None and named.fixed_date is None:
                found[name + ON] = named.on
        if self.file.patient is not None:
            found[PATIENT] = self.file.patient
        return found

    def without_query(self) -> Mapping:
        """For other people's data: a query is its hospital's own."""
        return self if self.query is None else self.model_copy(update={"query": None})

    def of_measurements(self) -> Mapping:
        """The same for a series' file of measurements, which names no patient."""
        both = {VARIABLE: ColumnMapping(column=self.file.variable), VALUE: ColumnMapping(column=self.file.value)}
        return self.without_patients().model_copy(update={"columns": self.columns | both})

    def of_outcomes(self) -> Mapping:
        """The same for a series' file of outcomes, which has the times since which the clock counts."""
        if self.clock is None or self.clock.since is None:
            return self
        return self.model_copy(update={"columns": {**self.columns, SINCE: ColumnMapping(column=self.clock.since)}})

    def without_patients(self) -> Mapping:
        return self.model_copy(update={"file": self.file.model_copy(update={"patient": None})})

    def reading(self, column: str, feature: Feature | None = None) -> Reading | Ages:
        """`feature`: the task's, of a column that is no label."""
        named, file = self.columns.get(column, ColumnMapping()), self.file
        missing = [*file.missing, *named.missing]
        if named.born is not None:
            return Ages.of_texts(missing, named.format, named.fixed_date)
        codes = {text: number for text, number in named.codes.items() if not isinstance(number, str)}
        if isinstance(feature, CategoryFeature) and feature.is_named:
            numbers = dict(zip(feature.names, feature.codes, strict=True))
            codes = numbers | {text: numbers[composed(str(name))] for text, name in named.codes.items()}
        # Beside codes of texts alone, such as "> 89", a column of measurements has numbers. A code of a number recodes
        # all of them.
        is_recoded = any(isinstance(key(text.strip(), file.decimal), float) for text in codes)
        only_codes = not isinstance(feature, NumericFeature) or is_recoded
        return Reading.of_texts(file.decimal, missing, codes, named.scale, named.offset, only_codes)

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
        is_narrow = self.file.variable is not None  # then features are no columns
        columns = [name for name in expected if not is_narrow or name not in schema.inputs]
        sources = [(_in_words(name), source) for name, source in self.sources(columns).items()]
        own = [(name, source) for name, source in sources if not name.endswith(_ON_IN_WORDS)]  # several ages share one
        for source, count in Counter(source for _, source in own if source is not None).items():
            if count > 1:
                both = " and ".join(name for name, other in own if other == source)
                faults.append(f"{both} use the same column of the file, {source}")
        if self.clock is not None and self.clock.since is not None:
            sources.append(("clock", self.clock.since))
        wanted, unwanted = ("name", int) if self.file.header else ("position", str)
        faults += [
            f"{name} needs the {wanted} of its column in the file, as the file has {'a' if self.file.header else 'no'}"
            " header line"
            for name, source in sources
            if isinstance(source, unwanted)
        ]
        if isinstance(schema, TextSchema) and schema.classes:
            faults += self._faults_of_classes(schema)
        else:
            for column in schema.asked.columns:
                faults += self._faults_of_codes(column, schema.asked.codes(column))
                if self.columns.get(column, ColumnMapping()).born is not None:
                    faults.append(f"the label {column} is no age: leave out born and on")
        if isinstance(schema, SeriesSchema):
            faults += self._faults_of_series(schema)
        else:
            faults += ["variable and value are of a series: leave them out"] * is_narrow
            faults += ["clock is of a series: leave it out"] * (self.clock is not None)
        if isinstance(schema, TableSchema | SeriesSchema):
            for feature in schema.features:
                faults += self._faults_of_feature(feature)
        else:
            extra = self.columns.get(schema.text, ColumnMapping()).model_fields_set - {"column"}
            faults += [f"{schema.text} holds texts: leave out {field}" for field in sorted(extra)]
            faults += ["patient groups the rows of a table: leave it out"] * (self.file.patient is not None)
        absent = [column for column in schema.asked.columns if self.source(column) is None]
        faults += [f"the label {column} may not be absent" for column in absent]
        if faults:
            raise DataError("MappingInvalid", why=f"the mapping does not fit the task: {'; '.join(faults)}")

    def _faults_of_series(self, schema: SeriesSchema) -> list[str]:
        given = {name: self.columns.get(name, ColumnMapping()) for name in schema.used}
        faults = ["a plug-in reads tables and images so far: leave reader out"] * (self.reader is not None)
        faults += [f"{name} is no age: leave out born and on" for name in schema.inputs if given[name].born is not None]
        faults += [f"{name} may not be absent" for name in (schema.stay, schema.time) if given[name].absent]
        of_time = {"column", "absent"} if self.clock else {"column", "absent", "scale", "offset"}
        allowed = {schema.stay: {"column", "absent"}, schema.time: of_time}
        if self.clock and not seconds_of(schema.unit):
            faults.append(f"dates become no {schema.unit}: leave clock out, and give times as numbers")
        for name, fields in allowed.items():
            extra = given[name].model_fields_set - fields
            faults += [f"{name} has no {field}: leave it out" for field in sorted(extra)]
        names = [(name, str(self.source(name))) for name in schema.inputs if not given[name].absent]
        if self.file.variable is not None and len({key(source, ".") for _, source in names}) < len(names):
            faults.append("two variables have one name in the file")
        return faults

    def _faults_of_feature(self, feature: Feature) -> list[str]:
        if not isinstance(feature, CategoryFeature):
            return self._faults_of_codes(feature.name, None)
        named = self.columns.get(feature.name, ColumnMapping())
        if named.born is not None:
            return [f"{feature.name} holds codes: leave out born and on"]
        if not feature.is_named:
            return self._faults_of_codes(feature.name, feature.codes)
        faults = self._faults_of_scale(feature.name)
        given = [composed(name) if isinstance(name, str) else f"{name:g}" for name in named.codes.values()]
        if foreign := sorted(set(given) - set(feature.names)):
            known = ", ".join(feature.names)
            return [*faults, f"the codes of {feature.name} give {', '.join(foreign)}, but the task has {known}"]
        numbers = dict(zip(feature.names, feature.codes, strict=True))
        codes = {text: numbers[name] for text, name in zip(named.codes, given, strict=True)}
        return faults + self._ambiguous(feature.name, codes)

    def _faults_of_codes(self, column: str, known: list[float] | None) -> list[str]:
        """`known`: the task's numbers for a column of codes; None for one of measurements."""
        named = self.columns.get(column, ColumnMapping())
        faults = [] if known is None else self._faults_of_scale(column)
        numbers_of = {text: number for text, number in named.codes.items() if not isinstance(number, str)}
        if len(numbers_of) < len(named.codes):
            faults.append(f"the codes of {column} give texts, but the task has numbers")
        foreign = sorted({number for number in numbers_of.values() if known is not None and number not in known})
        if foreign:
            numbers = ", ".join(f"{number:g}" for number in foreign)
            faults.append(f"the codes of {column} give {numbers}, which the task does not know")
        return faults + self._ambiguous(column, numbers_of)

    def _faults_of_scale(self, column: str) -> list[str]:
        named = self.columns.get(column, ColumnMapping())
        has_scale = (named.scale, named.offset) != (1.0, 0.0)
        return [f"{column} holds codes: leave out scale and offset"] * has_scale

    def _ambiguous(self, column: str, codes: dict[str, float]) -> list[str]:
        faults, decimal = [], self.file.decimal
        named = self.columns.get(column, ColumnMapping())
        missing = {key(text.strip(), decimal) for text in (*self.file.missing, *named.missing)}
        meanings: dict[str | float, float] = {}
        for text, number in codes.items():
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


def _in_words(name: str) -> str:
    """A column of `sources`."""
    return "patient" if name == PATIENT else name.replace(ON, _ON_IN_WORDS)


def parse_mapping(raw: bytes, schema: DataSchema, what: str = "the mapping") -> Mapping:
    """Raises MappingInvalid with every fault, and where it is."""
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
