"""A query can read the tables of its folder, and nothing else; a fault has its place, and no message has a cell."""

from __future__ import annotations

import logging
import os
import re
import socket
import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from consilium_client.data.mapping import Query
from consilium_client.data.query.rows import Queried
from consilium_client.errors import DataError, FolderError
from raised_faults import raises_fault

SECRET = "Mustermann"
WRITES = (
    "CREATE TABLE pwned (i INT)", "INSERT INTO rows VALUES (9, 9, 'x')", "DELETE FROM rows", "DROP VIEW rows",
    "COPY rows TO '{out}'", "COPY (SELECT 1) TO '{data}/rows.csv'", "EXPORT DATABASE '{out}'", "CHECKPOINT",
    "WITH w AS (COPY rows TO '{out}') SELECT * FROM w",
    "WITH w AS (COPY rows TO '{data}/rows.csv' (use_tmp_file false)) SELECT * FROM w",
    "WITH w AS (COPY (SELECT 1) TO '{data}/notes.ndjson' (use_tmp_file false)) SELECT * FROM w, Patient",
    "SELECT (WITH w AS (COPY rows TO '{out}') SELECT 1) AS a",
    "SELECT * FROM query('WITH w AS (COPY rows TO ''{data}/rows.csv'' (use_tmp_file false)) SELECT * FROM w')",
    "WITH w AS (INSERT INTO rows VALUES (1) RETURNING *) SELECT * FROM w",
    "SELECT 1 AS a; COPY rows TO '{out}'", "FROM rows; DROP VIEW rows",
)  # fmt: skip
REACHES = (
    "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM '/etc/passwd'", "FROM read_text('{outside}')",
    "FROM read_blob('{data}/../outside.csv')", "FROM glob('/etc/*')", "FROM '{data}/other.csv'",
    "FROM read_csv('{data}/other.csv')", "FROM read_ndjson_objects('{outside}')", "FROM sniff_csv('{outside}')",
    "FROM parquet_metadata('{outside}')", "SELECT (SELECT content FROM read_text('{outside}')) AS a",
    "FROM read_csv('http://127.0.0.1:{port}/x.csv')", "FROM 'http://127.0.0.1:{port}/x.parquet'",
    "FROM read_parquet('s3://127.0.0.1:{port}/x')", "ATTACH '{out}' AS w", "ATTACH 'http://127.0.0.1:{port}/x.db'",
    "INSTALL httpfs", "LOAD httpfs", "INSTALL h3 FROM community", "PRAGMA database_list", "SET threads = 8",
    "SET enable_external_access = true", "RESET allowed_paths", "CALL pragma_version()", "USE temp",
    "SELECT getenv('PATH') AS a", "FROM duckdb_settings()", "FROM duckdb_secrets()", "FROM query_table('rows')",
    "FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1 AS a'))", "EXPLAIN SELECT 1", "-- nothing", ";",
)  # fmt: skip
FAULTS = {
    "SELECT\n\tcolour FROM rows": ("QueryWrong", "line 2"),
    "FROM\npersons": ("QueryWrong", "line 2"),
    "SELECT age\nFROM rows\nWHRE age > 1": ("QueryWrong", "line 3"),
    "SELECT colour(age) AS a FROM rows": ("QueryWrong", "colour"),
    "SELECT " + "(" * 20_000 + "1" + ")" * 20_000: ("QueryWrong", "line 1"),
    "SELECT age, count(*) AS n FROM rows": ("QueryWrong", "do not fit together"),
    "SELECT name + 1 AS a\nFROM rows": ("QueryWrong", "line 1"),
    "SELECT id,\nCAST(name AS INT) AS a FROM rows": ("QueryValueWrong", "line 2"),
    "SELECT strptime(name, '%d.%m.%Y') AS a FROM rows": ("QueryValueWrong", "TRY_CAST"),
    "SELECT error(name) AS a FROM rows": ("QueryValueWrong", "TRY_CAST"),
    "SELECT CAST(id * 9000000000 AS INT) AS a FROM rows": ("QueryValueWrong", "line 1"),
    "FROM rows WHERE age > 200": ("QueryEmpty", "no rows"),
    "SELECT [name] AS names FROM rows": ("ColumnTypeWrong", "column names: its type is list"),
    "SELECT {{'a': name}} AS a FROM rows": ("ColumnTypeWrong", "dict"),
    "SELECT encode(name) AS a FROM rows": ("ColumnTypeWrong", "bytes"),
    "SELECT TIME '10:00' AS a FROM rows": ("ColumnTypeWrong", "time"),
    "SELECT INTERVAL 3 DAY AS a FROM rows": ("ColumnTypeWrong", "timedelta"),
    "FROM wide": ("QueryFileMalformed", r"wide.csv, line 4: .* \(LineWidthWrong\)"),
    "FROM latin": ("QueryFileMalformed", r"latin.csv, line 3: .* \(EncodingWrong\)"),
    "FROM unclosed": ("QueryFileMalformed", "unclosed.csv"),
    "FROM torn": ("QueryFileMalformed", "torn.parquet"),
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "rows.csv").write_text(f"id,age,name\n1,50,{SECRET}\n2,60,Erika {SECRET}\n")
    (folder / "other.csv").write_text("a\n1\n")
    (folder / "wide.csv").write_text(f"a,b\n1,2\n3,4\n5,{SECRET},6\n7,8\n")
    (folder / "latin.csv").write_bytes(f"a,b\n1,2\n3,M\xfcller {SECRET}\n".encode("latin-1"))
    (folder / "unclosed.csv").write_text(f'a,b\n1,2\n3,"{SECRET}\n5,6\n')
    (folder / "torn.parquet").write_bytes(b"PAR1" + SECRET.encode() + b"PAR1")
    patient = f'{{"resourceType": "Patient", "id": "1", "name": "{SECRET}"}}\n'
    (folder / "notes.ndjson").write_text(patient)
    (folder / "torn").mkdir()
    (folder / "torn" / "notes.ndjson").write_text(2 * patient + patient[:-4] + "\n")
    (tmp_path / "outside.csv").write_text("a\n1\n")
    return folder


