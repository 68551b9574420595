"""A query on a real PostgreSQL: rows in portions, read only, in bounded time; errors without a value or password."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from consilium_client.data.examples import MOST_ROWS
from consilium_client.data.kinds import read_examples
from consilium_client.data.mapping import Query
from consilium_client.data.query.rows import Queried
from consilium_client.errors import DataError
from postgres_driver import Postgres
from raised_faults import raises_fault
from test_bad_queries import SECRET, refused, rows
from test_queries import SPEC, with_sql, written
from worker_driver import until

PASSWORD = "sesam/öffne@dich"
FAULTS = {
    "SELECT colour FROM person": ("QueryWrong", "UndefinedColumn, SQLSTATE 42703: colour"),
    "SELECT * FROM persons": ("QueryWrong", "UndefinedTable"),
    "SELEC 1": ("QueryWrong", "SyntaxError"),
    "SELECT * FROM hidden": ("QueryNotAllowed", "may not read"),
    "SELECT CAST(name AS INT) AS a FROM person": ("QueryValueWrong", "SQLSTATE 22P02"),
    "SELECT 1 / (id - 1) AS a FROM person": ("QueryValueWrong", "DivisionByZero"),
    "SELECT 'infinity'::date AS a": ("QueryValueWrong", "DataError"),
    "SELECT pg_sleep(30)": ("QueryBeyondLimit", "1 seconds"),
    "SELECT id FROM person WHERE id > 5": ("QueryEmpty", "no rows"),
    "SELECT ARRAY[name] AS names FROM person": ("ColumnTypeWrong", "column names: its type is list"),
    "SELECT jsonb_build_object('a', name) AS a FROM person": ("ColumnTypeWrong", "dict"),
    "SELECT raised(name) FROM person": ("QueryFailed", "P0001"),
    "INSERT INTO person VALUES (3, 'x', 1)": ("QueryWrong", "SyntaxError"),
    "WITH w AS (INSERT INTO person VALUES (3, 'x', 1) RETURNING id) SELECT * FROM w": ("QueryNotAllowed", ""),
    "SELECT written()": ("QueryNotAllowed", ""),
    "SELECT 1 AS a; COMMIT; CREATE TABLE pwned ()": ("QueryWrong", "SyntaxError"),
    "COMMIT": ("QueryWrong", "SyntaxError"),
    "COPY person TO STDOUT": ("QueryWrong", "SyntaxError"),
    "SELECT set_config('transaction_read_only', 'off', true)": ("QueryNotAllowed", ""),
    "SELECT pg_read_file('/etc/passwd')": ("QueryNotAllowed", ""),
    "SELECT * FROM person FOR UPDATE": ("QueryNotAllowed", ""),
}


@pytest.fixture(scope="module")
def database(postgres: Postgres) -> str:
    url = postgres.database()
    with psycopg.connect(url, autocommit=True) as made:
        made.execute("CREATE TABLE person (id BIGINT, name TEXT, age NUMERIC)")
        made.execute("INSERT INTO person VALUES (1, %s, 50.5), (2, %s, NULL)", [SECRET, f"Erika {SECRET}"])
        made.execute("CREATE TABLE hidden (a INT)")
        made.execute(
            "CREATE FUNCTION raised(t TEXT) RETURNS INT LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'it is %', t; END $$"
        )
        made.execute(
            "CREATE FUNCTION written() RETURNS INT LANGUAGE plpgsql SECURITY DEFINER AS"
            " $$ BEGIN INSERT INTO hidden VALUES (1); RETURN 1; END $$"
        )
        made.execute("DO $$ BEGIN CREATE ROLE reader LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
        made.execute("GRANT SELECT ON person TO reader")
    return url.replace("postgres@", "reader@")


def address(tmp_path: Path, url: str) -> Path:
    path = tmp_path / "clinic.url"
    path.write_text(url + "\n")
    path.chmod(0o600)
    return path


def test_rows_arrive_as_a_tables(tmp_path: Path, database: str) -> None:
    data = address(tmp_path, database)
    assert rows(data, "SELECT id, name, age FROM person ORDER BY id") == [
        [1.0, SECRET, 50.5],
        [2.0, f"Erika {SECRET}", None],
    ]
    assert rows(data, "SELECT ':x %s' AS a, name LIKE 'E%' AS b FROM person ORDER BY id; -- % :b") == [
        [":x %s", 0.0], [":x %s", 1.0],
    ]  # fmt: skip
    sql = (
        "SELECT 40 + i AS age, CASE i % 3 WHEN 0 THEN 'm' ELSE 'w' END AS g, i / 7.0 AS creatinine, i % 2 = 0 AS died"
        " FROM generate_series(1, 50) i ORDER BY i"
    )
    mapping = with_sql(sql) + '[columns]\nsex = { column = "g", codes = { m = "male", w = "female" } }\n'
    found = read_examples(data, SPEC.data, written(tmp_path, mapping))
    assert (found.rows, found.labels.tolist()) == (50, [1, 0] * 25 if found.labels[0] else [0, 1] * 25)


@pytest.mark.parametrize("sql", FAULTS)
def test_a_fault_has_no_value(tmp_path: Path, database: str, sql: str, caplog: pytest.LogCaptureFixture) -> None:
    name, match = FAULTS[sql]
    error = refused(address(tmp_path, database), sql, caplog, seconds=1)
    assert (error.name, match in str(error)) == (name, True), error
    with psycopg.connect(database.replace("reader@", "postgres@")) as checked:
        counts = checked.execute("SELECT (SELECT count(*) FROM person), (SELECT count(*) FROM hidden)").fetchone()
        assert counts == (2, 0)
        assert checked.execute("SELECT to_regclass('pwned')").fetchone() == (None,)


def test_too_many_rows_never_lie_in_memory(tmp_path: Path, database: str) -> None:
    """Ten million rows of a server take the memory of a thousand."""
    sql = "SELECT 50 AS age, 'male' AS sex, 1 AS creatinine, 0 AS died FROM generate_series(1, 10000000)"
    data, mapping = address(tmp_path, database), written(tmp_path, with_sql(sql))
    tracemalloc.start()
    with raises_fault(DataError, "TooManyRows"):
        read_examples(data, SPEC.data, mapping)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 64 * MOST_ROWS + (1 << 23)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (f"postgresql://nobody:{PASSWORD}@127.0.0.1:1/warehouse", "ServerUnreachable"),
        ("postgresql://nobody:sesam@127.0.0.1:1/warehouse", "ServerUnreachable"),
        ("postgresql://nobody:sesam@/DATABASE?host=FOLDER", "ServerUnreachable"),
        ("postgresql://reader@/no_such?host=FOLDER", "ServerUnreachable"),
        ("sesam://nobody@host/warehouse", "ServerAddressWrong"),
        ("mssql+pyodbc://nobody:sesam@host/warehouse", "ServerAddressWrong"),
        ("sesam", "ServerAddressWrong"),
        ("", "ServerAddressWrong"),
    ],
)
def test_an_address_never_shows(
    tmp_path: Path, postgres: Postgres, url: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    data = address(tmp_path, url.replace("FOLDER", str(postgres.folder)))
    error = refused(data, "SELECT 1 AS a", caplog)
    assert error.name == name
    for part in ("sesam", "öffne", "nobody"):
        assert part not in str(error) + repr(error.values) + caplog.text


def test_others_may_not_read_the_address(tmp_path: Path, database: str) -> None:
    data = address(tmp_path, database)
    data.chmod(0o644)
    with raises_fault(DataError, "ServerAddressWrong", match="chmod 600"):
        rows(data, "SELECT 1 AS a")


def test_another_kind_of_server_is_read(tmp_path: Path) -> None:
    """SQLite stands for servers whose driver is installed. What a query writes there is not kept."""
    data = address(tmp_path, f"sqlite:///{tmp_path}/w.db")
    import sqlite3

    with sqlite3.connect(tmp_path / "w.db") as made:
        made.execute("CREATE TABLE person (id INT, name TEXT)")
        made.execute("INSERT INTO person VALUES (1, 'x')")
    made.close()
    assert rows(data, "SELECT * FROM person") == [[1.0, "x"]]
    with raises_fault(DataError, "QueryNotAllowed"):
        rows(data, "INSERT INTO person VALUES (2, 'y')")
    assert rows(data, "SELECT * FROM person") == [[1.0, "x"]]


@pytest.fixture(autouse=True)
def _no_stray_session(database: str) -> Iterator[None]:
    yield
    until(lambda: sessions(database) == 0)  # the server ends one a moment after its client has left


def sessions(database: str) -> int:
    """Besides its own."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(database) as checked:
        return int((checked.execute(query).fetchone() or (-1,))[0])


def test_a_result_is_closed_after_an_error(tmp_path: Path, database: str) -> None:
    with ExitStack() as stack:
        found = Queried(Query(sql="SELECT id, ARRAY[1] AS a FROM person"), address(tmp_path, database), stack).rows()
        with raises_fault(DataError, "ColumnTypeWrong"):
            list(found.cells([1]))
