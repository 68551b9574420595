"""A query over a folder of CSV, Parquet and NDJSON files, or over a DuckDB file, by DuckDB in this process.

A CSV or Parquet file is a table by its name: person.csv is `person`. NDJSON holds FHIR resources, or Bundles of them.
They are tables by `resourceType`, with three columns: `id`, `patient` (the id of the patient that a resource is about)
and `resource`, JSON.

The query may come from elsewhere, as its rows do. So DuckDB opens the files that the query names and no others, it
loads no extension, and only a tree of SELECTs is run: its COPY inside WITH would write.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Timer
from typing import Any, BinaryIO, Final, TypeVar

import duckdb

from consilium_client.data.mapping import Delimiter, FileFormat, Query
from consilium_client.data.query.rows import ROWS_AT_A_TIME, at_line, named_in
from consilium_client.data.table.csv_rows import CsvRows
from consilium_client.errors import DataError, FolderError

TABLES: Final = (".csv", ".parquet")
RESOURCES: Final = ".ndjson"
DATABASES: Final = (".duckdb", ".db")
LARGEST_RESOURCE: Final = 1 << 27  # bytes, of a line
SETTINGS: Final[dict[str, Any]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "temp_directory": "",  # no row is written to a disk
    "threads": 1,  # so that the same files give the same order of rows
    "disabled_optimizers": "type_pushdown",  # with it a TRY_CAST of a CSV file's cell fails as a CAST does
}
_SELECTS: Final = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
# Table functions that read nothing. Others read files, or run a text as SQL (`query`).
_FUNCTIONS: Final = {"unnest", "range", "generate_series", "json_each", "json_tree"}
_SQL_LINE = re.compile(r"^LINE (\d+):", re.MULTILINE)
_WORDS: Final = {
    "ParserException": "it is not SQL that DuckDB can read",
    "CatalogException": "there is no such table or function{}",
    "BinderException": "names or types do not fit together{}",
}
_RESOURCES = """
CREATE VIEW "fhir resources" AS
SELECT unnest(CASE WHEN json->>'$.resourceType' = 'Bundle' THEN json->'$.entry[*].resource' ELSE [json] END) AS resource
FROM read_ndjson_objects([{files}], maximum_object_size = {largest})"""
_KINDS: Final = "SELECT DISTINCT resource->>'$.resourceType' FROM \"fhir resources\""
_FHIR = """
CREATE VIEW IF NOT EXISTS {name} AS SELECT resource->>'$.id' AS id, regexp_extract(coalesce(
    resource->>'$.subject.reference', resource->>'$.patient.reference'), '[^/:]+$') AS patient, resource