def rows(data: Path, sql: str, **limits: Any) -> list[list[object]]:
    with ExitStack() as stack:
        found = Queried(Query(sql=sql, **limits), data, stack).rows()
        return [list(cells) for _, cells in found.cells(range(found.width))]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(data: Path, sql: str, caplog: pytest.LogCaptureFixture, **limits: Any) -> DataError:
    """The error, after a search of all that it could print."""
    with caplog.at_level(logging.DEBUG), pytest.raises(DataError) as caught:
        rows(data, sql, **limits)
    told = "".join(traceback.format_exception(caught.value)) + caplog.text + repr(caught.value.values)
    assert SECRET not in told.replace(sql, "")
    assert caught.value.__context__ is None  # DuckDB's own error quotes cells
    return caught.value


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        yield server


@pytest.mark.parametrize("sql", [*WRITES, *REACHES])
def test_nothing_is_written_or_reached(
    data: Path, sql: str, caplog: pytest.LogCaptureFixture, listening: socket.socket
) -> None:
    places = {"out": data.parent / "out", "data": data, "outside": data.parent / "outside.csv"}
    before = contents(data.parent)
    error = refused(data, sql.format(**places, port=listening.getsockname()[1]), caplog)
    assert error.name in {"QueryNotAllowed", "QueryWrong"}
    assert contents(data.parent) == before
    with pytest.raises(TimeoutError):
        listening.accept()


def test_a_duckdb_file_is_read_only(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Also through views in it, which name files outside."""
    import duckdb

    file, outside = data / "w.duckdb", data.parent / "outside.csv"
    with duckdb.connect(str(file)) as made:
        made.execute("CREATE TABLE rows AS SELECT 1 AS a")
        made.execute(f"CREATE VIEW far AS FROM read_csv('{outside}')")
    before = contents(data)
    assert rows(file, "FROM rows") == [[1.0]]
    assert refused(file, "WITH w AS (INSERT INTO rows VALUES (2) RETURNING a) FROM w", caplog).name == "QueryNotAllowed"
    assert refused(file, "FROM far", caplog).name in {"QueryNotAllowed", "QueryWrong"}
    (data / "torn.duckdb").write_bytes(SECRET.encode() * 1000)
    assert refused(data / "torn.duckdb", "SELECT 1 AS a", caplog).name == "QueryFileMalformed"
    (data / "torn.duckdb").unlink()
    assert contents(data) == before


@pytest.mark.parametrize("sql", FAULTS)
def test_a_fault_has_its_place(data: Path, sql: str, caplog: pytest.LogCaptureFixture) -> None:
    name, match = FAULTS[sql]
    error = refused(data, sql.replace("{{", "{").replace("}}", "}"), caplog)
    assert error.name == name, error
    assert re.search(match, str(error)), error


def test_a_line_that_is_no_json_is_named(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    error = refused(data / "torn", "SELECT id FROM Patient", caplog)
    assert "notes.ndjson, line 3: DuckDB cannot read this file (no JSON)" in str(error)
    assert rows(data, "SELECT id FROM patient") == [["1"]]


def test_time_and_memory_are_bounded(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    endless = "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i FROM r) SELECT i FROM r WHERE i < 0"
    assert refused(data, endless, caplog, seconds=1).values["setting"] == "seconds"
    large = "SELECT string_agg(repeat('x', 1000) || i, '') AS a FROM range(10_000_000) t(i)"
    assert refused(data, large, caplog, gigabytes=1).values["setting"] == "gigabytes"
    assert not [name for name in os.listdir(data) if "tmp" in name]  # nothing was moved to the disk


def test_values_of_all_types_arrive(data: Path) -> None:
    sql = (
        "SELECT 12345678901234567890123::HUGEINT, 1.5::DECIMAL(9, 2), 'nan'::DOUBLE, true, DATE '2020-02-29', NULL,"
        " TIMESTAMP '2020-01-01 10:00:00', ' x ', '00000000-0000-0000-0000-000000000001'::UUID, '{\"a\": 1}'::JSON, 1/0"
    )
    (found,) = rows(data, sql)
    assert found[:2] == [12345678901234567890123.0, 1.5]
    assert str(found[2]) == "nan"
    assert found[3:] == [
        1.0, "2020-02-29", None, "2020-01-01T10:00:00", "x", "00000000-0000-0000-0000-000000000001", '{"a": 1}',
        float("inf"),
    ]  # fmt: skip


def test_files_are_the_folders_own(data: Path) -> None:
    (data / "ROWS.parquet").write_bytes(b"")
    with raises_fault(FolderError, "NamesAlike"):
        rows(data, "FROM rows")
    assert rows(data, "FROM other") == [[1.0]]  # names of other tables do not matter
    (data / "link.csv").symlink_to(data.parent / "outside.csv")
    with raises_fault(FolderError, "LeadsOutside"):
        rows(data, "FROM other")
