"""Both kinds of database store the same, are refused by name if they cannot serve, and show no password."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from consilium_chain.rpc.local_node import free_port
from consilium_core.children import child_environment
from consilium_server.database.engine import connect, open_database, reading, shown, upgrade, writing
from consilium_server.database.tables import Base, Block, Checkpoint, PhaseStart, Position
from consilium_server.errors import DatabaseUnfit, ServerError, Unavailable
from consilium_server.index import store
from raised_faults import raises_fault
from sqlalchemy import Engine, delete, func, select, text, update
from sqlalchemy.exc import IntegrityError, StatementError

SECRET = "s3cret/w@rd"
BLOCK = Block(7, bytes(32), 1_700_000_000)


def test_migrations_make_the_tables_of_the_models(database: Engine) -> None:
    with database.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_upgrade_of_what_is_up_to_date_keeps_its_rows(database: Engine) -> None:
    with writing(database) as connection:
        store.add(connection, [BLOCK])
    upgrade(database)
    with reading(database) as connection:
        assert connection.scalar(select(func.count()).select_from(Block)) == 1


def test_tables_of_a_later_version_are_left_alone(database: Engine, database_url: str) -> None:
    with writing(database) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with raises_fault(DatabaseUnfit, "SchemaTooNew") as caught:
        open_database(database_url)
    assert caught.value.values["revision"] == "9999"


def test_processes_that_open_a_database_at_once_make_its_tables_once(database_url: str) -> None:
    program = "import sys; from consilium_server.database.engine import open_database; open_database(sys.argv[1])"
    ran = [subprocess.Popen([sys.executable, "-c", program, database_url], env=child_environment()) for _ in range(3)]
    assert [one.wait(60) for one in ran] == [0, 0, 0]
    engine = open_database(database_url)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    engine.dispose()


def test_facts_go_with_their_block(database: Engine) -> None:
    start = PhaseStart(7, 0, 0, task=1, round=0, phase=1, deadline=0)
    with writing(database) as connection:
        store.add(connection, [BLOCK, start])
    with writing(database) as connection:
        connection.execute(delete(store.table_of(Block)))
    with reading(database) as connection:
        assert connection.scalar(select(func.count()).select_from(PhaseStart)) == 0
    with pytest.raises(IntegrityError), writing(database) as connection:
        store.add(connection, [start])  # a fact without a block


def test_amounts_are_exact_and_sort_as_numbers(database: Engine) -> None:
    amounts = [0, 9, 10, 2**63, 2**64 + 1, 2**128 - 1]
    rows = [
        Position(7, index, 0, "0xd", "0xn", 0, generation=0, shares=one, delegated=one, withdrawn=0, claimed=0)
        for index, one in enumerate(reversed(amounts))
    ]
    with writing(database) as connection:
        store.add(connection, [BLOCK, *rows])
    with reading(database) as connection:
        assert list(connection.scalars(select(Position.shares).order_by(Position.shares))) == amounts
    for wrong in (-1, 2**128):
        with pytest.raises(StatementError, match="is not an amount"), writing(database) as connection:
            connection.execute(update(store.table_of(Position)).values(shares=wrong))


def test_what_raises_leaves_nothing(database: Engine) -> None:
    with pytest.raises(IntegrityError), writing(database) as connection:
        store.add(connection, [BLOCK, Checkpoint(1, bytes(32)), BLOCK])
    with reading(database) as connection:
        assert connection.scalar(select(func.count()).select_from(Block)) == 0


def test_a_reader_sees_one_moment_and_waits_for_no_writer(database: Engine) -> None:
    count = select(func.count()).select_from(Checkpoint)
    with reading(database) as reader:
        assert reader.scalar(count) == 0
        with writing(database) as writer:
            store.add(writer, [Checkpoint(1, bytes(32))])
            assert reader.scalar(count) == 0
        assert reader.scalar(count) == 0
    with reading(database) as reader:
        assert reader.scalar(count) == 1


def test_writers_take_turns(database: Engine) -> None:
    """Each writer reads before it writes. Two at once would use a number twice."""

    def add_next() -> None:
        for _ in range(5):
            with writing(database) as connection:
                last = connection.scalar(select(func.max(Checkpoint.number)))
                store.add(connection, [Checkpoint(0 if last is None else last + 1, bytes(32))])

    threads = [Thread(target=add_next) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with reading(database) as connection:
        assert list(connection.scalars(select(Checkpoint.number).order_by(Checkpoint.number))) == list(range(20))


@pytest.mark.parametrize(
    "given",
    [
        "",
        "nonsense",
        f"mysql://me:{SECRET}@db/x",
        f"postgresql://me:{SECRET}@db:port/x",
        "postgresql://me@db/x?password=s3cret",
    ],
)
def test_a_url_of_no_database_is_not_repeated(given: str) -> None:
    with raises_fault(ServerError, "DatabaseUrlInvalid") as caught:
        connect(given)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_database_that_does_not_answer_is_named_without_its_password() -> None:
    port = free_port()
    url = f"postgresql://me:s3cret%2Fw%40rd@127.0.0.1:{port}/facts"
    with raises_fault(Unavailable, "DatabaseUnreachable") as caught:
        open_database(url)
    assert f"postgresql://127.0.0.1:{port}/facts" in str(caught.value)
    assert "s3cret" not in f"{caught.value} {shown(connect(url))} {connect(url)!r}"


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "index.sqlite").write_bytes(bytes(range(256)) * 32)
    with raises_fault(Unavailable, "DatabaseUnreachable", match="not a database"):
        open_database(f"sqlite:///{tmp_path / 'index.sqlite'}")
    with raises_fault(Unavailable, "DatabaseUnreachable", match="unable to open"):
        open_database(f"sqlite:///{tmp_path / 'missing' / 'index.sqlite'}")