FROM "fhir resources" WHERE resource->>'$.resourceType' = {text}"""
_TYPES: Final = ["BIGINT", "DOUBLE", "DATE", "TIMESTAMP", "VARCHAR"]  # without BOOLEAN: a yes stays a text
_CSV = (
    "CREATE VIEW {name} AS SELECT * FROM read_csv({file}, header = true, delim = {delimiter}, quote = '\"', escape ="
    " '\"', decimal_separator = {decimal}, sample_size = -1, auto_type_candidates = {types})"
)
Answer = TypeVar("Answer")


class FilesResult:
    """Raises DataError, here and from `batches`."""

    def __init__(self, path: Path, query: Query) -> None:
        self._path, self._query = path, query
        self._files, self._within = _files_of(path), set[str]()
        self._connection = duckdb.connect(config=SETTINGS | {"memory_limit": f"{query.gigabytes}GB"})
        self._timer = Timer(query.seconds, self._connection.interrupt)
        self._timer.daemon = True
        self._timer.start()
        try:
            self._open(self._tables())
            self.names = self._asked(self._start)
        except BaseException:
            self.close()
            raise

    def batches(self) -> Iterator[Sequence[Sequence[Any]]]:
        while batch := self._asked(lambda: self._connection.fetchmany(ROWS_AT_A_TIME)):
            if not self._timer.is_alive():
                raise self._too_slow()
            yield batch

    def close(self) -> None:
        self._timer.cancel()
        self._connection.close()

    def _start(self) -> list[str]:
        return [column[0] for column in self._connection.execute(self._query.sql).description or ()]

    def _tables(self) -> set[str]:
        """The names that the query reads, in small letters. Raises QueryNotAllowed unless it is one tree of SELECTs.

        Sets `_within`: those that its WITH defines.
        """
        [found] = self._do("SELECT json_serialize_sql(?::VARCHAR)", [self._query.sql])
        tree = json.loads(found[0])
        if tree["error"] and tree["error_type"] == "parser":
            at = at_line(self._query.sql[: int(tree.get("position", 0))].count("\n") + 1)
            raise DataError("QueryWrong", path=self._path, at=at, why=_WORDS["ParserException"])
        parts = list(_parts(tree))
        nodes = {part["type"] for part in parts if str(part.get("type", "")).endswith("_NODE")}
        functions = {part["function"]["function_name"] for part in parts if part.get("type") == "TABLE_FUNCTION"}
        if tree["error"] or len(tree["statements"]) != 1 or not nodes <= _SELECTS or not functions <= _FUNCTIONS:
            raise DataError("QueryNotAllowed", path=self._path, at="")
        self._within = {one["key"].lower() for part in parts for one in part.get("cte_map", {}).get("map", ())}
        return {part["table_name"].lower() for part in parts if part.get("type") == "BASE_TABLE"}

    def _open(self, tables: set[str]) -> None:
        """Makes these tables, with no other file in reach."""
        by_name: dict[str, Path] = {}
        for name, file in self._files:
            if file.suffix.lower() in TABLES and name in tables and by_name.setdefault(name, file) != file:
                raise FolderError("NamesAlike", file=file)
        resources = [file for _, file in self._files if file.suffix.lower() == RESOURCES]
        if self._path.suffix.lower() in DATABASES:
            self._do(f"ATTACH {_text(self._path.resolve())} AS data (READ_ONLY)")
            self._do("USE data")
        self._do(f"SET allowed_paths = [{', '.join(map(_text, [*by_name.values(), *resources]))}]")
        self._do("SET enable_external_access = false")
        for name, file in by_name.items():
            self._do(self._view(name, file))
        if resources and tables - by_name.keys() - self._within:
            self._do(_RESOURCES.format(files=", ".join(map(_text, resources)), largest=LARGEST_RESOURCE))
            for (kind,) in self._do(_KINDS):
                if kind and kind.lower() in tables - by_name.keys():
                    self._do(_FHIR.format(name=_named(kind), text=_text(kind)))
        self._do("SET lock_configuration = true")

    def _view(self, name: str, file: Path) -> str:
        if file.suffix.lower() != ".csv":
            return f"CREATE VIEW {_named(name)} AS SELECT * FROM read_parquet({_text(file)})"
        asked = {"delimiter": _text(self._query.delimiter), "decimal": _text(self._query.decimal)}
        return _CSV.format(name=_named(name), file=_text(file), types=_TYPES, **asked)

    def _do(self, statement: str, values: Sequence[str] = ()) -> list[Any]:
        return self._asked(lambda: self._connection.execute(statement, values).fetchall())

    def _asked(self, act: Callable[[], Answer]) -> Answer:
        """DuckDB's errors quote cells, so none is chained."""
        try:
            return act()
        except (duckdb.Error, UnicodeDecodeError) as error:
            found = error
        raise self._fault(found)

    def _fault(self, error: Exception) -> DataError:
        said, kind, at = str(error), type(error).__name__, ""
        if line := _SQL_LINE.search(said):
            at = at_line(int(line.group(1)))
        about = {"path": self._path, "at": at}
        match error:
            case duckdb.InterruptException():
                return self._too_slow()
            case duckdb.OutOfMemoryException():
                limit = f"{self._query.gigabytes:,} GB of memory"
                return DataError("QueryBeyondLimit", path=self._path, limit=limit, setting="gigabytes")
            case duckdb.PermissionException():
                return DataError("QueryNotAllowed", **about)
        for file in (one for _, one in self._files if str(one) in said):
            found, fault = fault_in(file, self._query.delimiter)
            return DataError("QueryFileMalformed", file=file, at=f", line {found}" if found else "", kind=fault or kind)
        if words := _WORDS.get(kind):
            return DataError("QueryWrong", **about, why=words.format(named_in(said, self._query.sql)))
        is_of_value = isinstance(error, duckdb.DataError | duckdb.InvalidInputException)
        return DataError("QueryValueWrong" if is_of_value else "QueryFailed", **about, kind=kind)

    def _too_slow(self) -> DataError:
        limit = f"{self._query.seconds:,} seconds"
        return DataError("QueryBeyondLimit", path=self._path, limit=limit, setting="seconds")


def _files_of(path: Path) -> list[tuple[str, Path]]:
    """Names in small letters, and files. Raises FolderError (LeadsOutside), OSError."""
    path.stat()
    found = sorted(path.iterdir()) if path.is_dir() else [path]
    files = [one for one in found if one.suffix.lower() in {*TABLES, RESOURCES, *DATABASES}]
    for one in files:
        if path.is_dir() and not one.resolve().is_relative_to(path.resolve()):
            raise FolderError("LeadsOutside", file=one)
    return [(one.stem.lower(), one.resolve()) for one in files]


def fault_in(file: Path, delimiter: Delimiter) -> tuple[int, str]:
    """The line of the first fault that Python's readers find in a CSV or NDJSON file, and its name; or 0 and ""."""
    with file.open("rb") as opened:
        if file.suffix.lower() == ".csv":
            return _fault_of_csv(opened, file, delimiter)
        lines = iter(lambda: opened.readline(LARGEST_RESOURCE), b"") if file.suffix.lower() == RESOURCES else ()
        return next(((line, "no JSON") for line, text in enumerate(lines, 1) if not _is_json(text)), (0, ""))


def _fault_of_csv(opened: BinaryIO, file: Path, delimiter: Delimiter) -> tuple[int, str]:
    try:
        deque(CsvRows(opened, file, FileFormat(delimiter=delimiter)).cells(()), 0)
    except DataError as error:
        return error.values.get("line", 0), error.name
    return 0, ""


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return not text.strip()
    return True


def _parts(tree: Any) -> Iterator[dict[str, Any]]:
    """All objects of a JSON tree."""
    pending = [tree]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            yield part
            pending += part.values()
        elif isinstance(part, list):
            pending += part


def _text(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _named(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
